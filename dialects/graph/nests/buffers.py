"""What loops that are written in Python work on: indices, scalars, buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import normalized
from ....core.dtypes import is_low_bit
from ....core.errors import StepwellError
from ..attrs import compute_type, is_float, is_reordered
from ..buffers import storage_type
from ..combiners import COMBINERS
from . import low_bits, scalars
from .nest import Indices, LocalBuffer, PlaceSteps, Scalars


class Body(Scalars, Protocol):
    """The kernel that indices, scalars and buffers belong to: see `KernelBody`."""

    def index(self, given: Any) -> Index:
        """A number, an index, or a computed integer as an index."""
        ...

    def value(self, index: Index | int) -> Scalar:
        """An index as a scalar of type `index`."""
        ...

    def number(self, given: Any) -> int:
        """An integer."""
        ...

    def scalar(self, given: Any, like: Attribute) -> Scalar:
        """A scalar, or a number as one of type `like`."""
        ...

    def loops(self, *extents: Any) -> AbstractContextManager[Any]:
        """Parallel loops from 0 to the extents."""
        ...

    def error(
        self, fact: str, expected: object = None, got: object = None, hint: str | None = None
    ) -> StepwellError:
        """An error that names the kernel, or its operator, and where its author wrote it."""
        ...


CAST = 'k.cast(index, "f32") makes a scalar of an index'
"""The hint where an index and a scalar meet."""


class Index:
    """An index: a loop variable, a size, or a sum of them; also with ``* // %`` of a number."""

    def __init__(self, k: Body, expr: AffineExpr) -> None:
        self.k, self.expr = k, normalized(expr)

    def __add__(self, other: Index | int) -> Index:
        return Index(self.k, self.expr + self.k.index(other).expr)

    __radd__ = __add__

    def __sub__(self, other: Index | int) -> Index:
        return Index(self.k, self.expr + self.k.index(other).expr * -1)

    def __rsub__(self, other: int) -> Index:
        return self.k.index(other) - self

    def __mul__(self, other: int) -> Index:
        return Index(self.k, self.expr * self.k.number(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Index:
        return Index(self.k, self.expr // self.k.number(other))

    def __mod__(self, other: int) -> Index:
        return Index(self.k, self.expr % self.k.number(other))

    def __lt__(self, other: Any) -> Scalar:
        return self.k.value(self) < other

    def __le__(self, other: Any) -> Scalar:
        return self.k.value(self) <= other

    def __gt__(self, other: Any) -> Scalar:
        return self.k.value(self) > other

    def __ge__(self, other: Any) -> Scalar:
        return self.k.value(self) >= other


def ceil_div(index: int | Index, divisor: int) -> int | Index:
    """An index, divided by a number and rounded up."""
    if isinstance(index, int):
        return -(-index // divisor)
    return Index(index.k, index.expr.ceil_div(divisor))


class Scalar:
    """A number in a kernel, in the type in which it is computed (f32 for f16)."""

    def __init__(self, k: Body, ssa: SSAValue) -> None:
        self.k, self.ssa = k, ssa

    def _with(self, function: Callable[..., SSAValue], other: Any, swap: bool = False) -> Scalar:
        value = self.k.scalar(other, self.ssa.type).ssa
        left, right = (value, self.ssa) if swap else (self.ssa, value)
        if left.type != right.type:
            raise self.k.error("operands have different types", left.type, right.type)
        return Scalar(self.k, function(self.k, left, right))

    def __add__(self, other: Any) -> Scalar:
        return self._with(scalars.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Scalar:
        return self._with(scalars.sub, other)

    def __rsub__(self, other: Any) -> Scalar:
        return self._with(scalars.sub, other, swap=True)

    def __mul__(self, other: Any) -> Scalar:
        return self._with(scalars.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Scalar:
        return self._with(scalars.divide, other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._with(scalars.divide, other, swap=True)

    def __pow__(self, other: Any) -> Scalar:
        return self._with(scalars.power, other)

    def __neg__(self) -> Scalar:
        return Scalar(self.k, scalars.negative(self.k, self.ssa))

    def __lt__(self, other: Any) -> Scalar:
        return self._with(scalars.less, other)

    def __le__(self, other: Any) -> Scalar:
        return self._with(scalars.less_equal, other)

    def __gt__(self, other: Any) -> Scalar:
        return self._with(scalars.less, other, swap=True)

    def __ge__(self, other: Any) -> Scalar:
        return self._with(scalars.less_equal, other, swap=True)

    # Bits of integers, and conditions.

    def __and__(self, other: Any) -> Scalar:
        return self._of_bits(arith.AndIOp, other)

    def __or__(self, other: Any) -> Scalar:
        return self._of_bits(arith.OrIOp, other)

    def __xor__(self, other: Any) -> Scalar:
        return self._of_bits(arith.XOrIOp, other)

    def __lshift__(self, other: Any) -> Scalar:
        return self._of_bits(arith.ShLIOp, other)

    def __rshift__(self, other: Any) -> Scalar:
        return self._of_bits(arith.ShRSIOp, other)

    def _of_bits(self, kind: Callable[..., Operation], other: Any) -> Scalar:
        if is_float(self.ssa.type):
            raise self.k.error("a float has no bits", "integers or conditions", self.ssa.type)
        return self._with(lambda k, a, b: k.insert(kind(a, b)), other)

    # Python would take a scalar for true, and two scalars for different.

    def __bool__(self) -> bool:
        fact = "a scalar has no truth value before the kernel runs"
        raise self.k.error(fact, "k.where, k.maximum or k.minimum")

    def __eq__(self, other: object) -> bool:
        raise self.k.error("a scalar is compared by == or !=", "k.equal(a, b)")

    __hash__ = object.__hash__


def computable(k: Body, element: Attribute) -> None:
    """Refuse elements that a `Scalar`, which has no sign, cannot compare and divide."""
    if is_reordered(element):
        raise k.error("elements cannot be computed with", "i64, as graph.cast makes", element)


class Elements(Protocol):
    """Where the elements of a buffer are: scalars of `type`, as they are computed."""

    type: Attribute

    def at(self, index: Indices) -> SSAValue:
        """The element at an index."""
        ...

    def put(self, index: Indices, value: SSAValue) -> None:
        """Give an element its value."""
        ...

    def update(self, index: Indices, value: SSAValue, combine: str | None) -> None:
        """Change an element, or combine a scalar with it."""
        ...

    def fill(self, shape: Sequence[int | Index], value: Callable[[Indices], SSAValue]) -> None:
        """Give each element its first value: `value` at its index."""
        ...


class Stored(Elements):
    """Elements of any type that are in memory."""

    def __init__(self, k: Body, memory: LocalBuffer, name: str, kind: Attribute) -> None:
        computable(k, kind)
        self.k, self.memory, self.name, self.kind = k, memory, name, kind
        self.type = low_bits.wide_type(kind) if is_low_bit(kind) else compute_type(kind)

    def at(self, index: Indices) -> SSAValue:
        loaded = self.memory.at(index)
        if is_low_bit(self.kind):
            return low_bits.decoded(self.k, loaded, self.kind)
        return scalars.computed(self.k, loaded, self.kind)

    def put(self, index: Indices, value: SSAValue) -> None:
        self.update(index, value, None)

    def update(self, index: Indices, value: SSAValue, combine: str | None) -> None:
        if combine is not None and storage_type(self.kind) != self.type:
            fact = f'"{self.name}" cannot be accumulated in memory'
            raise self.k.error(fact, "f32, f64 or a signed integer", self.kind)
        if is_low_bit(self.kind):
            stored = low_bits.encoded(self.k, value, self.kind)
        else:
            stored = scalars.stored(self.k, value, self.kind)
        self.memory.put(index, stored, combine)

    def fill(self, shape: Sequence[int | Index], value: Callable[[Indices], SSAValue]) -> None:
        with self.k.loops(shape) as places:
            index = tuple(place.expr for place in places)
            self.put(index, value(index))


class Buffer:
    """A dense operand or result of a kernel, or a buffer of its own.

    Args:
        k: the kernel.
        name: what errors call it.
        kind: the element type.
        elements: where its elements are.
        rank: the number of its dimensions.
        sizes: their sizes.
    """

    def __init__(
        self,
        k: Body,
        name: str,
        kind: Attribute,
        elements: Elements,
        rank: int,
        sizes: Callable[[], Sequence[int | Index]],
    ) -> None:
        self.k, self.name, self.kind, self.elements = k, name, kind, elements
        self._rank, self._sizes = rank, sizes

    @property
    def shape(self) -> Sequence[int | Index]:
        """Its sizes; an `Index` where one is known at run time only."""
        return self._sizes()

    @property
    def dtype(self) -> str:
        """The element type, such as "f32"."""
        return str(self.kind)

    @property
    def type(self) -> Attribute:
        """The type in which its elements are computed."""
        return self.elements.type

    def _place(self, index: Any) -> Indices:
        given = index if isinstance(index, tuple) else (index,)
        if len(given) != self._rank:
            fact = f'wrong number of indices of "{self.name}"'
            raise self.k.error(fact, self._rank, len(given))
        return tuple(self.k.index(i).expr for i in given)

    def __getitem__(self, index: Any) -> Scalar:
        return Scalar(self.k, self.elements.at(self._place(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self._place(index)
        self.elements.put(place, self._element(value))

    # Python would read x[0], x[1], ... without an end.

    def __iter__(self) -> NoReturn:
        fact = f'"{self.name}" cannot be iterated over'
        raise self.k.error(fact, "`with k.loops(..)` or k.reduce")

    def update(self, index: Any, value: Any) -> None:
        """Change the element at an index, which may change again: see `fill`."""
        place = self._place(index)
        self.elements.update(place, self._element(value), None)

    def accumulate(self, index: Any, value: Any, combine: str = "add") -> None:
        """Combine a scalar with the element at an index, by add, mul, max or min.

        The iterations of a parallel loop must not meet in an element; those of a serial one may.

        Raises:
            CompileError: if the combiner or the type of the scalar is wrong, or if the elements
                are stored in another type than that in which they are computed.
        """
        if combine not in COMBINERS:
            raise self.k.error("wrong combiner", ", ".join(COMBINERS), combine)
        place = self._place(index)
        self.elements.update(place, self._element(value), combine)

    def fill(self, value: Any) -> None:
        """Give each element its first value: a number, a scalar, or a function of its index.

        Elements may change afterwards: by `update`, or by `accumulate`.
        """

        def first(index: Indices) -> SSAValue:
            if not callable(value):
                return self._element(value)
            return self._element(value(*(Index(self.k, place) for place in index)))

        self.elements.fill(self.shape, first)

    def _element(self, value: Any) -> SSAValue:
        """A scalar, or a number, as what is stored."""
        wanted = self.elements.type
        scalar = self.k.scalar(value, wanted).ssa
        if scalar.type != wanted:
            fact = f'wrong type of a value stored in "{self.name}"'
            raise self.k.error(fact, wanted, scalar.type)
        return scalar


class Matrix(Protocol):
    """A CSR operand of a kernel; `row(i)` is what a reduction iterates over."""

    @property
    def shape(self) -> tuple[int | Index, int | Index]:
        """Its numbers of rows and columns."""
        ...

    def row(self, index: Index | int) -> Row:
        """The stored entries of a row."""
        ...

    def stored(self, position: AffineExpr) -> Scalar:
        """The value of the stored entry at a position."""
        ...

    def fold(
        self,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        """Fold over the places of the entries of a row: see `Nest.pattern_several`."""
        ...


class Row:
    """The stored entries of one row of a CSR matrix."""

    def __init__(self, matrix: Matrix, index: Index) -> None:
        self.matrix, self.index = matrix, index

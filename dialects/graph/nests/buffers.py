"""What a kernel that is written in Python works on: indices, scalars, buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import normalized
from ....core.dims import Dim, Shape
from ....core.dtypes import ELEMENT_TYPES, is_low_bit
from ....core.errors import CompileError
from ...loop.attrs import Combine
from .. import low_bits, scalars
from ..attrs import compute_type, is_reordered
from ..buffers import buffer_types, storage_type
from ..combiners import COMBINERS
from .nest import Scalars
from .written_nest import WrittenNest


class KernelBody(Scalars, Protocol):
    """The interface of the kernel that indices, scalars and buffers belong to."""

    nest: WrittenNest
    """Its loops, which receive what is written."""

    def index(self, given: Any) -> Index:
        """A number, an index, or a computed integer as an index."""
        ...

    def variable(self, value: SSAValue) -> Index:
        """An index value as an index expression."""
        ...

    def number(self, given: Any) -> int:
        """An integer."""
        ...

    def scalar(self, given: Any, like: Attribute) -> SSAValue:
        """A number, or a scalar, as a value of a type."""
        ...

    def size(self, dim: Dim, buffer: SSAValue, axis: int) -> int | Index:
        """A size of a buffer."""
        ...

    def extent(self, buffer: SSAValue, axis: int) -> Index:
        """A size of a buffer that is known at run time only."""
        ...

    def error(
        self, fact: str, expected: object = None, got: object = None, hint: str | None = None
    ) -> CompileError:
        """An error that names the kernel, and the line that its author wrote."""
        ...


class Index:
    """An index: a loop variable, a size, or a sum of them; also with ``* // %`` of a number."""

    def __init__(self, k: KernelBody, expr: AffineExpr) -> None:
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


class Scalar:
    """A number in a kernel, in the type in which it is computed (f32 for f16)."""

    def __init__(self, k: KernelBody, ssa: SSAValue) -> None:
        self.k, self.ssa = k, ssa

    def _with(self, function: Callable[..., SSAValue], other: Any, swap: bool = False) -> Scalar:
        value = self.k.scalar(other, self.ssa.type)
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

    # Python would take a scalar for true, and two scalars for different.

    def __bool__(self) -> bool:
        fact = "a scalar has no truth value before the kernel runs"
        raise self.k.error(fact, "k.where, k.maximum or k.minimum")

    def __eq__(self, other: object) -> bool:
        raise self.k.error("a scalar is compared by == or !=", "k.equal(a, b)")

    __hash__ = object.__hash__


def computable(k: KernelBody, element: Attribute) -> None:
    """Refuse elements that a `Scalar`, which has no sign, cannot compare and divide."""
    if is_reordered(element):
        raise k.error("elements cannot be computed with", "i64, as graph.cast makes", element)


class Buffer:
    """A dense operand or result of a kernel."""

    def __init__(self, k: KernelBody, ssa: SSAValue, kind: TensorType, sizes: Shape) -> None:
        self.k, self.ssa, self.kind, self.sizes = k, ssa, kind, sizes
        computable(k, kind.element_type)

    @property
    def shape(self) -> tuple[int | Index, ...]:
        """Its sizes; an `Index` where one is known at run time only."""
        return tuple(self.k.size(dim, self.ssa, axis) for axis, dim in enumerate(self.sizes))

    @property
    def dtype(self) -> str:
        """The element type, such as "f32"."""
        return str(self.kind.element_type)

    def _place(self, index: Any) -> list[AffineExpr]:
        given = index if isinstance(index, tuple) else (index,)
        if len(given) != len(self.sizes):
            fact = f'wrong number of indices of "{self.ssa.name_hint}"'
            raise self.k.error(fact, len(self.sizes), len(given))
        return [self.k.index(i).expr for i in given]

    def __getitem__(self, index: Any) -> Scalar:
        loaded = self.k.nest.load_here(self.ssa, self._place(index))
        kind = self.kind.element_type
        if is_low_bit(kind):
            return Scalar(self.k, low_bits.decoded(self.k, loaded, kind))
        return Scalar(self.k, scalars.computed(self.k, loaded, kind))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._store(index, value, None)

    # Python would read x[0], x[1], ... without an end.

    def __iter__(self) -> NoReturn:
        fact = f'"{self.ssa.name_hint}" cannot be iterated over'
        raise self.k.error(fact, "`with k.loops(..)`, k.sum or k.reduce")

    def accumulate(self, index: Any, value: Any, combine: str = "add") -> None:
        """Combine a scalar with the element at an index, by add, mul, max or min.

        The iterations of a parallel loop must not meet in an element; those of a serial one may.

        Raises:
            CompileError: if the combiner or the type of the scalar is wrong, or if the elements
                are stored in another type than that in which they are computed.
        """
        if combine not in COMBINERS:
            raise self.k.error("wrong combiner", ", ".join(COMBINERS), combine)
        kind = self.kind.element_type
        if compute_type(kind) != storage_type(kind) or is_low_bit(kind):
            fact = f'"{self.ssa.name_hint}" cannot be accumulated in memory'
            raise self.k.error(fact, "f32, f64 or a signed integer", kind)
        self._store(index, value, COMBINERS[combine].combine)

    def _store(self, index: Any, value: Any, combine: Combine | None) -> None:
        place, kind = self._place(index), self.kind.element_type
        wanted = low_bits.wide_type(kind) if is_low_bit(kind) else compute_type(kind)
        scalar = self.k.scalar(value, wanted)
        if scalar.type != wanted:
            fact = f'wrong type of a value stored in "{self.ssa.name_hint}"'
            raise self.k.error(fact, wanted, scalar.type)
        if is_low_bit(kind):
            stored = low_bits.encoded(self.k, scalar, kind)
        else:
            stored = scalars.stored(self.k, scalar, kind)
        self.k.nest.store(stored, self.ssa, place, combine)


class SparseBuffer:
    """A CSR operand of a kernel; `row(i)` is what a reduction iterates over."""

    def __init__(self, k: KernelBody, parts: Sequence[SSAValue], kind: TensorType) -> None:
        self.k, self.parts, self.kind = k, parts, kind

    @property
    def shape(self) -> tuple[int | Index, int | Index]:
        """Its numbers of rows and columns."""
        rows, columns = self.kind.get_shape()
        counted = rows if rows >= 0 else self.k.extent(self.parts[0], 0) - 1
        return counted, columns if columns >= 0 else self.k.variable(self.parts[3])

    def __getitem__(self, index: Any) -> NoReturn:
        fact = f'"{self.parts[0].name_hint}" is sparse, and has no element at an index'
        raise self.k.error(fact, "k.sum(a.row(i), lambda column, value: ..)")

    def row(self, index: Index | int) -> Row:
        """The stored entries of a row."""
        return Row(self, self.k.index(index))


class Row:
    """The stored entries of one row of a CSR matrix."""

    def __init__(self, matrix: SparseBuffer, index: Index) -> None:
        self.matrix, self.index = matrix, index


class _LocalBuffer(Buffer):
    """A buffer of a kernel's own, whose sizes are known where it is made."""

    def __init__(
        self, k: KernelBody, ssa: SSAValue, kind: TensorType, sizes: Sequence[int | Index]
    ) -> None:
        super().__init__(k, ssa, kind, (Dim.of(0),) * len(sizes))
        self._own = tuple(sizes)

    @property
    def shape(self) -> tuple[int | Index, ...]:
        """Its sizes."""
        return self._own


def local_buffer(k: KernelBody, shape: int | Index | Sequence[int | Index], dtype: str) -> Buffer:
    """A buffer of a kernel's own; see `KernelBuilder.local`."""
    given = shape if isinstance(shape, Sequence) else [shape]
    sizes = [size if isinstance(size, Index) else k.number(size) for size in given]
    if dtype not in ELEMENT_TYPES:
        raise k.error("unknown element type", ", ".join(ELEMENT_TYPES), dtype)
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise k.error("wrong size of a local buffer", "1 or more", sizes)
    known = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    kind = TensorType(ELEMENT_TYPES[dtype], known)
    (type,) = buffer_types(kind)
    symbolic = [size.expr for size in sizes if isinstance(size, Index)]
    made = k.nest.allocate(cast(MemRefType, type), symbolic)
    made.name_hint = "local"
    return _LocalBuffer(k, made, kind, sizes)

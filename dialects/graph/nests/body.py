"""`KernelBody`: what an operator, or a user, writes loops with.

Scalars take Python's operators, and so do indices; a buffer is read by `x[i, j]` and written
by `y[i, j] = value`. What is written goes into a nest, which places it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, f32, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ....core.dtypes import ELEMENT_TYPES, is_low_bit
from ....core.errors import StepwellError
from ..attrs import compute_type, is_float
from ..buffers import storage_type
from ..positions import from_start
from . import low_bits, scalars
from .buffers import CAST, Buffer, Index, Scalar, Stored, computable
from .errors import UnknownNameError
from .loops import KernelLoops

_OWN = (
    *("carry", "cast", "equal", "fma", "local", "loops", "max", "maximum", "minimum", "only_if"),
    *("op", "reduce", "reduce_several", "serial", "sum", "where"),
)
NAMES = tuple(sorted((*_OWN, *scalars.FUNCTIONS)))
"""What the author of a kernel uses of its builder; `docs/kernels-and-functions.md` lists it."""


class KernelBody(KernelLoops):
    """Loops, scalars and buffers that are written in Python, into a nest."""

    # Scalars.

    def scalar(self, given: Any, like: Attribute) -> Scalar:
        """A scalar, or a number as one of type `like`.

        Raises:
            CompileError: if it is something else.
        """
        if isinstance(given, Scalar):
            return given
        if isinstance(given, (bool, int, float)):
            return Scalar(self, self.constant(given, like))
        if isinstance(given, Index) and like == IndexType():
            return self.value(given)
        hint = CAST if isinstance(given, Index) else None
        raise self.error("wrong value", "a scalar or a number", type(given).__name__, hint)

    def element_type(self, dtype: str | Attribute) -> Attribute:
        """The element type of a name, such as "f32".

        Raises:
            CompileError: if there is none.
        """
        if isinstance(dtype, Attribute):
            return dtype
        if dtype not in ELEMENT_TYPES:
            raise self.error("unknown element type", ", ".join(ELEMENT_TYPES), dtype)
        return ELEMENT_TYPES[dtype]

    def cast(self, value: Scalar | Index | float, dtype: str | Attribute) -> Scalar:
        """A scalar, an index or a number as a scalar of an element type, such as "f32".

        It has a value of that type, in the one in which it is computed: f32 for f16, bf16 and
        low-bit floats, a wider signed one for unsigned and low-bit integers.
        """
        target = self.element_type(dtype)
        computable(self, target)
        if isinstance(value, (int, float)):
            number = value if isinstance(value, float) else self.number(value)
            if is_float(target):
                number, kind = float(number), compute_type(target)
            else:
                kind = f64 if isinstance(value, float) else i64
            value = Scalar(self, self.constant(number, kind))
        if isinstance(value, Index):
            result = scalars.from_index(self, self.nest.value(value.expr), target)
        else:
            ssa = self._operand_of("cast", value)
            result = scalars.convert(self, ssa, ssa.type, target)
        if is_low_bit(target):
            return Scalar(self, low_bits.decoded(self, result, target))
        return Scalar(self, scalars.wrapped(self, result, target))

    def where(self, condition: Scalar, a: Any, b: Any) -> Scalar:
        """a where the condition holds, else b."""
        like = next((v.ssa.type for v in (a, b) if isinstance(v, Scalar)), f32)
        chosen = self._operand_of("where", condition)
        first, second = self.scalar(a, like).ssa, self.scalar(b, like).ssa
        return Scalar(self, scalars.select(self, chosen, first, second))

    def maximum(self, a: Any, b: Any) -> Scalar:
        """The larger of two scalars, or of a scalar and a number."""
        return Scalar(self, scalars.maximum(self, *self._both("maximum", a, b)))

    def minimum(self, a: Any, b: Any) -> Scalar:
        """The smaller of two scalars, or of a scalar and a number."""
        return Scalar(self, scalars.minimum(self, *self._both("minimum", a, b)))

    def equal(self, a: Any, b: Any) -> Scalar:
        """Whether two scalars, or a scalar and a number, are the same."""
        return Scalar(self, scalars.equal(self, *self._both("equal", a, b)))

    def fma(self, a: Scalar, b: Any, c: Any) -> Scalar:
        """a * b + c, rounded once for floats."""
        first = self._operand_of("fma", a)
        others = [self.scalar(x, first.type).ssa for x in (b, c)]
        for other in others:
            if other.type != first.type:
                raise self.error("k.fma of different types", first.type, other.type)
        return Scalar(self, scalars.fma(self, first, *others))

    def apply(self, function: Callable[..., Any], *operands: Any) -> Scalar:
        """The result of a function of `scalars`, or of an operation, on scalars.

        `k.apply(scalars.fma, a, b, c)`, `k.apply(arith.ShRUIOp, word, places)`.
        """
        given = [x.ssa if isinstance(x, Scalar) else x for x in operands]
        if isinstance(function, type) and issubclass(function, Operation):
            return Scalar(self, self.insert(function(*given)))
        return Scalar(self, function(self, *given))

    def _both(self, name: str, a: Any, b: Any) -> tuple[SSAValue, SSAValue]:
        """Two operands of one type, of which one may be a number."""
        like = next((v.ssa.type for v in (a, b) if isinstance(v, Scalar)), None)
        if like is None:
            raise self._not_scalar(name, a)
        first, second = self.scalar(a, like).ssa, self.scalar(b, like).ssa
        if first.type != second.type:
            raise self.error(f"k.{name} of different types", first.type, second.type)
        return first, second

    def _operand_of(self, name: str, given: Any) -> SSAValue:
        if not isinstance(given, Scalar):
            raise self._not_scalar(name, given)
        return given.ssa

    def _not_scalar(self, name: str, given: Any) -> StepwellError:
        fact, hint = f"k.{name} of something that is not a scalar", None
        if isinstance(given, Index):
            hint = CAST
        elif isinstance(given, Buffer):
            hint = "an element of a buffer is one, x[i, j]"
        return self.error(fact, "a scalar", type(given).__name__, hint)

    def __getattr__(self, name: str) -> Callable[[Scalar], Scalar]:
        """A function of one float, such as `exp`."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in scalars.FUNCTIONS:
            # The body of an operator has no `sum` and no `max`.
            own = [one for one in NAMES if one in scalars.FUNCTIONS or one in dir(self)]
            near = difflib.get_close_matches(name, own, 3)
            near += [f"{name}imum"] if f"{name}imum" in own else []
            known = ", ".join(f"k.{one}" for one in near or own)
            hint = f"nearest: {known}" if near else f"there are {known}"
            raise UnknownNameError(str(self.error(f"there is no k.{name}", hint=hint)))

        def function(x: Scalar) -> Scalar:
            ssa = self._operand_of(name, x)
            if not is_float(ssa.type):
                raise self.error(f"{name} of a value that is not a float", "f32 or f64", ssa.type)
            return Scalar(self, self.insert(scalars.FUNCTIONS[name](ssa)))

        return function

    def place(self, given: Scalar, size: int | Index) -> Index:
        """A place along an axis of a size, of which a negative one counts from the back."""
        return Index(self, from_start(self.nest, given.ssa, self.index(size).expr))

    # Memory.

    def local(
        self, shape: int | Index | Sequence[int | Index], dtype: str | Attribute = "f32"
    ) -> Buffer:
        """A buffer in the innermost loop, whose elements are undefined at first.

        A size is a number, or an index such as a size of an operand; a negative one means 0.

        Raises:
            CompileError: if there is no such element type, or a number is not positive.
        """
        given = shape if isinstance(shape, Sequence) else [shape]
        sizes = [size if isinstance(size, Index) else self.number(size) for size in given]
        kind = self.element_type(dtype)
        own = tuple(self.index(size).expr for size in self.local_sizes(sizes))
        elements = Stored(self, self.nest.local(own, storage_type(kind)), "local", kind)
        return Buffer(self, "local", kind, elements, len(sizes), lambda: tuple(sizes))

    def local_sizes(self, sizes: Sequence[int | Index]) -> Sequence[int | Index]:
        """The sizes of a local buffer, none of which is 0.

        Raises:
            CompileError: if one is.
        """
        if any(isinstance(size, int) and size < 1 for size in sizes):
            raise self.error("wrong size of a local buffer", "1 or more", sizes)
        return sizes

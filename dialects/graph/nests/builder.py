"""`KernelBuilder`: writes a `loop.kernel` from Python, statement by statement.

Scalars take Python's operators, and so do indices; a buffer is read by `x[i, j]` and written
by `y[i, j] = value`. See `kernels.py` for who calls it.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    IntegerType,
    TensorType,
    f32,
    f64,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.building.arithmetic import INDEX
from ....core.building.sizes import affine_size
from ....core.dims import Dim, Shape, size_of_argument
from ....core.dtypes import ELEMENT_TYPES, is_low_bit
from ....core.errors import CompileError, explain
from ...loop.ops import KernelOp, StoreOp
from ...sparse_tensor import is_sparse
from .. import low_bits, scalars
from ..attrs import compute_type, is_float
from ..buffers import buffer_types
from ..interfaces import GraphOp, tensor_type
from .buffers import (
    Buffer,
    Index,
    Scalar,
    SparseBuffer,
    computable,
    local_buffer,
)
from .errors import UnknownNameError, line_of_caller
from .loops import KernelLoops

NAMES = tuple(
    sorted(
        (
            *("carry", "cast", "equal", "local", "loops", "max", "maximum", "minimum", "op"),
            *("reduce", "reduce_several", "serial", "sum", "where"),
            *scalars.FUNCTIONS,
        )
    )
)
"""What the author of a kernel uses of its builder; `docs/kernels-and-functions.md` lists it."""


class KernelBuilder(KernelLoops):
    """Writes the body of one kernel; see `kernels.Kernel`.

    Attributes:
        op: the operator that the kernel is for, with its attributes; None for a call.
    """

    def __init__(self, name: str, op: GraphOp | None) -> None:
        super().__init__()
        self.name, self.op = name, op
        self._sizes: dict[str, Index] = {}

    def error(
        self, fact: str, expected: object = None, got: object = None, hint: str | None = None
    ) -> CompileError:
        """An error that names the kernel, and the line that its author wrote."""
        return CompileError(self._explained(fact, expected, got, hint))

    def _explained(self, fact: str, expected: object, got: object, hint: str | None) -> str:
        subject, line = f'kernel "{self.name}"', line_of_caller()
        return explain(subject, fact, expected=expected, got=got, origin=line, hint=hint)

    # The interface that `scalars` needs.

    def insert(self, op: Operation) -> SSAValue:
        """Append an operation to the innermost loop; return its first result."""
        return self.nest.insert(op)

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        """A scalar constant, at the top of the kernel and there only once."""
        return self.nest.constant(value, type)

    # Indices and sizes.

    def variable(self, value: SSAValue) -> Index:
        """An index value as an index expression."""
        return Index(self, self.nest.variable(value))

    def index(self, given: Any) -> Index:
        """A number, an index, or a computed integer as an index.

        Raises:
            CompileError: if it is something else.
        """
        if isinstance(given, Index):
            return given
        if isinstance(given, Scalar) and isinstance(given.ssa.type, IntegerType):
            return Index(self, self.nest.index(given.ssa))
        return Index(self, AffineExpr.constant(self.number(given)))

    def number(self, given: Any) -> int:
        """An integer.

        Raises:
            CompileError: if it is something else, or does not fit into 64 bits.
        """
        try:
            number = operator.index(given)
        except TypeError:
            got = type(given).__name__
            raise self.error("wrong index", "an index or an integer", got) from None
        if not -(2**63) <= number < 2**63:
            raise self.error("wrong index", "an integer of 64 bits", number)
        return number

    def size(self, dim: Dim, buffer: SSAValue, axis: int) -> int | Index:
        """A size in those of the operands; one that they do not say is that of the buffer."""
        if dim.is_static:
            return dim.value
        if not self._sizes.keys() >= set(dim.symbols):
            return self.extent(buffer, axis)
        return Index(self, affine_size(dim, lambda name: self._sizes[name].expr, self._product))

    def _product(self, left: AffineExpr, right: AffineExpr) -> AffineExpr:
        factors = self.nest.value(left), self.nest.value(right)
        return self.nest.variable(self.nest.on_top(arith.MuliOp(*factors)))

    def extent(self, buffer: SSAValue, axis: int) -> Index:
        """The size of a dimension of a buffer."""
        size = memref.DimOp(buffer, self.constant(axis, INDEX))
        return self.variable(self.nest.on_top(size))

    # Scalars.

    def scalar(self, given: Any, like: Attribute) -> SSAValue:
        """A scalar, or a number as one of type `like`.

        Raises:
            CompileError: if it is something else.
        """
        if isinstance(given, Scalar):
            return given.ssa
        if isinstance(given, (bool, int, float)):
            return self.constant(given, like)
        got = type(given).__name__
        raise self.error("wrong value", "a scalar or a number", got)

    def cast(self, value: Scalar | Index | float, dtype: str) -> Scalar:
        """A scalar, an index or a number as a scalar of an element type, such as "f32".

        It has a value of that type, in the one in which it is computed: f32 for f16, bf16 and
        low-bit floats, a wider signed one for unsigned and low-bit integers.
        """
        if dtype not in ELEMENT_TYPES:
            raise self.error("unknown element type", ", ".join(ELEMENT_TYPES), dtype)
        target = ELEMENT_TYPES[dtype]
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
        first, second = self.scalar(a, like), self.scalar(b, like)
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

    def _both(self, name: str, a: Any, b: Any) -> tuple[SSAValue, SSAValue]:
        """Two operands of one type, of which one may be a number."""
        like = next((v.ssa.type for v in (a, b) if isinstance(v, Scalar)), None)
        if like is None:
            raise self._not_scalar(name, a)
        first, second = self.scalar(a, like), self.scalar(b, like)
        if first.type != second.type:
            raise self.error(f"k.{name} of different types", first.type, second.type)
        return first, second

    def _operand_of(self, name: str, given: Any) -> SSAValue:
        if not isinstance(given, Scalar):
            raise self._not_scalar(name, given)
        return given.ssa

    def _not_scalar(self, name: str, given: Any) -> CompileError:
        fact, hint = f"k.{name} of something that is not a scalar", None
        if isinstance(given, Index):
            hint = 'k.cast(index, "f32") makes one of an index'
        elif isinstance(given, Buffer):
            hint = "an element of a buffer is one, x[i, j]"
        return self.error(fact, "a scalar", type(given).__name__, hint)

    def __getattr__(self, name: str) -> Callable[[Scalar], Scalar]:
        """A function of one float, such as `exp`."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in scalars.FUNCTIONS:
            near = difflib.get_close_matches(name, NAMES, 3)
            near += [f"{name}imum"] if f"{name}imum" in NAMES else []
            known = ", ".join(f"k.{one}" for one in near or NAMES)
            hint = f"nearest: {known}" if near else f"there are {known}"
            raise UnknownNameError(self._explained(f"there is no k.{name}", None, None, hint))

        def function(x: Scalar) -> Scalar:
            ssa = self._operand_of(name, x)
            if not is_float(ssa.type):
                raise self.error(f"{name} of a value that is not a float", "f32 or f64", ssa.type)
            return Scalar(self, self.insert(scalars.FUNCTIONS[name](ssa)))

        return function

    # Memory.

    def local(self, shape: int | Index | Sequence[int | Index], dtype: str = "f32") -> Buffer:
        """A buffer in the innermost loop, whose elements are undefined at first.

        A size is a number, or an index such as a size of an operand; a negative one means 0.

        Raises:
            CompileError: if there is no such element type, or a number is not positive.
        """
        return local_buffer(self, shape, dtype)

    # The whole.

    def operand(self, value: SSAValue, number: int, name: str) -> Buffer | SparseBuffer:
        """Add an input; its symbolic sizes are `x<number>.<dimension>`."""
        kind = tensor_type(value)
        args = [self._argument(type, name) for type in buffer_types(kind)]
        symbols = [size_of_argument(number, axis) for axis in range(kind.get_num_dims())]
        sizes = tuple(
            Dim.symbol(s) if n < 0 else Dim.of(n)
            for s, n in zip(symbols, kind.get_shape(), strict=True)
        )
        result = SparseBuffer(self, args, kind) if is_sparse(kind) else None
        result = result or Buffer(self, args[0], kind, sizes)
        for axis, (symbol, dim) in enumerate(zip(symbols, sizes, strict=True)):
            if not dim.is_static:
                known = self.extent(args[0], axis) if isinstance(result, Buffer) else None
                self._sizes[symbol] = known or cast(Index, cast(Any, result).shape[axis])
        return result

    def result(self, kind: TensorType, sizes: Shape, name: str) -> Buffer:
        """Add an output, with its sizes in those of the operands."""
        (type,) = buffer_types(kind)
        return Buffer(self, self._argument(type, name), kind, sizes)

    def _argument(self, type: Attribute, name: str) -> SSAValue:
        arg = self._body.insert_arg(type, len(self._body.args))
        arg.name_hint = name
        return arg

    @property
    def argument_types(self) -> list[Attribute]:
        """The types of the buffers and sizes, operands first."""
        return [arg.type for arg in self._body.args]

    def finish(self, symbol: str, outputs: int) -> KernelOp:
        """The kernel; all of its results must be written, and all of its loops closed.

        Raises:
            CompileError: if one of them is not.
        """
        if self.nest.here:
            raise self.error("a loop is left open", "`with k.loops(..)`, which closes it")
        args = self._body.args
        for arg in args[len(args) - outputs :]:
            if not any(isinstance(use.operation, StoreOp) for use in arg.uses):
                raise self.error(f'nothing is written to "{arg.name_hint}"')
        for op in reversed(list(self._body.ops)):
            # Sizes and constants that nothing needs.
            made = isinstance(op, arith.ConstantOp | arith.MuliOp | memref.DimOp)
            if made and op.results[0].first_use is None:
                self._body.erase_op(op)
        types = [arg.type for arg in args]
        count = len(types) - outputs
        return KernelOp(symbol, types[:count], types[count:], Region(self._body))

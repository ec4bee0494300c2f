"""`KernelBuilder`: writes a `loop.kernel` from Python, statement by statement.

See `body.py` for what is written with it, and `kernels.py` for who calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NoReturn, cast

from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.dims import Dim, Shape, size_of_argument
from ....core.building.arithmetic import INDEX
from ....core.building.sizes import affine_size
from ....core.errors import CompileError, explain
from ...loop.ops import KernelOp, StoreOp
from ...sparse_tensor import is_sparse
from ..buffers import buffer_types
from ..combiners import COMBINERS
from ..interfaces import GraphOp, tensor_type
from . import scalars
from .body import KernelBody
from .buffers import Buffer, Index, Matrix, Row, Scalar, Stored
from .errors import line_of_caller
from .loop_nest import InMemory
from .nest import PlaceSteps
from .written_nest import WrittenNest


class KernelBuilder(KernelBody):
    """Writes the body of one kernel; see `kernels.Kernel`.

    Attributes:
        op: the operator that the kernel is for, with its attributes; None for a call.
    """

    nest: WrittenNest

    def __init__(self, name: str, op: GraphOp | None) -> None:
        self._body = Block()
        self.nest = WrittenNest(self._body)
        self.name, self.op = name, op
        self._sizes: dict[str, Index] = {}

    def error(
        self, fact: str, expected: object = None, got: object = None, hint: str | None = None
    ) -> CompileError:
        """An error that names the kernel, and the line that its author wrote."""
        subject, line = f'kernel "{self.name}"', line_of_caller()
        return CompileError(
            explain(subject, fact, expected=expected, got=got, origin=line, hint=hint)
        )

    def attempt(self) -> AbstractContextManager[None]:
        """Loops that are opened within the context, and left by an exception, are not there."""
        return self.nest.attempt()

    # Sizes.

    def variable(self, value: SSAValue) -> Index:
        """An index value as an index expression."""
        return Index(self, self.nest.variable(value))

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

    # Sums and maxima, whose type follows from their terms.

    def sum(self, over: Any, term: Callable[..., Scalar]) -> Scalar:
        """The sum of `term(index)`, iterating as `reduce` does."""
        self._check_range("sum", "a + b", over, term)
        zero = partial(scalars.zero, self)
        return self._folded(over, "add", term, zero, self._added)

    def max(self, over: Any, term: Callable[..., Scalar]) -> Scalar:
        """The largest `term(index)`; -inf or the smallest integer if there is none."""
        self._check_range("max", "k.maximum(a, b)", over, term)
        largest = COMBINERS["max"]
        first, join = partial(largest.init, self), partial(largest.step, self)
        return self._folded(over, largest.name, term, first, join)

    def _check_range(self, name: str, of_two: str, over: Any, term: object) -> None:
        """Refuse a reduction that is not over a range."""
        hint = f"of two values it is {of_two}"
        for extent in over if isinstance(over, tuple) else (over,):
            if not isinstance(extent, (Row, Index, int)) or isinstance(extent, bool):
                expected = "a number of iterations, or a.row(i)"
                raise self.error(f"k.{name} is over a range", expected, type(extent).__name__, hint)
        if not callable(term):
            fact, expected = f"k.{name} of no function", f"k.{name}(n, lambda i: ..)"
            raise self.error(fact, expected, type(term).__name__, hint)

    def _folded(
        self,
        over: Any,
        combine: str,
        term: Callable[..., Scalar],
        first: Callable[[Attribute], SSAValue],
        join: Callable[[SSAValue, SSAValue], SSAValue],
    ) -> Scalar:
        """A reduction of terms.

        Args:
            over: what to iterate over; see `reduce`.
            combine: how partial results join.
            term: the term at an index.
            first: what the reduction of terms of a type starts at.
            join: the next result from the one so far and a term.
        """
        kind = self._type_of(over, term)

        def step(*index: Any) -> Scalar:
            value = self.scalar(term(*index[:-1]), kind)
            return Scalar(self, join(index[-1].ssa, value.ssa))

        return self.reduce(over, combine, Scalar(self, first(kind)), step)

    def _type_of(self, over: Any, term: Callable[..., Any]) -> Attribute:
        """The type of a term, found out by writing it down in a place that is thrown away."""
        with self.nest.scrap() as variable:
            if isinstance(over, Row):
                first = over.matrix.stored(AffineExpr.constant(0))
                given: tuple[Any, ...] = (self.variable(variable), first)
            else:
                count = len(over) if isinstance(over, tuple) else 1
                given = tuple(self.variable(variable) for _ in range(count))
            result = term(*given)
            if not isinstance(result, Scalar):
                raise self.error(
                    "a reduction of a value that is not a scalar", "a scalar", type(result).__name__
                )
            return result.ssa.type

    def _added(self, total: SSAValue, term: SSAValue) -> SSAValue:
        """The sum of two scalars; a product that nothing else needs becomes part of it."""
        # a * b + c, rounded once
        product = term.owner
        if isinstance(product, arith.MulfOp) and term.first_use is None:
            left, right = product.lhs, product.rhs
            product.detach()
            product.erase()
            return self.insert(math.FmaOp(left, right, total))
        return scalars.add(self, total, term)

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
        result = (
            SparseBuffer(self, args, kind) if is_sparse(kind) else self._dense(args[0], kind, sizes)
        )
        for axis, (symbol, dim) in enumerate(zip(symbols, sizes, strict=True)):
            if not dim.is_static:
                known = self.extent(args[0], axis) if isinstance(result, Buffer) else None
                self._sizes[symbol] = known or cast(Index, cast(Any, result).shape[axis])
        return result

    def result(self, kind: TensorType, sizes: Shape, name: str) -> Buffer:
        """Add an output, with its sizes in those of the operands."""
        (type,) = buffer_types(kind)
        return self._dense(self._argument(type, name), kind, sizes)

    def _dense(self, memory: SSAValue, kind: TensorType, sizes: Shape) -> Buffer:
        name, element = memory.name_hint or "", kind.element_type
        elements = Stored(self, InMemory(self.nest, memory), name, element)

        def shape() -> tuple[int | Index, ...]:
            return tuple(self.size(dim, memory, axis) for axis, dim in enumerate(sizes))

        return Buffer(self, name, element, elements, len(sizes), shape)

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


class SparseBuffer(Matrix):
    """A CSR operand in the buffers of its parts."""

    def __init__(self, k: KernelBuilder, parts: Sequence[SSAValue], kind: TensorType) -> None:
        self.k, self.parts, self.kind = k, parts, kind

    @property
    def shape(self) -> tuple[int | Index, int | Index]:
        rows, columns = self.kind.get_shape()
        counted = rows if rows >= 0 else self.k.extent(self.parts[0], 0) - 1
        return counted, columns if columns >= 0 else self.k.variable(self.parts[3])

    def __getitem__(self, index: Any) -> NoReturn:
        fact = f'"{self.parts[0].name_hint}" is sparse, and has no element at an index'
        raise self.k.error(fact, "k.sum(a.row(i), lambda column, value: ..)")

    def row(self, index: Index | int) -> Row:
        return Row(self, self.k.index(index))

    def stored(self, position: AffineExpr) -> Scalar:
        values = InMemory(self.k.nest, self.parts[2])
        elements = Stored(self.k, values, self.parts[2].name_hint or "", self.kind.element_type)
        return Scalar(self.k, elements.at((position,)))

    def fold(
        self,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        pointers, indices = self.parts[:2]
        return self.k.nest.reduce_entries(pointers, indices, row, combines, inits, step)

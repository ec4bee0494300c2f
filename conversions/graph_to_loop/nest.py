"""Builds loop nests from operators that define their value at an index.

`NestBuilder` is the `Nest` that `GraphOp.value_at` receives. Three things keep the nest small:

- `LoopNest` places each operation once, in its outermost legal loop.
- A value at an index is computed once while the loops it depends on are open, and so is a
  reduction that two operators have in common.
- A value that the plan stages is computed into a `loop.local` buffer, or into the result, by a nest
  of its own, so that a reduction does not run again in each iteration of a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr

from ...core.building.arithmetic import INDEX
from ...core.errors import InternalError, UnsupportedError, explain
from ...core.ir.provenance import origin
from ...core.ir.typed import owned, tensor_type
from ...dialects.graph.interfaces import FusionKind, GraphOp, element_type, faults_of
from ...dialects.graph.nests import scalars
from ...dialects.graph.nests.loop_nest import LoopFrame, LoopNest
from ...dialects.graph.nests.nest import Indices, Nest, PlaceSteps
from ...dialects.graph.nests.proofs import known_in
from ...dialects.graph.plan.local_buffers import local_type
from ...dialects.graph.plan.nest_plan import NestPlan
from ...dialects.graph.plan.visibility import StoredRounding
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.loop.ops import KernelOp
from .arguments import KernelArgument, SparseArgument
from .sizes import ArgumentSizes


class NestBuilder(LoopNest, Nest):
    """Builds the nests of one kernel.

    Args:
        kernel: the kernel, whose body is to be filled.
        arguments: those of the kernel for each argument of the primitive function.
        results: the results of the function, with their buffers.
        shapes: the symbolic shapes of the primitive function.
        plan: says which values are staged, and where.
        rounding: knows which values are rounded to 16 bits, though they are not stored.
    """

    def __init__(
        self,
        kernel: KernelOp,
        arguments: dict[SSAValue, KernelArgument],
        results: Sequence[tuple[SSAValue, SSAValue]],
        shapes: SymbolicShapes,
        plan: NestPlan,
        rounding: StoredRounding,
    ) -> None:
        super().__init__(kernel.body.block, lambda: known_in(kernel, shapes))
        self.arguments = arguments
        self.shapes = shapes
        self.results, self.plan, self.rounding = results, plan, rounding
        self._sizes = ArgumentSizes(self, list(arguments.values()), results, shapes)
        self._ends: dict[tuple[SSAValue, AffineExpr], tuple[AffineExpr, AffineExpr]] = {}
        self._positions: set[AffineExpr] = set()
        self._reshaped: dict[tuple[SSAValue, Indices], Indices] = {}

    # Values at an index.

    def at(self, value: SSAValue, index: Indices) -> SSAValue:
        """The scalar of a tensor value at an index, in the type in which it is computed."""
        key = (value, index)
        if (known := self.known(key)) is not None:
            return known
        if isinstance(value, BlockArgument):
            buffer = self.arguments[value]
            if isinstance(buffer, SparseArgument):
                fact = "a sparse operand is read only by its entries"
                raise UnsupportedError(explain("convert-graph-to-loop", fact))
            result = scalars.computed(self, self.load(buffer, index), element_type(value))
        elif value in self.plan.staged and self._positions.isdisjoint(index):
            result = self._staged_value(value, index, self.plan.staged[value])
        else:
            result = self._inline(value, index)
        self.home_of(self.frames_of(index, result)).memo[key] = result
        return result

    def _inline(self, value: SSAValue, index: Indices) -> SSAValue:
        op = value.owner
        if not isinstance(value, OpResult) or not isinstance(op, GraphOp):
            name = op.name if isinstance(op, Operation) else "block"
            raise UnsupportedError(explain(name, "has no value at an index"))
        with self.standing_for(op), faults_of(op):
            if own := self._reshaped.get((value, index)):
                result = self.at(op.operands[0], own)
            else:
                result = op.value_at(self, index, value.index)
            if op.fusion != FusionKind.INJECTIVE:
                result = self.as_element(value, result)
        return result

    def as_element(self, value: SSAValue, scalar: SSAValue) -> SSAValue:
        """A computed scalar, wrapped or rounded as it would be if the element was stored."""
        kind = element_type(value)
        if self.rounding.needs(value):
            return scalars.rounded(self, scalar, kind)
        return scalars.wrapped(self, scalar, kind)

    def know_reshaped(self, value: SSAValue, index: Indices, own: Indices) -> None:
        """Map an index of a reshaped value to that of the same element in its operand."""
        self._reshaped[value, index] = own

    def store_element(
        self, value: SSAValue, buffer: SSAValue, index: Indices, kind: Attribute
    ) -> None:
        """Store a computed scalar in the buffer of a tensor with elements of `kind`."""
        self.store(scalars.stored(self, value, kind), buffer, index)

    def extent(self, value: SSAValue, dim: int) -> AffineExpr:
        """The size of a dimension of a tensor value."""
        size = self._sizes.of(self.shapes.shape(value)[dim])
        if size is None:
            fact = "a size does not follow from the sizes of the arguments"
            where = origin(self.sources[-1]) if self.sources else None
            raise UnsupportedError(explain("convert-graph-to-loop", fact, origin=where))
        return size

    # Staging.

    def _staged_value(self, value: SSAValue, index: Indices, depth: int) -> SSAValue:
        """Read `value` from its buffer, which is filled on first use.

        A local one holds the dimensions after the first `depth`, at the requested leading indices.
        """
        outer = index[:depth]
        key = ("staged", value, outer)
        buffer, in_result = self.known(key), value is self.plan.in_result
        if buffer is None:
            frame = self.home_of(self.frames_of(outer))
            fill = self._fill_result if in_result else self._fill_local
            buffer = frame.memo[key] = fill(value, outer, frame)
        loaded = self.load(buffer, index if in_result else index[depth:])
        if element_type(value) == i1:
            return self.insert(arith.CmpiOp(loaded, self.constant(0, i8), "ne"))
        return loaded

    def _fill_result(self, value: SSAValue, outer: Indices, frame: LoopFrame) -> SSAValue:
        """The buffer of the only result, with a row of a value at the leading indices `outer`."""
        ((_, buffer),) = self.results
        with self.under(frame.depth), self.loops([self.extent(value, len(outer))]) as row:
            index = (*outer, *row)
            self.store(self._inline(value, index), buffer, index)
        return buffer

    def _fill_local(self, value: SSAValue, outer: Indices, frame: LoopFrame) -> SSAValue:
        """A new local buffer in the loop of `frame`, filled with a value after indices `outer`."""
        kind = local_type(tensor_type(value), len(outer))
        if kind is None or (frame.depth and not frame.parallel):
            fact = "the plan stages a value where no local buffer can be"
            got, where = tensor_type(value), origin(owned(value, Operation))
            raise InternalError(explain("convert-graph-to-loop", fact, got=got, origin=where))
        with self.under(frame.depth):
            local = self.allocate(kind)
            with self.loops([AffineExpr.constant(n) for n in kind.get_shape()]) as inner:
                scalar = self._inline(value, (*outer, *inner))
                if element_type(value) == i1:
                    scalar = self.insert(arith.ExtUIOp(scalar, i8))
                self.store(scalar, local, inner)
        return local

    # Entries.

    def pattern_several(
        self,
        matrix: SSAValue,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        """Fold over the places of the stored entries of a row."""
        source = self._sparse(matrix)

        def place(
            position: AffineExpr, column: AffineExpr, totals: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            self._know_entry(matrix, position, row, column)
            return step(position, column, totals)

        return self.reduce_entries(source.indptr, source.indices, row, combines, inits, place)

    def _sparse(self, matrix: SSAValue) -> SparseArgument:
        source = self.arguments.get(matrix)
        if isinstance(source, SparseArgument):
            return source
        raise UnsupportedError(
            explain(
                "convert-graph-to-loop",
                "a sparse value inside of a kernel",
                expected="a sparse argument",
                got=matrix.type,
            )
        )

    def _know_entry(
        self, matrix: SSAValue, position: AffineExpr, row: AffineExpr, column: AffineExpr
    ) -> None:
        self._ends[matrix, position] = row, column
        self._positions.add(position)

    def entry(self, matrix: SSAValue, position: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
        """The row and the column of a stored entry; see `Nest.entry`."""
        return self._ends[matrix, position]

    def stored_entry(self, matrix: SSAValue, position: AffineExpr) -> SSAValue:
        """The value of a stored entry; see `Nest.stored_entry`."""
        loaded = self.load(self._sparse(matrix).values, [position])
        return scalars.computed(self, loaded, element_type(matrix))

    def count(self, matrix: SSAValue, row: AffineExpr) -> AffineExpr:
        """The number of stored entries of a row; see `Nest.count`."""
        start, end = self._row_ends(matrix, row)
        return self.index(self.insert(arith.SubiOp(end, start)))

    def _row_ends(self, matrix: SSAValue, row: AffineExpr) -> tuple[SSAValue, SSAValue]:
        """The position of the first entry of a row, and the one after its last."""
        indptr = self._sparse(matrix).indptr
        start, end = (
            self.insert(arith.IndexCastOp(self.load(indptr, [place]), INDEX))
            for place in (row, row + 1)
        )
        return start, end

    @contextmanager
    def entry_loops(self, matrix: SSAValue, rest: Sequence[AffineExpr]) -> Iterator[Indices]:
        """Open loops over the rows of a matrix, over `rest`, then over the row's entries.

        Yields the position of the entry, then the variables of the loops in between.
        """
        source = self._sparse(matrix)
        with self.loops([self.extent(matrix, 0), *rest]) as (row, *between):
            start, end = self._row_ends(matrix, row)
            count = self.index(self.insert(arith.SubiOp(end, start)))
            with self.loops([count]) as (number,):
                position = self.index(start) + number
                loaded = self.load(source.indices, [position])
                self._know_entry(matrix, position, row, self.index(loaded))
                yield (position, *between)

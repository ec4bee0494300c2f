"""Building loop nests from operators that say what their value is at an index.

`NestBuilder` is the `Nest` that `GraphOp.value_at` is given. What keeps the nest small:

- An operation is placed at the outermost loop on which its operands depend, so whatever does
  not depend on an inner loop is computed before it. That alone puts the maximum of a row of
  softmax outside of the loop over the row.
- A value at an index is computed once while the loops it depends on are open, and so is a
  reduction that two operators have in common.
- What the plan of the kernel stages is computed into a `loop.local` buffer by a nest of its
  own, then read, so that a reduction does not run again in each iteration of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
    i1,
    i8,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import (
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)
from xdsl.traits import Pure

from ..core.building.arithmetic import INDEX, computed
from ..core.building.scopes import Scope, Scopes
from ..core.dims import Dim
from ..core.errors import UnsupportedError, explain
from ..core.provenance import fuse, origin
from ..dialects.graph import scalars
from ..dialects.graph.attrs import compute_type
from ..dialects.graph.interfaces import FusionKind, GraphOp, Index, element_type
from ..dialects.graph.plan.local_buffers import local_type
from ..dialects.graph.plan.nest_plan import NAMES
from ..dialects.graph.shapes import SymbolicShapes
from ..dialects.loop import ops as loop
from ..dialects.loop.attrs import Combine
from ..dialects.loop.syntax import compress


@dataclass(frozen=True)
class SparseArgument:
    """The arguments of a kernel that stand for one CSR matrix."""

    indptr: SSAValue
    indices: SSAValue
    values: SSAValue
    columns: SSAValue | None
    """The number of columns, where the type does not say it."""


Argument = SSAValue | SparseArgument


@dataclass(eq=False)
class Frame(Scope):
    """A loop whose body is being filled; the first frame is the body of the kernel."""

    parallel: bool = False
    dependences: set[Frame] = field(default_factory=set)
    """Frames on which the operations in the body depend."""


class NestBuilder(Scopes[Frame]):
    """Builds the nests of one kernel.

    Args:
        block: the body of the kernel, to be filled.
        arguments: for each argument of the primitive function what stands for it.
        shapes: the symbolic shapes of the primitive function.
        staged: values that are staged, with the number of outer loops they are kept under.
    """

    def __init__(
        self,
        block: Block,
        arguments: dict[SSAValue, Argument],
        shapes: SymbolicShapes,
        staged: Mapping[SSAValue, int],
    ) -> None:
        super().__init__(Frame(block))
        self.arguments = arguments
        self.shapes = shapes
        self.staged = staged
        self.variables: list[SSAValue] = []
        self.depends: dict[SSAValue, frozenset[Frame]] = {}
        self._used: dict[str, int] = {}
        self._sources: list[Operation] = []
        self._sizes: dict[Dim, AffineExpr] = {}
        self._ends: dict[tuple[SSAValue, AffineExpr], tuple[AffineExpr, AffineExpr]] = {}
        self._positions: set[AffineExpr] = set()
        self._reshaped: dict[tuple[SSAValue, Index], Index] = {}

    # Values at an index.

    def at(self, value: SSAValue, index: Index) -> SSAValue:
        """The scalar of a tensor value at an index, in the type in which it is computed."""
        key = (value, index)
        for frame in self.scopes:
            if key in frame.memo:
                return frame.memo[key]
        frames = self._index_frames(index)
        if isinstance(value, BlockArgument):
            result = self._load_argument(value, index)
        elif value in self.staged and self._positions.isdisjoint(index):
            result = self._staged_value(value, index, self.staged[value])
        else:
            result = self._inline(value, index)
        self._home(frames).memo[key] = result
        return result

    def _inline(self, value: SSAValue, index: Index) -> SSAValue:
        op = value.owner
        assert isinstance(value, OpResult)
        if not isinstance(op, GraphOp):
            name = op.name if isinstance(op, Operation) else "block"
            raise UnsupportedError(explain(name, "has no value at an index"))
        with self.standing_for(op):
            if own := self._reshaped.get((value, index)):
                result = self.at(op.operands[0], own)
            else:
                result = op.value_at(self, index, value.index)
            if op.fusion != FusionKind.INJECTIVE:
                kind = cast(TensorType, value.type).element_type
                result = scalars.wrapped(self, result, kind)
        return result

    @contextmanager
    def standing_for(self, op: Operation) -> Iterator[None]:
        """Give what is placed the location of `op`, for as long as the context lasts."""
        self._sources.append(op)
        yield
        self._sources.pop()

    def know_reshaped(self, value: SSAValue, index: Index, own: Index) -> None:
        """Say where the element of a reshaped value at an index is in what is reshaped."""
        self._reshaped[value, index] = own

    def _load_argument(self, value: BlockArgument, index: Index) -> SSAValue:
        buffer = self.arguments[value]
        if isinstance(buffer, SparseArgument):
            raise UnsupportedError(
                explain("convert-graph-to-loop", "a sparse operand is read only by its entries")
            )
        return self.computed(self._load(buffer, index), element_type(value))

    def computed(self, loaded: SSAValue, kind: Attribute) -> SSAValue:
        """Turn what a buffer of this element type holds into the type in which it is computed."""
        return scalars.computed(self, loaded, kind)

    def stored(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """Turn a computed scalar into what a buffer of this element type holds."""
        return scalars.stored(self, value, kind)

    def _load(self, buffer: SSAValue, index: Sequence[AffineExpr]) -> SSAValue:
        map, operands = compress(index, self.variables)
        op = loop.LoadOp(buffer, map, operands)
        return self._insert_at(self.home_of_read(buffer, op.operands), op)

    def store(self, value: SSAValue, buffer: SSAValue, index: Index) -> None:
        """Write a scalar at an index in the innermost loop."""
        map, operands = compress(index, self.variables)
        self.note_write(buffer)
        self._place(loop.StoreOp(value, buffer, map, operands), self.scopes[-1])

    # Staging.

    def _staged_value(self, value: SSAValue, index: Index, depth: int) -> SSAValue:
        """Read `value` from its local buffer, which is made and filled when first needed.

        The buffer holds all of the dimensions after the first `depth`, at the leading
        indices that are asked for.
        """
        outer = index[:depth]
        if not self._index_frames(outer) <= set(self.scopes[: depth + 1]):
            return self._inline(value, index)
        frame = self.scopes[depth]
        key = ("local", value, outer)
        if key not in frame.memo:
            kind = local_type(cast(TensorType, value.type), depth)
            if kind is None:
                return self._inline(value, index)
            frame.memo[key] = self._fill_local(value, outer, kind, depth)
        loaded = self._load(frame.memo[key], index[depth:])
        if cast(TensorType, value.type).element_type == i1:
            return self.insert(arith.CmpiOp(loaded, self.constant(0, i8), "ne"))
        return loaded

    def keep(self, value: SSAValue, index: Index, compute: Callable[[Index], SSAValue]) -> SSAValue:
        """A step of `value` at an index, computed once for its row; see `Nest.keep`."""
        tensor = cast(TensorType, value.type)
        kind = local_type(tensor, tensor.get_num_dims() - 1)
        if kind is None:
            return compute(index)
        row = index[:-1]
        frame = self._home(self._index_frames(row))
        key = ("kept", value, row)
        if key not in frame.memo:
            depth = self.scopes.index(frame)
            frame.memo[key] = self._fill(lambda inner: compute((*row, *inner)), kind, depth)
        return self._load(frame.memo[key], index[-1:])

    def _fill_local(self, value: SSAValue, outer: Index, kind: MemRefType, depth: int) -> SSAValue:
        def scalar(inner: Index) -> SSAValue:
            result = self._inline(value, (*outer, *inner))
            if cast(TensorType, value.type).element_type == i1:
                return self.insert(arith.ExtUIOp(result, i8))
            return result

        return self._fill(scalar, kind, depth)

    def _fill(self, scalar: Callable[[Index], SSAValue], kind: MemRefType, depth: int) -> SSAValue:
        """A new buffer under the first `depth` loops, filled with a scalar for each index."""
        frames, self.scopes = self.scopes, self.scopes[: depth + 1]
        local = self._place(loop.LocalOp(kind), self.scopes[-1])
        self.depends[local] = frozenset(self.scopes[1:])
        with self.loops([AffineExpr.constant(n) for n in kind.get_shape()]) as inner:
            self.store(scalar(inner), local, inner)
        self.scopes = frames
        return local

    # Loops.

    @contextmanager
    def loops(self, extents: Sequence[AffineExpr]) -> Iterator[Index]:
        """Open parallel loops, one inside the other, for as long as the context lasts."""
        opened: list[loop.ForOp] = []
        index: list[AffineExpr] = []
        for extent in extents:
            map, operands = compress([extent], self.variables)
            op = loop.ForOp(self._parallel_name(), map, operands)
            frame = self._open(op.body.block, extent, parallel=True)
            index.append(self._bind(op.variable, frame))
            op.variable.name_hint = op.loop_name.data
            opened.append(op)
        yield tuple(index)
        for op in reversed(opened):
            op.location = fuse(op.body.block.ops)
            frame = self.scopes.pop()
            self._place(op, self.scopes[-1])
            self.scopes[-1].dependences |= frame.dependences - {frame}

    def reduce(
        self,
        extents: Sequence[AffineExpr],
        combine: str,
        init: SSAValue,
        step: Callable[[Index, SSAValue], SSAValue],
    ) -> SSAValue:
        """Fold over an iteration space; see `Nest.reduce`."""

        def level(index: Index, accumulator: SSAValue) -> SSAValue:
            if len(index) == len(extents):
                return step(index, accumulator)
            map, operands = compress([extents[len(index)]], self.variables)
            op = loop.ReduceOp(self._name("k"), map, operands, Combine(combine), accumulator)
            op.variable.name_hint = op.loop_name.data
            frame = self._open(op.body.block, extents[len(index)])
            variable = self._bind(op.variable, frame)
            self.depends[op.accumulator] = frozenset({frame})
            return self._close(op, frame, level((*index, variable), op.accumulator))

        return level((), init)

    def entries(
        self,
        matrix: SSAValue,
        row: AffineExpr,
        combine: str,
        init: SSAValue,
        step: Callable[[AffineExpr, SSAValue, SSAValue], SSAValue],
    ) -> SSAValue:
        """Fold over the stored entries of a row; see `Nest.entries`."""

        def place(position: AffineExpr, column: AffineExpr, total: SSAValue) -> SSAValue:
            return step(column, self.stored_entry(matrix, position), total)

        return self.pattern(matrix, row, combine, init, place)

    def pattern(
        self,
        matrix: SSAValue,
        row: AffineExpr,
        combine: str,
        init: SSAValue,
        step: Callable[[AffineExpr, AffineExpr, SSAValue], SSAValue],
    ) -> SSAValue:
        """Fold over the places of the stored entries of a row; see `Nest.pattern`."""
        source = self._sparse(matrix)
        map, operands = compress([row], self.variables)
        op = loop.ReduceEntriesOp(
            self._name("e"), source.indptr, source.indices, map, operands, Combine(combine), init
        )
        op.position.name_hint, op.column.name_hint = "p", "c"
        frame = self._open(op.body.block)
        position, column = self._bind(op.position, frame), self._bind(op.column, frame)
        self.depends[op.accumulator] = frozenset({frame})
        self._know_entry(matrix, position, row, column)
        return self._close(op, frame, step(position, column, op.accumulator))

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
        loaded = self._load(self._sparse(matrix).values, [position])
        return self.computed(loaded, element_type(matrix))

    def count(self, matrix: SSAValue, row: AffineExpr) -> AffineExpr:
        """The number of stored entries of a row; see `Nest.count`."""
        start, end = self._row_ends(matrix, row)
        return self.index(self.insert(arith.SubiOp(end, start)))

    def _row_ends(self, matrix: SSAValue, row: AffineExpr) -> tuple[SSAValue, SSAValue]:
        """The position of the first entry of a row, and the one after its last."""
        indptr = self._sparse(matrix).indptr
        start, end = (
            self.insert(arith.IndexCastOp(self._load(indptr, [place]), INDEX))
            for place in (row, row + 1)
        )
        return start, end

    @contextmanager
    def entry_loops(self, matrix: SSAValue, rest: Sequence[AffineExpr]) -> Iterator[Index]:
        """Open loops over the rows of a matrix, over `rest`, then over the row's entries.

        Gives the position of the entry, then the variables of the loops in between.
        """
        source = self._sparse(matrix)
        with self.loops([self.extent(matrix, 0), *rest]) as (row, *between):
            start, end = self._row_ends(matrix, row)
            count = self.index(self.insert(arith.SubiOp(end, start)))
            with self.loops([count]) as (number,):
                position = self.index(start) + number
                loaded = self._load(source.indices, [position])
                self._know_entry(matrix, position, row, self.index(loaded))
                yield (position, *between)

    def _open(
        self, block: Block, extent: AffineExpr | None = None, parallel: bool = False
    ) -> Frame:
        """Fill the body of a loop from now on."""
        runs = isinstance(extent, AffineConstantExpr) and extent.value > 0
        frame = Frame(block, len(self.scopes), parallel=parallel, conditional=not runs)
        self.scopes.append(frame)
        return frame

    def _close(
        self, op: loop.ReduceOp | loop.ReduceEntriesOp, frame: Frame, result: SSAValue
    ) -> SSAValue:
        """End the body of a reduction and place it where its operands are."""
        frame.block.add_op(loop.YieldOp(result))
        frame.dependences |= self.depends.get(result, frozenset())
        self.scopes.pop()
        needed = (frame.dependences - {frame}) | self._depends_of(op.operands)
        home = self._home(needed)
        for other in home.block.ops:
            if _is_same_reduction(other, op):
                op.drop_all_references()
                return other.results[0]
        home.dependences |= needed
        self.depends[op.result] = frozenset(needed)
        return self._place(op, home)

    def _parallel_name(self) -> str:
        depth = sum(frame.parallel for frame in self.scopes)
        return self._name(NAMES[min(depth, len(NAMES) - 1)])

    def _name(self, base: str) -> str:
        count = self._used.get(base, 0)
        self._used[base] = count + 1
        return f"{base}{count}" if count else base

    # Scalars.

    def insert(self, op: Operation) -> SSAValue:
        """Place a pure operation in the outermost loop that it may be in, if it is not there."""
        return self._insert_at(self.home(type(op), op.operands), op)

    def _insert_at(self, depth: int, op: Operation) -> SSAValue:
        home, key = self.scopes[depth], _scalar_key(op)
        if key in home.memo:
            op.drop_all_references()
            return home.memo[key]
        result = self._place(op, home)
        depends = self._depends_of(op.operands)
        self.depends[result] = depends | {home} if depth else depends
        if key is not None:
            home.memo[key] = result
        return result

    def _place(self, op: Operation, frame: Frame) -> SSAValue:
        if self._sources and op.location is UNKNOWN_LOC:
            op.location = self._sources[-1].location
        frame.block.add_op(op)
        frame.dependences |= self._depends_of(op.operands)
        return op.results[0] if op.results else cast(SSAValue, None)

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        """A scalar constant, at the top of the kernel and there only once."""
        top = self.scopes[0]
        key = ("constant", repr(value), type)
        if key not in top.memo:
            if isinstance(type, IntegerType | IndexType):
                op = arith.ConstantOp(IntegerAttr(int(value), type))
            else:
                op = arith.ConstantOp(FloatAttr(float(value), cast(AnyFloat, type)))
            top.memo[key] = self.insert(op)
        return top.memo[key]

    def compute_type(self, element_type: Attribute) -> Attribute:
        """The type in which scalars of an element type are computed."""
        return compute_type(element_type)

    # Index expressions.

    def index(self, value: SSAValue) -> AffineExpr:
        """A computed integer as an index expression."""
        if not isinstance(value.type, IndexType):
            value = self.insert(arith.IndexCastOp(value, INDEX))
        return self._variable(value)

    def value(self, expr: AffineExpr) -> SSAValue:
        """An index expression as a scalar of type `index`."""
        return computed(expr, self._known_index, lambda _, op: self.insert(op))

    def _known_index(self, expr: AffineExpr) -> SSAValue | None:
        if isinstance(expr, AffineDimExpr):
            return self.variables[expr.position]
        return self.constant(expr.value, INDEX) if isinstance(expr, AffineConstantExpr) else None

    def extent(self, value: SSAValue, dim: int) -> AffineExpr:
        """The size of a dimension of a tensor value."""
        return self.size(self.shapes.shape(value)[dim])

    def size(self, dim: Dim) -> AffineExpr:
        """A symbolic dimension as an index expression over the sizes of the arguments."""
        if dim not in self._sizes:
            total = AffineExpr.constant(0)
            for monomial, coefficient in dim.terms:
                total = total + self._monomial(monomial) * coefficient
            self._sizes[dim] = total
        return self._sizes[dim]

    def _monomial(self, symbols: tuple[str, ...]) -> AffineExpr:
        if not symbols:
            return AffineExpr.constant(1)
        result = self._symbol(symbols[0])
        for name in symbols[1:]:
            product = arith.MuliOp(self.value(result), self.value(self._symbol(name)))
            result = self._variable(self.insert(product))
        return result

    def _symbol(self, name: str) -> AffineExpr:
        key = Dim.symbol(name)
        if key not in self._sizes:
            if name not in self.shapes.bindings:
                fact = "a size does not follow from the sizes of the arguments"
                where = origin(self._sources[-1]) if self._sources else None
                raise UnsupportedError(explain("convert-graph-to-loop", fact, origin=where))
            number, dimension = self.shapes.bindings[name]
            self._sizes[key] = self._variable(self._argument_size(number, dimension))
        return self._sizes[key]

    def _argument_size(self, number: int, dimension: int | str) -> SSAValue:
        """The size of a dimension of an argument of the primitive function."""
        source = list(self.arguments.values())[number]
        if not isinstance(source, SparseArgument):
            return self._buffer_size(source, cast(int, dimension))
        if dimension == 1:
            assert source.columns is not None
            return source.columns
        if dimension == "nnz":
            return self._buffer_size(source.values, 0)
        rows = self._buffer_size(source.indptr, 0)
        return self.insert(arith.SubiOp(rows, self.constant(1, INDEX)))

    def _buffer_size(self, buffer: SSAValue, dimension: int) -> SSAValue:
        return self.insert(memref.DimOp(buffer, self.constant(dimension, INDEX)))

    def _bind(self, variable: SSAValue, frame: Frame) -> AffineExpr:
        self.depends[variable] = frozenset({frame})
        return self._variable(variable)

    def _variable(self, value: SSAValue) -> AffineExpr:
        self.variables.append(value)
        return AffineExpr.dimension(len(self.variables) - 1)

    # Where a value belongs.

    def _index_frames(self, index: Sequence[AffineExpr]) -> frozenset[Frame]:
        used = {e.position for expr in index for e in expr.dfs() if isinstance(e, AffineDimExpr)}
        return self._depends_of([self.variables[position] for position in used])

    def _depends_of(self, values: Sequence[SSAValue]) -> frozenset[Frame]:
        none: frozenset[Frame] = frozenset()
        return none.union(*(self.depends.get(value, none) for value in values))

    def depth_of(self, values: Sequence[SSAValue]) -> int:
        """The depth of the innermost loop that values depend on."""
        return self._home(self._depends_of(values)).depth

    def _home(self, frames: frozenset[Frame] | set[Frame]) -> Frame:
        for frame in reversed(self.scopes):
            if frame in frames:
                return frame
        return self.scopes[0]


def _scalar_key(op: Operation) -> object:
    """What equal operations on scalars have in common; None for one that is not to be shared."""
    if op.regions or op.attributes or not op.has_trait(Pure):
        return None
    return (op.name, *op.operands, *op.properties.items(), *op.result_types)


def _is_same_reduction(known: Operation, op: loop.ReduceOp | loop.ReduceEntriesOp) -> bool:
    """Whether an operation is a reduction that differs from another one in its name only."""
    if not isinstance(known, loop.ReduceOp | loop.ReduceEntriesOp):
        return False
    name, op.loop_name = op.loop_name, known.loop_name
    same = known.is_structurally_equivalent(op)
    op.loop_name = name
    return same

"""Gathers, expressions over edges and scatters become operators on one sparse matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.algebra.dims import Dim
from ...core.ir.context import count, decide, weights_of
from ...core.ir.walks import blocks_in
from ...core.ir.weights import WeightStore
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PRIMITIVE, ScatterKind
from ...dialects.graph.interfaces import element_type
from ...dialects.graph.op_builder import InsertingBuilder
from ...dialects.graph.sizes.shapes import SymbolicShapes
from .messages.aggregations import rules
from .messages.edge_lists import Scatter, is_float_tensor, scatter_of, width_of
from .messages.entry_order import EdgeValues, EntryOrder
from .messages.insertion import KINDS, EdgeMatrix, aggregated, matrix_of, nodes_of, segments_of
from .messages.parts import ProductOfParts
from .messages.self_loops import WithSelfLoops
from .rules.permission import Permission, permitted
from .rules.recorded import recorded

_UNKNOWN_WIDTH = 64
"""What the symbolic size of a slice is taken to be."""


class Shapes(SymbolicShapes):
    """The shapes of a function and of its replaced values; the arrays of constants."""

    def __init__(self, function: func.FuncOp, weights: WeightStore) -> None:
        super().__init__(function)
        self.weights = weights

    def replace(self, old: SSAValue, new: SSAValue) -> None:
        """Note that a value has the shape of the one that it replaces."""
        self._known.shapes[new] = self._known.shapes[old]


_End = tuple[SSAValue, SSAValue]
"""The vector of rows or columns, and a value with as many slices as there are."""


@dataclass(frozen=True)
class _EdgeList:
    """The scatters of a block by one vector of rows, of which there are `count`."""

    rows: SSAValue
    count: Dim
    scatters: list[Scatter]


class _Block:
    """Raises the messages of one block.

    Args:
        ctx: receives the decisions.
        block: the block.
        shapes: those of the function around it.
        permission: where sums may be taken in another order.
        least: the fewest numbers for each edge that pay for sorting a list.
    """

    def __init__(
        self, ctx: Context, block: Block, shapes: Shapes, permission: Permission, least: int
    ) -> None:
        self.ctx, self.block, self.shapes = ctx, block, shapes
        self.permission, self.least = permission, least
        self.values = EdgeValues(shapes)
        self._hoist_checks()
        self.place: dict[object, int] = {op: number for number, op in enumerate(block.ops)}

    def run(self) -> None:
        """Raise the scatters of each vector of rows."""
        lists: dict[tuple[SSAValue, Dim], _EdgeList] = {}
        for op in self.block.ops:
            scatter = scatter_of(op, self.shapes)
            if scatter is not None and self._may_raise(scatter):
                size = self.shapes.shape(scatter.init)[0]
                key = scatter.rows, size
                lists.setdefault(key, _EdgeList(*key, [])).scatters.append(scatter)
        for edges in lists.values():
            self._raise(edges)

    def _hoist_checks(self) -> None:
        """Check indices as soon as they are known: scatters between two checks share a matrix."""
        place: dict[object, float] = {op: number for number, op in enumerate(self.block.ops)}
        for op in [op for op in self.block.ops if isinstance(op, graph.CheckIndicesOp)]:
            if op.x is not None and op.axis_from_front == 0:
                op.operands[1] = self._with_rows(self.shapes.shape(op.x)[0], op.x)
            known = [value.owner for value in op.operands if value.owner in place]
            last = max(known, key=lambda made: place[made], default=None)
            op.detach()
            if isinstance(last, Operation):
                self.block.insert_op_after(op, last)
                place[op] = place[last] + 0.5
            else:
                Rewriter.insert_op(op, InsertPoint.at_start(self.block))
                place[op] = -1

    def _may_raise(self, scatter: Scatter) -> bool:
        if scatter.kind not in KINDS or not is_float_tensor(scatter.updates):
            return False
        added = scatter.kind in (ScatterKind.ADD, ScatterKind.MUL)
        exactness = Exactness.OPEN if added else Exactness.EXACT
        return self.permission.allows(exactness, scatter.op)

    def _raise(self, edges: _EdgeList) -> None:
        """Replace the scatters of an edge list."""
        if not any(list(self.values.gathers(scatter.updates)) for scatter in edges.scatters):
            why = "nothing is gathered for them: updates are read in their order"
            decide(self.ctx, edges.scatters[0].op, "keep scatters", why, kind="missed")
            return
        width = sum(self._width(scatter) for scatter in edges.scatters)
        constant = isinstance(edges.rows.owner, graph.ConstantOp)
        if width < self.least and not constant:
            why = f"{width} numbers for each edge do not pay for sorting the edges"
            decide(self.ctx, edges.scatters[0].op, "keep scatters", why, kind="missed")
            return
        columns = self._columns(edges)
        targets = self._with_rows(edges.count, edges.scatters[0].init)
        start = max(map(self._defined, (edges.rows, targets, *(columns or ()))))
        scatters = [scatter for scatter in edges.scatters if self.place[scatter.op] > start]
        if scatters and allowed("raise messages", scatters[0].op):
            self._replace(scatters, (edges.rows, targets), columns)

    def _replace(
        self,
        scatters: Sequence[Scatter],
        rows: _End,
        columns: _End | None,
    ) -> None:
        """Replace scatters by aggregations over the rows of one matrix."""
        place = Builder(InsertPoint.before(scatters[0].op))
        b = InsertingBuilder(place, [scatter.op for scatter in scatters])
        edges = self._matrix(rows, columns, element_type(scatters[0].updates), b)
        order = EntryOrder(edges, self.values, self._alone(scatters), b)
        for op in [scatter.op for scatter in scatters]:
            # It may have been given the results of scatters that are replaced by now.
            scatter = scatter_of(op, self.shapes)
            assert scatter is not None
            place.insertion_point = InsertPoint.before(op)
            result = aggregated(scatter, edges, order.of(scatter.updates), b, self.shapes)
            self.shapes.replace(op.results[0], result)
            Rewriter.replace_op(op, [], [result])
            self.values.forget()
        plural = "s" if len(scatters) > 1 else ""
        what = f"aggregate {len(scatters)} scatter{plural} over the rows of a sparse matrix"
        assert isinstance(edges.matrix.owner, Operation)
        decide(self.ctx, edges.matrix.owner, what, "its edges are sorted once for all of them")
        count(self.ctx, "scatters raised", len(scatters))

    def _matrix(
        self, rows: _End, columns: _End | None, kind: Attribute, b: InsertingBuilder
    ) -> EdgeMatrix:
        """The matrix of the edges from columns, or from the places of the edges themselves."""
        targets = self._sized(rows[1], b)
        if columns is None:
            return segments_of(b, rows[0], targets, kind, self.shapes)
        sources = targets if columns[1] is rows[1] else self._sized(columns[1], b)
        return matrix_of(b, (rows[0], columns[0]), (targets, sources), kind, self.shapes)

    def _width(self, scatter: Scatter) -> int:
        width = width_of(scatter.updates, self.shapes)
        return width.value if width.is_static else _UNKNOWN_WIDTH

    def _columns(self, edges: _EdgeList) -> _End | None:
        """The columns of an edge list: the indices that most of its messages are gathered by.

        None where none are gathered, or only by rows.
        """
        found = Counter[tuple[SSAValue, Dim]]()
        sources: dict[tuple[SSAValue, Dim], SSAValue] = {}
        for scatter in edges.scatters:
            for gather in self.values.gathers(scatter.updates):
                key = gather.indices, self.shapes.shape(gather.x)[0]
                sources.setdefault(key, gather.x)
                if gather.indices is not edges.rows and is_float_tensor(gather.x):
                    found[key] += 1
        if not found:
            return None
        ((columns, size), _), *_ = found.most_common(1)
        return columns, self._with_rows(size, sources[columns, size])

    def _with_rows(self, size: Dim, value: SSAValue) -> SSAValue:
        """A value with `size` slices, best an argument of the function."""
        given = (v for v in self.block.args if self.shapes.shape(v)[:1] == (size,))
        return next(given, value)

    def _sized(self, value: SSAValue, b: InsertingBuilder) -> SSAValue:
        """A value with as many slices that does not depend on anything, if there is one."""
        size = self.shapes.shape(value)[0]
        if not size.is_static:
            return value
        made = nodes_of(b, size.value)
        self.shapes.replace(value, made)
        return made

    def _defined(self, value: SSAValue) -> int:
        """The place in the block after which a value is known."""
        return self.place.get(value.owner, -1)

    def _alone(self, scatters: Sequence[Scatter]) -> set[Operation]:
        """The operators that make messages, and nothing else."""
        inside = {op for s in scatters for op in self.values.operators(s.updates)}
        ends = inside.union(scatter.op for scatter in scatters)
        return {
            op
            for op in inside
            if all(use.operation in ends for result in op.results for use in result.uses)
        }


@Exactness.ROUNDING
@dataclass(frozen=True)
class GraphRaiseMessagesPass(ModulePass):
    """Raise messages on an edge list to aggregations over the rows of a sparse matrix.

    Before:

    ```mlir
    !i = tensor<7xi64> !x = tensor<9x32xf32>
    func.func @main(%x: !x, %j: !i, %i: !i) -> !x {
      %zero = graph.constant dense<0.0> : !x
      %m = graph.gather %x, %j axis = 0 : (!x, !i) -> tensor<7x32xf32>
      %y = graph.scatter_nd add %zero, %m at %i : (!x, tensor<7x32xf32>, !i) -> !x
      func.return %y : !x
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed),
        posWidth = 32, crdWidth = 32 }> !a = tensor<9x9xf32, #csr>
    !i = tensor<7xi64> !o = tensor<7xi32> !n = tensor<9xi8> !x = tensor<9x32xf32>
    func.func @main(%x: !x, %j: !i, %i: !i) -> !x {
      %n = graph.constant dense<0> : !n
      %p, %c, %o = graph.sort_edges %i, %j of %n, %n : (!i, !i, !n, !n) -> (tensor<10xi32>, !o, !o)
      %same = graph.equal %c, %c : (!o, !o) -> tensor<7xi1>
      %one = graph.cast %same : (tensor<7xi1>) -> tensor<7xf32>
      %a = graph.assemble %p, %c, %one of %n : (tensor<10xi32>, !o, tensor<7xf32>, !n) -> !a
      %y = graph.aggregate sum %a, %x : (!a, !x) -> !x
      func.return %y : !x
    }
    ```

    There is one matrix for all scatters by one vector of rows, whatever is in between: the messages
    are built again in the order of its entries. Its columns are the indices that most messages are
    gathered by.
    Weighted sums, means and softmax over the edges of a node, which are written as several
    operators, become one each, also where messages are written for a matrix in the first place.

    Entries of a row keep the order of the edges, so that a maximum or minimum has the same bits. A
    sum is open to be taken in any order, as sums of floats are; a weighted one is rounded once for
    each product and sum.

    Requires: nothing.
    Order: preceded by `graph-cse`, after which equal index vectors are one value; before
        `graph-order-contractions` with `graph-fold-constant` between, as matrices of constant edge
        lists are folded, and products with them reordered.
    Leaves: scatters by something else than one vector along axis 0, those of integers, those for
        which nothing is gathered, as their updates are read in order, and those of so few numbers
        for each edge that sorting the edges costs more than it gains.
    """

    name = "graph-raise-messages"
    budget = SUMS

    min_width: int = 8
    """The fewest numbers for each edge, of all scatters together, for which edges are sorted."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        permission = Permission(op)
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if PRIMITIVE in function.attributes or len(function.body.blocks) != 1:
                continue
            messages = (graph.ScatterElementsOp, graph.ScatterNdOp, graph.ReduceEntriesOp)
            if not any(isinstance(inner, messages) for inner in function.walk()):
                continue
            shapes = Shapes(function, weights_of(ctx))
            for block in blocks_in(function):
                _Block(ctx, block, shapes, permission, self.min_width).run()
            loops = WithSelfLoops(weights_of(ctx), Shapes(function, weights_of(ctx)))
            for sweep in (*rules(weights_of(ctx)), (loops,)):
                self._rewrite(ctx, op, function, sweep, "the edges are read fewer times")
            parts = ProductOfParts(Shapes(function, weights_of(ctx)))
            self._rewrite(ctx, op, function, (parts,), "rows without entries are not multiplied")

    @staticmethod
    def _rewrite(
        ctx: Context,
        module: ModuleOp,
        function: func.FuncOp,
        rules: Sequence[RewritePattern],
        why: str,
    ) -> None:
        """Apply rules in a function wherever they are permitted."""
        found = permitted(module, [recorded(rule, ctx, why) for rule in rules])
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(found, dce_enabled=True))
        walker.rewrite_region(function.body)

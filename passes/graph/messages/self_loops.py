"""Edge lists whose self loops are taken out before each node gets one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.algebra.dims import product
from ....core.ir.weights import WeightStore
from ....core.pipelines.exactness import OPEN, states
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ReduceKind, ints
from ....dialects.graph.interfaces import element_type, rank
from ....dialects.graph.op_builder import InsertingBuilder
from ..rules.rooted import rooted
from .aggregations import has_ones
from .edge_lists import EdgeListFacts, number_of
from .insertion import assembled


@dataclass(frozen=True)
class _Row:
    """Row `number` of a matrix, and the check that it went through."""

    matrix: SSAValue
    number: int
    check: graph.CheckIndicesOp | None = None


@states(
    OPEN,
    "sort_edges(concat([i[i != j], 0 ... n - 1]), concat([j[i != j], 0 ... n - 1])) == "
    "sort_edges_with_loops(i, j)  for a matrix of ones and n nodes",
)
@dataclass
class WithSelfLoops(RewritePattern):
    """Sort edges with one self loop for each node without making a list of them.

    A self loop outside of the graph is an error then, as any other edge is.
    """

    weights: WeightStore
    facts: EdgeListFacts

    @rooted
    def match_and_rewrite(self, op: graph.AssembleOp, rewriter: PatternRewriter) -> None:
        edges = op.indptr.owner
        if not isinstance(edges, graph.SortEdgesOp) or op.indices is not edges.indices:
            return
        if edges.targets is not edges.sources or not has_ones(op.result):
            return
        if not self._is_alone(edges, op):
            return
        ends = [_row_of(value) for value in (edges.rows, edges.columns)]
        found = [end for end in ends if end is not None]
        vectors = self._kept(edges, found) if len(found) == len(ends) else None
        if vectors is None:
            return
        b = InsertingBuilder(rewriter, [edges, op])
        rows, columns = (_checked(b, v, end) for v, end in zip(vectors, found, strict=True))
        indptr, indices, _ = b.sort_edges_with_loops(rows, columns, edges.targets)
        matrix = assembled(b, indptr, indices, op.sources, element_type(op.values))
        rewriter.replace(op, (), [matrix])

    def _is_alone(self, edges: graph.SortEdgesOp, op: graph.AssembleOp) -> bool:
        """Whether the matrix is all that sorted edges are for; its ones may read their order."""
        used = [use.operation for value in edges.results[:2] for use in value.uses]
        ones = op.values.owner
        assert isinstance(ones, graph.CastOp)
        read = {use.operation for use in edges.order.uses} <= {ones.x.owner}
        return set(used) <= {op, ones.x.owner} and read

    def _kept(self, edges: graph.SortEdgesOp, ends: Sequence[_Row]) -> list[SSAValue] | None:
        """The rows and columns that self loops were taken out of; None where that is not so."""
        whole, other = ends
        joined = whole.matrix.owner
        if whole.matrix is not other.matrix or {whole.number, other.number} != {0, 1}:
            return None
        if not isinstance(joined, graph.ConcatOp) or joined.axis_from_front != 1:
            return None
        if len(joined.inputs) != 2 or rank(joined.result) != 2:
            return None
        kept, loops = (value.owner for value in joined.inputs)
        if not isinstance(kept, graph.GatherOp) or kept.axis_from_front != 1:
            return None
        if not self._is_each_node(joined.inputs[1], edges.targets) or not loops:
            return None
        vectors = _compared(kept.indices, kept.x)
        return None if vectors is None else [vectors[end.number] for end in ends]

    def _is_each_node(self, value: SSAValue, nodes: SSAValue) -> bool:
        """Whether each row of a matrix has the numbers from 0 on, one for each node."""
        shape, count = self.facts.shape(value), self.facts.shape(nodes)[0]
        while isinstance(value.owner, graph.ReshapeOp):
            value = value.owner.x
        repeated = value.owner
        if len(shape) != 2 or shape[1] != count or not isinstance(repeated, graph.BroadcastToOp):
            return False
        value = repeated.x
        if product(self.facts.shape(value)) != count or self.facts.shape(value)[-1] != count:
            return False
        while isinstance(value.owner, graph.ReshapeOp):
            value = value.owner.x
        numbers = value.owner
        return (
            isinstance(numbers, graph.CumulativeOp)
            and numbers.kind.data == ReduceKind.SUM
            and bool(numbers.exclusive.value.data)
            and not numbers.reverse.value.data
            and rank(numbers.x) == 1
            and number_of(numbers.x, self.weights) == 1
        )


def _checked(b: InsertingBuilder, vector: SSAValue, row: _Row) -> SSAValue:
    """A vector after the check of a row."""
    if row.check is None:
        return vector
    made = graph.CheckIndicesOp(vector, row.check.x, row.check.axis_from_front)
    made.properties = dict(row.check.properties)
    return b.insert(made, [row.check])


def _row_of(value: SSAValue) -> _Row | None:
    """The row of a matrix that a vector is; None for another vector."""
    check = None
    while isinstance(move := value.owner, graph.ReshapeOp | graph.CheckIndicesOp):
        if isinstance(move, graph.CheckIndicesOp):
            check = move
        value = move.operands[0]
    op = value.owner
    if not isinstance(op, graph.SliceOp) or rank(op.x) != 2 or set(ints(op.steps)) != {1}:
        return None
    (first, start), (after, end) = ints(op.starts), ints(op.ends)
    whole = start == 0 and end == (1 << 63) - 1
    return _Row(op.x, first, check) if whole and after == first + 1 and first >= 0 else None


def _compared(chosen: SSAValue, matrix: SSAValue) -> list[SSAValue] | None:
    """The two rows of a matrix, where indices are those of the places at which they differ."""
    places = chosen.owner
    if not isinstance(places, graph.NonzeroOp) or chosen is not places.indices[0]:
        return None
    differ = places.x.owner
    same = differ.operands[0].owner if isinstance(differ, graph.LogicalNotOp) else None
    if not isinstance(same, graph.EqualOp):
        return None
    rows: dict[int, SSAValue] = {}
    for value in same.operands:
        row = _row_of(value)
        if row is not None and row.matrix is matrix and rank(value) == 1:
            rows[row.number] = value
    return [rows[0], rows[1]] if rows.keys() == {0, 1} else None

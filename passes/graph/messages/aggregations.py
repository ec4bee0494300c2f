"""Rules of aggregations: weighted sums, means and softmax that are written as several operators."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.dtypes import dtype_of
from ....core.exactness import EXACT, OPEN, ROUNDING, states
from ....core.provenance import fuse
from ....core.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import AggregateKind
from ....dialects.graph.interfaces import element_type, rank, tensor_type
from ....dialects.graph.known import reshape_target, sizes_of
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.ops_aggregate import reduce_columns
from ..rules.rooted import rooted
from .edge_lists import number_of

Aggregation = graph.ReduceEntriesOp | graph.AggregateOp


def has_ones(matrix: SSAValue) -> bool:
    """Whether a matrix is known to have only entries of value 1: x == x."""
    made = matrix.owner
    values = made.values.owner if isinstance(made, graph.AssembleOp) else None
    same = values.x.owner if isinstance(values, graph.CastOp) else None
    return isinstance(same, graph.EqualOp) and same.lhs is same.rhs


def _before_broadcast(value: SSAValue) -> SSAValue:
    """The vector that is broadcast along axes after the first to make a value, or the value."""
    while isinstance(op := value.owner, graph.BroadcastToOp | graph.ReshapeOp):
        if any(size != 1 for size in sizes_of(op.x)[1:]) or rank(op.x) == 0:
            break
        value = op.x
    return value


def _count_of(value: SSAValue, matrix: SSAValue) -> bool:
    """Whether a value is the number of entries of each row."""
    op = value.owner
    return (
        isinstance(op, graph.DegreeOp)
        and op.a is matrix
        and op.values is None
        and op.power.value.data == 1
        and not op.self_loops.value.data
        and has_ones(matrix)
    )


def _of_rows(value: SSAValue, matrix: SSAValue) -> SSAValue | None:
    """The value of each row, where all entries of a row have the same one."""
    op = value.owner
    if not isinstance(op, graph.AtEntriesOp) or op.a is not matrix or op.axis.value.data != 0:
        return None
    return op.x


def _reduced(value: SSAValue | None, kind: AggregateKind) -> graph.ReduceEntriesOp | None:
    op = None if value is None else value.owner
    return op if isinstance(op, graph.ReduceEntriesOp) and op.kind.data == kind else None


@states(ROUNDING, "reduce_entries(a, at_entries(a, x, axis = 1) * w) == aggregate(a, x) weights w")
class WeightedColumns(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.ReduceEntriesOp, rewriter: PatternRewriter) -> None:
        made = op.x.owner
        if not isinstance(made, graph.MulOp):
            return
        for one, other in ((made.lhs, made.rhs), (made.rhs, made.lhs)):
            sent = one.owner
            if not isinstance(sent, graph.AtEntriesOp) or sent.axis.value.data != 1:
                continue
            if sent.a is not op.a or one.type != op.x.type:
                continue
            b = InsertingBuilder(rewriter, [made, op])
            weights = _weights(b, other, rank(one))
            if weights is not None:
                kind, type = op.kind.data.value, op.result.type
                new = graph.AggregateOp(op.a, sent.x, weights, kind, result_type=type)
                rewriter.replace(op, (), [b.insert(new)])
                return


def _weights(b: InsertingBuilder, value: SSAValue, dims: int) -> SSAValue | None:
    """Values as weights of `graph.aggregate`; None where they do not fit."""
    sizes = list(sizes_of(value))
    if len(sizes) != dims or sizes[0] == 1:
        return None
    kept = dims
    while kept > 1 and sizes[kept - 1] == 1:
        kept -= 1
    if 1 in sizes[1:kept]:
        return None
    if kept == dims:
        return value
    target = reshape_target(sizes[:kept])
    return None if target is None else b.reshape(value, target)


@states(OPEN, "sum of messages / max(number of messages, 1) == mean of messages")
class MeanOfMessages(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        total = op.lhs.owner
        if not isinstance(total, Aggregation) or total.kind.data != AggregateKind.SUM:
            return
        count = _at_least_one(_before_broadcast(op.rhs))
        if count is None or op.result.type != total.result.type:
            return
        if _count_of(_before_broadcast(count), total.a):
            kind, type = AggregateKind.MEAN.value, op.result.type
            if isinstance(total, graph.AggregateOp):
                new = graph.AggregateOp(total.a, total.x, total.weights, kind, type)
            else:
                new = graph.ReduceEntriesOp(total.a, total.x, kind, type)
            new.location = fuse([total, op])
            rewriter.replace(op, new)


def _at_least_one(value: SSAValue) -> SSAValue | None:
    """x where a value is max(x, 1)."""
    op = value.owner
    if isinstance(op, graph.ClipOp):
        return op.x if op.bounds == (1.0, None) else None
    if isinstance(op, graph.MaxOp):
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if graph.splat_of(one) == 1:
                return other
    return None


@states(OPEN, "exp(s - m_i) / t_i == edge_softmax(a, s)  for m = max of s, t = sum of exp(s - m)")
class SoftmaxOfScores(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        e, below = op.lhs.owner, op.rhs.owner
        if not isinstance(e, graph.ExpOp) or not isinstance(below, graph.AtEntriesOp):
            return
        matrix, rest = below.a, e.x.owner
        total = _of_rows(op.rhs, matrix)
        total = _reduced(None if total is None else _without_small(total), AggregateKind.SUM)
        if total is None or total.a is not matrix or total.x is not e.result:
            return
        if not isinstance(rest, graph.SubOp):
            return
        largest = _reduced(_of_rows(rest.rhs, matrix), AggregateKind.MAX)
        if largest is None or largest.a is not matrix or largest.x is not rest.lhs:
            return
        new = graph.EdgeSoftmaxOp(matrix, rest.lhs, result_type=op.result.type)
        new.location = fuse([largest, rest, e, total, op])
        rewriter.replace(op, new)


@states(
    OPEN,
    "aggregate(sum, a, x) weights edge_softmax(a, s) == aggregate(softmax, a, x) weights s",
)
class SumBySoftmax(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.AggregateOp, rewriter: PatternRewriter) -> None:
        weights, moves = op.weights, list[graph.ReshapeOp]()
        while weights is not None and isinstance(move := weights.owner, graph.ReshapeOp):
            moves, weights = [move, *moves], move.x
        made = None if weights is None else weights.owner
        if not isinstance(made, graph.EdgeSoftmaxOp) or op.kind.data != AggregateKind.SUM:
            return
        if made.a is not op.a or made.own is not None or not made.result.has_one_use():
            return
        scores = made.scores
        b = InsertingBuilder(rewriter, [made, op])
        for move in moves:
            scores = b.insert(move.clone({move.x: scores}), [move])
        kind, type = AggregateKind.SOFTMAX.value, op.result.type
        new = graph.AggregateOp(op.a, op.x, scores, kind, type)
        rewriter.replace(op, (), [b.insert(new)])


# x + c == x  for x >= 1 and c below half of the distance to the next number
def _without_small(value: SSAValue) -> SSAValue:
    """x where a value is x + c, for a c that does not change what is 1 or more."""
    op = value.owner
    if isinstance(op, graph.AddOp):
        kind = dtype_of(element_type(value))
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = graph.splat_of(other)
            if number is not None and 0 <= number < np.finfo(kind).eps / 2:
                return one if tensor_type(one) == tensor_type(value) else value
    return value


@states(
    EXACT,
    "at_entries(a, where(number of entries > 0, x, y), axis = 0) == at_entries(a, x, axis = 0)",
)
class RowsWithEntries(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.AtEntriesOp, rewriter: PatternRewriter) -> None:
        chosen = op.x.owner
        if op.axis.value.data != 0 or not isinstance(chosen, graph.WhereOp):
            return
        if _with_entries(chosen.condition) is not op.a or chosen.a.type != op.x.type:
            return
        new = graph.AtEntriesOp(op.a, chosen.a, 0, result_type=op.result.type)
        new.location = fuse([chosen, op])
        rewriter.replace(op, new)


@states(
    EXACT,
    "where(number of entries > 0, where(number of entries > 0, x, y), z) == where(number of "
    "entries > 0, x, z)",
)
class ChosenTwice(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.WhereOp, rewriter: PatternRewriter) -> None:
        inner, matrix = op.a.owner, _with_entries(op.condition)
        if not isinstance(inner, graph.WhereOp) or inner.a.type != op.a.type:
            return
        if matrix is None or _with_entries(inner.condition) is not matrix:
            return
        new = graph.WhereOp(op.condition, inner.a, op.b, result_type=op.result.type)
        new.location = fuse([inner, op])
        rewriter.replace(op, new)


@states(
    EXACT,
    "where(number of entries > 0, aggregate(a, x), 0) == aggregate(a, x)  unless that is a product",
)
@dataclass
class ZeroWithoutEntries(RewritePattern):
    """Leave out the choice of 0 for a row without entries."""

    weights: WeightStore

    @rooted
    def match_and_rewrite(self, op: graph.WhereOp, rewriter: PatternRewriter) -> None:
        made = op.a.owner
        if not isinstance(made, Aggregation) or made.kind.data == AggregateKind.PROD:
            return
        zero = number_of(op.b, self.weights)
        if zero != 0 or math.copysign(1, zero) < 0 or op.a.type != op.result.type:
            return
        if _with_entries(op.condition) is made.a:
            rewriter.replace(op, (), (op.a,))


def _with_entries(condition: SSAValue) -> SSAValue | None:
    """The matrix of which a condition says whether each row has entries."""
    op = condition.owner
    if not isinstance(op, graph.LessOp | graph.GreaterOp):
        return None
    zero, count = (op.lhs, op.rhs) if isinstance(op, graph.LessOp) else (op.rhs, op.lhs)
    degree = _before_broadcast(count)
    if graph.splat_of(zero) != 0 or not isinstance(degree.owner, graph.DegreeOp):
        return None
    return degree.owner.a if _count_of(degree, degree.owner.a) else None


def rules(weights: WeightStore) -> tuple[tuple[RewritePattern, ...], ...]:
    """The rules of each sweep: a softmax is found before its maximum has another form, and a sum by
    its weights where it has no other use.
    """
    chosen = (ChosenTwice(), ZeroWithoutEntries(weights), RowsWithEntries())
    sums = (reduce_columns, WeightedColumns(), MeanOfMessages())
    return (*chosen, SoftmaxOfScores()), sums, (SumBySoftmax(),)

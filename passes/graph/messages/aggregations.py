"""Rules of aggregations: weighted sums, means and softmax that are written as several operators."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from ....core.dtypes import dtype_of
from ....core.ir.typed import owned
from ....core.ir.weights import WeightStore
from ....core.pipelines.exactness import EXACT, OPEN, ROUNDING
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import AggregateKind
from ....dialects.graph.interfaces import element_type, rank
from ....dialects.graph.known import reshape_target, sizes_of
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.ops.sparse.aggregate import reduce_columns
from ....dialects.graph.rules import rule
from ....dialects.graph.sizes.shapes import compares_sizes
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


@rule(
    "reduce_entries(a, (t := at_entries(a, x, axis=1)) * w, kind=k) == aggregate(a, x, fitting, "
    "kind=k)  for w without axes of size 1 at the end, which fit x",
    ROUNDING,
)
def weighted_columns(
    b: InsertingBuilder, op: graph.ReduceEntriesOp, t: SSAValue, w: SSAValue
) -> Mapping[str, SSAValue] | None:
    weights = _weights(b, w, rank(t)) if t.type == op.x.type else None
    return None if weights is None else {"fitting": weights}


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
    target, made = reshape_target(sizes[:kept]), value.owner
    if target is None:
        return None
    if isinstance(made, graph.ReshapeOp) and list(sizes_of(made.x)) == sizes[:kept]:
        return made.x
    return b.reshape(value, target)


@rule(
    'reduce_entries(a, x, kind="sum") / n == reduce_entries(a, x, kind="mean")  for the number n '
    "of entries of each row, or 1 for a row without any",
    OPEN,
)
def mean_of_entries(a: SSAValue, n: SSAValue) -> bool:
    return _is_divisor_of_mean(n, a)


@rule(
    'aggregate(a, x, *w, kind="sum") / n == aggregate(a, x, *w, kind="mean")  as of entries', OPEN
)
def mean_of_messages(a: SSAValue, n: SSAValue) -> bool:
    return _is_divisor_of_mean(n, a)


def _is_divisor_of_mean(value: SSAValue, matrix: SSAValue) -> bool:
    """Whether a value is the number of entries of each row, or 1 for a row without any."""
    count = _at_least_one(_before_broadcast(value))
    return count is not None and _count_of(_before_broadcast(count), matrix)


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


@rule(
    '(e := exp(s - at_entries(a, reduce_entries(a, s, kind="max"), axis=0))) / '
    'at_entries(a, reduce_entries(a, e, kind="sum"), axis=0) == edge_softmax(a, s)',
    OPEN,
)
def softmax_of_scores() -> None: ...


@rule(
    '(e := exp(s - at_entries(a, reduce_entries(a, s, kind="max"), axis=0))) / '
    'at_entries(a, (t := reduce_entries(a, e, kind="sum")) + c, axis=0) == edge_softmax(a, s)  '
    "for 0 <= c below half of the distance from 1 to the next number: t is 1 or more",
    OPEN,
)
def softmax_of_scores_with_epsilon(t: SSAValue, c: SSAValue) -> bool:
    number = graph.splat_of(c)
    return number is not None and 0 <= number < np.finfo(dtype_of(element_type(t))).eps / 2


@rule(
    'aggregate(a, x, t := edge_softmax(a, s), kind="sum") == aggregate(a, x, s, kind="softmax")',
    OPEN,
)
def sum_by_softmax(t: SSAValue) -> bool:
    return t.has_one_use()


@rule(
    'aggregate(a, x, reshape(t := edge_softmax(a, s), n), kind="sum") == '
    'aggregate(a, x, reshape(s, n), kind="softmax")',
    OPEN,
)
def sum_by_reshaped_softmax(t: SSAValue) -> bool:
    return t.has_one_use()


@rule(
    "at_entries(a, where(p, x, y), axis=0) == at_entries(a, x, axis=0)  where p says which rows "
    "of a have entries",
    EXACT,
)
def rows_with_entries(op: graph.AtEntriesOp, a: SSAValue, p: SSAValue, x: SSAValue) -> bool:
    chosen = owned(op.x, graph.WhereOp)
    return _with_entries(p) is a and x.type == op.x.type and not compares_sizes(chosen)


@rule(
    "where(p, where(q, x, y), z) == where(p, x, z)  where p and q say which rows of one matrix "
    "have entries",
    EXACT,
)
def chosen_twice(op: graph.WhereOp, p: SSAValue, q: SSAValue, x: SSAValue) -> bool:
    matrix = _with_entries(p)
    if matrix is None or _with_entries(q) is not matrix or x.type != op.a.type:
        return False
    return not compares_sizes(owned(op.a, graph.WhereOp))


@rule(
    "where(p, t := f(a, *x), z) == t  where p says which rows of a have entries, for z = 0 and an "
    "aggregation that is no product",
    EXACT,
    f=Aggregation,
)
def zero_without_entries(
    f: graph.ReduceEntriesOp | graph.AggregateOp,
    a: SSAValue,
    p: SSAValue,
    z: SSAValue,
    weights: WeightStore,
) -> bool:
    zero = number_of(z, weights)
    if f.kind.data == AggregateKind.PROD or zero != 0 or math.copysign(1, zero) < 0:
        return False
    return _with_entries(p) is a


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
    chosen = (chosen_twice, zero_without_entries.with_given(weights=weights), rows_with_entries)
    softmax = (softmax_of_scores, softmax_of_scores_with_epsilon)
    sums = (reduce_columns, weighted_columns, mean_of_entries, mean_of_messages)
    return (*chosen, *softmax), sums, (sum_by_softmax, sum_by_reshaped_softmax)

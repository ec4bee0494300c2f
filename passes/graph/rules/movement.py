"""Identities of operators that move, repeat or combine elements by their position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ....core.ir.typed import owned
from ....core.ir.weights import WeightStore
from ....core.pipelines.exactness import EXACT, SPECIAL
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ReduceKind, is_float, is_half
from ....dialects.graph.interfaces import element_type, rank
from ....dialects.graph.known import elements_of, reshape_target, sizes_of
from ....dialects.graph.ops.elementwise.binary import BinaryOp
from ....dialects.graph.ops.moves.select import WHOLE_END, concat_one
from ....dialects.graph.ops.reductions.reduction import keeps_one
from ....dialects.graph.rules import IdentityRule, rule
from ....dialects.graph.sizes.shapes import compares_sizes


@rule("transpose(x, permutation=p) == reshape(x, sizes)  where only axes of size 1 move", EXACT)
def transpose_of_ones(
    op: graph.TransposeOp, x: SSAValue, p: tuple[int, ...]
) -> Mapping[str, list[int]] | None:
    sizes = sizes_of(x)
    moved = [axis for axis in p if sizes[axis] != 1]
    target = reshape_target(sizes_of(op.result))
    if moved != sorted(moved) or p == tuple(sorted(p)) or target is None:
        return None
    return {"sizes": target}


@rule("slice(t := slice(x)) == slice(x, starts, ends, steps)  which composes the ranges", EXACT)
def slice_twice(op: graph.SliceOp, t: SSAValue) -> Mapping[str, Sequence[int]] | None:
    if 0 in sizes_of(op.result):
        return None
    inner = owned(t, graph.SliceOp).bounds
    return _ranges([_composed(a, b) for a, b in zip(inner, op.bounds, strict=True)])


Bounds = tuple[int, int, int]


def _composed(first: Bounds, then: Bounds) -> Bounds:
    """Start, end and step of a slice of a slice that is not empty."""
    if then == (0, WHOLE_END, 1):
        return first
    if first == (0, WHOLE_END, 1):
        return then
    count, step = len(range(*then)), first[2] * then[2]
    start = first[0] + then[0] * first[2]
    return start, start + (count - 1) * step + (1 if step > 0 else -1), step


def _ranges(bounds: Sequence[Bounds]) -> Mapping[str, Sequence[int]]:
    """The arguments of a slice."""
    return dict(zip(("starts", "ends", "steps"), zip(*bounds, strict=True), strict=True))


@rule(
    "slice(t := concat([*before, x, *after])) == slice(x, starts, ends, steps)  where it reads "
    "elements of x only",
    EXACT,
)
def slice_of_concat(
    op: graph.SliceOp, t: SSAValue, before: Sequence[SSAValue], x: SSAValue
) -> Mapping[str, Sequence[int]] | None:
    axis, bounds = owned(t, graph.ConcatOp).axis_from_front, list(op.bounds)
    *sizes, size = (sizes_of(part)[axis] for part in (*before, x))
    (start, end, step), offset = bounds[axis], sum(sizes)
    if min(size, *sizes, 0) < 0 or step < 1 or not offset <= start < end <= offset + size:
        return None
    if compares_sizes(owned(t, graph.ConcatOp)):
        return None
    bounds[axis] = (start - offset, end - offset, step)
    return _ranges(bounds)


@rule(
    "concat([*before, s := slice(x), t := slice(x), *after]) == concat([*before, slice(x, starts, "
    "ends, steps), *after], axis=axis)  where t begins at the end of s",
    EXACT,
)
def concat_of_slices(
    op: graph.ConcatOp, s: SSAValue, t: SSAValue
) -> Mapping[str, int | Sequence[int]] | None:
    axis, bounds = op.axis_from_front, owned(s, graph.SliceOp).bounds
    then = owned(t, graph.SliceOp).bounds
    (start, end, step), (again, last, other) = bounds[axis], then[axis]
    bounds[axis] = then[axis] = (start, last, 1)
    if bounds != then or (step, other) != (1, 1) or again != end:
        return None
    return {"axis": axis, **_ranges(bounds)}


@rule(
    "concat([*before, t := concat([*inner]), *after]) == concat([*before, *inner, *after], "
    "axis=axis)  along one axis, where nothing else reads t",
    EXACT,
)
def concat_of_concat(op: graph.ConcatOp, t: SSAValue) -> Mapping[str, int] | None:
    axis = op.axis_from_front
    same = owned(t, graph.ConcatOp).axis_from_front == axis and t.has_one_use()
    return {"axis": axis} if same else None


@rule("f(broadcast_to(x), y) == f(x, y)  where y has the shape of the result", EXACT, f=BinaryOp)
def operand_broadcasts_itself(op: BinaryOp) -> bool:
    return -1 not in sizes_of(op.result)


@rule("f(x, broadcast_to(y)) == f(x, y)  where x has the shape of the result", EXACT, f=BinaryOp)
def last_operand_broadcasts_itself(op: BinaryOp) -> bool:
    return -1 not in sizes_of(op.result)


def _joined(op: graph.ReduceOp, once: SSAValue) -> Mapping[str, object] | None:
    """The arguments of the reduction that equals `op` of one of its kind that it alone uses."""
    inner = owned(once, graph.ReduceOp)
    if inner.kind != op.kind or inner.neutral != op.neutral or not once.has_one_use():
        return None
    keepdims = bool(op.keepdims.value.data)
    if keepdims != bool(inner.keepdims.value.data):
        return None
    left = [a for a in range(rank(inner.x)) if keepdims or a not in inner.axes_from_front]
    axes = sorted({*inner.axes_from_front, *(left[a] for a in op.axes_from_front)})
    neutral = op.neutral is not None
    return {"kind": op.kind.data.value, "axes": axes, "keepdims": keepdims, "neutral": neutral}


@rule(
    "reduce(t := reduce(x)) == reduce(x, kind, axes, keepdims, neutral)  for maxima and minima",
    EXACT,
)
def largest_of_largest(op: graph.ReduceOp, t: SSAValue) -> Mapping[str, object] | None:
    return _joined(op, t) if op.kind.data in (ReduceKind.MAX, ReduceKind.MIN) else None


@rule(
    "reduce(t := reduce(x)) == reduce(x, kind, axes, keepdims, neutral)  for sums, products and "
    "means of floats, which are rounded, and overflow, in another order",
    SPECIAL,
)
def reduce_twice(op: graph.ReduceOp, t: SSAValue) -> Mapping[str, object] | None:
    kind = element_type(t)
    if not is_float(kind) or is_half(kind) or op.kind.data in (ReduceKind.MAX, ReduceKind.MIN):
        return None
    return _joined(op, t)


def _takes_ones(op: graph.ReduceOp) -> list[int] | None:
    """The target of the reshape that equals a reduction of axes of size 1; None for others."""
    ones = all(sizes_of(op.x)[axis] == 1 for axis in op.axes_from_front)
    return reshape_target(sizes_of(op.result)) if op.axes_from_front and ones else None


@rule(
    "reduce(x) == reshape(x, sizes)  over axes of size 1, except for sums and maxnum of floats",
    EXACT,
)
def reduce_of_ones(op: graph.ReduceOp) -> Mapping[str, list[int]] | None:
    target = _takes_ones(op)
    if target is None or not keeps_one(op.kind.data, element_type(op.x)):
        return None
    return {"sizes": target}


@rule("reduce(x) == reshape(x, sizes)  over axes of size 1; a sum of -0.0 is 0.0", SPECIAL)
def sum_of_ones(op: graph.ReduceOp) -> Mapping[str, list[int]] | None:
    target = None if op.kind.data == ReduceKind.MAXNUM else _takes_ones(op)
    return None if target is None else {"sizes": target}


@rule("pool(x) == x  where windows are single elements and cover all of x; -0.0 is 0.0", SPECIAL)
def sum_of_window_of_one(op: graph.PoolOp) -> bool:
    return op.takes_all_alone and op.kind.data != ReduceKind.MAXNUM


@rule("gather(x, c) == x  for an index 0, 1, .. of each place along the axis", EXACT)
def gather_of_all(op: graph.GatherOp, x: SSAValue, c: SSAValue, weights: WeightStore) -> bool:
    size = sizes_of(x)[op.axis_from_front]
    if sizes_of(c) != (size,):
        return False
    indices = elements_of(c, weights)
    return indices is not None and np.array_equal(indices, np.arange(size))


PATTERNS: tuple[IdentityRule, ...] = (
    transpose_of_ones,
    slice_twice,
    slice_of_concat,
    concat_of_slices,
    concat_one,
    concat_of_concat,
    operand_broadcasts_itself,
    last_operand_broadcasts_itself,
    largest_of_largest,
    reduce_twice,
    reduce_of_ones,
    sum_of_ones,
    sum_of_window_of_one,
)

PATTERNS_ON_CONSTANTS: tuple[IdentityRule, ...] = (gather_of_all,)
"""Patterns that read the elements of constants, which may be in the weight store."""

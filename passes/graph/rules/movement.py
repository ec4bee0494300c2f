"""Identities of operators that move, repeat or combine elements by their position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
)

from ....core.exactness import EXACT, SPECIAL, states
from ....core.typed import owned
from ....core.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ReduceKind, is_float, is_half
from ....dialects.graph.interfaces import element_type, rank
from ....dialects.graph.known import (
    elements_of,
    replace,
    reshape_target,
    sizes_of,
)
from ....dialects.graph.ops_binary import BinaryOp
from ....dialects.graph.ops_reduction import begins_at_zero
from ....dialects.graph.ops_select import WHOLE_END
from ....dialects.graph.rules import IdentityRule, rule
from .rooted import rooted


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
    bounds = [_composed(a, b) for a, b in zip(inner, op.bounds, strict=True)]
    return dict(zip(("starts", "ends", "steps"), zip(*bounds, strict=True), strict=True))


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


def _slice(x: SSAValue, bounds: Sequence[Bounds]) -> graph.SliceOp:
    starts, ends, steps = zip(*bounds, strict=True)
    return graph.SliceOp(x, starts, ends, steps)


@states(EXACT, "slice(concat(.., x, ..)) == slice(x)  where it reads elements of x only")
class SliceOfConcat(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.SliceOp, rewriter: PatternRewriter) -> None:
        concat = op.x.owner
        if not isinstance(concat, graph.ConcatOp):
            return
        axis = concat.axis_from_front
        start, end, step = op.bounds[axis]
        offset = 0
        for part in concat.inputs:
            size = sizes_of(part)[axis]
            if size < 0 or step < 1:
                return
            if offset <= start < end <= offset + size:
                bounds = list(op.bounds)
                bounds[axis] = (start - offset, end - offset, step)
                replace(op, [_slice(part, bounds)], rewriter, [concat])
                return
            offset += size


@states(EXACT, "concat(slice(x, a to b), slice(x, b to c)) == slice(x, a to c)")
class ConcatOfSlices(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.ConcatOp, rewriter: PatternRewriter) -> None:
        axis = op.axis_from_front
        first = op.inputs[0].owner if op.inputs else None
        if len(op.inputs) < 2 or not isinstance(first, graph.SliceOp):
            return
        sources, bounds = [first], list(first.bounds)
        for part in op.inputs[1:]:
            piece = part.owner
            if not isinstance(piece, graph.SliceOp) or piece.x is not first.x:
                return
            start, end, step = piece.bounds[axis]
            others = [*piece.bounds[:axis], bounds[axis], *piece.bounds[axis + 1 :]]
            if others != bounds or step != 1 or bounds[axis][2] != 1 or start != bounds[axis][1]:
                return
            bounds[axis] = (bounds[axis][0], end, 1)
            sources.append(piece)
        replace(op, [_slice(first.x, bounds)], rewriter, sources)


@states(EXACT, "concat(concat(x, y), z) == concat(x, y, z)")
class ConcatOfConcat(RewritePattern):
    @rooted
    def match_and_rewrite(self, op: graph.ConcatOp, rewriter: PatternRewriter) -> None:
        axis, inputs, inner = op.axis_from_front, [], []
        for part in op.inputs:
            concat = part.owner
            if (
                isinstance(concat, graph.ConcatOp)
                and part.has_one_use()
                and concat.axis_from_front == axis
            ):
                inputs += concat.inputs
                inner.append(concat)
            else:
                inputs.append(part)
        if inner:
            replace(op, [graph.ConcatOp(inputs, axis)], rewriter, inner)


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
    "reduce(x) == reshape(x, sizes)  over axes of size 1, for reductions that do not start at 0.0",
    EXACT,
)
def reduce_of_ones(op: graph.ReduceOp) -> Mapping[str, list[int]] | None:
    target = _takes_ones(op)
    if target is None or begins_at_zero(op.kind.data, element_type(op.x)):
        return None
    return {"sizes": target}


@rule("reduce(x) == reshape(x, sizes)  over axes of size 1; a sum of -0.0 is 0.0", SPECIAL)
def sum_of_ones(op: graph.ReduceOp) -> Mapping[str, list[int]] | None:
    target = _takes_ones(op)
    return None if target is None else {"sizes": target}


@rule("pool(x) == x  where windows are single elements and cover all of x; -0.0 is 0.0", SPECIAL)
def sum_of_window_of_one(op: graph.PoolOp) -> bool:
    return op.takes_all_alone


@rule("gather(x, c) == x  for an index 0, 1, .. of each place along the axis", EXACT)
def gather_of_all(op: graph.GatherOp, x: SSAValue, c: SSAValue, weights: WeightStore) -> bool:
    size = sizes_of(x)[op.axis_from_front]
    if sizes_of(c) != (size,):
        return False
    indices = elements_of(c, weights)
    return indices is not None and np.array_equal(indices, np.arange(size))


PATTERNS: tuple[RewritePattern, ...] = (
    transpose_of_ones,
    slice_twice,
    SliceOfConcat(),
    ConcatOfSlices(),
    ConcatOfConcat(),
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

"""Identities of operators that move, repeat or combine elements by their position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
)

from ....core.exactness import Exactness
from ....core.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ReduceKind, ints, is_float, is_half
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
from ....dialects.graph.rewrites import forward
from .rooted import rooted


@Exactness.EXACT
class TransposeOfOnes(RewritePattern):
    # transpose(x) == reshape(x)  where only axes of size 1 move
    @rooted
    def match_and_rewrite(self, op: graph.TransposeOp, rewriter: PatternRewriter) -> None:
        sizes, order = sizes_of(op.x), ints(op.permutation)
        moved = [axis for axis in order if sizes[axis] != 1]
        target = reshape_target(sizes_of(op.result))
        if moved != sorted(moved) or order == tuple(sorted(order)) or target is None:
            return
        replace(op, [graph.ReshapeOp(op.x, target)], rewriter)


@Exactness.EXACT
class SliceTwice(RewritePattern):
    # slice(slice(x, a), b) == slice(x, a after b)
    @rooted
    def match_and_rewrite(self, op: graph.SliceOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.SliceOp) or 0 in sizes_of(op.result):
            return
        bounds = [_composed(a, b) for a, b in zip(inner.bounds, op.bounds, strict=True)]
        replace(op, [_slice(inner.x, bounds)], rewriter, [inner])


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


@Exactness.EXACT
class SliceOfConcat(RewritePattern):
    # slice(concat(.., x, ..)) == slice(x)  where it reads elements of x only
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


@Exactness.EXACT
class ConcatOfSlices(RewritePattern):
    # concat(slice(x, a to b), slice(x, b to c)) == slice(x, a to c)
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


@Exactness.EXACT
class ConcatOfConcat(RewritePattern):
    # concat(concat(x, y), z) == concat(x, y, z)
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


@Exactness.EXACT
class OperandBroadcastsItself(RewritePattern):
    # f(broadcast_to(x), y) == f(x, y)  where y has the shape of the result
    @rooted
    def match_and_rewrite(self, op: BinaryOp, rewriter: PatternRewriter) -> None:
        if -1 in sizes_of(op.result):
            return
        left, right = op.lhs.owner, op.rhs.owner
        if isinstance(left, graph.BroadcastToOp) and (
            replace(op, [type(op)(left.x, op.rhs)], rewriter, [left])
        ):
            return
        if isinstance(right, graph.BroadcastToOp):
            replace(op, [type(op)(op.lhs, right.x)], rewriter, [right])


def _joined(op: graph.ReduceOp) -> tuple[graph.ReduceOp, graph.ReduceOp] | None:
    """A reduction of the same kind before `op`, and a reduction over the axes of both."""
    inner = op.x.owner
    if not isinstance(inner, graph.ReduceOp) or inner.kind != op.kind:
        return None
    if inner.neutral != op.neutral:
        return None
    keepdims = bool(op.keepdims.value.data)
    if not inner.result.has_one_use() or keepdims != bool(inner.keepdims.value.data):
        return None
    left = [a for a in range(rank(inner.x)) if keepdims or a not in inner.axes_from_front]
    axes = sorted({*inner.axes_from_front, *(left[a] for a in op.axes_from_front)})
    neutral = op.neutral is not None
    return inner, graph.ReduceOp(inner.x, op.kind.data.value, axes, keepdims, neutral)


@Exactness.EXACT
class LargestOfLargest(RewritePattern):
    # max(max(x, a), b) == max(x, a and b), likewise min
    @rooted
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        if op.kind.data in (ReduceKind.MAX, ReduceKind.MIN) and (found := _joined(op)):
            replace(op, [found[1]], rewriter, [found[0]])


@Exactness.SPECIAL
class ReduceTwice(RewritePattern):
    # reduce(reduce(x, a), b) == reduce(x, a and b)  for sums, products and means of floats,
    # which are rounded, and overflow, in another order
    @rooted
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        kind = element_type(op.x)
        if not is_float(kind) or is_half(kind) or op.kind.data in (ReduceKind.MAX, ReduceKind.MIN):
            return
        if found := _joined(op):
            replace(op, [found[1]], rewriter, [found[0]])


def _takes_ones(op: graph.ReduceOp) -> list[int] | None:
    """The target of the reshape that equals a reduction of axes of size 1; None for others."""
    ones = all(sizes_of(op.x)[axis] == 1 for axis in op.axes_from_front)
    return reshape_target(sizes_of(op.result)) if op.axes_from_front and ones else None


@Exactness.EXACT
class ReduceOfOnes(RewritePattern):
    # reduce(x) == reshape(x)  over axes of size 1, for reductions that do not start at 0.0
    @rooted
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        target = _takes_ones(op)
        if target is not None and not begins_at_zero(op.kind.data, element_type(op.x)):
            replace(op, [graph.ReshapeOp(op.x, target)], rewriter)


@Exactness.SPECIAL
class SumOfOnes(RewritePattern):
    # sum(x) == reshape(x)  over axes of size 1, except for -0.0, which becomes 0.0
    @rooted
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        if (target := _takes_ones(op)) is not None:
            replace(op, [graph.ReshapeOp(op.x, target)], rewriter)


@Exactness.SPECIAL
class SumOfWindowOfOne(RewritePattern):
    # pool(x) == x  where windows are single elements and cover all of x, except for -0.0
    @rooted
    def match_and_rewrite(self, op: graph.PoolOp, rewriter: PatternRewriter) -> None:
        if op.takes_all_alone and op.x.type == op.result.type:
            rewriter.replace(op, (), (op.x,))


@Exactness.EXACT
@dataclass
class GatherOfAll(RewritePattern):
    # gather(x, [0, 1, ..]) == x  with an index for each place along the axis
    weights: WeightStore

    @rooted
    def match_and_rewrite(self, op: graph.GatherOp, rewriter: PatternRewriter) -> None:
        size = sizes_of(op.x)[op.axis_from_front]
        if sizes_of(op.indices) != (size,):
            return
        indices = elements_of(op.indices, self.weights)
        if indices is not None and np.array_equal(indices, np.arange(size)):
            forward(op, op.x, rewriter)


PATTERNS: tuple[type[RewritePattern], ...] = (
    TransposeOfOnes,
    SliceTwice,
    SliceOfConcat,
    ConcatOfSlices,
    ConcatOfConcat,
    OperandBroadcastsItself,
    LargestOfLargest,
    ReduceTwice,
    ReduceOfOnes,
    SumOfOnes,
    SumOfWindowOfOne,
)

PATTERNS_ON_CONSTANTS = (GatherOfAll,)
"""Patterns that read the elements of constants, which may be in the weight store."""

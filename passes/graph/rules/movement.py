"""Identities of operators that move, repeat or combine elements by their position."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ReduceKind, ints, is_float, is_half
from ....dialects.graph.interfaces import element_type, rank
from ....dialects.graph.known import (
    replace,
    reshape_target,
    sizes_of,
)
from ....dialects.graph.ops_binary import BinaryOp
from ....dialects.graph.ops_select import WHOLE_END


class TransposeOfOnes(RewritePattern):
    # transpose(x) == reshape(x)  where only axes of size 1 change their place
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.TransposeOp, rewriter: PatternRewriter) -> None:
        sizes, order = sizes_of(op.x), ints(op.permutation)
        moved = [axis for axis in order if sizes[axis] != 1]
        target = reshape_target(sizes_of(op.result))
        if moved != sorted(moved) or order == tuple(sorted(order)) or target is None:
            return
        replace(op, [graph.ReshapeOp(op.x, target)], rewriter)


class SliceTwice(RewritePattern):
    # slice(slice(x, a), b) == slice(x, a after b)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SliceOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.SliceOp) or 0 in sizes_of(op.result):
            return
        bounds = [_composed(a, b) for a, b in zip(inner.bounds, op.bounds, strict=True)]
        replace(op, [_slice(inner.x, bounds)], rewriter, [inner])


Bounds = tuple[int, int, int]


def _composed(first: Bounds, then: Bounds) -> Bounds:
    """Start, end and step of a slice of a slice, which has an element."""
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


class SliceOfConcat(RewritePattern):
    # slice(concat(.., x, ..)) == slice(x)  where it takes elements of x only
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SliceOp, rewriter: PatternRewriter) -> None:
        concat = op.x.owner
        if not isinstance(concat, graph.ConcatOp):
            return
        axis = concat.axis.value.data % rank(concat.result)
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


class ConcatOfSlices(RewritePattern):
    # concat(slice(x, a to b), slice(x, b to c)) == slice(x, a to c)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ConcatOp, rewriter: PatternRewriter) -> None:
        axis = op.axis.value.data % rank(op.result)
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


class ConcatOfConcat(RewritePattern):
    # concat(concat(x, y), z) == concat(x, y, z)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ConcatOp, rewriter: PatternRewriter) -> None:
        axis, inputs, inner = op.axis.value.data % rank(op.result), [], []
        for part in op.inputs:
            concat = part.owner
            if (
                isinstance(concat, graph.ConcatOp)
                and part.has_one_use()
                and concat.axis.value.data % rank(part) == axis
            ):
                inputs += concat.inputs
                inner.append(concat)
            else:
                inputs.append(part)
        if inner:
            replace(op, [graph.ConcatOp(inputs, axis)], rewriter, inner)


class OperandBroadcastsItself(RewritePattern):
    # f(broadcast_to(x), y) == f(x, y)  where y has the shape of the result
    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, BinaryOp) or -1 in sizes_of(op.result):
            return
        left, right = op.lhs.owner, op.rhs.owner
        if isinstance(left, graph.BroadcastToOp) and (
            replace(op, [type(op)(left.x, op.rhs)], rewriter, [left])
        ):
            return
        if isinstance(right, graph.BroadcastToOp):
            replace(op, [type(op)(op.lhs, right.x)], rewriter, [right])


class ReduceTwice(RewritePattern):
    # reduce(reduce(x, a), b) == reduce(x, a and b)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.ReduceOp) or inner.kind != op.kind:
            return
        keepdims = bool(op.keepdims.value.data)
        floats = not is_half(element_type(op.x)) and is_float(element_type(op.x))
        exact = op.kind.data in (ReduceKind.MAX, ReduceKind.MIN)
        if not (floats or exact) or not inner.result.has_one_use():
            return
        if keepdims != bool(inner.keepdims.value.data):
            return
        left = [a for a in range(rank(inner.x)) if keepdims or a not in inner.reduced_axes]
        axes = sorted({*inner.reduced_axes, *(left[a] for a in op.reduced_axes)})
        new = graph.ReduceOp(inner.x, op.kind.data.value, axes, keepdims)
        replace(op, [new], rewriter, [inner])


class ReduceOfOnes(RewritePattern):
    # reduce(x) == reshape(x)  over axes of size 1
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        target = reshape_target(sizes_of(op.result))
        ones = all(sizes_of(op.x)[axis] == 1 for axis in op.reduced_axes)
        if op.reduced_axes and ones and target is not None:
            replace(op, [graph.ReshapeOp(op.x, target)], rewriter)


PATTERNS: tuple[type[RewritePattern], ...] = (
    TransposeOfOnes,
    SliceTwice,
    SliceOfConcat,
    ConcatOfSlices,
    ConcatOfConcat,
    OperandBroadcastsItself,
    ReduceTwice,
    ReduceOfOnes,
)

"""Identities that make a graph smaller without changing what it computes.

A pattern replaces a value only by one of the same type: a rewrite never hides a size that a
type declared.
"""

from __future__ import annotations

import math

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.provenance import fuse
from . import ops as graph
from .attrs import AggregateKind, PadMode, ints, is_float
from .interfaces import GraphOp, element_type, rank, tensor_type
from .known import holds_all_values


def _forward(op: GraphOp, value: SSAValue, rewriter: PatternRewriter) -> None:
    """Replace the only result of `op` by `value` if the types agree."""
    if op.results[0].type == value.type:
        rewriter.replace(op, (), (value,))


def _replace(
    op: GraphOp, new: GraphOp, sources: tuple[GraphOp, ...], rewriter: PatternRewriter
) -> None:
    """Replace `op` by `new`, which stands for `sources`, if the result types agree."""
    if op.results[0].type != new.results[0].type:
        new.erase()
        return
    new.location = fuse(sources)
    rewriter.replace(op, new)


def _is_splat(value: SSAValue, number: float) -> bool:
    """Whether a value is a literal constant of one number; 0.0 and -0.0 differ."""
    splat = graph.splat_of(value)
    if splat is None or splat != number:
        return False
    return math.copysign(1.0, splat) == math.copysign(1.0, number)


class AddZero(RewritePattern):
    # x + -0.0 == x, and x + 0 == x for integers; 0.0 would turn -0.0 into 0.0
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        zero = -0.0 if is_float(element_type(op.lhs)) else 0
        if _is_splat(op.rhs, zero):
            _forward(op, op.lhs, rewriter)
        elif _is_splat(op.lhs, zero):
            _forward(op, op.rhs, rewriter)


class SubtractZero(RewritePattern):
    # x - 0.0 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SubOp, rewriter: PatternRewriter) -> None:
        if _is_splat(op.rhs, 0.0):
            _forward(op, op.lhs, rewriter)


class MultiplyOne(RewritePattern):
    # x * 1 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        if _is_splat(op.rhs, 1):
            _forward(op, op.lhs, rewriter)
        elif _is_splat(op.lhs, 1):
            _forward(op, op.rhs, rewriter)


class DivideByOne(RewritePattern):
    # x / 1 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        if _is_splat(op.rhs, 1):
            _forward(op, op.lhs, rewriter)


class MaxOfSame(RewritePattern):
    # max(x, x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MaxOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs:
            _forward(op, op.lhs, rewriter)


class MinOfSame(RewritePattern):
    # min(x, x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MinOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs:
            _forward(op, op.lhs, rewriter)


class PowerOfOne(RewritePattern):
    # x ** 1 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        if _is_splat(op.rhs, 1):
            _forward(op, op.lhs, rewriter)


class PowerOfTwo(RewritePattern):
    # x ** 2 == x * x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        if _is_splat(op.rhs, 2):
            _replace(op, graph.MulOp(op.lhs, op.lhs), (op,), rewriter)


class NegateTwice(RewritePattern):
    # -(-x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.NegOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, graph.NegOp):
            _forward(op, inner.x, rewriter)


class ReluTwice(RewritePattern):
    # relu(relu(x)) == relu(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReluOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.x.owner, graph.ReluOp):
            _forward(op, op.x, rewriter)


class ClipNothing(RewritePattern):
    # clip(x) without bounds == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ClipOp, rewriter: PatternRewriter) -> None:
        if op.minimum is None and op.maximum is None:
            _forward(op, op.x, rewriter)


class CastToSame(RewritePattern):
    # cast(x) == x  for x of that type
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.CastOp, rewriter: PatternRewriter) -> None:
        _forward(op, op.x, rewriter)


class CastWiderAndBack(RewritePattern):
    # cast(cast(x)) == x  where the type between holds all values of x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.CastOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.CastOp):
            return
        if holds_all_values(element_type(inner.result), element_type(inner.x)):
            _forward(op, inner.x, rewriter)


class AbsOfNoSign(RewritePattern):
    # abs(-x) == abs(x), and abs(abs(x)) == abs(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AbsOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if isinstance(inner, graph.NegOp):
            _replace(op, graph.AbsOp(inner.x), (inner, op), rewriter)
        elif isinstance(inner, graph.AbsOp):
            _forward(op, op.x, rewriter)


class GreaterAsLess(RewritePattern):
    # a > b == b < a
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.GreaterOp, rewriter: PatternRewriter) -> None:
        _replace(op, graph.LessOp(op.rhs, op.lhs), (op,), rewriter)


class GreaterEqualAsLessEqual(RewritePattern):
    # a >= b == b <= a
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.GreaterEqualOp, rewriter: PatternRewriter) -> None:
        _replace(op, graph.LessEqualOp(op.rhs, op.lhs), (op,), rewriter)


class LogicalNotTwice(RewritePattern):
    # not not x == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.LogicalNotOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, graph.LogicalNotOp):
            _forward(op, inner.x, rewriter)


class WhereSame(RewritePattern):
    # where(c, x, x) == x, and where(true, a, b) == a  for a condition whose sizes are numbers
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.WhereOp, rewriter: PatternRewriter) -> None:
        if not tensor_type(op.condition).has_static_shape():
            return
        condition = graph.splat_of(op.condition)
        if op.a is op.b:
            _forward(op, op.a, rewriter)
        elif condition is not None and tensor_type(op.result).has_static_shape():
            _forward(op, op.a if condition else op.b, rewriter)


class ReduceNothing(RewritePattern):
    # reduce(x, axes = []) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReduceOp, rewriter: PatternRewriter) -> None:
        if not ints(op.axes):
            _forward(op, op.x, rewriter)


class TransposeNothing(RewritePattern):
    # transpose(x, [0, 1, ...]) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.TransposeOp, rewriter: PatternRewriter) -> None:
        if ints(op.permutation) == tuple(range(rank(op.x))):
            _forward(op, op.x, rewriter)


class TransposeTwice(RewritePattern):
    # transpose(transpose(x, p), q) == transpose(x, [p[i] for i in q])
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.TransposeOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.TransposeOp):
            return
        first = ints(inner.permutation)
        new = graph.TransposeOp(inner.x, [first[i] for i in ints(op.permutation)])
        _replace(op, new, (inner, op), rewriter)


class ReshapeNothing(RewritePattern):
    # reshape(x, shape) == x  for x of that shape, where symbolic sizes are copied or -1
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReshapeOp, rewriter: PatternRewriter) -> None:
        sizes = tensor_type(op.x).get_shape()
        if all(n >= 0 or t <= 0 for n, t in zip(sizes, ints(op.shape), strict=False)):
            _forward(op, op.x, rewriter)


class ReshapeTwice(RewritePattern):
    # reshape(reshape(x, s), t) == reshape(x, t)  where t copies only what s copied
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReshapeOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.ReshapeOp):
            return
        first, between = ints(inner.shape), tensor_type(inner.result).get_shape()
        target: list[int] = []
        for i, n in enumerate(ints(op.shape)):
            if n != 0 or first[i] == 0:
                target.append(n)
            elif between[i] > 0:
                target.append(between[i])
            else:
                return
        _replace(op, graph.ReshapeOp(inner.x, target), (inner, op), rewriter)


class BroadcastNothing(RewritePattern):
    # broadcast_to(x, shape) == x  for x of that shape, where symbolic sizes are kept
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.BroadcastToOp, rewriter: PatternRewriter) -> None:
        sizes = tensor_type(op.x).get_shape()
        if all(n >= 0 or t == -1 for n, t in zip(sizes, ints(op.shape), strict=False)):
            _forward(op, op.x, rewriter)


class SliceNothing(RewritePattern):
    # slice(x) == x  where every axis is taken whole
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SliceOp, rewriter: PatternRewriter) -> None:
        if all((start, step) == (0, 1) for start, _, step in op.bounds):
            _forward(op, op.x, rewriter)


class PadNothing(RewritePattern):
    # pad(x) == x  where nothing is added
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PadOp, rewriter: PatternRewriter) -> None:
        if not any(ints(op.low)) and not any(ints(op.high)):
            _forward(op, op.x, rewriter)


class PadTwice(RewritePattern):
    # pad(pad(x, p), q) == pad(x, p + q)  with one constant
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PadOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.PadOp):
            return
        if op.mode.data != PadMode.CONSTANT or inner.mode != op.mode:
            return
        # 0.0 and -0.0 are equal, and differ.
        if repr(inner.number) != repr(op.number):
            return
        low, high = (
            [a + b for a, b in zip(ints(first), ints(second), strict=True)]
            for first, second in ((inner.low, op.low), (inner.high, op.high))
        )
        new = graph.PadOp(inner.x, low, high, op.number)
        _replace(op, new, (inner, op), rewriter)


class PoolNothing(RewritePattern):
    # pool(x) == x  where a window is one element, and none is left out
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PoolOp, rewriter: PatternRewriter) -> None:
        if all(n == 1 for n in (*ints(op.window), *ints(op.strides))):
            _forward(op, op.x, rewriter)


class ConcatOne(RewritePattern):
    # concat(x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ConcatOp, rewriter: PatternRewriter) -> None:
        if len(op.inputs) == 1:
            _forward(op, op.inputs[0], rewriter)


class DropoutAtInference(RewritePattern):
    # dropout(x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DropoutOp, rewriter: PatternRewriter) -> None:
        _forward(op, op.x, rewriter)


class AggregateByStoredValues(RewritePattern):
    # aggregate(sum, a, x, entries(a)) == spmm(a, x)  for a matrix x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AggregateOp, rewriter: PatternRewriter) -> None:
        entries = None if op.weights is None else op.weights.owner
        if not isinstance(entries, graph.EntriesOp) or entries.a is not op.a:
            return
        if op.kind.data == AggregateKind.SUM and rank(op.x) == 2:
            _replace(op, graph.SpmmOp(op.a, op.x), (entries, op), rewriter)

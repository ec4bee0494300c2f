"""Identities of arithmetic: signs, constants, powers, bounds, casts."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import cast

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ....core.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import dtype_of, is_float, is_half
from ....dialects.graph.interfaces import element_type
from ....dialects.graph.known import (
    elements_of,
    holds_all_values,
    is_constant,
    is_nonnegative,
    is_regular,
    replace,
)
from ....dialects.graph.ops_binary import BinaryOp


class AddNegated(RewritePattern):
    # x + (-y) == x - y
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        for x, negated in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            neg = negated.owner
            if isinstance(neg, graph.NegOp) and not is_constant(neg.x):
                replace(op, [graph.SubOp(x, neg.x)], rewriter, [neg])
                return


class SubtractNegated(RewritePattern):
    # x - (-y) == x + y
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SubOp, rewriter: PatternRewriter) -> None:
        if isinstance(neg := op.rhs.owner, graph.NegOp):
            replace(op, [graph.AddOp(op.lhs, neg.x)], rewriter, [neg])


class MultiplyNegated(RewritePattern):
    # (-x) * (-y) == x * y
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        left, right = op.lhs.owner, op.rhs.owner
        if isinstance(left, graph.NegOp) and isinstance(right, graph.NegOp):
            replace(op, [graph.MulOp(left.x, right.x)], rewriter, [left, right])


class MultiplyMinusOne(RewritePattern):
    # x * -1 == -x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        for x, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if graph.splat_of(factor) == -1 and not is_constant(x):
                replace(op, [graph.NegOp(x)], rewriter)
                return


class DivideByConstant(RewritePattern):
    # x / c == x * (1 / c)  for floats, with one rounding more
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        divisor = elements_of(op.rhs, WeightStore())
        # In f16 the rounding of 1 / c would show.
        if divisor is None or divisor.dtype not in (np.float32, np.float64):
            return
        with np.errstate(all="ignore"):
            inverse = divisor.dtype.type(1) / divisor
        if is_constant(op.lhs) or not is_regular(divisor) or not is_regular(inverse):
            return
        factor = graph.ConstantOp.literal(inverse)
        replace(op, [factor, graph.MulOp(op.lhs, factor)], rewriter)


class InverseOfRoot(RewritePattern):
    # 1 / sqrt(x) == rsqrt(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        root = op.rhs.owner
        if graph.splat_of(op.lhs) == 1 and isinstance(root, graph.SqrtOp):
            replace(op, [graph.RsqrtOp(root.x)], rewriter, [root])


class SigmoidFormula(RewritePattern):
    # 1 / (1 + exp(-x)) == sigmoid(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        total = op.rhs.owner
        if graph.splat_of(op.lhs) != 1 or not isinstance(total, graph.AddOp):
            return
        for one, summand in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
            exp = summand.owner
            if graph.splat_of(one) != 1 or not isinstance(exp, graph.ExpOp):
                continue
            if isinstance(neg := exp.x.owner, graph.NegOp):
                replace(op, [graph.SigmoidOp(neg.x)], rewriter, [neg, exp, total])
                return


@dataclass
class _WithWeights(RewritePattern):
    """A pattern that looks at the elements of constants."""

    weights: WeightStore = field(default_factory=WeightStore)

    def constant_operand(self, op: BinaryOp) -> tuple[SSAValue, SSAValue, np.ndarray] | None:
        """The operand that is computed, the one that is constant, and its elements."""
        for x, c in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            array = elements_of(c, self.weights)
            if array is not None and not is_constant(x):
                return x, c, array
        return None


class MultiplyTwice(_WithWeights):
    # (x * c) * d == x * (c * d)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        if (outer := self.constant_operand(op)) is None:
            return
        inner = outer[0].owner
        if not isinstance(inner, graph.MulOp) or not inner.result.has_one_use():
            return
        first = self.constant_operand(inner)
        if first is None or is_half(element_type(op.result)):
            return
        with np.errstate(all="ignore"):
            if not is_regular(first[2] * outer[2]):
                return
        factor = graph.MulOp(first[1], outer[1])
        replace(op, [factor, graph.MulOp(first[0], factor)], rewriter, [inner])


class AddTwice(_WithWeights):
    # (x + c) + d == x + (c + d)  where c and d have one sign, so that nothing cancels
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        if (outer := self.constant_operand(op)) is None:
            return
        inner = outer[0].owner
        if not isinstance(inner, graph.AddOp) or not inner.result.has_one_use():
            return
        first = self.constant_operand(inner)
        if first is None or is_half(element_type(op.result)):
            return
        with np.errstate(all="ignore"):
            cancels = np.signbit(first[2]) != np.signbit(outer[2])
            finite = np.isfinite(first[2] + outer[2])
        if is_float(element_type(op.result)) and (np.any(cancels) or not np.all(finite)):
            return
        summand = graph.AddOp(first[1], outer[1])
        replace(op, [summand, graph.AddOp(first[0], summand)], rewriter, [inner])


class PowerIsRoot(RewritePattern):
    # x ** 0.5 == sqrt(x)  for x >= 0
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        if not is_float(element_type(op.lhs)) or not is_nonnegative(op.lhs):
            return
        if graph.splat_of(op.rhs) == 0.5:
            replace(op, [graph.SqrtOp(op.lhs)], rewriter)


class PowerIsProduct(RewritePattern):
    # x ** 3 == x * x * x and x ** 4 == (x * x) * (x * x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        exponent = graph.splat_of(op.rhs)
        if exponent not in (3, 4) or is_half(element_type(op.lhs)):
            return
        square = graph.MulOp(op.lhs, op.lhs)
        replace(op, [square, graph.MulOp(square, op.lhs if exponent == 3 else square)], rewriter)


class PowerIsInverse(RewritePattern):
    # x ** -1 == 1 / x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        if graph.splat_of(op.rhs) != -1 or not is_float(element_type(op.lhs)):
            return
        one = graph.ConstantOp.literal(np.array(1, dtype=dtype_of(element_type(op.lhs))))
        replace(op, [one, graph.DivOp(one, op.lhs)], rewriter)


class LogOfSoftmax(RewritePattern):
    # log(softmax(x)) == log_softmax(x), which does not underflow
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.LogOp, rewriter: PatternRewriter) -> None:
        if isinstance(softmax := op.x.owner, graph.SoftmaxOp):
            new = graph.LogSoftmaxOp(softmax.x, softmax.axis.value.data)
            replace(op, [new], rewriter, [softmax])


class ReluOfNonnegative(RewritePattern):
    # relu(x) == x  for x >= 0
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ReluOp, rewriter: PatternRewriter) -> None:
        if is_nonnegative(op.x) and op.x.type == op.result.type:
            rewriter.replace(op, (), (op.x,))


def _bounds(op: object) -> tuple[SSAValue, float, float] | None:
    """What `op` clips and between which bounds, if that is what it does."""
    if isinstance(op, graph.ReluOp):
        return op.x, 0, inf
    if not isinstance(op, graph.ClipOp):
        return None
    low, high = op.bounds
    return op.x, -inf if low is None else low, inf if high is None else high


class ClipTwice(RewritePattern):
    # clip(clip(x, a, b), c, d) == clip(x, clip(a, c, d), clip(b, c, d)); relu is clip(x, 0, inf)
    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if (outer := _bounds(op)) is None or (inner := _bounds(outer[0].owner)) is None:
            return
        x, low, high = inner
        assert isinstance(op, graph.ReluOp | graph.ClipOp)
        if low > high or outer[1] > outer[2]:
            return
        low, high = (min(max(bound, outer[1]), outer[2]) for bound in (low, high))
        if (low, high) == (0, inf):
            new: graph.ReluOp | graph.ClipOp = graph.ReluOp(x)
        else:
            new = graph.ClipOp(x, None if low == -inf else low, None if high == inf else high)
        replace(op, [new], rewriter, [cast(graph.ReluOp, outer[0].owner)])


class CastOfWiderCast(RewritePattern):
    # cast(cast(x)) == cast(x)  where the type between holds all values of x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.CastOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.CastOp):
            return
        source, target = element_type(inner.x), element_type(op.result)
        rounds = not is_float(source) and is_float(target)
        if holds_all_values(element_type(op.x), source) and not rounds:
            replace(op, [graph.CastOp(inner.x, target)], rewriter, [inner])


PATTERNS: tuple[type[RewritePattern], ...] = (
    AddNegated,
    SubtractNegated,
    MultiplyNegated,
    MultiplyMinusOne,
    DivideByConstant,
    InverseOfRoot,
    SigmoidFormula,
    PowerIsRoot,
    PowerIsProduct,
    PowerIsInverse,
    LogOfSoftmax,
    ReluOfNonnegative,
    ClipTwice,
    CastOfWiderCast,
)

PATTERNS_ON_CONSTANTS = (MultiplyTwice, AddTwice)
"""Those that look at the elements of constants, which may be in the weight store."""

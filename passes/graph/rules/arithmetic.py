"""Identities of arithmetic: signs, constants, powers, bounds, casts."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import copysign, inf
from typing import cast

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
)

from ....core.dtypes import LOW_BIT_FLOATS, dtype_of, ui32, ui64
from ....core.exactness import Exactness
from ....core.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import holds_all_values, is_float, is_half
from ....dialects.graph.interfaces import element_type
from ....dialects.graph.known import elements_of, is_constant, is_nonnegative, is_regular, replace
from ....dialects.graph.ops_binary import BinaryOp
from .rooted import rooted


@Exactness.EXACT
class AddNegated(RewritePattern):
    # x + (-y) == x - y
    @rooted
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter) -> None:
        for x, negated in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            neg = negated.owner
            if isinstance(neg, graph.NegOp) and not is_constant(neg.x):
                replace(op, [graph.SubOp(x, neg.x)], rewriter, [neg])
                return


@Exactness.EXACT
class SubtractNegated(RewritePattern):
    # x - (-y) == x + y
    @rooted
    def match_and_rewrite(self, op: graph.SubOp, rewriter: PatternRewriter) -> None:
        if isinstance(neg := op.rhs.owner, graph.NegOp):
            replace(op, [graph.AddOp(op.lhs, neg.x)], rewriter, [neg])


@Exactness.EXACT
class MultiplyNegated(RewritePattern):
    # (-x) * (-y) == x * y
    @rooted
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        left, right = op.lhs.owner, op.rhs.owner
        if isinstance(left, graph.NegOp) and isinstance(right, graph.NegOp):
            replace(op, [graph.MulOp(left.x, right.x)], rewriter, [left, right])


@Exactness.EXACT
class MultiplyMinusOne(RewritePattern):
    # x * -1 == -x
    @rooted
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter) -> None:
        for x, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if graph.splat_of(factor) == -1 and not is_constant(x):
                replace(op, [graph.NegOp(x)], rewriter)
                return


def _inverse(op: graph.DivOp) -> tuple[np.ndarray, np.ndarray] | None:
    """A constant divisor and its reciprocal, if the elements of both are normal numbers."""
    divisor = elements_of(op.rhs, WeightStore())
    if divisor is None or is_constant(op.lhs) or not is_float(element_type(op.lhs)):
        return None
    with np.errstate(all="ignore"):
        inverse = divisor.dtype.type(1) / divisor
    return (divisor, inverse) if is_regular(divisor) and is_regular(inverse) else None


def _multiply(op: graph.DivOp, inverse: np.ndarray, rewriter: PatternRewriter) -> None:
    factor = graph.ConstantOp.literal(inverse)
    replace(op, [factor, graph.MulOp(op.lhs, factor)], rewriter)


@Exactness.EXACT
class DivideByPowerOfTwo(RewritePattern):
    # x / 2^n == x * 2^-n  for floats, where 2^n and 2^-n are normal numbers
    @rooted
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        found = _inverse(op)
        if found is not None and np.all(np.abs(np.frexp(found[0].astype(np.float64))[0]) == 0.5):
            _multiply(op, found[1], rewriter)


@Exactness.ROUNDING
class DivideByConstant(RewritePattern):
    # x / c == x * (1 / c)  for f32 and f64, with one more rounding: 41 * (1 / 41) is the number
    # before 1
    @rooted
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        found = _inverse(op)
        # In 16 bits the rounding of 1 / c would show.
        if found is not None and not is_half(element_type(op.lhs)):
            _multiply(op, found[1], rewriter)


@Exactness.ROUNDING
class InverseOfRoot(RewritePattern):
    # 1 / sqrt(x) == rsqrt(x), which in 16 bits does not round the root
    @rooted
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter) -> None:
        root = op.rhs.owner
        if graph.splat_of(op.lhs) == 1 and isinstance(root, graph.SqrtOp):
            replace(op, [graph.RsqrtOp(root.x)], rewriter, [root])


@Exactness.ROUNDING
class SigmoidFormula(RewritePattern):
    # 1 / (1 + exp(-x)) == sigmoid(x), which in 16 bits does not round in between
    @rooted
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
    """A pattern that reads the elements of constants."""

    weights: WeightStore = field(default_factory=WeightStore)

    def constant_operand(self, op: BinaryOp) -> tuple[SSAValue, SSAValue, np.ndarray] | None:
        """The computed operand, the constant one, and its elements."""
        for x, c in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            array = elements_of(c, self.weights)
            if array is not None and not is_constant(x):
                return x, c, array
        return None


@Exactness.SPECIAL
class MultiplyTwice(_WithWeights):
    # (x * c) * d == x * (c * d), which does not overflow or underflow in between
    @rooted
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


@Exactness.ROUNDING
class AddTwice(_WithWeights):
    # (x + c) + d == x + (c + d)  where c and d have one sign, so that nothing cancels
    @rooted
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


@Exactness.SPECIAL
class PowerIsRoot(RewritePattern):
    # x ** 0.5 == sqrt(x)  for x >= 0, except for -0.0, whose power is 0.0
    @rooted
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        if not is_float(element_type(op.lhs)) or not is_nonnegative(op.lhs):
            return
        if graph.splat_of(op.rhs) == 0.5:
            replace(op, [graph.SqrtOp(op.lhs)], rewriter)


@Exactness.ROUNDING
class PowerIsProduct(RewritePattern):
    # x ** 3 == x * x * x and x ** 4 == (x * x) * (x * x)
    @rooted
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        exponent = graph.splat_of(op.rhs)
        if exponent not in (3, 4) or is_half(element_type(op.lhs)):
            return
        square = graph.MulOp(op.lhs, op.lhs)
        replace(op, [square, graph.MulOp(square, op.lhs if exponent == 3 else square)], rewriter)


@Exactness.EXACT
class PowerIsInverse(RewritePattern):
    # x ** -1 == 1 / x, which is the correctly rounded power
    @rooted
    def match_and_rewrite(self, op: graph.PowOp, rewriter: PatternRewriter) -> None:
        if graph.splat_of(op.rhs) != -1 or not is_float(element_type(op.lhs)):
            return
        one = graph.ConstantOp.literal(np.array(1, dtype=dtype_of(element_type(op.lhs))))
        replace(op, [one, graph.DivOp(one, op.lhs)], rewriter)


@Exactness.SPECIAL
class LogOfSoftmax(RewritePattern):
    # log(softmax(x)) == log_softmax(x), which does not underflow
    @rooted
    def match_and_rewrite(self, op: graph.LogOp, rewriter: PatternRewriter) -> None:
        if isinstance(softmax := op.x.owner, graph.SoftmaxOp):
            new = graph.LogSoftmaxOp(softmax.x, softmax.axis.value.data)
            replace(op, [new], rewriter, [softmax])


@Exactness.SPECIAL
class ReluOfNonnegative(RewritePattern):
    # relu(x) == x  for x >= 0, except for -0.0, which becomes 0.0
    @rooted
    def match_and_rewrite(self, op: graph.ReluOp, rewriter: PatternRewriter) -> None:
        if is_nonnegative(op.x) and op.x.type == op.result.type:
            rewriter.replace(op, (), (op.x,))


def _bounds(op: object) -> tuple[SSAValue, float, float] | None:
    """The operand and the bounds of a relu or clip; None for other operators."""
    if isinstance(op, graph.ReluOp):
        return op.x, 0, inf
    if not isinstance(op, graph.ClipOp):
        return None
    low, high = op.bounds
    return op.x, -inf if low is None else low, inf if high is None else high


def _cut(bound: float, low: float, high: float) -> float:
    """A bound clipped to `low` and `high`; -0.0 is below 0.0."""

    def order(number: float) -> tuple[float, float]:
        return number, copysign(1, number)

    return min(max(bound, low, key=order), high, key=order)


@Exactness.EXACT
class ClipTwice(RewritePattern):
    # clip(clip(x, a, b), c, d) == clip(x, clip(a, c, d), clip(b, c, d)); relu is clip(x, 0, inf)
    @rooted
    def match_and_rewrite(self, op: graph.ReluOp | graph.ClipOp, rewriter: PatternRewriter) -> None:
        if (outer := _bounds(op)) is None or (inner := _bounds(outer[0].owner)) is None:
            return
        x, low, high = inner
        if low > high or outer[1] > outer[2]:
            return
        first = outer[0]
        low, high = (_cut(bound, outer[1], outer[2]) for bound in (low, high))
        bounds = zip((low, high), inner[1:], strict=True)
        if all(a == b and copysign(1, a) == copysign(1, b) for a, b in bounds):
            rewriter.replace(op, (), (first,))
            return
        if (low, high) == (0, inf) and copysign(1, low) > 0:
            new: graph.ReluOp | graph.ClipOp = graph.ReluOp(x)
        else:
            new = graph.ClipOp(x, None if low == -inf else low, None if high == inf else high)
        replace(op, [new], rewriter, [cast(graph.ReluOp, first.owner)])


@Exactness.EXACT
class CastOfWiderCast(RewritePattern):
    # cast(cast(x)) == cast(x)  where the intermediate type holds all values of x
    @rooted
    def match_and_rewrite(self, op: graph.CastOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.CastOp):
            return
        source, target = element_type(inner.x), element_type(op.result)
        rounds = not is_float(source) and (is_float(target) or target in LOW_BIT_FLOATS)
        # A float beyond i32 has no low bits that a narrow integer could keep.
        wide = target in (i64, ui32, ui64)
        saturates = source == ui32 and is_float(element_type(op.x)) and not wide
        if holds_all_values(element_type(op.x), source) and not rounds and not saturates:
            replace(op, [graph.CastOp(inner.x, target)], rewriter, [inner])


PATTERNS: tuple[type[RewritePattern], ...] = (
    AddNegated,
    SubtractNegated,
    MultiplyNegated,
    MultiplyMinusOne,
    DivideByPowerOfTwo,
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
"""Patterns that read the elements of constants, which may be in the weight store."""

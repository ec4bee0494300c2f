"""Elementwise functions composed of several operators, each with the identity that it uses."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeVar

import numpy as np

from ...dialects.graph import ops as graph
from .dtypes import element_type, is_float
from .nodes import Builds, ModelNode
from .values import Value

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875

V = TypeVar("V")


class Emits(Protocol[V]):
    """What functions are composed by: a node of a model that is imported, or of one in Python."""

    def emit(self, build: Builds, /, *operands: V, **attributes: Any) -> V:
        """Add an operator with one result."""
        ...

    def scalar(self, number: float, like: V, /) -> V:
        """A constant scalar of the element type of a value."""
        ...


def cast(node: ModelNode, x: Value, dtype: np.dtype) -> Value:
    """`x` cast to `dtype`; `x` itself if it has this dtype."""
    if x.dtype == dtype:
        return x
    return node.emit(graph.CastOp, x, target=element_type(dtype))


def reciprocal(node: Emits[V], x: V) -> V:
    """1 / x."""
    return node.emit(graph.DivOp, node.scalar(1, x), x)


def elu(node: Emits[V], x: V, alpha: float) -> V:
    # elu(x, a) == max(x, 0) + a * (exp(min(x, 0)) - 1)
    positive, negative = halves(node, x)
    return node.emit(graph.AddOp, positive, _times_expm1(node, negative, alpha))


def selu(node: Emits[V], x: V, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> V:
    # selu(x) == gamma * elu(x, alpha)
    y = elu(node, x, alpha)
    return node.emit(graph.MulOp, y, node.scalar(gamma, y))


def celu(node: Emits[V], x: V, alpha: float) -> V:
    # celu(x, a) == max(x, 0) + min(a * (exp(x / a) - 1), 0)
    scaled = node.emit(graph.DivOp, x, node.scalar(alpha, x))
    curve = _times_expm1(node, scaled, alpha)
    below = node.emit(graph.MinOp, curve, node.scalar(0, x))
    return node.emit(graph.AddOp, node.emit(graph.ReluOp, x), below)


def prelu(node: Emits[V], x: V, slope: V) -> V:
    # prelu(x, s) == max(x, 0) + s * min(x, 0)
    positive, negative = halves(node, x)
    return node.emit(graph.AddOp, positive, node.emit(graph.MulOp, slope, negative))


def halves(node: Emits[V], x: V) -> tuple[V, V]:
    """max(x, 0) and min(x, 0)."""
    return node.emit(graph.ReluOp, x), node.emit(graph.MinOp, x, node.scalar(0, x))


def _times_expm1(node: Emits[V], x: V, factor: float) -> V:
    """factor * (exp(x) - 1)."""
    return node.emit(graph.MulOp, node.emit(graph.Expm1Op, x), node.scalar(factor, x))


def hard_sigmoid(node: Emits[V], x: V, alpha: float, beta: float) -> V:
    # hard_sigmoid(x, a, b) == min(max(a * x + b, 0), 1)
    scaled = node.emit(graph.MulOp, x, node.scalar(alpha, x))
    line = node.emit(graph.AddOp, scaled, node.scalar(beta, x))
    return node.emit(graph.ClipOp, line, minimum=0.0, maximum=1.0)


def hard_swish(node: Emits[V], x: V) -> V:
    # hard_swish(x) == x * hard_sigmoid(x, 1/6, 1/2)
    return node.emit(graph.MulOp, x, hard_sigmoid(node, x, 1 / 6, 0.5))


def softplus(node: Emits[V], x: V) -> V:
    # log(1 + exp(x)) == max(x, 0) + log(1 + exp(-|x|)), where exp cannot overflow
    positive, negative = halves(node, x)
    closeness = node.emit(graph.ExpOp, node.emit(graph.SubOp, negative, positive))
    return node.emit(graph.AddOp, positive, node.emit(graph.Log1pOp, closeness))


def mish(node: Emits[V], x: V) -> V:
    # mish(x) == x * tanh(softplus(x))
    return node.emit(graph.MulOp, x, node.emit(graph.TanhOp, softplus(node, x)))


def softsign(node: Emits[V], x: V) -> V:
    # softsign(x) == x / (1 + |x|)
    magnitude = node.emit(graph.AbsOp, x)
    return node.emit(graph.DivOp, x, node.emit(graph.AddOp, magnitude, node.scalar(1, x)))


def swish(node: Emits[V], x: V, alpha: float = 1.0) -> V:
    # swish(x, a) == x * sigmoid(a * x)
    scaled = x if alpha == 1 else node.emit(graph.MulOp, x, node.scalar(alpha, x))
    return node.emit(graph.MulOp, x, node.emit(graph.SigmoidOp, scaled))


def clip(node: Emits[V], x: V, low: float | None, high: float | None) -> V:
    """`x` between two numbers; None for no bound."""
    if low is None and high is None:
        return x
    return node.emit(graph.ClipOp, x, minimum=low, maximum=high)


def is_nan(node: ModelNode, x: Value) -> Value:
    # Only NaN differs from itself.
    return node.emit(graph.LogicalNotOp, node.emit(graph.EqualOp, x, x))


def is_inf(node: ModelNode, x: Value, *, negative: bool = True, positive: bool = True) -> Value:
    """Whether an element is infinite, of one sign or of any."""
    if not is_float(x.dtype):
        # x < x is always false.
        return node.emit(graph.LessOp, x, x)
    if not negative and not positive:
        # x < -inf is always false.
        return node.emit(graph.LessOp, x, node.known(np.array(-math.inf, x.dtype)))
    if negative and positive:
        x = node.emit(graph.AbsOp, x)
    bound = math.inf if positive else -math.inf
    return node.emit(graph.EqualOp, x, node.known(np.array(bound, x.dtype)))


def thresholded(node: ModelNode, x: Value, limit: float) -> Value:
    """`x` where x > limit, else 0."""
    above = node.emit(graph.LessOp, node.scalar(limit, x), x)
    return node.emit(graph.WhereOp, above, x, node.scalar(0, x))


def shrunk(node: ModelNode, x: Value, limit: float, bias: float) -> Value:
    # x + bias where x < -limit, x - bias where x > limit, else 0
    below = node.emit(graph.LessOp, x, node.scalar(-limit, x))
    above = node.emit(graph.LessOp, node.scalar(limit, x), x)
    lower = node.emit(graph.AddOp, x, node.scalar(bias, x))
    upper = node.emit(graph.SubOp, x, node.scalar(bias, x))
    rest = node.emit(graph.WhereOp, above, upper, node.scalar(0, x))
    return node.emit(graph.WhereOp, below, lower, rest)


def remainder(node: ModelNode, a: Value, b: Value) -> Value:
    """The remainder of a division that rounds to 0, with the sign of `a`."""
    if is_float(a.dtype):
        return node.emit(graph.FmodOp, a, b)
    quotient = node.emit(graph.DivOp, a, b)
    return node.emit(graph.SubOp, a, node.emit(graph.MulOp, b, quotient))


def modulo(node: ModelNode, a: Value, b: Value) -> Value:
    """The remainder of a division that rounds down, with the sign of `b`, or of `a` if it is 0."""
    # r is the remainder with the sign of a; r + b if the signs of r and b differ, else r
    rest = remainder(node, a, b)
    zero = node.scalar(0, a)
    exact = node.emit(graph.EqualOp, rest, zero)
    signs = [node.emit(graph.LessOp, value, zero) for value in (rest, b)]
    same = node.emit(graph.LogicalNotOp, node.emit(graph.LogicalXorOp, *signs))
    done = node.emit(graph.LogicalOrOp, exact, same)
    return node.emit(graph.WhereOp, done, rest, node.emit(graph.AddOp, rest, b))


def power(node: ModelNode, base: Value, exponent: Value) -> Value:
    """base ** exponent, of the element type of the base."""
    if base.dtype == exponent.dtype:
        return node.emit(graph.PowOp, base, exponent)
    if base.dtype.kind == "f":
        return node.emit(graph.PowOp, base, cast(node, exponent, base.dtype))
    # The power is computed in the common type.
    wide = np.promote_types(base.dtype, exponent.dtype)
    found = node.emit(graph.PowOp, cast(node, base, wide), cast(node, exponent, wide))
    return cast(node, found, base.dtype)


def truncated(node: ModelNode, x: Value) -> Value:
    # trunc(x) == floor(x) where x > 0, else ceil(x)
    above = node.emit(graph.LessOp, node.scalar(0, x), x)
    return node.emit(graph.WhereOp, above, node.emit(graph.FloorOp, x), node.emit(graph.CeilOp, x))


def floor_quotient(node: ModelNode, a: Value, b: Value) -> Value:
    """The quotient of integers rounded down; 0 for b = 0."""
    # The quotient rounded to 0, and 1 less where the remainders of both divisions differ. (The
    # dividend less its remainder may lie below all integers: -128 - 5 for -128 / 7.)
    whole, one = node.emit(graph.DivOp, a, b), node.scalar(1, a)
    exact = node.emit(graph.EqualOp, modulo(node, a, b), remainder(node, a, b))
    return node.emit(graph.WhereOp, exact, whole, node.emit(graph.SubOp, whole, one))


def floor_quotient_of_floats(node: ModelNode, a: Value, b: Value) -> Value:
    """The quotient of floats rounded down before it is rounded to a float: 1.0 // 0.1 is 9."""
    # (a - r) / b, rounded to an integer, where r is the remainder with the sign of a; 1 less if the
    # signs of r and b differ; a / b for b = 0. A zero has the sign of a / b.
    rest, zero = remainder(node, a, b), node.scalar(0, a)
    divided = node.emit(graph.DivOp, node.emit(graph.SubOp, a, rest), b)
    whole = node.emit(graph.RoundOp, divided)
    signs = [node.emit(graph.LessOp, value, zero) for value in (rest, b)]
    exact, by_zero = (node.emit(graph.EqualOp, value, zero) for value in (rest, b))
    same = node.emit(graph.LogicalNotOp, node.emit(graph.LogicalXorOp, *signs))
    less = node.emit(graph.SubOp, whole, node.scalar(1, a))
    found = node.emit(graph.WhereOp, node.emit(graph.LogicalOrOp, exact, same), whole, less)
    quotient = node.emit(graph.DivOp, a, b)
    nothing = node.emit(graph.EqualOp, found, zero)
    found = node.emit(graph.WhereOp, nothing, node.emit(graph.MulOp, quotient, zero), found)
    return node.emit(graph.WhereOp, by_zero, quotient, found)


def logarithm(node: ModelNode, x: Value, base: float) -> Value:
    # log_b(x) == log(x) / log(b)
    return node.emit(graph.MulOp, node.emit(graph.LogOp, x), node.scalar(1 / math.log(base), x))


def log_sigmoid(node: Emits[V], x: V) -> V:
    # log(sigmoid(x)) == -softplus(-x)
    return node.emit(graph.NegOp, softplus(node, node.emit(graph.NegOp, x)))

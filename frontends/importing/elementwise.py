"""Elementwise functions composed of several operators, each with the identity that it uses."""

from __future__ import annotations

import math

import numpy as np

from ...dialects.graph.op_builder import OpBuilder, V
from .dtypes import element_type, is_float
from .nodes import ModelNode
from .values import Value

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


def cast(node: ModelNode, x: Value, dtype: np.dtype) -> Value:
    """`x` cast to `dtype`; `x` itself if it has this dtype."""
    if x.dtype == dtype:
        return x
    return node.cast(x, target=element_type(dtype))


def reciprocal(b: OpBuilder[V], x: V) -> V:
    """1 / x."""
    return b.div(1, x)


def elu(b: OpBuilder[V], x: V, alpha: float) -> V:
    # elu(x, a) == max(x, 0) + a * (exp(min(x, 0)) - 1)
    positive, negative = halves(b, x)
    return b.add(positive, _times_expm1(b, negative, alpha))


def selu(b: OpBuilder[V], x: V, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> V:
    # selu(x) == gamma * elu(x, alpha)
    y = elu(b, x, alpha)
    return b.mul(y, gamma)


def celu(b: OpBuilder[V], x: V, alpha: float) -> V:
    # celu(x, a) == max(x, 0) + min(a * (exp(x / a) - 1), 0)
    scaled = b.div(x, alpha)
    curve = _times_expm1(b, scaled, alpha)
    below = b.min(curve, 0)
    return b.add(b.relu(x), below)


def prelu(b: OpBuilder[V], x: V, slope: V) -> V:
    # prelu(x, s) == max(x, 0) + s * min(x, 0)
    positive, negative = halves(b, x)
    return b.add(positive, b.mul(slope, negative))


def halves(b: OpBuilder[V], x: V) -> tuple[V, V]:
    """max(x, 0) and min(x, 0)."""
    return b.relu(x), b.min(x, 0)


def _times_expm1(b: OpBuilder[V], x: V, factor: float) -> V:
    """factor * (exp(x) - 1)."""
    return b.mul(b.expm1(x), factor)


def hard_sigmoid(b: OpBuilder[V], x: V, alpha: float, beta: float) -> V:
    # hard_sigmoid(x, a, b) == min(max(a * x + b, 0), 1)
    scaled = b.mul(x, alpha)
    line = b.add(scaled, beta)
    return b.clip(line, minimum=0.0, maximum=1.0)


def hard_swish(b: OpBuilder[V], x: V) -> V:
    # hard_swish(x) == x * hard_sigmoid(x, 1/6, 1/2)
    return b.mul(x, hard_sigmoid(b, x, 1 / 6, 0.5))


def softplus(b: OpBuilder[V], x: V) -> V:
    # log(1 + exp(x)) == max(x, 0) + log(1 + exp(-|x|)), where exp cannot overflow
    positive, negative = halves(b, x)
    closeness = b.exp(b.sub(negative, positive))
    return b.add(positive, b.log1p(closeness))


def mish(b: OpBuilder[V], x: V) -> V:
    # mish(x) == x * tanh(softplus(x))
    return b.mul(x, b.tanh(softplus(b, x)))


def softsign(b: OpBuilder[V], x: V) -> V:
    # softsign(x) == x / (1 + |x|)
    magnitude = b.abs(x)
    return b.div(x, b.add(magnitude, 1))


def swish(b: OpBuilder[V], x: V, alpha: float = 1.0) -> V:
    # swish(x, a) == x * sigmoid(a * x)
    scaled = x if alpha == 1 else b.mul(x, alpha)
    return b.mul(x, b.sigmoid(scaled))


def clip(b: OpBuilder[V], x: V, low: float | None, high: float | None) -> V:
    """`x` between two numbers; None for no bound."""
    if low is None and high is None:
        return x
    return b.clip(x, minimum=low, maximum=high)


def is_nan(node: ModelNode, x: Value) -> Value:
    # Only NaN differs from itself.
    return node.logical_not(node.equal(x, x))


def is_inf(node: ModelNode, x: Value, *, negative: bool = True, positive: bool = True) -> Value:
    """Whether an element is infinite, of one sign or of any."""
    if not is_float(x.dtype):
        # x < x is always false.
        return node.less(x, x)
    if not negative and not positive:
        # x < -inf is always false.
        return node.less(x, node.known(np.array(-math.inf, x.dtype)))
    if negative and positive:
        x = node.abs(x)
    bound = math.inf if positive else -math.inf
    return node.equal(x, node.known(np.array(bound, x.dtype)))


def thresholded(node: ModelNode, x: Value, limit: float) -> Value:
    """`x` where x > limit, else 0."""
    above = node.less(limit, x)
    return node.where(above, x, 0)


def shrunk(node: ModelNode, x: Value, limit: float, bias: float) -> Value:
    # x + bias where x < -limit, x - bias where x > limit, else 0
    below = node.less(x, -limit)
    above = node.less(limit, x)
    lower = node.add(x, bias)
    upper = node.sub(x, bias)
    rest = node.where(above, upper, 0)
    return node.where(below, lower, rest)


def remainder(node: ModelNode, a: Value, b: Value) -> Value:
    """The remainder of a division that rounds to 0, with the sign of `a`."""
    if is_float(a.dtype):
        return node.fmod(a, b)
    quotient = node.div(a, b)
    return node.sub(a, node.mul(b, quotient))


def modulo(node: ModelNode, a: Value, b: Value) -> Value:
    """The remainder of a division that rounds down, with the sign of `b`, or of `a` if it is 0."""
    # r is the remainder with the sign of a; r + b if the signs of r and b differ, else r
    rest = remainder(node, a, b)
    zero = node.scalar(0, a)
    exact = node.equal(rest, zero)
    signs = [node.less(value, zero) for value in (rest, b)]
    same = node.logical_not(node.logical_xor(*signs))
    done = node.logical_or(exact, same)
    return node.where(done, rest, node.add(rest, b))


def power(node: ModelNode, base: Value, exponent: Value) -> Value:
    """base ** exponent, of the element type of the base."""
    if base.dtype == exponent.dtype:
        return node.pow(base, exponent)
    if base.dtype.kind == "f":
        return node.pow(base, cast(node, exponent, base.dtype))
    # The power is computed in the common type.
    wide = np.promote_types(base.dtype, exponent.dtype)
    found = node.pow(cast(node, base, wide), cast(node, exponent, wide))
    return cast(node, found, base.dtype)


def truncated(node: ModelNode, x: Value) -> Value:
    # trunc(x) == floor(x) where x > 0, else ceil(x)
    above = node.less(0, x)
    return node.where(above, node.floor(x), node.ceil(x))


def floor_quotient(node: ModelNode, a: Value, b: Value) -> Value:
    """The quotient of integers rounded down; 0 for b = 0."""
    # The quotient rounded to 0, and 1 less where the remainders of both divisions differ. (The
    # dividend less its remainder may lie below all integers: -128 - 5 for -128 / 7.)
    whole, one = node.div(a, b), node.scalar(1, a)
    exact = node.equal(modulo(node, a, b), remainder(node, a, b))
    return node.where(exact, whole, node.sub(whole, one))


def floor_quotient_of_floats(node: ModelNode, a: Value, b: Value) -> Value:
    """The quotient of floats rounded down before it is rounded to a float: 1.0 // 0.1 is 9."""
    # (a - r) / b, rounded to an integer, where r is the remainder with the sign of a; 1 less if the
    # signs of r and b differ; a / b for b = 0. A zero has the sign of a / b.
    rest, zero = remainder(node, a, b), node.scalar(0, a)
    divided = node.div(node.sub(a, rest), b)
    whole = node.round(divided)
    signs = [node.less(value, zero) for value in (rest, b)]
    exact, by_zero = (node.equal(value, zero) for value in (rest, b))
    same = node.logical_not(node.logical_xor(*signs))
    less = node.sub(whole, 1)
    found = node.where(node.logical_or(exact, same), whole, less)
    quotient = node.div(a, b)
    nothing = node.equal(found, zero)
    found = node.where(nothing, node.mul(quotient, zero), found)
    return node.where(by_zero, quotient, found)


def logarithm(node: ModelNode, x: Value, base: float) -> Value:
    # log_b(x) == log(x) / log(b)
    return node.mul(node.log(x), 1 / math.log(base))


def log_sigmoid(b: OpBuilder[V], x: V) -> V:
    # log(sigmoid(x)) == -softplus(-x)
    return b.neg(softplus(b, b.neg(x)))

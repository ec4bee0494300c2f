"""Elementwise functions composed of several operators, each with the identity that it uses."""

from __future__ import annotations

import math

import numpy as np

from ...core.dtype_names import is_real
from ...dialects.graph.op_builder import OpBuilder, V
from .dtypes import element_type
from .nodes import ModelNode
from .values import Value


def cast(node: ModelNode, x: Value, dtype: np.dtype) -> Value:
    """`x` cast to `dtype`; `x` itself if it has this dtype."""
    if x.dtype == dtype:
        return x
    return node.cast(x, target=element_type(dtype))


def reciprocal(b: OpBuilder[V], x: V) -> V:
    """1 / x."""
    return b.div(1, x)


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
    if not is_real(x.dtype):
        # x < x is always false.
        return node.less(x, x)
    if not negative and not positive:
        # x < -inf is always false.
        return node.less(x, node.known(np.array(-math.inf, x.dtype)))
    if negative and positive:
        x = node.abs(x)
    bound = math.inf if positive else -math.inf
    return node.equal(x, node.known(np.array(bound, x.dtype)))


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
    if is_real(a.dtype):
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
    whole = node.div(a, b)
    exact = node.equal(modulo(node, a, b), remainder(node, a, b))
    return node.where(exact, whole, node.sub(whole, 1))


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

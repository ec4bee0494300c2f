"""Functions of ATen that depend on signs and on NaN."""

from __future__ import annotations

import math
from typing import Any

from ....core.dtype_names import is_real
from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp
from ...importing.elementwise import cast, is_inf, is_nan
from ...importing.values import Value
from ..nodes import Node, rounds_once
from ..registry import converts


@converts("aten.fmax.default")
def fmax(node: Node, a: Value, b: Value) -> Value:
    return _number_of(node, a, b, graph.MaxOp)


@converts("aten.fmin.default")
def fmin(node: Node, a: Value, b: Value) -> Value:
    return _number_of(node, a, b, graph.MinOp)


def _number_of(node: Node, a: Value, b: Value, build: type[GraphOp]) -> Value:
    """A function of two numbers; where one is NaN, the other one."""
    a, b = (node.operand(x, node.dtype) for x in (a, b))
    either = node.where(is_nan(node, b), a, node.apply(build, a, b))
    return node.where(is_nan(node, a), b, either)


@converts("aten.signbit.default")
def signbit(node: Node, x: Value) -> Value:
    if not is_real(x.dtype):
        return node.less(node.operand(x, x.dtype), 0)
    # 1 / -0.0 == -inf
    zero = node.scalar(0, x)
    below = node.less(node.div(1, x), zero)
    is_zero = node.equal(x, zero)
    return node.where(is_zero, below, node.less(x, zero))


@converts("aten.sign.default")
def sign(node: Node, x: Value) -> Value:
    if not is_real(x.dtype):
        return node.sign(node.operand(x, node.dtype))
    # The sign of NaN is 0 in torch, and NaN in graph.sign.
    zero = node.scalar(0, x)
    above, below = node.less(zero, x), node.less(x, zero)
    return node.sub(*(cast(node, one, x.dtype) for one in (above, below)))


@converts("aten.atan2.default")
@rounds_once
def atan2(node: Node, y: Value, x: Value) -> Value:
    # The angle of (|x|, |y|), atan(|y| / |x|), is turned by the signs of x and y, of zeros too. The
    # quotient of equal sizes, which may be infinite, is 1; that of zeros counts as 0.
    y, x = (node.wide(value) for value in (y, x))
    sizes = [node.abs(value) for value in (y, x)]
    ratio = node.where(node.equal(*sizes), node.sign(sizes[0]), node.div(*sizes))
    angle = node.atan(ratio)
    rest = node.sub(math.pi, angle)
    found = node.where(signbit(node, x), rest, angle)
    return node.where(signbit(node, y), node.neg(found), found)


@converts("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(node: Node, a: Value, b: Any) -> Value:
    left, right = (node.operand(x, node.dtype) for x in (a, b))
    size = node.abs(left)
    return node.where(signbit(node, right), node.neg(size), size)


@converts("aten.hypot.default")
@rounds_once
def hypot(node: Node, a: Value, b: Value) -> Value:
    # sqrt(a^2 + b^2) == m sqrt(1 + (n / m)^2)  for m = max(|a|, |b|) > 0 and n the other one
    sizes = [node.abs(x) for x in (node.wide(x) for x in (a, b))]
    m, n = node.max(*sizes), node.min(*sizes)
    ratio = node.div(n, m)
    found = node.mul(m, node.sqrt(node.add(1, node.mul(ratio, ratio))))
    # 0 / 0 and inf / inf are NaN: there the result is m, as it is where n is 0.
    equal = node.logical_or(is_inf(node, m), node.equal(m, 0))
    return node.where(equal, m, found)


@converts("aten.round.decimals")
@rounds_once
def round_decimals(node: Node, x: Value, *, decimals: int) -> Value:
    if not is_real(x.dtype):
        return x
    x = node.wide(x)
    factor = node.scalar(10.0 ** abs(decimals), x)
    away, back = (graph.MulOp, graph.DivOp) if decimals >= 0 else (graph.DivOp, graph.MulOp)
    return node.apply(back, node.round(node.apply(away, x, factor)), factor)

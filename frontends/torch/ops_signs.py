"""Functions of ATen that depend on signs and on NaN."""

from __future__ import annotations

import math
from typing import Any

from ...dialects.graph import ops as graph
from ..importing.dtypes import is_float
from ..importing.elementwise import cast, is_inf, is_nan
from ..importing.nodes import Builds
from ..importing.values import Value
from .nodes import Node, rounds_once
from .registry import converts


@converts("aten.fmax.default")
def fmax(node: Node, a: Value, b: Value) -> Value:
    return _number_of(node, a, b, graph.MaxOp)


@converts("aten.fmin.default")
def fmin(node: Node, a: Value, b: Value) -> Value:
    return _number_of(node, a, b, graph.MinOp)


def _number_of(node: Node, a: Value, b: Value, build: Builds) -> Value:
    """A function of two numbers; where one is NaN, the other one."""
    a, b = (node.operand(x, node.dtype) for x in (a, b))
    either = node.emit(graph.WhereOp, is_nan(node, b), a, node.emit(build, a, b))
    return node.emit(graph.WhereOp, is_nan(node, a), b, either)


@converts("aten.signbit.default")
def signbit(node: Node, x: Value) -> Value:
    if not is_float(x.dtype):
        return node.emit(graph.LessOp, node.operand(x, x.dtype), node.scalar(0, x))
    # 1 / -0.0 == -inf
    zero = node.scalar(0, x)
    below = node.emit(graph.LessOp, node.emit(graph.DivOp, node.scalar(1, x), x), zero)
    is_zero = node.emit(graph.EqualOp, x, zero)
    return node.emit(graph.WhereOp, is_zero, below, node.emit(graph.LessOp, x, zero))


@converts("aten.sign.default")
def sign(node: Node, x: Value) -> Value:
    if not is_float(x.dtype):
        return node.emit(graph.SignOp, node.operand(x, node.dtype))
    # The sign of NaN is 0 in torch, and NaN in graph.sign.
    zero = node.scalar(0, x)
    above, below = node.emit(graph.LessOp, zero, x), node.emit(graph.LessOp, x, zero)
    return node.emit(graph.SubOp, *(cast(node, one, x.dtype) for one in (above, below)))


@converts("aten.atan2.default")
@rounds_once
def atan2(node: Node, y: Value, x: Value) -> Value:
    # The angle of (|x|, |y|), atan(|y| / |x|), is turned by the signs of x and y, of zeros too. The
    # quotient of equal sizes, which may be infinite, is 1; that of zeros counts as 0.
    y, x = (node.wide(value) for value in (y, x))
    sizes = [node.emit(graph.AbsOp, value) for value in (y, x)]
    ratio = node.emit(
        graph.WhereOp,
        node.emit(graph.EqualOp, *sizes),
        node.emit(graph.SignOp, sizes[0]),
        node.emit(graph.DivOp, *sizes),
    )
    angle = node.emit(graph.AtanOp, ratio)
    rest = node.emit(graph.SubOp, node.scalar(math.pi, x), angle)
    found = node.emit(graph.WhereOp, signbit(node, x), rest, angle)
    return node.emit(graph.WhereOp, signbit(node, y), node.emit(graph.NegOp, found), found)


@converts("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(node: Node, a: Value, b: Any) -> Value:
    left, right = (node.operand(x, node.dtype) for x in (a, b))
    size = node.emit(graph.AbsOp, left)
    return node.emit(graph.WhereOp, signbit(node, right), node.emit(graph.NegOp, size), size)


@converts("aten.hypot.default")
@rounds_once
def hypot(node: Node, a: Value, b: Value) -> Value:
    # sqrt(a^2 + b^2) == m sqrt(1 + (n / m)^2)  for m = max(|a|, |b|) > 0 and n the other one
    sizes = [node.emit(graph.AbsOp, x) for x in (node.wide(x) for x in (a, b))]
    m, n = node.emit(graph.MaxOp, *sizes), node.emit(graph.MinOp, *sizes)
    one, ratio = node.scalar(1, m), node.emit(graph.DivOp, n, m)
    rest = node.emit(graph.AddOp, one, node.emit(graph.MulOp, ratio, ratio))
    found = node.emit(graph.MulOp, m, node.emit(graph.SqrtOp, rest))
    # 0 / 0 and inf / inf are NaN: there the result is m, as it is where n is 0.
    equal = node.emit(
        graph.LogicalOrOp, is_inf(node, m), node.emit(graph.EqualOp, m, node.scalar(0, m))
    )
    return node.emit(graph.WhereOp, equal, m, found)


@converts("aten.round.decimals")
@rounds_once
def round_decimals(node: Node, x: Value, *, decimals: int) -> Value:
    if not is_float(x.dtype):
        return x
    x = node.wide(x)
    factor = node.scalar(10.0 ** abs(decimals), x)
    away, back = (graph.MulOp, graph.DivOp) if decimals >= 0 else (graph.DivOp, graph.MulOp)
    return node.emit(back, node.emit(graph.RoundOp, node.emit(away, x, factor)), factor)

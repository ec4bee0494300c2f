"""Activations of ATen with parameters."""

from __future__ import annotations

from typing import Any

from ...importing import elementwise as composed
from ...importing.values import Value
from ..nodes import Node, rounds_once
from ..registry import converts


@converts("aten.leaky_relu.default")
def leaky_relu(node: Node, x: Value, negative_slope: float = 0.01) -> Value:
    return node.leaky_relu(x, alpha=float(negative_slope))


@converts("aten.rrelu_with_noise_functional.default")
def rrelu(
    node: Node,
    x: Value,
    noise: Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
) -> list[Value]:
    if training:
        raise node.unsupported("random slopes of training", "evaluation mode")
    return [leaky_relu(node, x, (lower + upper) / 2), noise]


@converts("aten._prelu_kernel.default", "aten.prelu.default")
def prelu(node: Node, x: Value, weight: Value) -> Value:
    return node.prelu(x, weight)


@converts("aten.elu.default")
def elu(node: Node, x: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Value:
    if input_scale != 1:
        raise node.unsupported("input_scale is not supported")
    alpha, scale = float(alpha), float(scale)
    return node.elu(x, alpha) if scale == 1 else node.selu(x, alpha, scale)


@converts("aten.celu.default")
def celu(node: Node, x: Value, alpha: Any = 1.0) -> Value:
    return node.celu(x, float(alpha))


@converts("aten.gelu.default")
def gelu(node: Node, x: Value, approximate: str = "none") -> Value:
    return node.gelu(x, approximate=approximate)


@converts("aten.softplus.default")
@rounds_once
def softplus(node: Node, x: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    x = node.wide(x)
    scaled = x if beta == 1 else node.mul(x, beta)
    y = node.softplus(scaled)
    if beta != 1:
        y = node.div(y, beta)
    if threshold == 20:  # beyond it log(1 + exp(x)) and x are equal
        return y
    linear = node.greater(scaled, threshold)
    return node.where(linear, x, y)


@converts("aten.relu6.default")
def relu6(node: Node, x: Value) -> Value:
    return composed.clip(node, x, 0, 6)


@converts("aten.hardtanh.default")
def hardtanh(node: Node, x: Value, low: Any = -1, high: Any = 1) -> Value:
    return composed.clip(node, x, low, high)


@converts("aten.threshold.default")
@rounds_once
def threshold(node: Node, x: Value, limit: Any, value: Any) -> Value:
    # Unlike x > limit, x <= limit does not hold for NaN, which stays.
    x = node.wide(x)
    below = node.less_equal(x, limit)
    return node.where(below, value, x)


@converts("aten.softshrink.default")
@rounds_once
def softshrink(node: Node, x: Value, lambd: Any = 0.5) -> Value:
    return composed.shrunk(node, node.wide(x), lambd, lambd)


@converts("aten.hardshrink.default")
def hardshrink(node: Node, x: Value, lambd: Any = 0.5) -> Value:
    return composed.shrunk(node, x, lambd, 0)

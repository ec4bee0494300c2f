"""Normalisations of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim, product
from ...importing.elementwise import cast
from ...importing.shapes import reshaped, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts


@converts("aten.native_layer_norm.default")
def native_layer_norm(
    node: Node,
    x: Value,
    shape: Sequence[Any],
    weight: Value | None,
    bias: Value | None,
    epsilon: float,
) -> list[Value | None]:
    if not node.uses(1) and not node.uses(2):
        return [_layer_norm(node, x, len(shape), weight, bias, epsilon), None, None]
    y, mean, scale = _normalized(node, x, range(x.rank - len(shape), x.rank), epsilon)
    return [_scaled(node, y, weight, bias), mean, scale]


def _normalized(
    node: Node, x: Value, axes: Sequence[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """x with mean 0 and variance 1 along axes, the mean, and the factor, which gradients need."""
    mean = node.reduce(x, kind="mean", axes=axes, keepdims=True)
    centred = node.sub(x, mean)
    squares = node.mul(centred, centred)
    variance = node.reduce(squares, kind="mean", axes=axes, keepdims=True)
    shifted = node.add(variance, epsilon)
    scale = node.rsqrt(shifted)
    return node.mul(centred, scale), mean, scale


def _scaled(node: Node, x: Value, weight: Value | None, bias: Value | None) -> Value:
    x = x if weight is None else node.mul(x, weight)
    return x if bias is None else node.add(x, bias)


@converts("aten.layer_norm.default")
def layer_norm(
    node: Node,
    x: Value,
    shape: Sequence[Any],
    weight: Value | None = None,
    bias: Value | None = None,
    epsilon: float = 1e-5,
    cudnn_enable: bool = True,
) -> Value:
    return _layer_norm(node, x, len(shape), weight, bias, epsilon)


def _layer_norm(
    node: Node, x: Value, rank: int, weight: Value | None, bias: Value | None, epsilon: float
) -> Value:
    return node.layer_norm(x, weight, bias, axis=x.rank - rank, epsilon=epsilon)


@converts("aten.rms_norm.default")
def rms_norm(
    node: Node,
    x: Value,
    shape: Sequence[Any],
    weight: Value | None = None,
    epsilon: float | None = None,
) -> Value:
    least = float(np.finfo(x.dtype).eps) if epsilon is None else epsilon
    return node.rms_norm(x, weight, axis=x.rank - len(shape), epsilon=least)


@converts("aten._native_batch_norm_legit_no_training.default")
def native_batch_norm(
    node: Node,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    momentum: float,
    epsilon: float,
) -> list[Value | None]:
    return [_batch_norm(node, x, weight, bias, mean, variance, epsilon), None, None]


@converts("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    node: Node,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> list[Value | None]:
    """By the statistics of the batch: a layer that keeps none has no others."""
    if node.uses(1) or node.uses(2):
        raise node.unsupported("statistics of the batch as results")
    y, *_ = node.batch_norm_training(x, weight, bias, axis=1, epsilon=epsilon)
    return [y, None, None]


@converts("aten.batch_norm.default")
def batch_norm(
    node: Node,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    variance: Value | None,
    training: bool,
    momentum: float,
    epsilon: float,
    cudnn_enabled: bool = True,
) -> Value:
    if training or mean is None or variance is None:
        raise node.unsupported("statistics of the batch", "evaluation mode with running statistics")
    return _batch_norm(node, x, weight, bias, mean, variance, epsilon)


def _batch_norm(
    node: Node,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    epsilon: float,
) -> Value:
    given = [None if p is None else cast(node, p, x.dtype) for p in (weight, bias, mean, variance)]
    return node.batch_norm(x, *given, epsilon=epsilon, axis=1)


@converts("aten.native_group_norm.default")
def native_group_norm(
    node: Node,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    batch: Any,
    channels: Any,
    inner: Any,
    groups: int,
    epsilon: float,
) -> list[Value | None]:
    if not node.uses(1) and not node.uses(2):
        return [group_norm(node, x, groups, weight, bias, epsilon), None, None]
    apart = reshaped(node, x, [x.shape[0], Dim.of(groups), product(x.shape[1:]).exact_div(groups)])
    y, mean, scale = _normalized(node, apart, [2], epsilon)
    # Each channel has its own weight and bias.
    own = range(1, x.rank - 1)
    wide = [None if p is None else unsqueezed(node, p, own) for p in (weight, bias)]
    parts = [reshaped(node, part, part.shape[:2]) for part in (mean, scale)]
    return [_scaled(node, reshaped(node, y, x.shape), *wide), *parts]


@converts("aten.group_norm.default")
def group_norm(
    node: Node,
    x: Value,
    groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    epsilon: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Value:
    if x.rank > 2:
        return node.group_norm(x, groups, weight, bias, epsilon=epsilon)
    wide = reshaped(node, x, [*x.shape, *node.dims([1])])
    return reshaped(node, node.group_norm(wide, groups, weight, bias, epsilon=epsilon), x.shape)


@converts("aten.instance_norm.default")
def instance_norm(
    node: Node,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    variance: Value | None,
    use_input_stats: bool,
    momentum: float,
    epsilon: float,
    cudnn_enabled: bool,
) -> Value:
    if not use_input_stats:
        return batch_norm(node, x, weight, bias, mean, variance, False, momentum, epsilon)
    return node.instance_norm(x, weight, bias, epsilon=epsilon)

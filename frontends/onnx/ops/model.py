"""Constants, and whole layers as operators: normalisations, dropout, global pooling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim
from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import GraphOp
from ...importing.elementwise import cast
from ...importing.shapes import broadcast, reshaped
from ...importing.values import Value, is_static
from ..nodes import Node
from ..registry import converts
from .random import dropped


@converts("Constant", since=1)
def constant(node: Node) -> Value:
    given = [name for name in _CONSTANTS if node.has(name)]
    if len(given) != 1:
        raise node.broken("one value is needed", " or ".join(_CONSTANTS), given)
    (name,) = given
    if name == "value":
        tensor = node.attr_tensor("value")
        assert tensor is not None
        return node.known(tensor)
    if name == "value_float":
        return node.known(np.array(node.attr_float(name), np.float32))
    if name == "value_int":
        return node.known(np.array(node.attr_int(name), np.int64))
    if name == "value_floats":
        return node.known(np.array(node.attr_floats(name), np.float32))
    if name == "value_ints":
        return node.known(np.array(node.attr_ints(name), np.int64))
    raise node.unsupported(f"attribute {name} is not supported")


_CONSTANTS = (
    "value",
    "value_float",
    "value_int",
    "value_floats",
    "value_ints",
    "value_string",
    "value_strings",
    "sparse_value",
)


@converts("Dropout", since=1)
def dropout_attribute(node: Node) -> list[Value | None]:
    node.ignore("is_test")
    return _dropout(node, node.attr_float("ratio", 0.5), node.input(0).dtype)


@converts("Dropout", since=10)
def dropout_with_mask(node: Node) -> list[Value | None]:
    return _dropout(node, node.attr_float("ratio", 0.5), np.dtype(np.bool_))


@converts("Dropout", since=12)
def dropout(node: Node) -> list[Value | None]:
    node.ignore("seed")
    ratio, training = node.optional(1), node.optional(2)
    if training is not None and (training.contents is None or training.contents.any()):
        given = node.known(np.array(0.5, np.float32)) if ratio is None else ratio
        if given.contents is None or given.contents.any():
            flag = reshaped(node, training, []) if training.contents is None else None
            return dropped(node, node.input(0), reshaped(node, given, []), flag)
    if ratio is not None and (ratio.contents is None or ratio.contents.size != 1):
        return _dropout(node, None, np.dtype(np.bool_))
    fixed = 0.5 if ratio is None else float(node.contents(1).reshape(()))
    return _dropout(node, fixed, np.dtype(np.bool_))


def _dropout(node: Node, ratio: float | None, mask: np.dtype) -> list[Value | None]:
    """The identity, and its mask; `ratio` is only checked, None if it is a run-time value."""
    x = node.input(0)
    if ratio is not None and not 0 <= ratio < 1:
        raise node.broken("ratio out of range", "0 <= ratio < 1", ratio)
    y = x if ratio is None else node.dropout(x, ratio=ratio)
    if not node.wants(1):
        return [y]
    if not is_static(x.shape):
        raise node.unsupported("the mask of a tensor with symbolic dimensions is not supported")
    return [y, broadcast(node, node.known(np.array(True, mask)), x.shape)]


def _batch_operands(node: Node) -> tuple[Value, list[Value], int]:
    """The operand, its parameters as vectors of its element type, and their dimension."""
    x, *parameters = (node.input(i) for i in range(5))
    if x.rank < 1:
        raise node.broken("operand is a scalar", "rank >= 1", "rank 0")
    for operand in parameters:
        if operand.rank != 1:
            raise node.broken("a parameter is not a vector", "rank 1", f"rank {operand.rank}")
    return x, [cast(node, p, x.dtype) for p in parameters], 1 if x.rank > 1 else 0


def _normalised_batch(node: Node) -> Value:
    node.ignore("momentum", "is_test")
    x, parameters, axis = _batch_operands(node)
    epsilon = node.attr_float("epsilon", 1e-5)
    return node.batch_norm(x, *parameters, epsilon=epsilon, axis=axis)


converts("BatchNormalization", since=1, only={"spatial": 1})(_normalised_batch)
converts("BatchNormalization", since=9)(_normalised_batch)


@converts("BatchNormalization", since=14)
def batch_normalization(node: Node) -> Value | list[Value | None]:
    # running == given * momentum + statistic * (1 - momentum)
    if not node.attr_int("training_mode"):
        return _normalised_batch(node)
    x, (scale, bias, *running), axis = _batch_operands(node)
    epsilon, momentum = node.attr_float("epsilon", 1e-5), node.attr_float("momentum", 0.9)
    y, *statistics = node.batch_norm_training(x, scale, bias, epsilon=epsilon, axis=axis)
    results: list[Value | None] = [y]
    for number, (given, statistic) in enumerate(zip(running, statistics, strict=True), 1):
        if not node.wants(number):
            results.append(None)
            continue
        old = node.mul(given, momentum)
        new = node.mul(statistic, 1 - momentum)
        mixed = node.add(old, new)
        results.append(cast(node, mixed, node.input(number + 2).dtype))
    return results


@converts("LayerNormalization", since=17)
def layer_normalization(node: Node) -> list[Value | None]:
    x, scale, bias = node.input(0), node.input(1), node.optional(2)
    axis = node.axis(node.attr_int("axis", -1), x.rank)
    epsilon, stash = node.attr_float("epsilon", 1e-5), _stash(node, x)
    parameters = {"scale": scale, "bias": bias}
    y = _in_stash(node, graph.LayerNormOp, x, parameters, axis=axis, epsilon=epsilon)
    if not node.wants(1) and not node.wants(2):
        return [y]
    return [y, *_statistics(node, cast(node, x, stash), list(range(axis, x.rank)), epsilon)]


@converts("RMSNormalization", since=23)
def rms_normalization(node: Node) -> Value:
    x, scale = node.input(0), node.input(1)
    axis = node.axis(node.attr_int("axis", -1), x.rank)
    epsilon = node.attr_float("epsilon", 1e-5)
    return _in_stash(node, graph.RmsNormOp, x, {"scale": scale}, axis=axis, epsilon=epsilon)


@converts("InstanceNormalization", since=1)
def instance_normalization(node: Node) -> Value:
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    if x.rank < 3:
        raise node.broken("operand has no spatial dimension", "rank >= 3", f"rank {x.rank}")
    epsilon = node.attr_float("epsilon", 1e-5)
    return node.instance_norm(x, scale, bias, epsilon=epsilon)


@converts("GroupNormalization", since=21)
def group_normalization(node: Node) -> Value:
    return _normalised_groups(node, node.input(0), node.input(1), node.input(2))


@converts("GroupNormalization", since=18)
def group_normalization_by_group(node: Node) -> Value:
    # One scale and bias for each group of channels, instead of for each channel
    x, groups = node.input(0), Dim.of(node.attr_int("num_groups"))
    channels = x.shape[1].exact_div(groups) if x.rank > 1 else None
    if channels is None:
        raise node.broken("groups do not divide the channels", got=groups)

    def widened(parameter: Value) -> Value:
        column = reshaped(node, parameter, [groups, Dim.of(1)])
        return reshaped(node, broadcast(node, column, [groups, channels]), [x.shape[1]])

    return _normalised_groups(node, x, widened(node.input(1)), widened(node.input(2)))


def _normalised_groups(node: Node, x: Value, scale: Value, bias: Value) -> Value:
    groups, epsilon = node.attr_int("num_groups"), node.attr_float("epsilon", 1e-5)
    if x.rank < 3:
        raise node.broken("operand has no spatial dimension", "rank >= 3", f"rank {x.rank}")
    parameters = {"scale": scale, "bias": bias}
    return _in_stash(node, graph.GroupNormOp, x, parameters, groups=groups, epsilon=epsilon)


def _stash(node: Node, x: Value) -> np.dtype:
    """The type of statistics: `stash_type`, or the type of the operand if that is wider."""
    stash = node.attr_dtype("stash_type", np.dtype(np.float32))
    return np.promote_types(stash, x.dtype) if stash.kind == "f" else x.dtype


def _in_stash(
    node: Node,
    operator: type[GraphOp],
    x: Value,
    parameters: Mapping[str, Value | None],
    **attributes: Any,
) -> Value:
    """A normalisation of `x`, computed in `stash_type`; operators compute 16 bits in f32."""
    stash = _stash(node, x)
    if stash == x.dtype or (x.dtype.itemsize, stash) == (2, np.float32):
        return node.apply(operator, x, **parameters, **attributes)
    wide = {name: None if p is None else cast(node, p, stash) for name, p in parameters.items()}
    return cast(node, node.apply(operator, cast(node, x, stash), **wide, **attributes), x.dtype)


def _statistics(node: Node, x: Value, axes: list[int], epsilon: float) -> tuple[Value, Value]:
    """The mean along axes, and 1 / sqrt(variance + epsilon)."""
    mean = node.reduce(x, kind="mean", axes=axes, keepdims=True)
    distance = node.sub(x, mean)
    square = node.mul(distance, distance)
    variance = node.reduce(square, kind="mean", axes=axes, keepdims=True)
    shifted = node.add(variance, epsilon)
    return mean, node.rsqrt(shifted)


@converts("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: Node) -> Value:
    # (x - mean(x)) / (sqrt(mean((x - mean(x))^2)) + 1e-9)
    x = node.input(0)
    axes = node.axes(node.attr_ints("axes") or [0, 2, 3], x.rank)
    mean = node.reduce(x, kind="mean", axes=axes, keepdims=True)
    deviation = node.sub(x, mean)
    square = node.mul(deviation, deviation)
    variance = node.reduce(square, kind="mean", axes=axes, keepdims=True)
    spread = node.sqrt(variance)
    bounded = node.add(spread, 1e-9)
    return node.div(deviation, bounded)


@converts("GlobalAveragePool", since=1)
def global_average_pool(node: Node) -> Value:
    return _global_pool(node, "mean")


@converts("GlobalMaxPool", since=1)
def global_max_pool(node: Node) -> Value:
    return _global_pool(node, "max")


def _global_pool(node: Node, kind: str) -> Value:
    x = node.input(0)
    if x.rank < 3:
        raise node.broken("operand has no spatial dimension", "rank >= 3", f"rank {x.rank}")
    return node.reduce(x, kind=kind, axes=list(range(2, x.rank)), keepdims=True)

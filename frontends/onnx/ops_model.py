"""Constants, and the layers that exist as such in models: normalisations, dropout, pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from .nodes import Node
from .ops_elementwise import cast
from .ops_shape import broadcast, reshaped
from .registry import converts
from .values import Value, is_static


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


@converts("Dropout", since=7)
def dropout_attribute(node: Node) -> list[Value | None]:
    return _dropout(node, node.attr_float("ratio", 0.5), node.input(0).dtype)


@converts("Dropout", since=10)
def dropout_with_mask(node: Node) -> list[Value | None]:
    return _dropout(node, node.attr_float("ratio", 0.5), np.dtype(np.bool_))


@converts("Dropout", since=12)
def dropout(node: Node) -> list[Value | None]:
    node.ignore("seed")
    if node.optional(2) is not None and node.contents(2).any():
        raise node.unsupported("training_mode = true is not supported")
    ratio = node.optional(1)
    if ratio is not None and (ratio.contents is None or ratio.contents.size != 1):
        return _dropout(node, None, np.dtype(np.bool_))
    fixed = 0.5 if ratio is None else float(node.contents(1).reshape(()))
    return _dropout(node, fixed, np.dtype(np.bool_))


def _dropout(node: Node, ratio: float | None, mask: np.dtype) -> list[Value | None]:
    """`ratio` means nothing at inference; None where it comes at run time."""
    x = node.input(0)
    if ratio is not None and not 0 <= ratio < 1:
        raise node.broken("ratio out of range", "0 <= ratio < 1", ratio)
    y = x if ratio is None else node.emit(graph.DropoutOp, x, ratio=ratio)
    if not node.wants(1):
        return [y]
    if not is_static(x.shape):
        raise node.unsupported("the mask of a tensor with symbolic dimensions is not supported")
    return [y, broadcast(node, node.known(np.array(True, mask)), x.shape)]


def _normalised_batch(node: Node) -> Value:
    node.ignore("momentum")
    x, scale, bias, mean, variance = (node.input(i) for i in range(5))
    if x.rank < 1:
        raise node.broken("operand is a scalar", "rank >= 1", "rank 0")
    for operand in (scale, bias, mean, variance):
        if operand.rank != 1:
            raise node.broken("a parameter is no vector", "rank 1", f"rank {operand.rank}")
    parameters = [cast(node, p, x.dtype) for p in (scale, bias, mean, variance)]
    epsilon = node.attr_float("epsilon", 1e-5)
    axis = 1 if x.rank > 1 else 0
    return node.emit(graph.BatchNormOp, x, *parameters, epsilon=epsilon, axis=axis)


converts("BatchNormalization", since=7, only={"spatial": 1})(_normalised_batch)
converts("BatchNormalization", since=9)(_normalised_batch)
converts("BatchNormalization", since=14, only={"training_mode": 0})(_normalised_batch)


@converts("LayerNormalization", since=17)
def layer_normalization(node: Node) -> list[Value | None]:
    # d = x - mean(x);  y = d * rsqrt(mean(d * d) + epsilon) * scale + bias
    x, scale, bias = node.input(0), node.input(1), node.optional(2)
    axis = node.axis(node.attr_int("axis", -1), x.rank)
    wide = cast(node, x, _stash(node, x))
    mean, deviation, inverse = _standardised(
        node, wide, range(axis, x.rank), node.attr_float("epsilon", 1e-5)
    )
    y = cast(node, node.emit(graph.MulOp, deviation, inverse), x.dtype)
    y = node.emit(graph.MulOp, y, scale)
    y = y if bias is None else node.emit(graph.AddOp, y, bias)
    return [y, mean, inverse]


@converts("RMSNormalization", since=23)
def rms_normalization(node: Node) -> Value:
    # y = x * rsqrt(mean(x * x) + epsilon) * scale
    x, scale = node.input(0), node.input(1)
    axis = node.axis(node.attr_int("axis", -1), x.rank)
    wide = cast(node, x, _stash(node, x))
    inverse = _inverse_deviation(node, wide, range(axis, x.rank), node.attr_float("epsilon", 1e-5))
    return node.emit(graph.MulOp, cast(node, node.emit(graph.MulOp, wide, inverse), x.dtype), scale)


def _stash(node: Node, x: Value) -> np.dtype:
    """The type in which statistics are taken: `stash_type`, or the operand's if that is wider."""
    stash = node.attr_dtype("stash_type", np.dtype(np.float32))
    return np.promote_types(stash, x.dtype) if stash.kind == "f" else x.dtype


def _standardised(
    node: Node, x: Value, axes: Sequence[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """The mean over `axes`, the deviation from it, and the inverse standard deviation."""
    mean = node.emit(graph.ReduceOp, x, kind="mean", axes=list(axes), keepdims=True)
    deviation = node.emit(graph.SubOp, x, mean)
    return mean, deviation, _inverse_deviation(node, deviation, axes, epsilon)


def _inverse_deviation(node: Node, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """1 / sqrt(mean(x * x) + epsilon)."""
    square = node.emit(graph.MulOp, x, x)
    variance = node.emit(graph.ReduceOp, square, kind="mean", axes=list(axes), keepdims=True)
    shifted = node.emit(graph.AddOp, variance, node.scalar(epsilon, variance))
    return node.emit(graph.RsqrtOp, shifted)


@converts("InstanceNormalization", since=6)
def instance_normalization(node: Node) -> Value:
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    if x.rank < 3:
        raise node.broken("operand has no spatial dimension", "rank >= 3", f"rank {x.rank}")
    epsilon = node.attr_float("epsilon", 1e-5)
    _, deviation, inverse = _standardised(node, x, range(2, x.rank), epsilon)
    y = node.emit(graph.MulOp, deviation, inverse)
    return _affine(node, y, scale, bias, x.rank - 2)


@converts("GroupNormalization", since=21)
def group_normalization(node: Node) -> Value:
    # Each group of channels is standardised as one; scale and bias are those of a channel.
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    groups = node.attr_int("num_groups")
    channels = x.shape[1].exact_div(groups) if x.rank > 2 and groups > 0 else None
    if channels is None:
        raise node.broken("groups do not divide the channels", "a divisor", groups)
    wide = cast(node, x, _stash(node, x))
    apart = reshaped(node, wide, [x.shape[0], Dim.of(groups), channels, *x.shape[2:]])
    epsilon = node.attr_float("epsilon", 1e-5)
    _, deviation, inverse = _standardised(node, apart, range(2, apart.rank), epsilon)
    joined = reshaped(node, node.emit(graph.MulOp, deviation, inverse), x.shape)
    return _affine(node, cast(node, joined, x.dtype), scale, bias, x.rank - 2)


def _affine(node: Node, x: Value, scale: Value, bias: Value, trailing: int) -> Value:
    """x * scale + bias, for parameters of a dimension that `trailing` others follow."""
    ones = [Dim.of(1)] * trailing
    factor, offset = (reshaped(node, p, [*p.shape, *ones]) for p in (scale, bias))
    return node.emit(graph.AddOp, node.emit(graph.MulOp, x, factor), offset)


@converts("MeanVarianceNormalization", since=9)
def mean_variance_normalization(node: Node) -> Value:
    # (x - mean(x)) / (sqrt(mean((x - mean(x))^2)) + 1e-9)
    x = node.input(0)
    axes = node.axes(node.attr_ints("axes") or [0, 2, 3], x.rank)
    mean = node.emit(graph.ReduceOp, x, kind="mean", axes=axes, keepdims=True)
    deviation = node.emit(graph.SubOp, x, mean)
    square = node.emit(graph.MulOp, deviation, deviation)
    variance = node.emit(graph.ReduceOp, square, kind="mean", axes=axes, keepdims=True)
    spread = node.emit(graph.SqrtOp, variance)
    bounded = node.emit(graph.AddOp, spread, node.scalar(1e-9, spread))
    return node.emit(graph.DivOp, deviation, bounded)


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
    return node.emit(graph.ReduceOp, x, kind=kind, axes=list(range(2, x.rank)), keepdims=True)

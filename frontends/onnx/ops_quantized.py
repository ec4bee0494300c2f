"""Quantised operators: integers with a scale and a zero point."""

from __future__ import annotations

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.elementwise import cast
from ..importing.selection import padded
from ..importing.shapes import reshaped, squeezed, unsqueezed
from ..importing.values import Value
from .nodes import Node
from .ops_window import filter_window, window_axes
from .registry import converts

_SUPPORTED = ("int8", "int16", "uint8", "uint16")


def _parameter(node: Node, value: Value) -> Value:
    """A scale or zero point as a scalar or a vector; a vector of one element is a scalar."""
    if value.rank > 1:
        raise node.unsupported("quantisation in blocks is not supported")
    return reshaped(node, value, []) if value.shape == (Dim.of(1),) else value


def _zero(node: Node, like: Value, dtype: np.dtype) -> Value:
    """Zero points of 0, one for each scale."""
    if not all(dim.is_static for dim in like.shape):
        raise node.unsupported("a symbolic number of scales without zero points")
    return node.known(np.zeros([dim.value for dim in like.shape], dtype))


def _scaled(node: Node, x: Value, dtype: np.dtype) -> tuple[Value, Value, int | None]:
    """The scale, the zero point (by default 0 of `dtype`), and their axis."""
    if node.attr_int("block_size"):
        raise node.unsupported("quantisation in blocks is not supported")
    scale, given = _parameter(node, node.input(1)), node.optional(2)
    zero_point = _zero(node, scale, dtype) if given is None else _parameter(node, given)
    if zero_point.rank != scale.rank:
        raise node.broken("scale and zero point differ", f"rank {scale.rank}", zero_point.rank)
    axis = node.attr_int("axis", 1)
    return scale, zero_point, node.axis(axis, x.rank) if scale.rank else None


@converts("QuantizeLinear", since=10)
def quantize_linear(node: Node) -> Value:
    node.ignore("saturate")  # only for 8-bit floats
    if node.attr_int("precision"):
        node.insist({"precision": 1})
    x = node.input(0)
    if x.dtype == np.int32:
        x = cast(node, x, np.dtype(np.float32))
    given = node.optional(2)
    wanted = node.attr_int("output_dtype")
    default = np.dtype(np.uint8) if given is None else given.dtype
    dtype = node.attr_dtype("output_dtype") if wanted else default
    if given is not None and given.dtype != dtype:
        raise node.broken("output_dtype differs from the zero point", given.dtype, dtype)
    if dtype.name not in _SUPPORTED:
        raise node.unsupported(f"not supported for {dtype.name}")
    scale, zero_point, axis = _scaled(node, x, dtype)
    return node.emit(graph.QuantizeOp, x, scale, zero_point, axis=axis)


@converts("DequantizeLinear", since=10)
def dequantize_linear(node: Node) -> Value:
    x = node.input(0)
    scale, zero_point, axis = _scaled(node, x, x.dtype)
    result = node.emit(graph.DequantizeOp, x, scale, zero_point, axis=axis)
    wanted = node.attr_int("output_dtype")
    return cast(node, result, node.attr_dtype("output_dtype")) if wanted else result


@converts("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: Node) -> list[Value]:
    # scale == (max - min) / 255  of the range of x extended by 0, or 1 if x is all 0
    x = node.input(0)
    zero = node.scalar(0, x)
    low, high = (
        node.emit(
            bound,
            node.emit(graph.ReduceOp, x, kind=kind, axes=list(range(x.rank)), keepdims=False),
            zero,
        )
        for bound, kind in ((graph.MinOp, "min"), (graph.MaxOp, "max"))
    )
    span = node.emit(graph.DivOp, node.emit(graph.SubOp, high, low), node.scalar(255, x))
    nothing = node.emit(graph.EqualOp, span, zero)
    scale = node.emit(graph.WhereOp, nothing, node.scalar(1, x), span)
    steps = node.emit(graph.DivOp, node.emit(graph.NegOp, low), scale)
    inside = node.emit(graph.ClipOp, steps, minimum=0.0, maximum=255.0)
    rounded = node.emit(graph.RoundOp, inside)
    zero_point = cast(node, rounded, np.dtype(np.uint8))
    return [node.emit(graph.QuantizeOp, x, scale, zero_point), scale, zero_point]


def _parameters(node: Node, count: int) -> list[Value]:
    """The operands of a contraction, with scales and zero points as scalars or vectors."""
    inputs = [node.input(i) for i in range(count)]
    return [v if i in (0, 3) else _parameter(node, v) for i, v in enumerate(inputs)]


@converts("QLinearMatMul", since=10)
def qlinear_matmul(node: Node) -> Value:
    a, *middle = _parameters(node, 8)
    b = middle[2]
    if a.rank == 0 or b.rank == 0:
        raise node.broken("an operand is a scalar", "rank >= 1", "rank 0")
    if any(value.rank for value in (*middle[:2], *middle[5:])):
        raise node.unsupported("scales per row of a product are not supported")
    left = unsqueezed(node, a, [0]) if a.rank == 1 else a
    middle[2] = unsqueezed(node, b, [1]) if b.rank == 1 else b
    result = node.emit(graph.QuantizedMatmulOp, left, *middle)
    dropped = [axis for axis, value in ((-2, a), (-1, b)) if value.rank == 1]
    return squeezed(node, result, [axis % result.rank for axis in dropped])


@converts("QLinearConv", since=10)
def qlinear_conv(node: Node) -> Value:
    x, *middle = _parameters(node, 8)
    axes = window_axes(node, x, filter_window(node, x, middle[2]))
    # Padding is the zero point, which represents 0.
    low, high = ([0, 0, *sizes] for sizes in zip(*((a.low, a.high) for a in axes), strict=True))
    if any((*low, *high)):
        x = padded(node, x, low, high, node.contents(2).reshape(()).item())
    return node.emit(
        graph.QuantizedConvOp,
        x,
        *middle,
        node.optional(8),
        strides=[axis.stride for axis in axes],
        dilations=[axis.dilation for axis in axes],
        groups=node.attr_int("group", 1),
    )


def _without_zero_point(node: Node, x: Value, zero_point: Value | None) -> Value:
    """``x - zero_point`` in 16 bits, where it cannot overflow."""
    if zero_point is None:
        return x
    if zero_point.contents is not None and not zero_point.contents.any():
        return x
    wide = np.dtype(np.int16)
    return node.emit(graph.SubOp, cast(node, x, wide), cast(node, zero_point, wide))


@converts("MatMulInteger", since=10)
def matmul_integer(node: Node) -> Value:
    a, b, rows, columns = node.input(0), node.input(1), node.optional(2), node.optional(3)
    if a.rank == 0 or b.rank == 0:
        raise node.broken("an operand is a scalar", "rank >= 1", "rank 0")
    if rows is not None and rows.rank == 1 and a.rank > 1 and rows.shape != (Dim.of(1),):
        rows = unsqueezed(node, rows, [1])
    left, right = _without_zero_point(node, a, rows), _without_zero_point(node, b, columns)
    left = unsqueezed(node, left, [0]) if a.rank == 1 else left
    right = unsqueezed(node, right, [1]) if b.rank == 1 else right
    product = node.emit(graph.MatmulOp, left, right)
    dropped = [axis for axis, value in ((-2, a), (-1, b)) if value.rank == 1]
    return squeezed(node, product, [axis % product.rank for axis in dropped])


@converts("ConvInteger", since=10)
def conv_integer(node: Node) -> Value:
    x, w, filters = node.input(0), node.input(1), node.optional(3)
    axes = window_axes(node, x, filter_window(node, x, w))
    if filters is not None and filters.rank == 1 and filters.shape != (Dim.of(1),):
        filters = unsqueezed(node, filters, list(range(1, w.rank)))
    low, high = ([0, 0, *sizes] for sizes in zip(*((a.low, a.high) for a in axes), strict=True))
    return node.emit(
        graph.ConvOp,
        padded(node, _without_zero_point(node, x, node.optional(2)), low, high),
        _without_zero_point(node, w, filters),
        strides=[axis.stride for axis in axes],
        dilations=[axis.dilation for axis in axes],
        groups=node.attr_int("group", 1),
    )

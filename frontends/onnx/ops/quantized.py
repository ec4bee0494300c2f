"""Quantised operators: integers with a scale and a zero point."""

from __future__ import annotations

from typing import cast as cast_type

import numpy as np
from xdsl.dialects.builtin import IntegerType

from ....core.algebra.dims import Dim
from ....core.dtype_names import is_real
from ....core.dtypes import LOW_BIT_FLOATS, LOW_BIT_INTEGERS, integer_range
from ....dialects.graph import ops as graph
from ....dialects.graph.op_builder import OpBuilder, V
from ...importing.dtypes import element_type
from ...importing.elementwise import cast, clip, is_nan
from ...importing.low_bits import converted
from ...importing.resizing import elements_repeated
from ...importing.shapes import matrix_product, reshaped, sliced_to, unsqueezed
from ...importing.values import Value
from ...importing.windows import convolved, padded_axes
from ..nodes import Node
from ..registry import converts
from .window import filter_window, window_axes

F32, _I32 = np.dtype(np.float32), np.dtype(np.int32)
_QUANTIZED = ("int8", "int16", "uint8", "uint16", *LOW_BIT_INTEGERS.values())


def parameter(node: Node, value: Value) -> Value:
    """A scale or zero point; a vector of one element is a scalar."""
    if value.rank > 1 and not node.attr_int("block_size"):
        raise node.unsupported("quantisation in blocks is not supported without block_size")
    return reshaped(node, value, []) if value.shape == (Dim.of(1),) else value


def no_shift(node: Node, like: Value, dtype: np.dtype) -> Value:
    """Zero points of 0, one for each scale."""
    if not all(dim.is_static for dim in like.shape):
        raise node.unsupported("a symbolic number of scales without zero points")
    return node.known(np.zeros([dim.value for dim in like.shape], dtype))


def _axis(node: Node, x: Value, scale: Value) -> int | None:
    """The axis of a vector of scales, and of blocks."""
    axis = node.attr_int("axis", 1)
    return node.axis(axis, x.rank) if scale.rank else None


def _single(node: Node, value: Value) -> Value:
    """An operand that `graph.quantize` and `graph.dequantize` compute with: f16 or f32."""
    return value if value.dtype == np.float16 else cast(node, value, F32)


def _beside(node: Node, value: Value, x: Value, axis: int | None) -> Value:
    """A scale or zero point that broadcasts to x: of the tensor, of an axis, or of blocks."""
    block = node.attr_int("block_size")
    if axis is None or not value.rank:
        return value
    if value.rank == 1 and not block:
        return unsqueezed(node, value, [other for other in range(x.rank) if other != axis])
    if value.rank != x.rank:
        raise node.broken("the rank of scales differs", x.rank, value.rank)
    count, size = value.shape[axis], x.shape[axis]
    if block < 1:
        raise node.broken("there is no block_size", "1 or more", block)
    if count.is_static and size.is_static and -(-size.value // block) != count.value:
        raise node.broken("the blocks do not cover x", -(-size.value // block), count)
    whole = elements_repeated(node, value, axis, block)
    return whole if whole.shape[axis] == size else sliced_to(node, whole, axis, Dim.of(0), size)


def _is_zero(zero_point: Value | None) -> bool:
    """Whether there is no zero point but 0."""
    if zero_point is None:
        return True
    contents = zero_point.contents
    return contents is not None and not contents.astype(np.float32).any()


@converts("QuantizeLinear", since=10)
def quantize_linear(node: Node) -> Value:
    saturate = bool(node.attr_int("saturate", 1))
    if node.attr_int("precision"):
        node.insist({"precision": 1})
    x, scale, given = node.input(0), parameter(node, node.input(1)), node.optional(2)
    wanted = node.attr_int("output_dtype")
    default = np.dtype(np.uint8) if given is None else given.dtype
    dtype = node.attr_dtype("output_dtype") if wanted else default
    if given is not None and given.dtype != dtype:
        raise node.broken("output_dtype differs from the zero point", given.dtype, dtype)
    axis = _axis(node, x, scale)
    if dtype.name not in _QUANTIZED:
        if dtype.name not in LOW_BIT_FLOATS.values():
            raise node.unsupported(f"not supported for {dtype.name}")
        quotient = _shifted(node, _quotient(node, x, scale, axis), given, axis)
        return converted(node, quotient, dtype, saturate=saturate)
    zero_point = None if given is None else parameter(node, given)
    if node.attr_int("block_size") and axis is not None:
        return _quantized_blocks(node, _quotient(node, x, scale, axis), zero_point, dtype, axis)
    zero_point = no_shift(node, scale, dtype) if zero_point is None else zero_point
    if zero_point.rank != scale.rank:
        raise node.broken("scale and zero point differ", f"rank {scale.rank}", zero_point.rank)
    x, scale = _single(node, x), _single(node, scale)
    return node.quantize(x, scale, zero_point, axis=axis)


def _quotient(node: Node, x: Value, scale: Value, axis: int | None) -> Value:
    divisor = cast(node, _beside(node, scale, x, axis), F32)
    return node.div(cast(node, x, F32), divisor)


def _shifted(node: Node, x: Value, zero_point: Value | None, axis: int | None) -> Value:
    """x + zero_point."""
    if zero_point is None or _is_zero(zero_point):
        return x
    shift = _beside(node, parameter(node, zero_point), x, axis)
    return node.add(x, cast(node, shift, F32))


def _quantized_blocks(
    node: Node, quotient: Value, zero_point: Value | None, dtype: np.dtype, axis: int
) -> Value:
    """Quotients as integers: rounded, shifted, cut. NaN becomes the zero point."""
    nearest = node.round(quotient)
    nearest = node.where(is_nan(node, nearest), 0, nearest)
    least, largest = integer_range(cast_type(IntegerType, element_type(dtype)))
    moved = _shifted(node, nearest, zero_point, axis)
    return cast(node, clip(node, moved, float(least), float(largest)), dtype)


@converts("DequantizeLinear", since=10)
def dequantize_linear(node: Node) -> Value:
    x, scale, given = node.input(0), parameter(node, node.input(1)), node.optional(2)
    zero_point, axis = None if given is None else parameter(node, given), _axis(node, x, scale)
    wide = scale.dtype if is_real(scale.dtype) else F32
    target = node.attr_dtype("output_dtype") if node.attr_int("output_dtype") else wide
    is_integer = x.dtype.name not in LOW_BIT_FLOATS.values()
    if is_integer and not node.attr_int("block_size"):
        zero_point = no_shift(node, scale, x.dtype) if zero_point is None else zero_point
        if zero_point.rank != scale.rank:
            raise node.broken("scale and zero point differ", f"rank {scale.rank}", zero_point.rank)
        scale = _single(node, scale) if scale.dtype == target else cast(node, scale, F32)
        return cast(node, node.dequantize(x, scale, zero_point, axis=axis), target)
    # i32 has the differences of all integers of 16 bits, and f32 those of low-bit floats.
    exact = _I32 if is_integer else F32
    number = cast(node, x, exact)
    if zero_point is not None and not _is_zero(zero_point):
        shift = cast(node, _beside(node, zero_point, x, axis), exact)
        number = node.sub(number, shift)
    factor = cast(node, _beside(node, scale, x, axis), F32)
    return cast(node, node.mul(cast(node, number, F32), factor), target)


@converts("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: Node) -> list[Value]:
    return list(dynamically_quantized(node, node.input(0)))


def dynamically_quantized(node: Node, x: Value) -> tuple[Value, Value, Value]:
    """A tensor as ui8, its scale and its zero point."""
    scale, zero_point = byte_range(node, x, x.rank)
    return node.quantize(x, scale, zero_point), scale, zero_point


def byte_range(b: OpBuilder[V], x: V, rank: int, axis: int | None = None) -> tuple[V, V]:
    """The scale and the zero point with which ui8 holds all elements of a tensor, and 0.

    Args:
        b: adds the operators.
        x: the tensor.
        rank: the number of its dimensions.
        axis: an axis with a scale for each of its slices; by default there is one for all.
    """
    # scale == (max - min) / 255  of the range of x extended by 0, or 1 if x is all 0
    axes = [other for other in range(rank) if other != axis]
    low = b.min(b.reduce(x, kind="min", axes=axes, keepdims=False), 0.0)
    high = b.max(b.reduce(x, kind="max", axes=axes, keepdims=False), 0.0)
    span = b.div(b.sub(high, low), 255.0)
    scale = b.where(b.equal(span, 0.0), 1.0, span)
    steps = b.clip(b.div(b.neg(low), scale), minimum=0.0, maximum=255.0)
    return scale, b.cast(b.round(steps), "ui8")


def _parameters(node: Node, count: int) -> list[Value]:
    """The operands of a contraction, with scales and zero points as scalars or vectors."""
    inputs = [node.input(i) for i in range(count)]
    return [v if i in (0, 3) else parameter(node, v) for i, v in enumerate(inputs)]


@converts("QLinearMatMul", since=10)
def qlinear_matmul(node: Node) -> Value:
    a, *middle = _parameters(node, 8)
    if any(value.rank for value in (*middle[:2], *middle[5:])):
        raise node.unsupported("scales per row of a product are not supported")

    def multiply(left: Value, right: Value) -> Value:
        operands = [left, *middle[:2], right, *middle[3:]]
        return node.quantized_matmul(*operands)

    return matrix_product(node, a, middle[2], multiply)


@converts("QLinearConv", since=10)
def qlinear_conv(node: Node) -> Value:
    x, *middle = _parameters(node, 8)
    axes = window_axes(node, x, filter_window(node, x, middle[2]))
    # Padding is the zero point, which represents 0.
    if any(axis.is_padded for axis in axes):
        x = padded_axes(node, x, axes, node.contents(2).reshape(()).item())
    return node.apply(
        graph.QuantizedConvOp,
        x,
        *middle,
        node.optional(8),
        strides=[axis.stride for axis in axes],
        dilations=[axis.dilation for axis in axes],
        groups=node.attr_int("group", 1),
    )


def without_zero_point(node: Node, x: Value, zero_point: Value | None) -> Value:
    """``x - zero_point`` in 16 bits, where it cannot overflow."""
    if zero_point is None:
        return x
    if zero_point.contents is not None and not zero_point.contents.any():
        return x
    wide = np.dtype(np.int16)
    return node.sub(cast(node, x, wide), cast(node, zero_point, wide))


@converts("MatMulInteger", since=10)
def matmul_integer(node: Node) -> Value:
    a, b, rows, columns = node.input(0), node.input(1), node.optional(2), node.optional(3)
    if a.rank == 0 or b.rank == 0:
        raise node.broken("an operand is a scalar", "rank >= 1", "rank 0")
    if rows is not None and rows.rank == 1 and a.rank > 1 and rows.shape != (Dim.of(1),):
        rows = unsqueezed(node, rows, [1])
    left, right = without_zero_point(node, a, rows), without_zero_point(node, b, columns)
    return matrix_product(node, left, right)


@converts("ConvInteger", since=10)
def conv_integer(node: Node) -> Value:
    x, w, filters = node.input(0), node.input(1), node.optional(3)
    axes = window_axes(node, x, filter_window(node, x, w))
    if filters is not None and filters.rank == 1 and filters.shape != (Dim.of(1),):
        filters = unsqueezed(node, filters, list(range(1, w.rank)))
    left, right = (
        without_zero_point(node, part, zero) for part, zero in ((x, node.optional(2)), (w, filters))
    )
    return convolved(node, left, right, None, axes, node.attr_int("group", 1))

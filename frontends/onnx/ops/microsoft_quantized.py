"""Quantised operators of the domain com.microsoft, as onnxruntime's quantiser writes them.

An operator of floats between quantised tensors is written as its meaning, which
`graph-raise-quantized` turns into one of integers where that is exact: dequantize, compute,
quantize. Scales and zero points are those of whole tensors, but for weights.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....dialects.graph import ops as graph
from ...builder import Builder
from ...importing.elementwise import cast
from ...importing.shapes import matrix_product, transposed, unsqueezed
from ...importing.values import Value
from ...values import Value as Built
from ..nodes import Node
from ..registry import converts
from .microsoft_fused import MICROSOFT
from .quantized import (
    F32,
    byte_range,
    dequantize_linear,
    dynamically_quantized,
    no_shift,
    parameter,
    quantize_linear,
    without_zero_point,
)
from .recurrent import LSTM_OPERANDS, RecurrentLayer
from .reduction import softmax_of_axis, softmax_of_rows
from .window import averaged, largest

_I32 = np.dtype(np.int32)

# Those of ONNX, which this domain had for 16 bits before it.
converts("QuantizeLinear", since=1, domain=MICROSOFT)(quantize_linear)
converts("DequantizeLinear", since=1, domain=MICROSOFT)(dequantize_linear)


def _scale(node: Node, index: int) -> Value:
    """A scale of a whole tensor."""
    scale = parameter(node, node.input(index))
    if scale.rank:
        fact = f"operand {index} is not the scale of a whole tensor"
        raise node.broken(fact, "1 element", scale.shape)
    return scale


def _zero_point(node: Node, index: int, scale: Value, dtype: np.dtype) -> Value:
    """The zero point beside a scale; 0 where it is omitted."""
    given = node.optional(index)
    if given is None:
        return no_shift(node, scale, dtype)
    found = parameter(node, given)
    if found.rank != scale.rank:
        raise node.broken("scale and zero point differ", f"rank {scale.rank}", found.rank)
    return found


def _number(node: Node, index: int) -> Value:
    """The floats of a tensor, whose scale and zero point are the operands after it."""
    x, scale = node.input(index), _scale(node, index + 1)
    zero_point = _zero_point(node, index + 2, scale, x.dtype)
    return node.dequantize(x, scale, zero_point)


def _quantized(node: Node, y: Value, index: int, dtype: np.dtype) -> Value:
    """Floats as integers, whose scale and zero point are operands from `index` on."""
    scale = _scale(node, index)
    return node.quantize(y, scale, _zero_point(node, index + 1, scale, dtype))


def _elementwise(compute: Callable[[Node, Value], Value]) -> Callable[[Node], Value]:
    """The conversion of an operator with one tensor, its scale, and that of the result."""

    def convert(node: Node) -> Value:
        return _quantized(node, compute(node, _number(node, 0)), 3, node.input(0).dtype)

    return convert


def _softmax(node: Node, x: Value) -> Value:
    """Along an axis, or, as before opset 13, over all dimensions from it on."""
    compute = softmax_of_rows if node.attr_int("opset", 13) < 13 else softmax_of_axis
    return compute(node, graph.SoftmaxOp, x)


def _global_average(node: Node, x: Value) -> Value:
    last = bool(node.attr_int("channels_last"))
    axes = range(1, x.rank - 1) if last else range(2, x.rank)
    return node.reduce(x, kind="mean", axes=list(axes), keepdims=True)


def _with_channels_first(
    node: Node, x: Value, compute: Callable[[Node, Value], Value], *, last: bool = False
) -> Value:
    """A function on images [N, C, *sizes] of images that may have the channels last."""
    if not last and not node.attr_int("channels_last"):
        return compute(node, x)
    if x.rank < 3:
        raise node.broken("operand has no spatial dimension", "rank >= 3", f"rank {x.rank}")
    y = compute(node, transposed(node, x, [0, x.rank - 1, *range(1, x.rank - 1)]))
    return transposed(node, y, [0, *range(2, x.rank), 1])


for _name, _compute in {
    "QLinearSigmoid": lambda node, x: node.sigmoid(x),
    "QLinearLeakyRelu": lambda node, x: node.leaky_relu(x, alpha=node.attr_float("alpha", 0.01)),
    "QLinearSoftmax": _softmax,
    "QLinearAveragePool": lambda node, x: _with_channels_first(node, x, averaged),
    "QLinearGlobalAveragePool": _global_average,
}.items():
    converts(_name, since=1, domain=MICROSOFT)(_elementwise(_compute))


@converts("QLinearAdd", since=1, domain=MICROSOFT)
def qlinear_add(node: Node) -> Value:
    total = node.add(_number(node, 0), _number(node, 3))
    return _quantized(node, total, 6, node.input(0).dtype)


@converts("QLinearMul", since=1, domain=MICROSOFT)
def qlinear_mul(node: Node) -> Value:
    product = node.mul(_number(node, 0), _number(node, 3))
    return _quantized(node, product, 6, node.input(0).dtype)


@converts("QLinearConcat", since=1, domain=MICROSOFT)
def qlinear_concat(node: Node) -> Value:
    if len(node.inputs) < 5 or len(node.inputs) % 3 != 2:
        expected = "2, and 3 for each tensor"
        raise node.broken("wrong number of operands", expected, len(node.inputs))
    if not node.has("axis"):
        raise node.broken('attribute "axis" is missing')
    dtype = node.input(2).dtype
    parts = [_quantized_again(node, index, dtype) for index in range(2, len(node.inputs), 3)]
    return node.concat(parts, axis=node.axis(node.attr_int("axis"), parts[0].rank))


def _quantized_again(node: Node, index: int, dtype: np.dtype) -> Value:
    """A tensor with the scale and the zero point of the result, which it may have already."""
    pairs = [
        (node.input(index + own).contents, node.input(of_result).contents)
        for own, of_result in ((1, 0), (2, 1))
    ]
    if all(a is not None and b is not None and a.item() == b.item() for a, b in pairs):
        return node.input(index)
    return _quantized(node, _number(node, index), 0, dtype)


@converts("NhwcMaxPool", since=1, domain=MICROSOFT)
def nhwc_max_pool(node: Node) -> Value:
    return _with_channels_first(node, node.input(0), largest, last=True)


@converts("MatMulIntegerToFloat", since=1, domain=MICROSOFT)
def matmul_integer_to_float(node: Node) -> Value:
    factor = node.mul(_columns(node, 2), _columns(node, 3))
    return _scaled_product(node, node.input(0), node.optional(4), factor, 5, 6)


@converts("DynamicQuantizeMatMul", since=1, domain=MICROSOFT)
def dynamic_quantize_matmul(node: Node) -> Value:
    a, scale, zero_point = dynamically_quantized(node, node.input(0))
    factor = node.mul(scale, _columns(node, 2))
    return _scaled_product(node, a, zero_point, factor, 3, 4)


def _columns(node: Node, index: int) -> Value:
    """A scale of a whole tensor, or of each column of a product."""
    if node.input(index).rank > 1:
        raise node.unsupported(f"operand {index}: scales of columns of several matrices")
    return parameter(node, node.input(index))


def _scaled_product(
    node: Node, a: Value, a_zero: Value | None, factor: Value, b_zero_index: int, bias_index: int
) -> Value:
    """The product of integers with operand 1, as floats, times a factor, plus a bias."""
    b, b_zero, bias = node.input(1), node.optional(b_zero_index), node.optional(bias_index)
    left = without_zero_point(node, a, None if a_zero is None else parameter(node, a_zero))
    right = without_zero_point(node, b, None if b_zero is None else parameter(node, b_zero))
    product = cast(node, matrix_product(node, left, right), F32)
    result = node.mul(product, factor)
    return result if bias is None else node.add(result, bias)


@converts("QGemm", since=1, domain=MICROSOFT)
def qgemm(node: Node) -> Value:
    # (A' - a_zero) (B' - b_zero) + C, times alpha and the scales
    a, b = (_matrix(node, index, name) for index, name in ((0, "transA"), (3, "transB")))
    scale = node.mul(_scale(node, 1), _columns(node, 4))
    alpha = node.attr_float("alpha", 1.0)
    factor = scale if alpha == 1 else node.mul(scale, alpha)
    left, right = (
        without_zero_point(node, x, None if z is None else parameter(node, z))
        for x, z in ((a, node.optional(2)), (b, node.optional(5)))
    )
    total, bias = node.matmul(left, right), node.optional(6)
    total = total if bias is None else node.add(total, bias)
    y = node.mul(cast(node, total, F32), factor)
    return y if node.optional(7) is None else _quantized(node, y, 7, a.dtype)


def _matrix(node: Node, index: int, attribute: str) -> Value:
    """A matrix, transposed if an attribute says so."""
    x = node.input(index)
    if x.rank != 2:
        raise node.broken("an operand is not a matrix", "rank 2", f"rank {x.rank}")
    return transposed(node, x, [1, 0]) if node.attr_int(attribute) else x


@converts("DynamicQuantizeLSTM", since=1, domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node) -> list[Value]:
    # An LSTM of what bytes hold of its weights, of the input, and of each state of a sequence.
    weights = [_weights(node, 1, 8), _weights(node, 2, 10)]
    q, scale, zero_point = dynamically_quantized(node, node.input(0))
    x = node.dequantize(q, scale, zero_point)
    operands = [x, *weights, *(node.optional(number) for number in range(3, 8))]
    layer = RecurrentLayer(node, gates=4, activations=3, operands=operands)
    return layer.convert(
        Builder.lstm,
        LSTM_OPERANDS,
        input_forget=bool(node.attr_int("input_forget")),
        factor=functools.partial(_rows_in_bytes, layer.builder),
    )


def _rows_in_bytes(b: Any, h: Built) -> Built:
    """What ui8 holds of each row of 1xBxH."""
    scale, zero_point = byte_range(b, h, rank=3, axis=1)
    return b.dequantize(b.quantize(h, scale, zero_point, axis=1), scale, zero_point, axis=1)


def _weights(node: Node, index: int, scales: int) -> Value:
    """Weights [directions, inputs, gates] as floats, with the columns as rows.

    Args:
        node: the node.
        index: the operand of the weights.
        scales: that of their scales, [directions] or [directions, gates]; zero points come after.
    """
    w, scale, given = node.input(index), node.input(scales), node.optional(scales + 1)
    if w.rank != 3:
        raise node.broken(f"operand {index} has the wrong rank", 3, w.rank)
    number = cast(node, w, _I32)
    if given is not None:
        number = node.sub(number, cast(node, _beside(node, given, w), _I32))
    scaled = node.mul(cast(node, number, F32), _beside(node, scale, w))
    return transposed(node, scaled, [0, 2, 1])


def _beside(node: Node, value: Value, w: Value) -> Value:
    """Scales or zero points of directions, or of the gates of each, beside weights."""
    if value.rank not in (1, 2):
        raise node.broken("scales or zero points have the wrong rank", "1 or 2", value.rank)
    return unsqueezed(node, value, [1, 2] if value.rank == 1 else [1])

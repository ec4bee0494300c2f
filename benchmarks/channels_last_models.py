"""Convolutional models with channels last, in ONNX as converters of TensorFlow write them.

Each operator of ONNX that needs channels first has a transposition before and after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper, shape_inference
from onnx_writer import Writer

Loaded = tuple[ModelProto, list[np.ndarray]]
"""A model and inputs for it."""


class ChannelsLast(Writer):
    """Writes a model on images [N, H, W, C], or on sequences [N, L, C]."""

    def normal(self, *shape: int) -> np.ndarray:
        """Random numbers that keep the size of what they are multiplied with, as weights."""
        fan = max(1, int(np.prod(shape[1:])))
        return (self.random.standard_normal(shape) * (2 / fan) ** 0.5).astype(np.float32)

    def channels_first(
        self, kind: str, x: str, *more: str, rank: int = 4, **attributes: Any
    ) -> str:
        """A node on channels first between transpositions."""
        ahead = [0, rank - 1, *range(1, rank - 1)]
        back = [0, *range(2, rank), 1]
        inner = self.node(kind, self.node("Transpose", x, perm=ahead), *more, **attributes)
        return self.node("Transpose", inner, perm=back)

    def convolution(self, x: str, inputs: int, outputs: int, window: int, stride: int = 1) -> str:
        """A convolution and a batch norm, as a product and a sum with channels last."""
        filters = self.constant(self.normal(outputs, inputs, window, window))
        sizes: dict[str, Any] = {"strides": [stride] * 2, "auto_pad": "SAME_UPPER"}
        y = self.channels_first("Conv", x, filters, **sizes)
        scale = self.random.uniform(0.5, 1.0, outputs).astype(np.float32)
        y = self.node("Mul", y, self.constant(scale))
        return self.node("Add", y, self.constant(0.1 * self.normal(outputs)))

    def vector(self, size: int) -> str:
        """A bias or a scale."""
        return self.constant(self.random.uniform(0.5, 1.0, size).astype(np.float32))

    def loaded(self, x: np.ndarray, shape: Sequence[int | str], result: str) -> Loaded:
        """The model of input "x", and an array for it."""
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        return shape_inference.infer_shapes(self.model({"x": (kind, shape)}, result)), [x]


def residual_network(
    width: int = 64, blocks: Sequence[int] = (2, 2, 2, 2), size: int = 224, classes: int = 1000
) -> Loaded:
    """A ResNet: He et al., 2015; by default of 18 layers."""
    m = ChannelsLast()
    x = m.node("Relu", m.convolution("x", 3, width, 7, 2))
    pool: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    x, inputs = m.channels_first("MaxPool", x, **pool), width
    for level, count in enumerate(blocks):
        outputs = width << level
        for number in range(count):
            stride = 2 if level and not number else 1
            y = m.node("Relu", m.convolution(x, inputs, outputs, 3, stride))
            y = m.convolution(y, outputs, outputs, 3)
            if inputs != outputs:
                x = m.convolution(x, inputs, outputs, 1, stride)
            x, inputs = m.node("Relu", m.node("Add", y, x)), outputs
    axes = m.constant(np.array([1, 2]))
    mean = m.node("ReduceMean", x, axes, keepdims=0)
    scores = m.node("MatMul", mean, m.constant(m.normal(classes, inputs).T.copy()))
    result = m.node("Softmax", m.node("Add", scores, m.vector(classes)))
    image = m.random.standard_normal((1, size, size, 3), np.float32)
    return m.loaded(image, image.shape, result)


def sentence_network(
    words: int = 20000, width: int = 128, layers: int = 4, length: int = 256, classes: int = 5
) -> Loaded:
    """Convolutions along a sentence, each with a layer norm and a residual: Kim, 2014."""
    m = ChannelsLast()
    x = m.node("Gather", m.constant(m.normal(words, width)), "x")
    for _ in range(layers):
        filters = m.constant(m.normal(width, width, 3))
        y = m.channels_first("Conv", x, filters, rank=3, auto_pad="SAME_UPPER")
        y = m.node("Add", y, m.vector(width))
        y = m.node("LayerNormalization", y, m.vector(width), m.vector(width), axis=-1)
        x = m.node("Add", x, m.node("Relu", y))
    largest = m.node("ReduceMax", x, m.constant(np.array([1])), keepdims=0)
    result = m.node("MatMul", largest, m.constant(m.normal(classes, width).T.copy()))
    tokens = m.random.integers(0, words, (1, length))
    return m.loaded(tokens, tokens.shape, result)

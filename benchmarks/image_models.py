"""Convolutional models in ONNX: channels first, and as converters of TensorFlow write them.

There channels are last, and each operator of ONNX that needs channels first has a transposition
before and after it. Weights are random.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper
from onnx_writer import FLOAT, Writer

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
"""Models of ONNX's test data, whose weights are made by operators."""
Loaded = tuple[ModelProto, list[np.ndarray]]
"""A model and inputs for it."""


class Images(Writer):
    """Writes a model on images [N, C, H, W], whose batch norms are part of its convolutions."""

    def weight(self, *shape: int) -> str:
        """A weight that keeps the scale of what it is applied to, or a bias."""
        scale = np.float32(1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1e4))
        return self.constant(self.random.standard_normal(shape, np.float32) * scale)

    def vector(self, size: int) -> str:
        """Positive numbers."""
        return self.constant(self.random.uniform(0.5, 1.0, size).astype(np.float32))

    def convolution(self, x: str, inputs: int, outputs: int, window: int, stride: int = 1) -> str:
        weights = self.weight(outputs, inputs, window, window), self.weight(outputs)
        facts = {"pads": [window // 2] * 4, "strides": [stride] * 2}
        return self.node("Conv", x, *weights, **facts)

    def max_pool(self, x: str) -> str:
        return self.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])

    def scores(self, x: str, width: int, classes: int) -> str:
        """A layer on the means of the channels."""
        x = self.node("Flatten", self.node("GlobalAveragePool", x))
        weights = self.weight(classes, width), self.weight(classes)
        return self.node("Gemm", x, *weights, transB=1)


class Trained(Images):
    """The same with batch norms as operators."""

    def convolution(self, x: str, inputs: int, outputs: int, window: int, stride: int = 1) -> str:
        x = super().convolution(x, inputs, outputs, window, stride)
        return self.node("BatchNormalization", x, *(self.vector(outputs) for _ in range(4)))


class ChannelsLast(Images):
    """Writes a model on images [N, H, W, C], or on sequences [N, L, C]."""

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
        filters = self.weight(outputs, inputs, window, window)
        sizes: dict[str, Any] = {"strides": [stride] * 2, "auto_pad": "SAME_UPPER"}
        y = self.node("Mul", self.channels_first("Conv", x, filters, **sizes), self.vector(outputs))
        return self.node("Add", y, self.weight(outputs))

    def max_pool(self, x: str) -> str:
        sizes: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}
        return self.channels_first("MaxPool", x, auto_pad="SAME_UPPER", **sizes)

    def scores(self, x: str, width: int, classes: int) -> str:
        mean = self.node("ReduceMean", x, self.constant(np.array([1, 2])), keepdims=0)
        scores = self.node("MatMul", mean, self.weight(width, classes))
        return self.node("Softmax", self.node("Add", scores, self.vector(classes)))

    def loaded(self, x: np.ndarray, result: str) -> Loaded:
        """The model of input "x", and an array for it."""
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        return self.model({"x": (kind, x.shape)}, result), [x]


def residual(
    m: Images,
    blocks: Sequence[int],
    width: int = 64,
    classes: int = 1000,
    bottleneck: bool = False,
) -> str:
    """The scores of a ResNet for an image "x": He et al., 2015."""
    x, inputs = m.max_pool(m.node("Relu", m.convolution("x", 3, width, 7, 2))), width
    for level, count in enumerate(blocks):
        filters = width << level
        outputs = 4 * filters if bottleneck else filters
        steps = [(filters, 3), (outputs, 3)]
        if bottleneck:
            steps = [(filters, 1), (filters, 3), (outputs, 1)]
        for number in range(count):
            stride = 2 if level and not number else 1
            y, channels = x, inputs
            for i, (after, window) in enumerate(steps):
                y = m.node("Relu", y) if i else y
                y = m.convolution(y, channels, after, window, stride if i == len(steps) - 2 else 1)
                channels = after
            if inputs != outputs:
                x = m.convolution(x, inputs, outputs, 1, stride)
            x, inputs = m.node("Relu", m.node("Add", y, x)), outputs
    return m.scores(x, inputs, classes)


def resnet50() -> ModelProto:
    """ResNet-50 for an image of 224 x 224, its batch norms folded into its convolutions."""
    m = Images()
    return m.model({"x": (FLOAT, (1, 3, 224, 224))}, residual(m, (3, 4, 6, 3), bottleneck=True))


def resnet18() -> ModelProto:
    """ResNet-18 for an image of 224 x 224 as trained: batch norms are still operators."""
    m = Trained()
    return m.model({"x": (FLOAT, (1, 3, 224, 224))}, residual(m, (2, 2, 2, 2)))


def light(name: str) -> ModelProto:
    """A model of ONNX's test data with random weights, for an image of 224 x 224.

    Filters keep the variance of what they are applied to (He et al., 2015); biases and the
    statistics of batch norms are in [0.5, 1). A softmax at the end is left out, as it hides errors.
    """
    proto = onnx.load(LIGHT / f"light_{name}.onnx")
    graph, random, nodes = proto.graph, np.random.default_rng(0), list[onnx.NodeProto]()
    constants = {c.name: numpy_helper.to_array(c) for c in graph.initializer}
    images = [value for value in graph.input if value.name not in constants]
    for node in graph.node:
        if node.op_type == "BatchNormalization" and not node.attribute:
            # The default, which MNN does not know.
            node.attribute.append(helper.make_attribute("epsilon", 1e-5))
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = constants.pop(node.input[0])
        weight = random.uniform(0.5, 1.0, shape)
        if len(shape) > 1:
            weight = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        constants[node.output[0]] = weight.astype(np.float32)
    if nodes[-1].op_type == "Softmax":
        graph.output[0].name = nodes.pop().input[0]
    made = helper.make_graph(
        nodes,
        graph.name,
        images,
        graph.output,
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(made, opset_imports=proto.opset_import, ir_version=9)


def residual_network(
    width: int = 64, blocks: Sequence[int] = (2, 2, 2, 2), size: int = 224, classes: int = 1000
) -> Loaded:
    """A ResNet with channels last; by default of 18 layers."""
    m = ChannelsLast()
    result = residual(m, blocks, width, classes)
    return m.loaded(m.random.standard_normal((1, size, size, 3), np.float32), result)


def sentence_network(
    words: int = 20000, width: int = 128, layers: int = 4, length: int = 256, classes: int = 5
) -> Loaded:
    """Convolutions along a sentence, each with a layer norm and a residual: Kim, 2014."""
    m = ChannelsLast()
    x = m.node("Gather", m.weight(words, width), "x")
    for _ in range(layers):
        y = m.channels_first("Conv", x, m.weight(width, width, 3), rank=3, auto_pad="SAME_UPPER")
        y = m.node("Add", y, m.vector(width))
        y = m.node("LayerNormalization", y, m.vector(width), m.vector(width), axis=-1)
        x = m.node("Add", x, m.node("Relu", y))
    largest = m.node("ReduceMax", x, m.constant(np.array([1])), keepdims=0)
    result = m.node("MatMul", largest, m.weight(width, classes))
    return m.loaded(m.random.integers(0, words, (1, length)), result)

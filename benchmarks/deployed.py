"""Models as they are deployed: for us, and the same ones in ONNX for other run times.

Weights are random. Graphs have no self loops, which GCNConv would not add again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from models import Weights, gcn
from onnx import ModelProto, numpy_helper
from onnx_writer import FLOAT, INT64, Writer, onnx_perceptron

import stepwell as sw
from stepwell.frontends import gnn

_BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""The channels, the number and the stride of the blocks of each part of ResNet-50."""
FEATURES, HIDDEN, CLASSES = 32, 64, 16
"""The widths of the GCN."""
NODES, EDGES = 25, 54
"""Those of one graph, as of a molecule of ZINC; the edges of a batch stay inside of its graphs."""


@dataclass(frozen=True)
class Deployed:
    """A model that is compiled once and then called with batches of any size.

    `inputs` makes those of a batch of so many rows, images or graphs. Without a
    `module` we read the model from ONNX as well.
    """

    model: Callable[[], ModelProto]
    inputs: Callable[[int], list[np.ndarray]]
    module: Callable[[], sw.Module] | None = None

    def compiled(self) -> sw.Executable:
        """The program, for one thread."""
        module = sw.from_onnx(self.model()) if self.module is None else self.module()
        return sw.compile(module, threads=1, records=False)


class _Graph(Writer):
    def weight(self, *shape: int) -> str:
        """A weight that keeps the scale of what it is applied to."""
        scale = np.float32(1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1e4))
        return self.constant(self.random.standard_normal(shape, np.float32) * scale)


def perceptron() -> ModelProto:
    """The perceptron 784-128-10 for any number of rows."""
    w = Weights()
    layers = [(w.scaled(n, k), w.array(n)) for k, n in ((784, 128), (128, 10))]
    return onnx_perceptron(layers, ("batch", 784))


def graph_convolutions() -> sw.Module:
    """Two graph convolutions on a graph that comes as a list of edges."""
    features = sw.TensorSpec((None, FEATURES), "f32")
    return gcn(FEATURES, HIDDEN, CLASSES).to_module(gnn.EdgeListSpec(), features=features)


def scattered_convolutions() -> ModelProto:
    """The same in ONNX: rows of sources are gathered, multiplied, and added to their targets."""
    g, w = _Graph(), Weights()
    layers = [
        (w.array(FEATURES, HIDDEN), w.array(HIDDEN)),
        (w.array(HIDDEN, CLASSES), w.array(CLASSES)),
    ]
    zero, one = (g.constant(np.array(n, np.int64)) for n in (0, 1))
    column = g.constant(np.array([1], np.int64))
    sources, targets = (g.node("Gather", "edge_index", n, axis=0) for n in (zero, one))
    places = g.node("Unsqueeze", targets, column)
    nodes = g.node("Shape", "features", start=0, end=1)
    edges = g.node("Shape", "edge_index", start=1, end=2)
    filled = {"value": numpy_helper.from_array(np.ones(1, np.float32))}
    ones, loops = (g.node("ConstantOfShape", size, **filled) for size in (edges, nodes))
    degree = g.node("ScatterND", loops, places, ones, reduction="add")
    scale = g.node("Reciprocal", g.node("Sqrt", degree))
    ends = (g.node("Gather", scale, end, axis=0) for end in (sources, targets))
    factors = g.node("Unsqueeze", g.node("Mul", *ends), column)
    own = g.node("Unsqueeze", g.node("Mul", scale, scale), column)
    x = "features"
    for number, (weight, bias) in enumerate(layers):
        x = g.node("MatMul", x, g.constant(weight))
        sent = g.node("Mul", g.node("Gather", x, sources, axis=0), factors)
        x = g.node("ScatterND", g.node("Mul", x, own), places, sent, reduction="add")
        x = g.node("Add", x, g.constant(bias))
        x = x if number else g.node("Relu", x)
    inputs = {"edge_index": (INT64, (2, "edges")), "features": (FLOAT, ("nodes", FEATURES))}
    return g.model(inputs, x)


def resnet50() -> ModelProto:
    """ResNet-50 for an image of 224 x 224, its batch norms folded into its convolutions."""
    g = _Graph()

    def conv(x: str, channels: int, filters: int, size: int, stride: int) -> str:
        facts = {"pads": [size // 2] * 4, "strides": [stride] * 2}
        return g.node(
            "Conv", x, g.weight(filters, channels, size, size), g.weight(filters), **facts
        )

    x = g.node("Relu", conv("x", 3, 64, 7, 2))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
    channels = 64
    for filters, count, first in _BLOCKS:
        for stride in (first, *[1] * (count - 1)):
            y = g.node("Relu", conv(x, channels, filters, 1, 1))
            y = g.node("Relu", conv(y, filters, filters, 3, stride))
            y = conv(y, filters, 4 * filters, 1, 1)
            same = stride == 1 and channels == 4 * filters
            kept = x if same else conv(x, channels, 4 * filters, 1, stride)
            x, channels = g.node("Relu", g.node("Add", y, kept)), 4 * filters
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    y = g.node("Gemm", x, g.weight(1000, 2048), g.weight(1000), transB=1)
    return g.model({"x": (FLOAT, (1, 3, 224, 224))}, y)


def graphs(count: int) -> list[np.ndarray]:
    """The edges of so many graphs, and the features of their nodes."""
    random = np.random.default_rng(count)
    sources = random.integers(0, NODES, (count, EDGES // 2))
    targets = (sources + random.integers(1, NODES, sources.shape)) % NODES
    ends = np.stack([sources, targets]) + NODES * np.arange(count)[:, None]
    edges = ends.reshape(2, -1)
    features = random.standard_normal((count * NODES, FEATURES), np.float32)
    return [np.ascontiguousarray(np.concatenate([edges, edges[::-1]], axis=1)), features]


def rows(*shape: int) -> Callable[[int], list[np.ndarray]]:
    """Makes so many rows of numbers."""
    return lambda n: [np.random.default_rng(n).standard_normal((n, *shape), np.float32)]


MLP = Deployed(perceptron, rows(784))
GCN = Deployed(scattered_convolutions, graphs, graph_convolutions)
RESNET50 = Deployed(resnet50, rows(3, 224, 224))

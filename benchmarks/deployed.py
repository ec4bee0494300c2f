"""Models as they are deployed: for us, and the same ones in ONNX for other run times.

Weights are random. Graphs have no self loops, which GCNConv would not add again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from image_models import resnet50
from models import Weights, built, gcn, gcn_of_cora
from onnx import ModelProto, numpy_helper
from onnx_writer import FLOAT, INT64, Writer, onnx_perceptron
from scipy.sparse import csr_array, random_array

import stepwell as sw
from stepwell.frontends import gnn

FEATURES, HIDDEN, CLASSES = 32, 64, 16
"""The widths of the GCN."""
NODES, EDGES = 25, 54
"""Those of one graph, as of a molecule of ZINC; the edges of a batch stay inside of its graphs."""


@dataclass(frozen=True)
class Deployed:
    """A model that is compiled once and then called with batches of any size.

    Attributes:
        model: it in ONNX; None where that has its matrix only as dense.
        inputs: makes those of a batch of so many rows, images or graphs.
        module: our program; by default that of the model.
        arguments: those of our program, made of `inputs`.
    """

    model: Callable[[], ModelProto] | None
    inputs: Callable[[int], list[np.ndarray]]
    module: Callable[[], sw.Module] | None = None
    arguments: str = "inputs"

    def proto(self) -> ModelProto:
        assert self.model is not None
        return self.model()

    def compiled(self) -> sw.Executable:
        module = sw.from_onnx(self.proto()) if self.module is None else self.module()
        return sw.compile(module, threads=1, records=False)


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
    g, w = Writer(), Weights()
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
    return lambda n: [np.random.default_rng(n).standard_normal((n, *shape), np.float32)]


def on_a_graph() -> sw.Module:
    """Two graph convolutions on a graph that is an input in CSR, of the size of Cora."""
    w = Weights()

    def program(b: sw.Builder, graph: Any, x: Any) -> Any:
        hidden = b.relu(b.spmm(graph, b.dense(x, w.array(16, 1433))))
        return b.spmm(graph, b.dense(hidden, w.array(7, 16)))

    return built(program, sw.SparseSpec(("n", "n"), "f32", "e"), ("n", 1433))


def graph_inputs(_: int) -> list[np.ndarray]:
    """A graph of the size of Cora as three arrays, and features."""
    random = np.random.default_rng(0)
    graph = csr_array(random_array((2708, 2708), density=0.0018, dtype=np.float32, rng=random))
    parts = graph.indptr.astype(np.int32), graph.indices.astype(np.int32), graph.data
    return [*parts, np.zeros((2708, 1433), np.float32)]


MODELS = {
    "MLP": Deployed(perceptron, rows(784)),
    "GCN": Deployed(scattered_convolutions, graphs, graph_convolutions),
    "ResNet-50": Deployed(resnet50, rows(3, 224, 224)),
    "GCN, graph in CSR": Deployed(None, graph_inputs, on_a_graph, "[tuple(inputs[:3]), inputs[3]]"),
    "GCN, constant graph": Deployed(
        None, lambda _: [np.zeros((2708, 1433), np.float32)], gcn_of_cora
    ),
}

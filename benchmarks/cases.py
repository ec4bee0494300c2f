"""Models beside the same computation in every peer that can do it.

Each call passes all inputs, features and unbound graphs included; weights and bound graphs are
constants. A peer computes only once what depends on constants only. A goal is how many times faster
than the best peer a case has to be; the limit is that of multiply-adds on registers, or of reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from harness import Case, LeftOutError, Make, Table, run
from models import built, spec_of
from onnx_writer import FLOAT, Node, Writer, onnx_perceptron
from peers import OF_ONNX, Call, installed, tensor, torch_call
from scipy.sparse import csr_array, eye_array

from stepwell.frontends import gnn

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("STEPWELL_DATA", ROOT.parent / "shared" / "data"))
Layers = Sequence[tuple[np.ndarray, np.ndarray]]
"""Weights and biases."""
model: Callable[..., Case] = partial(Case, tolerance=1e-3, engines=OF_ONNX, flops=0)


def load(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file of the data folder, floats in single precision."""
    if not (DATA / name).exists():
        raise LeftOutError(f"{name} is not in {DATA}; set STEPWELL_DATA to the folder that has it")
    arrays = dict(np.load(DATA / name))
    return {k: a.astype(np.float32) if a.dtype.kind == "f" else a for k, a in arrays.items()}


def fashion_mlp(batch: int) -> Case:
    """The perceptron 784-128-10 for Fashion-MNIST, on images of it."""
    w = load("fashion_mlp_weights.npz")
    x = load("fashion_mnist_900.npz")["images"][:batch].astype(np.float32) / np.float32(255)
    return _mlp(x, [(w["w0"], w["b0"]), (w["w1"], w["b1"])])


def mlp(batch: int, *widths: int) -> Case:
    """A perceptron with random weights; `widths` are those of its input and of each layer."""
    rng = np.random.default_rng(0)
    layers = [(np.ascontiguousarray(w.T), b) for w, b in _layers(rng, widths)]
    return _mlp(rng.standard_normal((batch, widths[0]), np.float32), layers)


def _layers(rng: np.random.Generator, widths: Sequence[int]) -> Layers:
    """Random weights [in, out] and biases."""
    return [
        (
            rng.standard_normal((k, n), np.float32) / np.float32(np.sqrt(k)),
            rng.standard_normal(n, np.float32),
        )
        for k, n in pairwise(widths)
    ]


def _mlp(x: np.ndarray, layers: Layers) -> Case:
    """Layers (weights [out, in], bias) with relu between them."""
    transposed = [(np.ascontiguousarray(w.T), b) for w, b in layers]

    def in_numpy() -> np.ndarray:
        h = x
        for i, (w, b) in enumerate(transposed):
            h = h @ w
            h += b
            if i < len(layers) - 1:
                np.maximum(h, 0, out=h)
        return h

    def call(t: Any, x: Any, *tensors: Any) -> Any:
        for i in range(0, len(tensors), 2):
            x = t.nn.functional.linear(x.relu_() if i else x, tensors[i], tensors[i + 1])
        return x

    return model(
        [x],
        onnx_perceptron(layers, x.shape),
        torch=call,
        weights=[array for layer in layers for array in layer],
        others=lambda threads: {"numpy": in_numpy},
        flops=2.0 * len(x) * sum(w.size for w, _ in layers),
    )


def operator(kind: str, torch: Callable[..., Any], parameters: int = 0) -> Case:
    """An operator of ONNX on a matrix of 512 x 1024, with parameters of each column."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 1024), np.float32)
    weights = tuple(rng.standard_normal((parameters, 1024), np.float32))
    proto = Node(kind, {}, weights, opset=20).model([x])
    return model([x], proto, torch=torch, weights=weights)


def matmul(size: int) -> Case:
    x, y = np.random.default_rng(0).standard_normal((2, size, size), np.float32)
    return model(
        [x, y],
        module=built(lambda b, x, y: b.matmul(x, y), x, y),
        torch=lambda t, x, y: x @ y,
        others=lambda threads: {"numpy": lambda: x @ y},
        flops=2.0 * size**3,
    )


def convolutions() -> Case:
    """Four convolutions 3x3 of 64 channels on 56 x 56 pixels, each with bias and relu."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 64, 56, 56), np.float32)
    writer, value, weights = Writer(), "x", list[np.ndarray]()
    for _ in range(4):
        weights.append(rng.standard_normal((64, 64, 3, 3), np.float32) / np.float32(24))
        weights.append(rng.standard_normal(64, np.float32))
        value = writer.node("Conv", value, *map(writer.constant, weights[-2:]), pads=[1] * 4)
        value = writer.node("Relu", value)

    def call(t: Any, x: Any, *tensors: Any) -> Any:
        for i in range(0, len(tensors), 2):
            x = t.nn.functional.conv2d(x, tensors[i], tensors[i + 1], padding=1).relu_()
        return x

    proto = writer.model({"x": (FLOAT, x.shape)}, value)
    return model([x], proto, torch=call, weights=weights, flops=4 * 2.0 * 64 * 64 * 9 * 56 * 56)


def words(data: Mapping[str, np.ndarray]) -> csr_array:
    """The features of Cora: the words of each paper, with rows that sum to 1."""
    indptr, indices = (data[name].astype(np.int32) for name in ("x_indptr", "x_indices"))
    counts = np.diff(indptr)
    values = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    return csr_array((values, indices, indptr), shape=tuple(data["x_shape"]))


def power_law_ends(nodes: int, edges: int, rng: np.random.Generator) -> np.ndarray:
    """Random edges, shape (2, edges), by which the degree of a node falls off as a power law."""
    weight = (np.arange(nodes) + 10.0) ** -0.7
    return rng.choice(nodes, (2, edges), p=rng.permutation(weight / weight.sum()))


def cora(dense: bool) -> Case:
    """The two-layer GCN on Cora; its features are an input, sparse or dense."""
    data, w = load("cora.npz"), load("gcn_cora_weights.npz")
    x: Any = words(data).toarray() if dense else words(data)
    graph = nx.Graph()
    graph.add_nodes_from(range(x.shape[0]))
    graph.add_edges_from(data["edge_index"].T.tolist())
    return _gcn(gnn.Graph.from_networkx(graph), x, [(w["W1"], w["b1"]), (w["W2"], w["b2"])])


def power_law() -> Case:
    """A two-layer GCN on a random graph whose degrees fall off as in a citation graph."""
    rng = np.random.default_rng(0)
    nodes, edges = 170_000, 1_200_000
    ends = power_law_ends(nodes, edges, rng)
    graph = gnn.Graph.from_edge_index(np.unique(ends[:, ends[0] != ends[1]], axis=1), nodes)
    x = rng.standard_normal((nodes, 128), np.float32)
    return _gcn(graph, x, _layers(rng, (128, 256, 40)))


def _gcn(graph: Any, x: Any, layers: Layers) -> Case:
    """Two layers (weights [in, out], bias); the graph is bound and its normalised form is too."""
    (w1, b1), (w2, b2) = layers
    nodes = x.shape[0]
    network = gnn.Sequential(gnn.GCNConv(w1, b1), gnn.ReLU(), gnn.GCNConv(w2, b2))
    loops = (graph.adjacency + eye_array(nodes, dtype=np.float32)).tocsr()
    scale = 1 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel())
    a = loops.multiply(scale[:, None]).multiply(scale[None, :]).tocsr().astype(np.float32)

    def in_scipy() -> np.ndarray:
        hidden = np.maximum(a @ (x @ w1) + b1, 0)
        return a @ (hidden @ w2) + b2

    def call(t: Any, x: Any, a: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        hidden = (a @ (x @ w1)).add_(b1).relu_()
        return (a @ (hidden @ w2)).add_(b2)

    def others(threads: int) -> dict[str, Call]:
        found: dict[str, Call] = {"scipy": in_scipy}
        if installed("torch") and installed("torch-geometric"):
            found["torch-geometric"] = torch_call(_geometric(a, layers), [x], threads)
        return found

    width, classes = w2.shape
    entries = x.size if isinstance(x, np.ndarray) else x.nnz
    return model(
        [x],
        module=network.to_module(graph, features=spec_of(x)),
        torch=call,
        weights=[a, w1, b1, w2, b2],
        others=others,
        flops=2.0 * (entries * width + a.nnz * (width + classes) + nodes * width * classes),
    )


def _geometric(a: Any, layers: Layers) -> Callable[..., Any]:
    from torch_geometric.nn import GCNConv

    matrix, convs = tensor(a), list[Any]()
    for w, b in layers:
        convs.append(GCNConv(*w.shape, normalize=False).eval())
        state = {"lin.weight": tensor(w.T.copy()), "bias": tensor(b)}
        convs[-1].load_state_dict(state)
    return lambda x: convs[1](convs[0](x, matrix).relu(), matrix)


def with_goals(one: float, two: float, make: Callable[..., Case], *args: Any) -> Make:
    """A case, and how many times faster than the best peer it has to be on one thread and two."""
    return lambda: replace(make(*args), goals=(one, two))


CASES: dict[str, Make] = {
    "MLP 784-128-10, batch 1": with_goals(3.0, 2.7, fashion_mlp, 1),
    "MLP 784-128-10, batch 64": with_goals(1.12, 1.2, fashion_mlp, 64),
    "MLP 1024 x 4, batch 256": with_goals(1.08, 1.1, mlp, 256, *[1024] * 4),
    "MLP 4096-4096-4096-1000, batch 16": with_goals(1.6, 1.25, mlp, 16, 4096, 4096, 4096, 1000),
    "GCN Cora, sparse features": with_goals(5.0, 4.5, cora, False),
    "GCN Cora, dense features": with_goals(2.0, 2.6, cora, True),
    "GCN 170,000 nodes, 128-256-40": with_goals(1.3, 1.3, power_law),
    "Softmax 512 x 1024": with_goals(
        1.2, 1.2, operator, "Softmax", lambda t, x: t.nn.functional.softmax(x, -1)
    ),
    "LayerNormalization 512 x 1024": with_goals(
        *(1.2, 1.2, operator, "LayerNormalization"),
        lambda t, x, *w: t.nn.functional.layer_norm(x, (1024,), *w),
        2,
    ),
    "Gelu 512 x 1024": with_goals(1.2, 1.2, operator, "Gelu", lambda t, x: t.nn.functional.gelu(x)),
    "4 convolutions 3x3, 64 channels, 56 x 56": convolutions,
}
TABLES = [Table("case", CASES, run, threads=(1, 2))]

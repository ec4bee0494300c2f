"""The programs that are timed, each beside the same computation in every peer that can do it.

Each call passes all inputs, features and unbound graphs included; weights and bound graphs are
constants. A peer computes only once what depends on constants only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from harness import LeftOutError
from onnx_writer import FLOAT, Writer
from peers import Call, installed, onnx_runtime, open_vino, torch_call, torch_csr
from scipy.sparse import csr_array, eye_array

import stepwell as sw
from stepwell.frontends import gnn

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("STEPWELL_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True)
class Case:
    """A module with inputs, and its peers: for a number of threads, a call without arguments.

    `flops` is the work of one call, `moved` the bytes that it has to read and write.
    `limit` says what bounds it: "compute" or "memory".
    """

    module: sw.Module
    inputs: tuple[Any, ...]
    peers: Mapping[str, Callable[[int], Call]]
    flops: float
    moved: float
    limit: str = "compute"


@dataclass(frozen=True)
class Goal:
    """How many times faster than the best peer a case has to be, on one and on two threads."""

    one: float
    two: float


@dataclass(frozen=True)
class Entry:
    """A line of the table: a function that makes its case, and its goal if it has one."""

    make: Callable[[], Case]
    goal: Goal | None = None
    tolerance: float = 1e-3


def load(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file of the data folder, floats in single precision.

    Raises:
        LeftOutError: if it is not there.
    """
    if not (DATA / name).exists():
        raise LeftOutError(f"{name} is not in {DATA}; set STEPWELL_DATA to the folder that has it")
    arrays = dict(np.load(DATA / name))
    return {k: a.astype(np.float32) if a.dtype.kind == "f" else a for k, a in arrays.items()}


def fashion_mlp(batch: int) -> Case:
    """The perceptron 784-128-10 for Fashion-MNIST, on images of it."""
    w = load("fashion_mlp_weights.npz")
    x = load("fashion_mnist_900.npz")["images"][:batch].astype(np.float32) / np.float32(255)
    return _mlp(x, [(w["w0"], w["b0"]), (w["w1"], w["b1"])])


def mlp(batch: int, widths: Sequence[int]) -> Case:
    """A perceptron with random weights; `widths` are those of its input and of each layer."""
    rng = np.random.default_rng(0)
    layers = [
        (
            rng.standard_normal((n, k), np.float32) / np.float32(np.sqrt(k)),
            rng.standard_normal(n, np.float32),
        )
        for k, n in pairwise(widths)
    ]
    return _mlp(rng.standard_normal((batch, widths[0]), np.float32), layers)


def _mlp(x: np.ndarray, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> Case:
    """Layers (weights [out, in], bias) with relu between them."""
    writer, value = Writer(), "x"
    for i, (w, b) in enumerate(layers):
        operands = writer.constant(w), writer.constant(b)
        value = writer.node("Gemm", writer.node("Relu", value) if i else value, *operands, transB=1)
    transposed = [(np.ascontiguousarray(w.T), b) for w, b in layers]

    def in_numpy(_: int) -> Call:
        def call() -> np.ndarray:
            h = x
            for i, (w, b) in enumerate(transposed):
                h = h @ w
                h += b
                if i < len(layers) - 1:
                    np.maximum(h, 0, out=h)
            return h

        return call

    def in_torch(x: Any, *tensors: Any) -> Any:
        from torch.nn.functional import linear

        for i in range(0, len(tensors), 2):
            x = linear(x, tensors[i], tensors[i + 1])
            if i < len(tensors) - 2:
                x = x.relu_()
        return x

    flat = [array for layer in layers for array in layer]
    products = sum(w.size for w, _ in layers)
    return _from_onnx(
        writer,
        value,
        x,
        flops=2.0 * len(x) * products,
        moved=4.0 * products,
        others={"numpy": in_numpy, "torch": lambda n: torch_call(in_torch, [x, *flat], n)},
    )


def operator(kind: str) -> Case:
    """One ONNX operator on a matrix of 512 x 1024: Softmax, LayerNormalization or Gelu."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 1024), np.float32)
    scale, shift = rng.standard_normal((2, 1024), np.float32)
    weights = [scale, shift] if kind == "LayerNormalization" else []
    writer = Writer()
    y = writer.node(kind, "x", *map(writer.constant, weights))

    def in_torch(x: Any, *tensors: Any) -> Any:
        from torch.nn import functional

        if kind == "Softmax":
            return functional.softmax(x, -1)
        if kind == "Gelu":
            return functional.gelu(x)
        return functional.layer_norm(x, (1024,), *tensors)

    arrays = [x, *weights]
    return _from_onnx(
        writer,
        y,
        x,
        flops=0.0,
        moved=2.0 * x.nbytes,
        limit="memory",
        others={"torch": lambda n: torch_call(in_torch, arrays, n)},
    )


def matmul(size: int) -> Case:
    """The product of two square matrices, both inputs."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, size, size), np.float32)
    b = sw.Builder("main")
    b.output(b.matmul(b.input("x", x.shape, "f32"), b.input("y", y.shape, "f32")), name="z")
    peers: dict[str, Callable[[int], Call]] = {"numpy": lambda _: lambda: x @ y}
    if installed("torch"):
        peers["torch"] = lambda n: torch_call(lambda a, b: a @ b, [x, y], n)
    return Case(b.module(), (x, y), peers, flops=2.0 * size**3, moved=3.0 * x.nbytes)


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

    def in_torch(x: Any, *tensors: Any) -> Any:
        from torch.nn.functional import conv2d

        for i in range(0, len(tensors), 2):
            x = conv2d(x, tensors[i], tensors[i + 1], padding=1).relu_()
        return x

    flops = 4 * 2.0 * 64 * 64 * 9 * 56 * 56
    arrays = [x, *weights]
    return _from_onnx(
        writer,
        value,
        x,
        flops=flops,
        moved=8.0 * x.nbytes,
        others={"torch": lambda n: torch_call(in_torch, arrays, n)},
    )


def _from_onnx(
    writer: Writer,
    result: str,
    x: np.ndarray,
    flops: float,
    moved: float,
    others: Mapping[str, Callable[[int], Call]],
    limit: str = "compute",
) -> Case:
    """An ONNX model with the input `x` and one result, for us and for the peers that read ONNX."""
    # Gelu is of opset 20.
    proto = writer.model({"x": (FLOAT, x.shape)}, result, x.ndim, opset=20)
    model = proto.SerializeToString()
    peers = {name: make for name, make in others.items() if name != "torch" or installed("torch")}
    if installed("onnxruntime"):
        peers["onnxruntime"] = lambda n: onnx_runtime(model, [x], n)
    if installed("openvino"):
        peers["openvino"] = lambda n: open_vino(model, [x], n)
    return Case(sw.from_onnx(model), (x,), peers, flops, moved, limit)


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
    """A two-layer GCN 128-256-40 on a graph of 170,000 nodes and 1.2 million random edges.

    The degree of a node falls off as a power law, as in a citation graph.
    """
    rng = np.random.default_rng(0)
    nodes, edges = 170_000, 1_200_000
    ends = power_law_ends(nodes, edges, rng)
    graph = gnn.Graph.from_edge_index(np.unique(ends[:, ends[0] != ends[1]], axis=1), nodes)
    x = rng.standard_normal((nodes, 128), np.float32)
    widths = (128, 256, 40)
    layers = [
        (
            rng.standard_normal((k, n), np.float32) / np.float32(np.sqrt(k)),
            rng.standard_normal(n, np.float32),
        )
        for k, n in pairwise(widths)
    ]
    return _gcn(graph, x, layers)


def _gcn(graph: Any, x: Any, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> Case:
    """Two layers (weights [in, out], bias); the graph is bound and its normalised form is too."""
    (w1, b1), (w2, b2) = layers
    nodes = x.shape[0]
    model = gnn.Sequential(gnn.GCNConv(w1, b1), gnn.ReLU(), gnn.GCNConv(w2, b2))
    sparse = not isinstance(x, np.ndarray)
    spec = sw.SparseSpec(x.shape, "f32", nnz=x.nnz) if sparse else sw.TensorSpec(x.shape, "f32")
    loops = (graph.adjacency + eye_array(nodes, dtype=np.float32)).tocsr()
    scale = 1 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel())
    a = loops.multiply(scale[:, None]).multiply(scale[None, :]).tocsr().astype(np.float32)

    def in_scipy(_: int) -> Call:
        def call() -> np.ndarray:
            hidden = np.maximum(a @ (x @ w1) + b1, 0)
            return a @ (hidden @ w2) + b2

        return call

    def in_torch(x: Any, a: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        hidden = (a @ (x @ w1)).add_(b1).relu_()
        return (a @ (hidden @ w2)).add_(b2)

    peers: dict[str, Callable[[int], Call]] = {"scipy": in_scipy}
    if installed("torch"):
        peers["torch"] = lambda n: torch_call(in_torch, [x, a, w1, b1, w2, b2], n)
    if installed("torch") and installed("torch-geometric"):
        peers["torch-geometric"] = lambda n: torch_call(_geometric(a, layers), [x], n)
    entries = x.nnz if sparse else x.size
    width, classes = w2.shape
    flops = 2.0 * (entries * width + a.nnz * (width + classes) + nodes * width * classes)
    moved = 4.0 * (entries * (2 if sparse else 1) + 2 * a.nnz + nodes * (2 * width + 3 * classes))
    return Case(model.to_module(graph, features=spec), (x,), peers, flops, moved)


def _geometric(a: Any, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> Callable[..., Any]:
    """The same in torch-geometric's GCNConv, with the normalised graph as a CSR tensor."""
    import torch
    from torch_geometric.nn import GCNConv

    matrix = torch_csr(a)
    convs = []
    for w, b in layers:
        conv = GCNConv(*w.shape, normalize=False)
        with torch.no_grad():
            conv.lin.weight.copy_(torch.from_numpy(w.T.copy()))
            assert conv.bias is not None
            conv.bias.copy_(torch.from_numpy(b))
        convs.append(conv.eval())

    def call(x: Any) -> Any:
        return convs[1](convs[0](x, matrix).relu(), matrix)

    return call


CASES: dict[str, Entry] = {
    "MLP 784-128-10, batch 1": Entry(lambda: fashion_mlp(1), Goal(3.0, 2.7)),
    "MLP 784-128-10, batch 64": Entry(lambda: fashion_mlp(64), Goal(1.12, 1.2)),
    "MLP 1024 x 4, batch 256": Entry(lambda: mlp(256, [1024] * 4), Goal(1.08, 1.1)),
    "MLP 4096-4096-4096-1000, batch 16": Entry(
        lambda: mlp(16, [4096, 4096, 4096, 1000]), Goal(1.6, 1.25)
    ),
    "GCN Cora, sparse features": Entry(lambda: cora(dense=False), Goal(5.0, 4.5)),
    "GCN Cora, dense features": Entry(lambda: cora(dense=True), Goal(2.0, 2.6)),
    "GCN 170,000 nodes, 128-256-40": Entry(power_law, Goal(1.3, 1.3)),
    "Softmax 512 x 1024": Entry(lambda: operator("Softmax"), Goal(1.2, 1.2)),
    "LayerNormalization 512 x 1024": Entry(lambda: operator("LayerNormalization"), Goal(1.2, 1.2)),
    "Gelu 512 x 1024": Entry(lambda: operator("Gelu"), Goal(1.2, 1.2)),
    "4 convolutions 3x3, 64 channels, 56 x 56": Entry(convolutions),
}
"""The table, in its order."""

SQUARES = (64, 96, 127, 128, 192, 255, 256, 384, 511, 512, 640, 768, 1000, 1024, 1536, 2047, 2048)
"""Sizes of the sweep over square products; odd ones are among them."""

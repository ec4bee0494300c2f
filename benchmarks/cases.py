"""Models beside the same computation in every peer that can do it.

    python benchmarks/run.py cases                   # everything, on one thread and on two
    python benchmarks/run.py cases --only MLP -t 1   # some cases

Each call passes all inputs, features and unbound graphs included; weights and bound graphs are
constants. A peer computes only once what depends on constants only. A goal is how many times faster
than the best peer a case has to be; the limit is that of multiply-adds on registers, or of reads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from harness import Case, LeftOutError, Row, Table, timed
from models import built, spec_of
from onnx import ModelProto
from onnx_writer import FLOAT, Writer, onnx_perceptron
from peers import OF_ONNX, OURS, Call, Node, in_onnx, in_torch, installed, tensor, torch_call
from scipy.sparse import csr_array, eye_array

import stepwell as sw
from stepwell.frontends import gnn
from stepwell.runtime.limits import MachineLimits, measure_limits
from stepwell.tools.timing import ROUNDS, duration, measure

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("STEPWELL_DATA", ROOT.parent / "shared" / "data"))
TOLERANCE = 1e-3
"""The largest difference to a peer's result, relative to its largest element."""
Layers = Sequence[tuple[np.ndarray, np.ndarray]]
"""Weights and biases."""


@dataclass(frozen=True)
class Model(Case):
    """A module with inputs, and its peers for a number of threads.

    `flops` is the work of one call, 0 where memory bounds it; `bytes` has to be read and written.
    """

    program: sw.Module
    inputs: tuple[Any, ...]
    others: Callable[[int], dict[str, Call]]
    flops: float
    bytes: float

    def module(self) -> sw.Module:
        return self.program

    def arrays(self) -> tuple[Any, ...]:
        return self.inputs

    def peers(self, arrays: Sequence[Any], threads: int) -> dict[str, Call]:
        return self.others(threads)


def load(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file of the data folder, floats in single precision.

    Raises:
        LeftOutError: if it is not there.
    """
    if not (DATA / name).exists():
        raise LeftOutError(f"{name} is not in {DATA}; set STEPWELL_DATA to the folder that has it")
    arrays = dict(np.load(DATA / name))
    return {k: a.astype(np.float32) if a.dtype.kind == "f" else a for k, a in arrays.items()}


def fashion_mlp(batch: int) -> Model:
    """The perceptron 784-128-10 for Fashion-MNIST, on images of it."""
    w = load("fashion_mlp_weights.npz")
    x = load("fashion_mnist_900.npz")["images"][:batch].astype(np.float32) / np.float32(255)
    return _mlp(x, [(w["w0"], w["b0"]), (w["w1"], w["b1"])])


def mlp(batch: int, widths: Sequence[int]) -> Model:
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


def _mlp(x: np.ndarray, layers: Layers) -> Model:
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

    flat = [array for layer in layers for array in layer]
    products = sum(w.size for w, _ in layers)
    proto = onnx_perceptron(layers, x.shape)
    own = {"numpy": in_numpy}
    return _of_onnx(proto, x, call, flat, 2.0 * len(x) * products, 4.0 * products, own)


def operator(kind: str) -> Model:
    """One ONNX operator on a matrix of 512 x 1024: Softmax, LayerNormalization or Gelu."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 1024), np.float32)
    norm = kind == "LayerNormalization"
    weights = tuple(rng.standard_normal((2, 1024), np.float32)) if norm else ()
    functions = {
        "Softmax": lambda t, x: t.nn.functional.softmax(x, -1),
        "Gelu": lambda t, x: t.nn.functional.gelu(x),
        "LayerNormalization": lambda t, x, *w: t.nn.functional.layer_norm(x, (1024,), *w),
    }
    proto = Node(kind, {}, weights, opset=20).model([x])
    return _of_onnx(proto, x, functions[kind], weights, 0.0, 2.0 * x.nbytes)


def matmul(size: int) -> Model:
    """The product of two square matrices, both inputs."""
    x, y = np.random.default_rng(0).standard_normal((2, size, size), np.float32)

    def peers(threads: int) -> dict[str, Call]:
        return {"numpy": lambda: x @ y, **in_torch(lambda t, a, b: a @ b, [x, y], threads)}

    module = built(lambda b, x, y: b.matmul(x, y), x, y)
    return Model(module, (x, y), peers, flops=2.0 * size**3, bytes=3.0 * x.nbytes)


def convolutions() -> Model:
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

    proto = writer.model({"x": (FLOAT, x.shape)}, value, x.ndim)
    return _of_onnx(proto, x, call, weights, 4 * 2.0 * 64 * 64 * 9 * 56 * 56, 8.0 * x.nbytes)


def _of_onnx(
    proto: ModelProto,
    x: np.ndarray,
    function: Callable[..., Any],
    weights: Sequence[np.ndarray],
    flops: float,
    moved: float,
    others: Mapping[str, Call] | None = None,
) -> Model:
    """An ONNX model of one input, and the same as a function of PyTorch on it and the weights."""

    def peers(threads: int) -> dict[str, Call]:
        found = {**(others or {}), **in_torch(function, [x, *weights], threads)}
        return found | in_onnx(proto, [x], threads, list(OF_ONNX))

    return Model(sw.from_onnx(proto), (x,), peers, flops, moved)


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


def cora(dense: bool) -> Model:
    """The two-layer GCN on Cora; its features are an input, sparse or dense."""
    data, w = load("cora.npz"), load("gcn_cora_weights.npz")
    x: Any = words(data).toarray() if dense else words(data)
    graph = nx.Graph()
    graph.add_nodes_from(range(x.shape[0]))
    graph.add_edges_from(data["edge_index"].T.tolist())
    return _gcn(gnn.Graph.from_networkx(graph), x, [(w["W1"], w["b1"]), (w["W2"], w["b2"])])


def power_law() -> Model:
    """A two-layer GCN 128-256-40 on a graph of 170,000 nodes and 1.2 million random edges.

    The degree of a node falls off as a power law, as in a citation graph.
    """
    rng = np.random.default_rng(0)
    nodes, edges = 170_000, 1_200_000
    ends = power_law_ends(nodes, edges, rng)
    graph = gnn.Graph.from_edge_index(np.unique(ends[:, ends[0] != ends[1]], axis=1), nodes)
    x = rng.standard_normal((nodes, 128), np.float32)
    return _gcn(graph, x, _layers(rng, (128, 256, 40)))


def _gcn(graph: Any, x: Any, layers: Layers) -> Model:
    """Two layers (weights [in, out], bias); the graph is bound and its normalised form is too."""
    (w1, b1), (w2, b2) = layers
    nodes, sparse = x.shape[0], not isinstance(x, np.ndarray)
    model = gnn.Sequential(gnn.GCNConv(w1, b1), gnn.ReLU(), gnn.GCNConv(w2, b2))
    loops = (graph.adjacency + eye_array(nodes, dtype=np.float32)).tocsr()
    scale = 1 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel())
    a = loops.multiply(scale[:, None]).multiply(scale[None, :]).tocsr().astype(np.float32)

    def in_scipy() -> np.ndarray:
        hidden = np.maximum(a @ (x @ w1) + b1, 0)
        return a @ (hidden @ w2) + b2

    def call(t: Any, x: Any, a: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        hidden = (a @ (x @ w1)).add_(b1).relu_()
        return (a @ (hidden @ w2)).add_(b2)

    def peers(threads: int) -> dict[str, Call]:
        found = {"scipy": in_scipy, **in_torch(call, [x, a, w1, b1, w2, b2], threads)}
        if installed("torch") and installed("torch-geometric"):
            found["torch-geometric"] = torch_call(_geometric(a, layers), [x], threads)
        return found

    entries = x.nnz if sparse else x.size
    width, classes = w2.shape
    flops = 2.0 * (entries * width + a.nnz * (width + classes) + nodes * width * classes)
    moved = 4.0 * (entries * (2 if sparse else 1) + 2 * a.nnz + nodes * (2 * width + 3 * classes))
    return Model(model.to_module(graph, features=spec_of(x)), (x,), peers, flops, moved)


def _geometric(a: Any, layers: Layers) -> Callable[..., Any]:
    """The same in torch-geometric's GCNConv, with the normalised graph as a CSR tensor."""
    from torch_geometric.nn import GCNConv

    matrix, convs = tensor(a), list[Any]()
    for w, b in layers:
        convs.append(GCNConv(*w.shape, normalize=False).eval())
        state = {"lin.weight": tensor(w.T.copy()), "bias": tensor(b)}
        convs[-1].load_state_dict(state)
    return lambda x: convs[1](convs[0](x, matrix).relu(), matrix)


Goals = tuple[float, float]
"""How many times faster than the best peer, on one thread and on two."""
CASES: dict[str, tuple[Callable[[], Model], Goals | None]] = {
    "MLP 784-128-10, batch 1": (partial(fashion_mlp, 1), (3.0, 2.7)),
    "MLP 784-128-10, batch 64": (partial(fashion_mlp, 64), (1.12, 1.2)),
    "MLP 1024 x 4, batch 256": (partial(mlp, 256, [1024] * 4), (1.08, 1.1)),
    "MLP 4096-4096-4096-1000, batch 16": (partial(mlp, 16, [4096, 4096, 4096, 1000]), (1.6, 1.25)),
    "GCN Cora, sparse features": (partial(cora, dense=False), (5.0, 4.5)),
    "GCN Cora, dense features": (partial(cora, dense=True), (2.0, 2.6)),
    "GCN 170,000 nodes, 128-256-40": (power_law, (1.3, 1.3)),
    "Softmax 512 x 1024": (partial(operator, "Softmax"), (1.2, 1.2)),
    "LayerNormalization 512 x 1024": (partial(operator, "LayerNormalization"), (1.2, 1.2)),
    "Gelu 512 x 1024": (partial(operator, "Gelu"), (1.2, 1.2)),
    "4 convolutions 3x3, 64 channels, 56 x 56": (convolutions, None),
}
"""The functions that make the cases, and the goals of those that have one."""


@cache
def limits_of(threads: int) -> MachineLimits:
    """The limits of this machine, measured anew."""
    return measure_limits(threads)


def run(
    name: str,
    case: tuple[Callable[[], Model], Goals | None],
    *,
    threads: int = 1,
    rounds: int = ROUNDS,
) -> Row:
    """Compile and time one case.

    Raises:
        LeftOutError: if its data or all of its peers are missing.
        SystemExit: if no peer has the same result.
    """
    make, goals = case
    model = make()
    start = time.perf_counter()
    exe = sw.compile(model.program, threads=threads)
    compiled = time.perf_counter() - start
    calls: dict[str, Call] = {OURS: lambda: exe(*model.inputs)}
    calls |= model.peers(model.inputs, threads)
    result = timed(name, calls, threads, TOLERANCE, partial(measure, rounds=rounds))
    seconds, limits = result.seconds(), limits_of(threads)
    gflops, gbytes = model.flops / seconds / 1e9, model.bytes / seconds / 1e9
    share = gflops / limits.gflops if gflops else gbytes / limits.read(int(model.bytes))
    goal = goals and goals[0 if threads == 1 else 1]
    facts = {
        "compile": duration(compiled),
        "goal": "" if goal is None else f"{goal:.2f}",
        "rate": f"{gflops:.0f} GFLOP/s" if gflops else f"{gbytes:.0f} GB/s",
        "of limit": f"{share:.0%}",
    }
    return result.row(facts, goal)


TABLES = [Table("case", CASES, run, threads=(1, 2))]

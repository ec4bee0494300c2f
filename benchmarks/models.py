"""What the models of the tests cost, as ratios to NumPy and SciPy in one process.

    python benchmarks/models.py

Weights and data are looked for in the folder `STEPWELL_DATA`, by default `shared/data` beside
the repository. All inputs are passed at each call; only weights and the graph are constants.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array, eye_array

import stepwell as sw
from stepwell.frontends import gnn
from stepwell.tools.timing import duration, measure

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("STEPWELL_DATA", ROOT.parent / "shared" / "data"))

Case = tuple[sw.Module, tuple[Any, ...], Callable[[], np.ndarray]]
"""A module, its inputs, and the same in NumPy and SciPy."""


def load(name: str) -> dict[str, np.ndarray]:
    """The arrays of a file of the data folder, floats in single precision."""
    if not (DATA / name).exists():
        raise SystemExit(f"{name} is not in {DATA}; set STEPWELL_DATA to the folder that has it")
    arrays = dict(np.load(DATA / name))
    return {k: a.astype(np.float32) if a.dtype.kind == "f" else a for k, a in arrays.items()}


def mlp(batch: int) -> Case:
    """The perceptron 784-128-10 for Fashion-MNIST."""
    w = load("fashion_mlp_weights.npz")
    x = load("fashion_mnist_900.npz")["images"][:batch].astype(np.float32) / np.float32(255)
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", x.shape, "f32"), w["w0"], w["b0"]))
    b.output(b.dense(h, w["w1"], w["b1"]), name="y")
    w0, w1 = w["w0"].T, w["w1"].T

    def numpy() -> np.ndarray:
        return np.maximum(x @ w0 + w["b0"], 0) @ w1 + w["b1"]

    return b.module(), (x,), numpy


def gcn(dense: bool) -> Case:
    """The two-layer GCN on Cora; its features are an input, sparse or dense."""
    data, w = load("cora.npz"), load("gcn_cora_weights.npz")
    indptr, indices = data["x_indptr"].astype(np.int32), data["x_indices"].astype(np.int32)
    counts = np.diff(indptr)
    values = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    x: Any = csr_array((values, indices, indptr), shape=tuple(data["x_shape"]))
    graph = nx.Graph()
    graph.add_nodes_from(range(x.shape[0]))
    graph.add_edges_from(data["edge_index"].T.tolist())
    model = gnn.Sequential(gnn.GCNConv(w["W1"], w["b1"]), gnn.ReLU(), gnn.GCNConv(w["W2"], w["b2"]))
    spec = sw.SparseSpec(x.shape, "f32", nnz=x.nnz)
    if dense:
        x, spec = x.toarray(), sw.TensorSpec(x.shape, "f32")
    bound = gnn.Graph.from_networkx(graph)
    loops = (bound.adjacency + eye_array(x.shape[0], dtype=np.float32)).tocsr()
    scale = 1 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel())
    a = loops.multiply(scale[:, None]).multiply(scale[None, :]).tocsr().astype(np.float32)

    def scipy() -> np.ndarray:
        hidden = np.maximum(a @ (x @ w["W1"]) + w["b1"], 0)
        return a @ (hidden @ w["W2"]) + w["b2"]

    return model.to_module(bound, features=spec), (x,), scipy


CASES: dict[str, Callable[[], Case]] = {
    "MLP 784-128-10, batch 1": lambda: mlp(1),
    "MLP 784-128-10, batch 64": lambda: mlp(64),
    "GCN Cora, sparse features": lambda: gcn(dense=False),
    "GCN Cora, dense features": lambda: gcn(dense=True),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="threads of the compiled programs")
    threads = parser.parse_args().threads
    table = Table("case", "compile", "stepwell", "NumPy/SciPy", "ratio", "largest difference")
    for name, case in CASES.items():
        module, inputs, peer = case()
        start = time.perf_counter()
        exe = sw.compile(module, threads=threads)
        compiled = time.perf_counter() - start
        difference = float(np.abs(exe(*inputs) - peer()).max())
        times = measure({"ours": lambda exe=exe, i=inputs: exe(*i), "peer": peer})
        ours, theirs = times["ours"], times["peer"]
        ratio = f"{theirs.median / ours.median:.2f}"
        table.add_row(name, duration(compiled), str(ours), str(theirs), ratio, f"{difference:.1e}")
    Console(width=130).print(table)


if __name__ == "__main__":
    main()

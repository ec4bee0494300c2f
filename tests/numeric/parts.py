"""Graphs and models for tests of programs on parts."""

from __future__ import annotations

import socket

import numpy as np

import stepwell as sw
from stepwell.core.ir.module import Module
from stepwell.frontends import gnn

WIDTH = 6


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_graph(nodes: int, edges: int, seed: int = 0) -> gnn.Graph:
    """With repeated edges, self loops, hubs, and nodes that no edge goes into."""
    rng = np.random.default_rng(seed)
    sources, targets = rng.integers(0, nodes, (2, edges))
    targets = targets**2 // nodes
    return gnn.Graph.from_edge_index(np.stack([sources, targets]), nodes, rng.random(edges) + 0.5)


def features(nodes: int) -> np.ndarray:
    return weights(nodes, WIDTH, seed=1)


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def module_of(*layers: gnn.Layer) -> Module:
    return gnn.Sequential(*layers).to_module(gnn.GraphSpec(), sw.TensorSpec((None, WIDTH)))


def gcn() -> Module:
    """Two layers, of which each is an exchange; degrees are computed before."""
    first, second = gnn.GCNConv(weights(WIDTH, 5), weights(5)), gnn.GCNConv(weights(5, 3))
    return module_of(first, gnn.ReLU(), second)


def pools() -> Module:
    """Sums, means and limits over all nodes: results, read by nodes, and computed with."""
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    x = b.input("features", ("n", WIDTH), "f32")
    y = b.aggregate(a, x)
    mean = b.reduce(y, "mean", [0], True)
    b.output(b.matmul(mean, b.constant(weights(WIDTH, 3), "w")), name="read out")
    b.output(b.aggregate(a, b.tanh(y - mean)), name="nodes")
    for kind in ("sum", "max", "min"):
        b.output(b.reduce(y, kind, [0], False), name=kind)
    b.output(b.reduce(b.exp(mean - 1.0), "sum", [0, 1], False), name="one")
    return b.module()


def attention() -> Module:
    """A stage that takes all rows of a part at once, and computes scores for the halo."""
    return module_of(gnn.GATConv(weights(4, WIDTH), weights(2, 2), weights(2, 2), weights(4)))

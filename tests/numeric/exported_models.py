"""Models that are exported for tests."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends import gnn

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def mlp(rows: int | str = 5) -> sw.Module:
    b = sw.Builder("mlp")
    h = b.relu(b.dense(b.input("x.1", (rows, 37), "f32"), floats(29, 37), bias=floats(29)))
    b.output(b.dense(h, floats(11, 29)), name="y")
    return b.module()


def gcn() -> sw.Module:
    layers = gnn.GCNConv(floats(13, 16), floats(16)), gnn.ReLU(), gnn.GCNConv(floats(16, 7))
    return gnn.Sequential(*layers).to_module(
        gnn.GraphSpec(), features=sw.TensorSpec((None, 13), "f32")
    )


def cnn() -> sw.Module:
    b = sw.Builder("cnn")
    x = b.relu(b.conv(b.input("image", (1, 3, 12, 12), "f32"), floats(8, 3, 3, 3), bias=floats(8)))
    b.output(b.softmax(b.reduce(x, "mean", axes=[2, 3], keepdims=False), axis=1), name="y")
    return b.module()


def windows() -> sw.Module:
    """Sizes that are quotients of those of the input."""
    b = sw.Builder("windows")
    x = b.conv(b.input("image", (1, 3, "h", "w"), "f32"), floats(8, 3, 3, 3), strides=[2, 2])
    b.output(b.relu(x), name="y")
    return b.module()


def graph(nodes: int = 20) -> csr_array:
    dense = RNG.random((nodes, nodes)) < 0.2
    return csr_array(dense.astype(np.float32))

"""Models that are exported for tests."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.core.dtype_names import dtype_named
from stepwell.frontends import gnn

from ..harness import RNG, floats


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


def kinds(size: int | str = 3) -> sw.Module:
    """Inputs and results of many element types, and names that are words of C and Rust."""
    b = sw.Builder("kinds")
    names = {
        "f16": "in",
        "bf16": "for",
        "f64": "x",
        "i1": "x.",
        "i8": "type",
        "ui8": "u",
        "i64": "w",
    }
    total = b.input("start", (), "f32")
    for dtype, name in names.items():
        total = b.add(total, b.cast(b.input(name, (size,), dtype), "f32"))
    for dtype, name in names.items():
        b.output(b.cast(total, dtype), name=name)
    return b.module()


def of_kinds(size: int = 3) -> list[np.ndarray]:
    """Arguments of that model."""
    numbers = np.arange(size)
    inputs = [dtype_named(name) for name in ("f16", "bf16", "f64", "i1", "i8", "ui8", "i64")]
    return [np.array(0.5, np.float32), *(numbers.astype(dtype) for dtype in inputs)]


def nothing() -> sw.Module:
    """A program without inputs."""
    b = sw.Builder("nothing")
    b.output(b.relu(b.constant(floats(2, 3))), name="y")
    return b.module()


def graph(nodes: int = 20) -> csr_array:
    dense = RNG.random((nodes, nodes)) < 0.2
    return csr_array(dense.astype(np.float32))

"""Models that are only compiled, or whose time does not depend on their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends import gnn

RESIDUAL_BLOCKS = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))
"""The channels and the stride of each residual block."""


def spec_of(array: Any) -> sw.TensorSpec | sw.SparseSpec:
    """The input that takes an array, or a CSR matrix."""
    element = "bf16" if array.dtype == bfloat16 else f"{array.dtype.kind}{8 * array.dtype.itemsize}"
    if isinstance(array, csr_array):
        return sw.SparseSpec(array.shape, element, nnz=array.nnz)
    return sw.TensorSpec(array.shape, element.replace("u", "ui"))


def built(program: Callable[..., Any], arrays: Sequence[Any]) -> sw.Module:
    """The program that a function adds to a builder, of inputs like these."""
    b = sw.Builder("main")
    inputs = [b.input(f"x{number}", spec_of(array)) for number, array in enumerate(arrays)]
    b.output(program(b, *inputs), name="y")
    return b.module()


class Weights:
    """Random weights, the same in each run."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def array(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape, np.float32)

    def scaled(self, *shape: int) -> np.ndarray:
        """Weights [out, in, ...] that keep the scale of what they are applied to."""
        array = self.array(*shape)
        return array / np.float32(np.sqrt(array.size / shape[0]))

    def positive(self, *shape: int) -> np.ndarray:
        return self.random.uniform(0.5, 2.0, shape).astype(np.float32)


def perceptron(batch: int | str, *widths: int) -> sw.Module:
    """Dense layers with a bias, and relu between them."""
    b, w = sw.Builder("main"), Weights()
    x = b.input("x", (batch, widths[0]), "f32")
    for layer, (k, n) in enumerate(pairwise(widths)):
        x = b.dense(b.relu(x) if layer else x, w.scaled(n, k), bias=w.scaled(n))
    b.output(x, name="y")
    return b.module()


def gcn(features: int, hidden: int, classes: int) -> gnn.Sequential:
    """Two graph convolutions with a relu between them."""
    w = Weights()
    first = gnn.GCNConv(w.array(features, hidden), w.array(hidden))
    second = gnn.GCNConv(w.array(hidden, classes), w.array(classes))
    return gnn.Sequential(first, gnn.ReLU(), second)


def gcn_of_cora() -> sw.Module:
    """Two graph convolutions on a graph of the size of Cora."""
    nodes = 2708
    edges = np.random.default_rng(0).integers(0, nodes, (2, 5000))
    graph = gnn.Graph.from_edge_index(np.concatenate([edges, edges[::-1]], 1), nodes)
    return gcn(1433, 16, 7).to_module(graph, features=sw.TensorSpec((nodes, 1433), "f32"))


def resnet18() -> sw.Module:
    """ResNet-18 for an image of 224 x 224 as trained: batch norms are still operators."""
    b, w = sw.Builder("main"), Weights()

    def conv(x: object, channels: int, filters: int, size: int, stride: int) -> object:
        if border := size // 2:
            x = b.pad(x, [0, 0, border, border], [0, 0, border, border])
        x = b.conv(x, w.array(filters, channels, size, size), strides=(stride, stride))
        return b.batch_norm(x, *(w.positive(filters) for _ in range(4)), epsilon=1e-5, axis=1)

    x = b.relu(conv(b.input("x", (1, 3, 224, 224), "f32"), 3, 64, 7, 2))
    x = b.pool(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), "max", [3, 3], strides=(2, 2))
    channels = 64
    for filters, stride in RESIDUAL_BLOCKS:
        y = conv(b.relu(conv(x, channels, filters, 3, stride)), filters, filters, 3, 1)
        same = stride == 1 and channels == filters
        x = b.relu(b.add(y, x if same else conv(x, channels, filters, 1, stride)))
        channels = filters
    x = b.dense(b.reduce(x, "mean", [2, 3]), w.array(1000, 512), bias=w.array(1000))
    b.output(x, name="y")
    return b.module()

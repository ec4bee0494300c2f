"""Models that are only compiled, or whose time does not depend on their weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends import gnn


def spec_of(array: Any) -> sw.TensorSpec | sw.SparseSpec:
    """The input that takes an array, or a CSR matrix."""
    element = "bf16" if array.dtype == bfloat16 else f"{array.dtype.kind}{8 * array.dtype.itemsize}"
    if isinstance(array, csr_array):
        return sw.SparseSpec(array.shape, element, nnz=array.nnz)
    return sw.TensorSpec(array.shape, element.replace("u", "ui"))


def built(program: Callable[..., Any], *inputs: Any) -> sw.Module:
    """The program that a function of a builder and values makes.

    An input is an array or a CSR matrix of its kind, its type, or the shape of numbers in f32.
    """
    b, values = sw.Builder("main"), list[Any]()
    for number, given in enumerate(inputs):
        of_kind = isinstance(given, np.ndarray | csr_array)
        values.append(b.input(f"x{number}", spec_of(given) if of_kind else given))
    b.output(program(b, *values), name="y")
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


def layers(b: sw.Builder, x: Any, *widths: int) -> Any:
    """Dense layers with a bias, and relu between them."""
    w = Weights()
    for layer, (k, n) in enumerate(pairwise(widths)):
        x = b.dense(b.relu(x) if layer else x, w.scaled(n, k), bias=w.scaled(n))
    return x


def perceptron(batch: int | str, *widths: int) -> sw.Module:
    """A program of such layers."""
    return built(lambda b, x: layers(b, x, *widths), (batch, widths[0]))


def gcn(features: int, hidden: int, classes: int) -> gnn.Sequential:
    """Two graph convolutions with a relu between them."""
    w = Weights()
    first = gnn.GCNConv(w.array(features, hidden), w.array(hidden))
    second = gnn.GCNConv(w.array(hidden, classes), w.array(classes))
    return gnn.Sequential(first, gnn.ReLU(), second)


def any_graph(features: int, hidden: int, classes: int) -> sw.Module:
    """The same for any graph."""
    spec = sw.TensorSpec((None, features), "f32")
    return gcn(features, hidden, classes).to_module(gnn.GraphSpec(), features=spec)


def gcn_of_cora() -> sw.Module:
    """Two graph convolutions on a graph of the size of Cora."""
    nodes = 2708
    edges = np.random.default_rng(0).integers(0, nodes, (2, 5000))
    graph = gnn.Graph.from_edge_index(np.concatenate([edges, edges[::-1]], 1), nodes)
    return gcn(1433, 16, 7).to_module(graph, features=sw.TensorSpec((nodes, 1433), "f32"))

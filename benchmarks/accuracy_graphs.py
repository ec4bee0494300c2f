"""Cases of graphs, of ensembles of trees and of quantised tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import accuracy_exact as exact
import accuracy_inputs as data
import numpy as np
from accuracy_case import SPARSE, Case, rows_of, terms_of
from peers import Node


def _stumps(b: Any, x: Any, values: Any) -> Any:
    """Trees of one decision each, with two leaves."""
    trees = np.arange(data.TREES, dtype=np.int32)
    root, leaves = 3 * trees, 3 * trees[:, None] + np.array([1, 2], np.int32)
    following = np.repeat(np.arange(3 * data.TREES, dtype=np.int32)[:, None], 2, 1)
    following[root] = leaves
    feature, leaf = np.zeros((2, 3 * data.TREES), np.int32)
    feature[root], leaf[leaves] = data.FEATURES, 2 * trees[:, None] + np.array([0, 1], np.int32)
    limits = np.zeros(3 * data.TREES, np.float32)
    root, depth = b.constant(root), b.constant(np.ones(data.TREES, np.int32))
    feature, following, leaf = map(b.constant, (feature, following, leaf))
    limits = b.constant(limits, dtype=x.dtype)
    return b.tree_ensemble(x, limits, feature, following, leaf, values, root, depth)


TREES: dict[str, Case] = {
    "trees": Case(
        _stumps,
        # The leaf that each tree of one decision, x <= 0, chooses.
        lambda x, values: values[2 * np.arange(data.TREES) + (x[:, data.FEATURES] > 0)].sum(1),
        data.factors((200, 8), (2 * data.TREES, 3)),
        lambda formula, arrays: formula(arrays[0], abs(arrays[1])),
        types=SPARSE,
    )
}


def _quantized(name: str, product: Callable[..., Any], node: str, *shapes: tuple[int, ...]) -> Case:
    """A product of quantised tensors; its results are integers."""
    return Case(
        lambda b, *x: getattr(b, name)(*x),
        exact.of_quantized(product),
        data.integers(*shapes),
        node=Node(node) if node else None,
        types=("f32",),
    )


QUANTIZED: dict[str, Case] = {
    "quantize": Case(
        lambda b, x, s, z: b.quantize(x, s, z),
        exact.quantized,
        data.to_quantize,
        node=Node("QuantizeLinear"),
        types=("f32",),
    ),
    "requantize": Case(
        lambda b, x, s, z: b.requantize(x, s, z),
        lambda x, s, z: exact.quantized(x.astype(s.dtype) * s, np.ones_like(s), z),
        data.to_requantize,
        types=("f32",),
    ),
    "quantized dense": _quantized(
        "quantized_dense", lambda x, w: x @ w.T, "", (50, 300), (40, 300)
    ),
    "quantized matmul": _quantized(
        "quantized_matmul", np.matmul, "QLinearMatMul", (50, 300), (300, 40)
    ),
    "quantized convolution": _quantized(
        "quantized_conv", exact.convolution, "QLinearConv", (2, 16, 19, 19), (24, 16, 3, 3)
    ),
}


def _added(t: Any, entries: Any) -> Any:
    """The sums of the entries of each row."""
    rows = t.from_numpy(data.ROW_OF)
    return t.zeros(data.NODES, *entries.shape[1:], dtype=entries.dtype).index_add(0, rows, entries)


def _gathered(t: Any, x: Any, *weights: Any) -> Any:
    """The sums of the rows of neighbours, as PyTorch Geometric computes them."""
    messages = x[t.from_numpy(data.COLUMN_OF)]
    return _added(t, messages * weights[0] if weights else messages)


_X, _E = (data.NODES, data.WIDTH), (-1, data.WIDTH)
GRAPHS: dict[str, Case] = {
    "sparse product": Case(
        lambda b, a, x: b.spmm(a, x),
        lambda a, x: a @ x,
        data.graph(_X),
        terms_of,
        lambda t, a, x: a @ x,
        types=SPARSE,
    ),
    "sum of neighbours": Case(
        lambda b, a, x: b.aggregate(a, x),
        lambda a, x: exact.of_neighbours(x),
        data.graph(_X),
        terms_of,
        lambda t, a, x: _gathered(t, x),
    ),
    "weighted sum of neighbours": Case(
        lambda b, a, x, e: b.aggregate(a, x, e),
        lambda a, x, e: exact.added(data.NODES, data.ROW_OF, x[data.COLUMN_OF] * e),
        data.graph(_X, _E),
        terms_of,
        lambda t, a, x, e: _gathered(t, x, e),
    ),
    "deviation of neighbours": Case(
        lambda b, a, x: b.aggregate(a, x, kind="std"),
        lambda a, x: exact.deviation(x),
        data.graph(_X),
        rows_of,
    ),
    "sum of entries": Case(
        lambda b, a, e: b.reduce_entries(a, e),
        lambda a, e: exact.added(data.NODES, data.ROW_OF, e),
        data.graph(_E),
        terms_of,
        lambda t, a, e: _added(t, e),
    ),
    "messages times weights": Case(
        lambda b, a, x, w: b.aggregate_dense(a, x, w),
        lambda a, x, w: exact.of_neighbours(x) @ w[0],
        data.graph(_X, (1, data.WIDTH, 7)),
        terms_of,
        lambda t, a, x, w: _gathered(t, x) @ w[0],
    ),
    "products of ends": Case(
        lambda b, a, x, y: b.sddmm(a, x, y),
        lambda a, x, y: np.sum(x[data.ROW_OF] * y[data.COLUMN_OF], -1),
        data.graph((data.NODES, 64), (data.NODES, 64)),
        terms_of,
        lambda t, a, x, y: (x[data.ROW_OF] * y[data.COLUMN_OF]).sum(-1),
    ),
    "softmax of entries": Case(
        lambda b, a, e: b.edge_softmax(a, e),
        lambda a, e: exact.softmax_of_entries(e),
        data.graph(_E),
    ),
    "softmax of own entries": Case(
        lambda b, a, e, s: b.own_softmax(a, e, s),
        lambda a, e, s: exact.softmax_of_own(e, s),
        data.graph(_E, _X),
    ),
    "normalized product": Case(
        lambda b, a, x: b.spmm(b.normalize(a), x),
        exact.by_degrees,
        data.positive_graph,
        terms_of,
        types=SPARSE,
    ),
    "dense matrix of a sparse one": Case(
        lambda b, a: b.to_dense(a),
        lambda a: a.toarray(),
        data.doubled_graph,
        terms_of,
        lambda t, a: a.to_dense(),
        types=SPARSE,
    ),
    "degree": Case(
        lambda b, a: b.degree(a),
        lambda a: a.sum(1),
        data.graph(),
        terms_of,
        lambda t, a: _added(t, a.values()),
        types=SPARSE,
    ),
}

"""The cases of `accuracy.py`: functions, reductions, products, normalisations, graphs, trees.

A formula is written once. On numbers of extended precision it gives exact results, and on those of
an element type what NumPy has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import accuracy_exact as exact
import accuracy_inputs as data
import numpy as np
from accuracy_inputs import Arrays, Inputs, numbers
from onnx_writer import Node
from scipy.sparse import csr_array

Formula = Callable[..., np.ndarray]
Unit = Callable[[Formula, Arrays], np.ndarray]
FLOATS, WITHOUT_BFLOAT = ("f16", "bf16", "f32", "f64"), ("f16", "f32", "f64")
SPARSE = ("f32", "f64")


def value_of(formula: Formula, arrays: Arrays) -> np.ndarray:
    """The unit of a function: the result itself."""
    return formula(*arrays)


def terms_of(formula: Formula, arrays: Arrays) -> np.ndarray:
    """The unit of a sum: the sum of magnitudes, which is as large whatever cancels."""
    return formula(*map(_magnitudes, arrays))


def _magnitudes(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return abs(array)
    # The absolute value of a sparse matrix has the sums of entries that have one place.
    return csr_array((abs(array.data), array.indices, array.indptr), shape=array.shape)


def terms_of_last(formula: Formula, arrays: Arrays) -> np.ndarray:
    """The same of a sum that is linear in its last operand alone."""
    return formula(*arrays[:-1], abs(arrays[-1]))


def rows_of(formula: Formula, arrays: Arrays) -> np.ndarray:
    """The unit of a normalisation: the largest result of a row."""
    return np.max(abs(formula(*arrays)), axis=-1, keepdims=True)


@dataclass(frozen=True)
class Case:
    """An operator, on inputs, and what it is compared with.

    Args:
        program: adds the operator to a builder, or its name there; None for the node of ONNX.
        formula: the operator in NumPy.
        inputs: the inputs for an element type.
        unit: the number whose last place is the unit of an error, for each element.
        torch: the operator, given the module `torch` and its tensors.
        node: the operator in ONNX.
        types: the element types.
        target: what the program is compiled for.
    """

    program: Callable[..., Any] | str | None
    formula: Formula
    inputs: Inputs = numbers
    unit: Unit = value_of
    torch: Callable[..., Any] | None = None
    node: Node | None = None
    types: tuple[str, ...] = FLOATS
    target: str = "host"


def function(name: str, formula: Formula, onnx: bool = True) -> Case:
    """An elementwise operator of one operand, whose name in ONNX is ours with a capital."""
    node = Node(name.capitalize()) if onnx else None
    return Case(name, formula, torch=lambda t, x: getattr(t, name)(x), node=node)


def composed(kind: str, formula: Formula, torch: Callable[..., Any]) -> Case:
    """An elementwise operator, as ONNX's is imported."""
    return Case(None, formula, torch=torch, node=Node(kind), types=WITHOUT_BFLOAT)


def reduction(
    kind: str, formula: Formula, inputs: data.Inputs, axes: tuple[int, ...], onnx: str
) -> Case:
    """A reduction over some axes; its error is in units of the sum of magnitudes."""
    return Case(
        lambda b, x: b.reduce(x, kind, axes=axes),
        lambda x: formula(x, axis=axes),
        inputs,
        terms_of,
        lambda t, x: getattr(t, kind)(x, axes[0] if kind == "prod" else axes),
        Node(onnx, {"keepdims": 0}, (np.array(axes),)),
    )


def _nn(name: str, **options: Any) -> Callable[..., Any]:
    return lambda t, x: getattr(t.nn.functional, name)(x, **options)


def on_device(name: str) -> Case:
    """A function that a device computes, and the host has of its C library."""
    return Case(name, getattr(np, name), types=("f32", "f64"), target="cuda:sm_90,emulated")


ELEMENTWISE: dict[str, Case] = {
    **{
        name: function(name, getattr(np, name))
        for name in ("exp", "log", "tanh", "sin", "cos", "tan", "sinh", "cosh")
    },
    **{f"{name} of a device": on_device(name) for name in ("sin", "cos", "tan")},
    **{
        name: function(name, getattr(np, f"arc{name[1:]}"))
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    },
    **{name: function(name, getattr(np, name), onnx=False) for name in ("expm1", "log1p")},
    "rsqrt": function("rsqrt", lambda x: x.dtype.type(1) / np.sqrt(x), onnx=False),
    "erf": function("erf", exact.erf),
    "sigmoid": function("sigmoid", exact.sigmoid),
    "gelu": Case("gelu", exact.gelu, torch=_nn("gelu"), node=Node("Gelu", opset=20)),
    "gelu by tanh": Case(
        lambda b, x: b.gelu(x, "tanh"),
        exact.gelu_by_tanh,
        torch=_nn("gelu", approximate="tanh"),
        node=Node("Gelu", {"approximate": "tanh"}, opset=20),
    ),
    "pow": Case("pow", np.power, data.powers, torch=lambda t, x, y: x**y, node=Node("Pow")),
    "Softplus": composed("Softplus", exact.softplus, _nn("softplus")),
    "Elu": composed("Elu", exact.elu, _nn("elu")),
    "Mish": composed("Mish", lambda x: x * np.tanh(exact.softplus(x)), _nn("mish")),
    "Selu": composed("Selu", exact.selu, _nn("selu")),
    "Celu": composed("Celu", exact.elu, _nn("celu")),
    "silu": Case("silu", lambda x: x * exact.sigmoid(x), torch=_nn("silu")),
    "log sigmoid": Case("log_sigmoid", lambda x: -exact.softplus(-x), torch=_nn("logsigmoid")),
}


def of_scores(name: str, formula: Formula, onnx: str) -> Case:
    """A softmax of rows, or its logarithm."""
    return Case(
        lambda b, x: getattr(b, name)(x, axis=1),
        formula,
        data.scores,
        torch=lambda t, x: getattr(x, name)(1),
        node=Node(onnx, {"axis": 1}),
    )


def scattered(program: Callable[..., Any], *width: int, torch: str = "index_add") -> Case:
    """Rows or numbers that are added at 40 places."""

    def in_torch(t: Any, u: Any) -> Any:
        zeros = t.zeros(40, *width, dtype=u.dtype)
        return getattr(zeros, torch)(0, t.from_numpy(data.SCATTERED), u)

    return Case(
        lambda b, u: program(b, b.constant(data.SCATTERED), u),
        lambda u: exact.added(40, data.SCATTERED, u),
        data.factors((3000, *width)),
        terms_of,
        in_torch,
    )


def _zeros(b: Any, like: Any, *shape: int) -> Any:
    return b.constant(np.zeros(shape, np.float32), dtype=like.dtype)


REDUCTIONS: dict[str, Case] = {
    "sum of rows": reduction("sum", np.sum, data.rows, (1,), "ReduceSum"),
    "sum of columns": reduction("sum", np.sum, data.columns, (0,), "ReduceSum"),
    "sum of all": reduction("sum", np.sum, data.factors((300, 1001)), (0, 1), "ReduceSum"),
    "mean of rows": reduction("mean", np.mean, data.rows, (1,), "ReduceMean"),
    "product of rows": reduction("prod", np.prod, data.near_one, (1,), "ReduceProd"),
    "mean of windows": Case(
        lambda b, x: b.pool(x, "mean", window=[5, 5]),
        exact.mean_of_windows,
        data.images,
        terms_of,
        lambda t, x: t.nn.functional.avg_pool2d(x, 5, 1),
        Node("AveragePool", {"kernel_shape": [5, 5]}),
    ),
    "cumulative sum": Case(
        lambda b, x: b.cumulative(x, "sum", axis=1),
        lambda x: np.cumsum(x, 1),
        data.rows,
        terms_of,
        lambda t, x: x.cumsum(1),
        Node("CumSum", {}, (np.array(1),)),
    ),
    "softmax": of_scores("softmax", exact.softmax, "Softmax"),
    "log softmax": of_scores("log_softmax", exact.log_softmax, "LogSoftmax"),
    "segment sum": Case(
        lambda b, x: b.segment_reduce(x, b.constant(data.OFFSETS)),
        lambda x: np.stack([x[a:b].sum(0) for a, b in pairwise(data.OFFSETS)]),
        data.factors((3000, 5)),
        terms_of,
        lambda t, x: t.segment_reduce(x, "sum", offsets=t.from_numpy(data.OFFSETS), axis=0),
        types=WITHOUT_BFLOAT,
    ),
    "histogram of weights": scattered(lambda b, i, w: b.histogram(i, bins=40, weights=w)),
    "scatter of rows": scattered(
        lambda b, i, u: b.scatter_nd(_zeros(b, u, 40, 3), u, [i], kind="add"), 3
    ),
    "scatter of elements": scattered(
        lambda b, i, u: b.scatter_elements(_zeros(b, u, 40), i, u, kind="add"), torch="scatter_add"
    ),
}


def product(
    program: Callable[..., Any] | str,
    formula: Formula,
    *shapes: tuple[int, ...],
    torch: Callable[..., Any] | None = None,
    node: Node | None = None,
) -> Case:
    """A product of normally distributed numbers; by default it is written in PyTorch as here."""
    own = torch or (lambda t, *x: formula(*x))
    return Case(program, formula, data.factors(*shapes), terms_of, own, node)


def blocked(program: Callable[..., Any], filters: int, channels: int) -> Case:
    """A convolution of images of 16 channels in blocks of 8."""

    def in_torch(t: Any, x: Any, w: Any) -> Any:
        x = x.movedim(-1, 2).flatten(1, 2)
        y = t.nn.functional.conv2d(x, w, groups=x.shape[1] // w.shape[1])
        return y.unflatten(1, (-1, 8)).movedim(2, -1)

    shapes = (2, 2, 19, 19, 8), (filters, channels, 3, 3)
    return product(program, exact.blocked_convolution, *shapes, torch=in_torch)


def _in_blocks(b: Any, x: Any, w: Any) -> Any:
    return b.blocked_conv(x, w, block=8)


def _by_tiles(tile: int) -> Callable[..., Any]:
    """Winograd's algorithm."""
    return lambda b, x, w: b.winograd_conv(x, b.winograd_filter(w, tile), tile, 8)


PRODUCTS: dict[str, Case] = {
    "dense": product(
        "dense",
        lambda x, w, c: x @ w.T + c,
        *((33, 513), (65, 513), (65,)),
        torch=lambda t, x, w, c: t.nn.functional.linear(x, w, c),
        node=Node("Gemm", {"transB": 1}),
    ),
    **{
        name: product("matmul", operator.matmul, *shapes, node=Node("MatMul"))
        for name, shapes in {
            "matmul": ((3, 33, 513), (3, 513, 65)),
            "scalar product": ((8, 20_000), (20_000, 1)),
        }.items()
    },
    "convolution": product(
        "conv",
        exact.convolution,
        *((2, 16, 19, 19), (24, 16, 3, 3)),
        torch=lambda t, x, w: t.nn.functional.conv2d(x, w),
        node=Node("Conv"),
    ),
    "blocked convolution": blocked(_in_blocks, 24, 16),
    "blocked convolution of groups": blocked(_in_blocks, 32, 8),
    "convolution of each channel": blocked(_in_blocks, 16, 1),
    "convolution of 2 x 2 places": blocked(_by_tiles(2), 24, 16),
    "convolution of 4 x 4 places": blocked(_by_tiles(4), 24, 16),
    "determinant": Case(
        "det",
        exact.determinant,
        data.factors((50, 6, 6)),
        torch=lambda t, x: t.linalg.det(x),
        node=Node("Det"),
        types=("f32", "f64"),
    ),
    "attention": Case(
        lambda b, q, k, v: b.attention(q, k, v, scale=0.125),
        exact.attention,
        data.factors((2, 3, 70, 64), (2, 3, 91, 64), (2, 3, 91, 64)),
        terms_of_last,
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.125),
        Node("Attention", {"scale": 0.125}, opset=23),
    ),
}


def _norm(name: str) -> Callable[..., Any]:
    return lambda t, x, s, c: getattr(t.nn.functional, name)(x, weight=s, bias=c)


NORMALIZATIONS: dict[str, Case] = {
    "layer norm": Case(
        "layer_norm",
        lambda x, s, c: exact.standardized(x, (1,)) * s + c,
        data.with_parameters(data.rows_to_normalize, 2, 513),
        rows_of,
        lambda t, x, s, c: t.nn.functional.layer_norm(x, (513,), s, c),
        Node("LayerNormalization", {"axis": -1}),
    ),
    "rms norm": Case(
        "rms_norm",
        lambda x, s: x / exact.root(np.mean(x * x, -1, keepdims=True)) * s,
        data.with_parameters(data.rows_to_normalize, 1, 513),
        rows_of,
        lambda t, x, s: t.nn.functional.rms_norm(x, (513,), s, 1e-5),
        Node("RMSNormalization", opset=23),
    ),
    "l2 normalize": Case(
        lambda b, x: b.l2_normalize(x, axes=(1,)),
        lambda x: x / np.sqrt(np.sum(x * x, -1, keepdims=True)),
        data.rows_to_normalize,
        rows_of,
        lambda t, x: t.nn.functional.normalize(x),
        Node("LpNormalization", {"axis": 1, "p": 2}),
    ),
    "instance norm": Case(
        "instance_norm",
        lambda x, s, c: exact.scaled(exact.standardized(x, (2, 3)), s, c),
        data.with_parameters(data.images, 2, 16),
        rows_of,
        _norm("instance_norm"),
        Node("InstanceNormalization"),
    ),
    "group norm": Case(
        lambda b, x, s, c: b.group_norm(x, 4, s, c),
        lambda x, s, c: exact.scaled(
            exact.standardized(x.reshape(len(x), 4, -1), (2,)).reshape(x.shape), s, c
        ),
        data.with_parameters(data.images, 2, 16),
        rows_of,
        lambda t, x, s, c: t.nn.functional.group_norm(x, 4, s, c),
        Node("GroupNormalization", {"num_groups": 4}, opset=21),
    ),
    "batch norm": Case(
        "batch_norm",
        lambda x, s, c, m, v: exact.scaled(exact.normalized(x, m, v), s, c),
        data.with_parameters(data.images, 4, 16),
        rows_of,
        lambda t, x, s, c, m, v: t.nn.functional.batch_norm(x, m, v, s, c),
        Node("BatchNormalization"),
    ),
    "batch norm in training": Case(
        lambda b, *x: b.batch_norm_training(*x)[0],
        lambda x, s, c: exact.scaled(exact.standardized(x, (0, 2, 3)), s, c),
        data.with_parameters(data.images, 2, 16),
        rows_of,
        lambda t, x, s, c: t.nn.functional.batch_norm(x, None, None, s, c, training=True),
    ),
}


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


OTHERS: dict[str, Case] = {
    "trees": Case(
        _stumps,
        # The leaf that each tree of one decision, x <= 0, chooses.
        lambda x, values: values[2 * np.arange(data.TREES) + (x[:, data.FEATURES] > 0)].sum(1),
        data.factors((200, 8), (2 * data.TREES, 3)),
        terms_of_last,
        types=SPARSE,
    )
}


def quantized(name: str, formula: Formula, inputs: Inputs, node: str = "") -> Case:
    """An operator of integers of 8 bits."""
    return Case(name, formula, inputs, node=Node(node) if node else None, types=("f32",))


def _product(name: str, product: Callable[..., Any], node: str, *shapes: tuple[int, ...]) -> Case:
    return quantized(name, exact.of_quantized(product), data.integers(*shapes), node)


QUANTIZED: dict[str, Case] = {
    "quantize": quantized("quantize", exact.quantized, data.to_quantize, "QuantizeLinear"),
    "requantize": quantized(
        "requantize",
        lambda x, s, z: exact.quantized(x.astype(s.dtype) * s, np.ones_like(s), z),
        data.to_requantize,
    ),
    "quantized dense": _product("quantized_dense", lambda x, w: x @ w.T, "", (50, 300), (40, 300)),
    "quantized matmul": _product(
        "quantized_matmul", np.matmul, "QLinearMatMul", (50, 300), (300, 40)
    ),
    "quantized convolution": _product(
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


def of_graph(
    program: Callable[..., Any] | str,
    formula: Formula,
    *shapes: tuple[int, ...],
    unit: Unit = terms_of,
    torch: Callable[..., Any] | None = None,
    types: tuple[str, ...] = FLOATS,
) -> Case:
    """An operator of a graph, and of tensors of these shapes."""
    return Case(program, formula, data.graph(*shapes), unit, torch, types=types)


_X, _E = (data.NODES, data.WIDTH), (-1, data.WIDTH)
GRAPHS: dict[str, Case] = {
    "sparse product": of_graph(
        "spmm", operator.matmul, _X, torch=lambda t, a, x: a @ x, types=SPARSE
    ),
    "sum of neighbours": of_graph(
        "aggregate", lambda a, x: exact.of_neighbours(x), _X, torch=lambda t, a, x: _gathered(t, x)
    ),
    "weighted sum of neighbours": of_graph(
        "aggregate",
        lambda a, x, e: exact.added(data.NODES, data.ROW_OF, x[data.COLUMN_OF] * e),
        *(_X, _E),
        torch=lambda t, a, x, e: _gathered(t, x, e),
    ),
    "deviation of neighbours": of_graph(
        lambda b, a, x: b.aggregate(a, x, kind="std"),
        lambda a, x: exact.deviation(x),
        _X,
        unit=rows_of,
    ),
    "sum of entries": of_graph(
        "reduce_entries",
        lambda a, e: exact.added(data.NODES, data.ROW_OF, e),
        _E,
        torch=lambda t, a, e: _added(t, e),
    ),
    "messages times weights": of_graph(
        "aggregate_dense",
        lambda a, x, w: exact.of_neighbours(x) @ w[0],
        *(_X, (1, data.WIDTH, 7)),
        torch=lambda t, a, x, w: _gathered(t, x) @ w[0],
    ),
    "products of ends": of_graph(
        "sddmm",
        lambda a, x, y: np.sum(x[data.ROW_OF] * y[data.COLUMN_OF], -1),
        *[(data.NODES, 64)] * 2,
        torch=lambda t, a, x, y: (x[data.ROW_OF] * y[data.COLUMN_OF]).sum(-1),
    ),
    "softmax of entries": of_graph(
        "edge_softmax", lambda a, e: exact.softmax_of_entries(e), _E, unit=value_of
    ),
    "softmax of own entries": of_graph(
        "own_softmax", lambda a, e, s: exact.softmax_of_own(e, s), _E, _X, unit=value_of
    ),
    "normalized product": Case(
        lambda b, a, x: b.spmm(b.normalize(a), x),
        exact.by_degrees,
        data.positive_graph,
        terms_of,
        types=SPARSE,
    ),
    "dense matrix of a sparse one": Case(
        "to_dense",
        lambda a: a.toarray(),
        data.doubled_graph,
        terms_of,
        lambda t, a: a.to_dense(),
        types=SPARSE,
    ),
    "degree": of_graph(
        "degree", lambda a: a.sum(1), torch=lambda t, a: _added(t, a.values()), types=SPARSE
    ),
}

CASES: dict[str, Case] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **PRODUCTS,
    **QUANTIZED,
    **NORMALIZATIONS,
    **GRAPHS,
    **OTHERS,
}

"""Cases of functions, reductions, products and normalisations of tensors.

A formula is written once. On numbers of extended precision it gives exact results, and on those of
an element type what NumPy has.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import accuracy_exact as exact
import accuracy_inputs as data
import numpy as np
from accuracy_case import WITHOUT_BFLOAT, Case, Formula, rows_of, terms_of
from peers import Node


def function(name: str, formula: Formula, torch: str | None = None, onnx: bool = True) -> Case:
    """An elementwise operator of one operand, whose name in ONNX is ours with a capital."""
    called = torch or name
    return Case(
        lambda b, x: getattr(b, name)(x),
        formula,
        torch=lambda t, x: getattr(t, called)(x),
        node=Node(name.capitalize()) if onnx else None,
    )


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
    program = function(name, getattr(np, name)).program
    return Case(program, getattr(np, name), types=("f32", "f64"), target="cuda:sm_90,emulated")


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
    "gelu": Case(
        lambda b, x: b.gelu(x), exact.gelu, torch=_nn("gelu"), node=Node("Gelu", opset=20)
    ),
    "gelu by tanh": Case(
        lambda b, x: b.gelu(x, "tanh"),
        exact.gelu_by_tanh,
        torch=_nn("gelu", approximate="tanh"),
        node=Node("Gelu", {"approximate": "tanh"}, opset=20),
    ),
    "pow": Case(
        lambda b, x, y: b.pow(x, y),
        np.power,
        data.powers,
        torch=lambda t, x, y: t.pow(x, y),
        node=Node("Pow"),
    ),
    "Softplus": composed("Softplus", exact.softplus, _nn("softplus")),
    "Elu": composed("Elu", exact.elu, _nn("elu")),
    "Mish": composed("Mish", lambda x: x * np.tanh(exact.softplus(x)), _nn("mish")),
    "Selu": composed("Selu", exact.selu, _nn("selu")),
    "Celu": composed("Celu", exact.elu, _nn("celu")),
    "silu": Case(lambda b, x: b.silu(x), lambda x: x * exact.sigmoid(x), torch=_nn("silu")),
    "log sigmoid": Case(
        lambda b, x: b.log_sigmoid(x),
        lambda x: -exact.softplus(-x),
        torch=_nn("logsigmoid"),
    ),
}

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
    "softmax": Case(
        lambda b, x: b.softmax(x, axis=1),
        exact.softmax,
        data.scores,
        torch=lambda t, x: x.softmax(1),
        node=Node("Softmax", {"axis": 1}),
    ),
    "log softmax": Case(
        lambda b, x: b.log_softmax(x, axis=1),
        exact.log_softmax,
        data.scores,
        torch=lambda t, x: x.log_softmax(1),
        node=Node("LogSoftmax", {"axis": 1}),
    ),
    "segment sum": Case(
        lambda b, x: b.segment_reduce(x, b.constant(data.OFFSETS)),
        lambda x: np.stack([x[a:b].sum(0) for a, b in pairwise(data.OFFSETS)]),
        data.factors((3000, 5)),
        terms_of,
        lambda t, x: t.segment_reduce(x, "sum", offsets=t.from_numpy(data.OFFSETS), axis=0),
        types=WITHOUT_BFLOAT,
    ),
    "histogram of weights": Case(
        lambda b, w: b.histogram(b.constant(data.SCATTERED), bins=40, weights=w),
        lambda w: exact.added(40, data.SCATTERED, w),
        data.factors((3000,)),
        terms_of,
        lambda t, w: t.zeros(40, dtype=w.dtype).index_add(0, t.from_numpy(data.SCATTERED), w),
    ),
    "scatter of rows": Case(
        lambda b, u: b.scatter_nd(
            b.constant(np.zeros((40, 3), np.float32), dtype=u.dtype),
            u,
            [b.constant(data.SCATTERED)],
            kind="add",
        ),
        lambda u: exact.added(40, data.SCATTERED, u),
        data.factors((3000, 3)),
        terms_of,
        lambda t, u: t.zeros(40, 3, dtype=u.dtype).index_add(0, t.from_numpy(data.SCATTERED), u),
    ),
    "scatter of elements": Case(
        lambda b, u: b.scatter_elements(
            b.constant(np.zeros(40, np.float32), dtype=u.dtype),
            b.constant(data.SCATTERED),
            u,
            kind="add",
        ),
        lambda u: exact.added(40, data.SCATTERED, u),
        data.factors((3000,)),
        terms_of,
        lambda t, u: t.zeros(40, dtype=u.dtype).scatter_add(0, t.from_numpy(data.SCATTERED), u),
    ),
}


def _blocked_in_torch(t: Any, x: Any, w: Any) -> Any:
    """A convolution of images whose channels come in blocks of 8, in channels."""
    x = x.movedim(-1, 2).flatten(1, 2)
    y = t.nn.functional.conv2d(x, w, groups=x.shape[1] // w.shape[1])
    return y.unflatten(1, (-1, 8)).movedim(2, -1)


def _by_tiles(b: Any, x: Any, w: Any, tile: int) -> Any:
    """A convolution of images in blocks by Winograd's algorithm."""
    return b.winograd_conv(x, b.winograd_filter(w, tile), tile, 8)


PRODUCTS: dict[str, Case] = {
    "dense": Case(
        lambda b, x, w, c: b.dense(x, w, c),
        lambda x, w, c: x @ w.T + c,
        data.factors((33, 513), (65, 513), (65,)),
        terms_of,
        lambda t, x, w, c: t.nn.functional.linear(x, w, c),
        Node("Gemm", {"transB": 1}),
    ),
    "matmul": Case(
        lambda b, x, y: b.matmul(x, y),
        lambda x, y: x @ y,
        data.factors((3, 33, 513), (3, 513, 65)),
        terms_of,
        lambda t, x, y: x @ y,
        Node("MatMul"),
    ),
    "scalar product": Case(
        lambda b, x, y: b.matmul(x, y),
        lambda x, y: x @ y,
        data.factors((8, 20_000), (20_000, 1)),
        terms_of,
        lambda t, x, y: x @ y,
        Node("MatMul"),
    ),
    "convolution": Case(
        lambda b, x, w: b.conv(x, w),
        exact.convolution,
        data.factors((2, 16, 19, 19), (24, 16, 3, 3)),
        terms_of,
        lambda t, x, w: t.nn.functional.conv2d(x, w),
        Node("Conv"),
    ),
    "blocked convolution": Case(
        lambda b, x, w: b.blocked_conv(x, w, block=8),
        exact.blocked_convolution,
        data.factors((2, 2, 19, 19, 8), (24, 16, 3, 3)),
        terms_of,
        _blocked_in_torch,
    ),
    "blocked convolution of groups": Case(
        lambda b, x, w: b.blocked_conv(x, w, block=8),
        exact.blocked_convolution,
        data.factors((2, 2, 19, 19, 8), (32, 8, 3, 3)),
        terms_of,
        _blocked_in_torch,
    ),
    "convolution of each channel": Case(
        lambda b, x, w: b.blocked_conv(x, w, block=8),
        exact.blocked_convolution,
        data.factors((2, 2, 19, 19, 8), (16, 1, 3, 3)),
        terms_of,
        _blocked_in_torch,
    ),
    "convolution of 2 x 2 places": Case(
        lambda b, x, w: _by_tiles(b, x, w, 2),
        exact.blocked_convolution,
        data.factors((2, 2, 19, 19, 8), (24, 16, 3, 3)),
        terms_of,
        _blocked_in_torch,
    ),
    "convolution of 4 x 4 places": Case(
        lambda b, x, w: _by_tiles(b, x, w, 4),
        exact.blocked_convolution,
        data.factors((2, 2, 19, 19, 8), (24, 16, 3, 3)),
        terms_of,
        _blocked_in_torch,
    ),
    "determinant": Case(
        lambda b, x: b.det(x),
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
        lambda formula, arrays: formula(*arrays[:2], abs(arrays[2])),
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.125),
        Node("Attention", {"scale": 0.125}, opset=23),
    ),
}


def _norm(name: str) -> Callable[..., Any]:
    return lambda t, x, s, c: getattr(t.nn.functional, name)(x, weight=s, bias=c)


NORMALIZATIONS: dict[str, Case] = {
    "layer norm": Case(
        lambda b, x, s, c: b.layer_norm(x, s, c),
        lambda x, s, c: exact.standardized(x, (1,)) * s + c,
        data.with_parameters(data.rows_to_normalize, 2, 513),
        rows_of,
        lambda t, x, s, c: t.nn.functional.layer_norm(x, (513,), s, c),
        Node("LayerNormalization", {"axis": -1}),
    ),
    "rms norm": Case(
        lambda b, x, s: b.rms_norm(x, s),
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
        lambda b, x, s, c: b.instance_norm(x, s, c),
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
        lambda b, x, s, c, m, v: b.batch_norm(x, s, c, m, v),
        lambda x, s, c, m, v: exact.scaled(exact.normalized(x, m, v), s, c),
        data.with_parameters(data.images, 4, 16),
        rows_of,
        lambda t, x, s, c, m, v: t.nn.functional.batch_norm(x, m, v, s, c),
        Node("BatchNormalization"),
    ),
    "batch norm in training": Case(
        lambda b, x, s, c: b.batch_norm_training(x, s, c)[0],
        lambda x, s, c: exact.scaled(exact.standardized(x, (0, 2, 3)), s, c),
        data.with_parameters(data.images, 2, 16),
        rows_of,
        lambda t, x, s, c: t.nn.functional.batch_norm(x, None, None, s, c, training=True),
    ),
}

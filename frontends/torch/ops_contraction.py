"""Matrix products and attention of ATen."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.reductions import norm
from ..importing.selection import triangle
from ..importing.shapes import broadcast, matrix_product, repeated, reshaped, transposed, unsqueezed
from ..importing.values import Value
from .nodes import Node
from .registry import converts


@converts("aten.linear.default")
def linear(node: Node, x: Value, weight: Value, bias: Value | None = None) -> Value:
    if x.rank == 0 or weight.rank == 1:
        raise node.unsupported("a weight without rows", "a weight of rank 2")
    return node.emit(graph.DenseOp, x, weight, bias)


@converts("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def matmul(node: Node, a: Value, b: Value) -> Value:
    return matrix_product(node, a, b)


@converts("aten.mv.default", "aten.dot.default")
def vector_product(node: Node, a: Value, b: Value) -> Value:
    return matrix_product(node, a, b)


@converts("aten.addmm.default", "aten.baddbmm.default")
def addmm(node: Node, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    # beta * c + alpha * (a b); a bias is a vector for each row
    if alpha == 1 and beta == 1 and b.rank == 2 and c.rank == 1 and c.shape[0] == b.shape[1]:
        return node.emit(graph.DenseOp, a, transposed(node, b, [1, 0]), c)
    product = _scaled(node, node.emit(graph.MatmulOp, a, b), alpha)
    return product if beta == 0 else node.emit(graph.AddOp, product, _scaled(node, c, beta))


@converts("aten.addmv.default")
def addmv(node: Node, c: Value, a: Value, v: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    product = _scaled(node, matrix_product(node, a, v), alpha)
    return product if beta == 0 else node.emit(graph.AddOp, product, _scaled(node, c, beta))


@converts("aten.addbmm.default")
def addbmm(node: Node, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    products = node.emit(graph.MatmulOp, a, b)
    total = node.emit(graph.ReduceOp, products, kind="sum", axes=[0], keepdims=False)
    product = _scaled(node, total, alpha)
    return product if beta == 0 else node.emit(graph.AddOp, product, _scaled(node, c, beta))


def _scaled(node: Node, x: Value, factor: Any) -> Value:
    if factor == 1:
        return x
    return node.emit(graph.MulOp, x, node.operand(factor, x.dtype))


@converts("aten._cdist_forward.default")
def distances(node: Node, a: Value, b: Value, p: float, compute_mode: int | None = None) -> Value:
    """The norms of the differences of all pairs of rows."""
    rows, columns = unsqueezed(node, a, [a.rank - 1]), unsqueezed(node, b, [b.rank - 2])
    difference = node.emit(graph.SubOp, rows, columns)
    return norm(node, difference, p, [difference.rank - 1], False)


@converts("aten.scaled_dot_product_attention.default")
def attention(
    node: Node,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """softmax(q k^T * scale + mask) v; a mask of truth values leaves out where it does not hold."""
    if dropout:
        raise node.unsupported("dropout of training", "evaluation mode")
    if enable_gqa:
        heads = query.shape[-3].exact_div(key.shape[-3])
        if heads is None:
            raise node.unsupported("a number of heads that does not divide the others")
        key, value = (_each_repeated(node, x, heads) for x in (key, value))
    size = node.integer(query.shape[-1], "a width of heads")
    factor = 1 / math.sqrt(size) if scale is None else scale
    order = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    query = node.emit(graph.MulOp, query, node.scalar(factor, query))
    scores = node.emit(graph.MatmulOp, query, transposed(node, key, order))
    lowest = node.known(np.array(-math.inf, query.dtype))
    if is_causal:
        kept = triangle(node, _ones(node, scores), 0, upper=False)
        scores = node.emit(graph.WhereOp, kept, scores, lowest)
    if mask is None or mask.dtype != np.bool_:
        if mask is not None:
            scores = node.emit(graph.AddOp, scores, node.operand(mask, scores.dtype))
        return node.emit(graph.MatmulOp, node.emit(graph.SoftmaxOp, scores, axis=-1), value)
    shares = node.emit(graph.SoftmaxOp, node.emit(graph.WhereOp, mask, scores, lowest), axis=-1)
    # A row that is left out altogether has no shares: torch makes it 0.
    held = node.emit(graph.WhereOp, mask, shares, node.scalar(0, shares))
    return node.emit(graph.MatmulOp, held, value)


def _ones(node: Node, like: Value) -> Value:
    return broadcast(node, node.known(np.array(True)), like.shape[-2:])


def _each_repeated(node: Node, x: Value, count: Dim) -> Value:
    """Each head several times, one after the other."""
    *batch, heads, rows, width = x.shape
    apart = reshaped(node, x, [*batch, heads, Dim.of(1), rows, width])
    ones = [Dim.of(1)] * len(batch)
    wide = repeated(node, apart, [*ones, Dim.of(1), count, Dim.of(1), Dim.of(1)])
    return reshaped(node, wide, [*batch, heads * count, rows, width])


@converts("aten._trilinear.default")
def trilinear(
    node: Node,
    a: Value,
    b: Value,
    c: Value,
    expand_a: Sequence[int],
    expand_b: Sequence[int],
    expand_c: Sequence[int],
    summed: Sequence[int],
    unroll_dim: int = 1,
) -> Value:
    """The sum of the products of three tensors over some axes, with new axes in each."""
    given = zip((a, b, c), (expand_a, expand_b, expand_c), strict=True)
    wide = [unsqueezed(node, x, axes) for x, axes in given]
    product = functools.reduce(lambda x, y: node.emit(graph.MulOp, x, y), wide)
    return node.emit(graph.ReduceOp, product, kind="sum", axes=list(summed), keepdims=False)

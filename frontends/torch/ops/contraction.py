"""Matrix products and attention of ATen."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...importing.attention import attended
from ...importing.reductions import norm
from ...importing.shapes import matrix_product, transposed, unsqueezed
from ...importing.values import Value
from ..nodes import Node, rounds_once
from ..registry import converts
from .elementwise import times


@converts("aten.linear.default")
def linear(node: Node, x: Value, weight: Value, bias: Value | None = None) -> Value:
    if x.rank == 0 or weight.rank == 1:
        raise node.unsupported("a weight without rows", "a weight of rank 2")
    return node.dense(x, weight, bias)


@converts("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def matmul(node: Node, a: Value, b: Value) -> Value:
    return matrix_product(node, a, b)


@converts("aten.mv.default", "aten.dot.default")
def vector_product(node: Node, a: Value, b: Value) -> Value:
    return matrix_product(node, a, b)


@converts("aten.addmm.default", "aten.baddbmm.default")
@rounds_once
def addmm(node: Node, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    # beta * c + alpha * (a b); a bias is a vector for each row
    if alpha == 1 and beta == 1 and b.rank == 2 and c.rank == 1 and c.shape[0] == b.shape[1]:
        return node.dense(a, transposed(node, b, [1, 0]), c)
    c, a, b = _summands(node, (c, a, b), beta, alpha)
    return _sum(node, c, node.matmul(a, b), beta, alpha)


@converts("aten.addmv.default")
@rounds_once
def addmv(node: Node, c: Value, a: Value, v: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    c, a, v = _summands(node, (c, a, v), beta, alpha)
    return _sum(node, c, matrix_product(node, a, v), beta, alpha)


@converts("aten.addbmm.default")
@rounds_once
def addbmm(node: Node, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    c, a, b = _summands(node, (c, a, b), beta, alpha)
    products = node.matmul(a, b)
    total = node.reduce(products, kind="sum", axes=[0], keepdims=False)
    return _sum(node, c, total, beta, alpha)


def _summands(node: Node, operands: Sequence[Value], beta: Any, alpha: Any) -> Sequence[Value]:
    """The operands of a sum with factors, in the type that torch computes in if it has any."""
    return [node.wide(x) for x in operands] if {alpha, beta} - {0, 1} else operands


def _sum(node: Node, c: Value, product: Value, beta: Any, alpha: Any) -> Value:
    scaled = times(node, product, alpha)
    return scaled if beta == 0 else node.add(scaled, times(node, c, beta))


@converts("aten._cdist_forward.default")
def distances(node: Node, a: Value, b: Value, p: float, compute_mode: int | None = None) -> Value:
    """The norms of the differences of all pairs of rows."""
    rows, columns = unsqueezed(node, a, [a.rank - 1]), unsqueezed(node, b, [b.rank - 2])
    difference = node.sub(rows, columns)
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
    """softmax(q k^T * scale + mask) v; a mask of truth values leaves out where it does not hold.

    A row that is left out altogether is 0.
    """
    if dropout:
        raise node.unsupported("dropout of training", "evaluation mode")
    if enable_gqa and query.shape[-3].exact_div(key.shape[-3]) is None:
        raise node.unsupported("a number of heads that does not divide the others")
    size = node.integer(query.shape[-1], "a width of heads")
    node.integer(value.shape[-1], "a width of heads")
    factor = 1 / math.sqrt(size) if scale is None else scale
    if mask is not None and mask.dtype != np.bool_:
        mask = node.operand(mask, query.dtype)
    right = 0 if is_causal else -1
    return attended(node, query, key, value, mask, scale=factor, right=right, safe=True)


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
    product = functools.reduce(node.mul, wide)
    return node.reduce(product, kind="sum", axes=list(summed), keepdims=False)

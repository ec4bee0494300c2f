"""Matrix products."""

from __future__ import annotations

from ....core.algebra.dims import Dim
from ...importing.einsum import einsum
from ...importing.shapes import matrix_product, squeezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts


@converts("Gemm", since=1)
def gemm(node: Node) -> Value:
    # alpha * A' B' + beta * C == dense(A', B'^T) * alpha + C * beta
    node.ignore("broadcast")  # of C, before opset 7
    a, b, c = node.input(0), node.input(1), node.optional(2)
    for operand in (a, b):
        if operand.rank != 2:
            raise node.broken("an operand is not a matrix", "rank 2", f"rank {operand.rank}")
    alpha, beta = node.attr_float("alpha", 1.0), node.attr_float("beta", 1.0)
    x = _transposed(node, a) if node.attr_int("transA") else a
    w = b if node.attr_int("transB") else _transposed(node, b)
    if c is None or beta == 0:
        return _scaled(node, node.dense(x, w), alpha)
    if c.rank > 2:
        raise node.broken("C does not broadcast to the product", "rank <= 2", f"rank {c.rank}")
    c = _scaled(node, c, beta)
    bias = _as_bias(node, c, w.shape[0])
    if alpha == 1 and bias is not None:
        return node.dense(x, w, bias)
    product = _scaled(node, node.dense(x, w), alpha)
    total = node.add(product, c)
    if total.shape != product.shape:
        raise node.broken("C does not broadcast to the product", product.shape, c.shape)
    return total


def _as_bias(node: Node, c: Value, columns: Dim) -> Value | None:
    """`c` as a vector with one element for each column of the result, or None."""
    if not c.shape or c.shape[-1] != columns:
        return None
    if c.rank == 1:
        return c
    return squeezed(node, c, [0]) if c.shape[0] == 1 else None


def _transposed(node: Node, x: Value) -> Value:
    return node.transpose(x, permutation=(1, 0))


def _scaled(node: Node, x: Value, factor: float) -> Value:
    if factor == 1:
        return x
    return node.mul(x, factor)


@converts("MatMul", since=1)
def matmul(node: Node) -> Value:
    return matrix_product(node, node.input(0), node.input(1))


@converts("Det", since=11)
def det(node: Node) -> Value:
    return node.det(node.input(0))


@converts("Einsum", since=12)
def sum_of_products(node: Node) -> Value:
    return einsum(node, node.attr_string("equation"), node.variadic())

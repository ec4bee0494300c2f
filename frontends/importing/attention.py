"""Attention as one operator, whatever the form of its operands."""

from __future__ import annotations

from typing import Any

from ...core.algebra.dims import Dim
from .nodes import ModelNode
from .shapes import broadcast, reshaped, transposed
from .values import Value


def attended(
    node: ModelNode,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    lengths: Value | None = None,
    **properties: Any,
) -> Value:
    """`graph.attention` of operands of rank 2 or more, whose batches broadcast."""
    rank = max(3, q.rank, k.rank, v.rank)
    given = [reshaped(node, x, [*[Dim.of(1)] * (rank - x.rank), *x.shape]) for x in (q, k, v)]
    batch = list(given[0].shape[:-3])
    for x in given[1:]:
        batch = [own if known == 1 else known for known, own in zip(batch, x.shape, strict=False)]
    given = [
        x if list(x.shape[:-3]) == batch else broadcast(node, x, [*batch, *x.shape[-3:]])
        for x in given
    ]
    y = node.attention(*given, mask, lengths, **properties)
    return reshaped(node, y, [*q.shape[:-1], v.shape[-1]]) if q.rank < rank else y


def split_heads(node: ModelNode, x: Value, heads: int) -> Value:
    """Rows of all heads, [B, L, H * D], as [B, H, L, D]."""
    width = x.shape[2].exact_div(Dim.of(heads))
    if width is None:
        raise node.broken("the number of heads does not divide the width", x.shape[2], heads)
    return transposed(node, reshaped(node, x, [*x.shape[:2], Dim.of(heads), width]), [0, 2, 1, 3])


def joined_heads(node: ModelNode, x: Value) -> Value:
    """The inverse of `split_heads`."""
    batch, heads, rows, width = x.shape
    return reshaped(node, transposed(node, x, [0, 2, 1, 3]), [batch, rows, heads * width])

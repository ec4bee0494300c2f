"""Bags of embeddings: sums, means and maxima of rows of a table."""

from __future__ import annotations

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.selection import concatenated
from ..importing.shapes import reshaped, unsqueezed
from ..importing.values import Value
from .nodes import Node
from .registry import converts

_MODES = ("sum", "mean", "max")


@converts("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(
    node: Node,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> list[Value | None]:
    """A bag is a run of indices from one offset to the next; an empty one yields 0."""
    rows = node.emit(graph.GatherOp, weight, node.from_front(indices, 1, weight, 0), axis=0)
    if per_sample_weights is not None:
        rows = node.emit(graph.MulOp, rows, unsqueezed(node, per_sample_weights, [1]))
    bounds = node.operand(offsets, node.index)
    if not include_last_offset:
        end = reshaped(node, node.number(indices.shape[0]), [Dim.of(1)])
        bounds = node.emit(concatenated, bounds, end, axis=0)
    padding = node.known(np.array(padding_idx, indices.dtype))
    kept = unsqueezed(
        node, node.emit(graph.LogicalNotOp, node.emit(graph.EqualOp, indices, padding)), [1]
    )
    kind = _MODES[mode]
    rest = node.known(np.array(-np.inf if kind == "max" else 0, rows.dtype))
    rows = node.emit(graph.WhereOp, kept, rows, rest)
    total = node.emit(graph.SegmentReduceOp, rows, bounds, kind="max" if kind == "max" else "sum")
    if kind == "sum":
        return [total, None, None, None]
    counts = node.emit(graph.SegmentReduceOp, node.operand(kept, rows.dtype), bounds, kind="sum")
    if kind == "max":
        some = node.emit(graph.LessOp, node.scalar(0, counts), counts)
        return [node.emit(graph.WhereOp, some, total, node.scalar(0, total)), None, None, None]
    divisor = node.emit(graph.MaxOp, counts, node.scalar(1, counts))
    return [node.emit(graph.DivOp, total, divisor), None, None, None]

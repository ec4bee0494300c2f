"""Bags of embeddings: sums, means and maxima of rows of a table."""

from __future__ import annotations

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.shapes import reshaped, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts

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
    rows = node.gather(weight, node.from_front(indices, 1, weight, 0), axis=0)
    if per_sample_weights is not None:
        rows = node.mul(rows, unsqueezed(node, per_sample_weights, [1]))
    bounds = node.operand(offsets, node.index)
    if not include_last_offset:
        end = reshaped(node, node.number(indices.shape[0]), [Dim.of(1)])
        bounds = node.concat([bounds, end], axis=0)
    padding = node.known(np.array(padding_idx, indices.dtype))
    kept = unsqueezed(node, node.logical_not(node.equal(indices, padding)), [1])
    kind = _MODES[mode]
    rest = node.known(np.array(-np.inf if kind == "max" else 0, rows.dtype))
    rows = node.where(kept, rows, rest)
    total = node.segment_reduce(rows, bounds, kind="max" if kind == "max" else "sum")
    if kind == "sum":
        return [total, None, None, None]
    counts = node.segment_reduce(node.operand(kept, rows.dtype), bounds, kind="sum")
    if kind == "max":
        some = node.less(0, counts)
        return [node.where(some, total, 0), None, None, None]
    divisor = node.max(counts, 1)
    return [node.div(total, divisor), None, None, None]

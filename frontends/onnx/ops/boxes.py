"""Operators on boxes of detections: NonMaxSuppression."""

from __future__ import annotations

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.selection import apart, sliced, whole
from ...importing.shapes import reshaped, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts


@converts("NonMaxSuppression", since=10)
def non_max_suppression(node: Node) -> Value:
    boxes, scores = node.input(0), node.input(1)
    if boxes.rank != 3 or boxes.shape[2] != Dim.of(4):
        got = [str(dim) for dim in boxes.shape]
        raise node.broken("boxes have the wrong shape", "[num_batches, spatial_dimension, 4]", got)
    most = node.wide(_scalar(node, 2, np.array(0)))
    overlap = _scalar(node, 3, np.array(0, boxes.dtype))
    least = _scalar(node, 4, np.array(np.nan, boxes.dtype))
    # Boxes by their low and high corner.
    parts = apart(node, boxes, 2, [1, 1, 1, 1])
    if node.attr_int("center_point_box"):
        x, y, width, height = parts
        halves = [node.mul(height, 0.5), node.mul(width, 0.5)]
        low = [node.sub(middle, half) for middle, half in zip((y, x), halves, strict=True)]
        high = [node.add(middle, half) for middle, half in zip((y, x), halves, strict=True)]
    else:
        low, high = [
            [function(first, second) for first, second in zip(parts[:2], parts[2:], strict=True)]
            for function in (node.min, node.max)
        ]
    corners = node.concat([*low, *high], axis=2)
    chosen = node.suppress_boxes(corners, scores, most, overlap, least)
    if most.contents is not None and chosen.shape[2].is_static:
        count = min(max(int(most.contents), 0), chosen.shape[2].value)
        chosen = sliced(node, chosen, [*whole(chosen)[:2], (0, count, 1)])
    is_box = node.less_equal(0, chosen)
    *places, _ = node.nonzero(is_box)
    found = [*places[:2], node.gather_nd(chosen, places)]
    columns = [unsqueezed(node, value, [1]) for value in found]
    return node.concat(columns, axis=1)


def _scalar(node: Node, index: int, default: np.ndarray) -> Value:
    """An operand of one element, which may be omitted."""
    given = node.optional(index)
    return node.known(default) if given is None else reshaped(node, given, [])

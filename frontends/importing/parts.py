"""Parts of a symbolic axis of about the same length, which adaptive pools reduce.

Part i of p reaches from floor(i * size / p) to ceil((i + 1) * size / p), so that neighbours overlap
where p does not divide the size.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from .elementwise import cast
from .nodes import ModelNode
from .shapes import places_of, transposed, unsqueezed
from .values import Value


def mean_of_parts(node: ModelNode, x: Value, axis: int, parts: int) -> Value:
    """The mean of each part of an axis, as a product with a matrix of weights."""
    inside, lengths = _parts(node, x.shape[axis], parts)
    counts = cast(node, lengths, x.dtype)
    weights = node.emit(graph.DivOp, cast(node, inside, x.dtype), counts)
    order = [*(i for i in range(x.rank) if i != axis), axis]
    moved = node.emit(graph.MatmulOp, transposed(node, x, order), weights)
    return transposed(node, moved, [order.index(i) for i in range(x.rank)])


def maximum_of_parts(node: ModelNode, x: Value, axis: int, parts: int) -> Value:
    """The maximum of each part of an axis."""
    inside, _ = _parts(node, x.shape[axis], parts)
    last = list(range(2, 1 + x.rank - axis))
    chosen = unsqueezed(node, inside, last)
    lowest = node.known(np.array(-math.inf, x.dtype))
    repeated = node.emit(graph.WhereOp, chosen, unsqueezed(node, x, [axis + 1]), lowest)
    return node.emit(graph.ReduceOp, repeated, kind="max", axes=[axis])


def _parts(node: ModelNode, size: Dim, parts: int) -> tuple[Value, Value]:
    """Whether each element is in each part, [size, parts], and the lengths of the parts."""
    count, number = node.known(np.array(parts)), node.number(size)
    # Sizes are not negative, so that quotients are rounded down.
    before = node.emit(graph.MulOp, node.known(np.arange(parts)), number)
    after = node.emit(graph.MulOp, node.known(np.arange(1, parts + 1)), number)
    starts = node.emit(graph.DivOp, before, count)
    above = node.emit(graph.AddOp, after, node.known(np.array(parts - 1)))
    ends = node.emit(graph.DivOp, above, count)
    places = unsqueezed(node, places_of(node, size), [1])
    inside = node.emit(
        graph.LogicalAndOp,
        node.emit(graph.LessEqualOp, starts, places),
        node.emit(graph.LessOp, places, ends),
    )
    return inside, node.emit(graph.SubOp, ends, starts)

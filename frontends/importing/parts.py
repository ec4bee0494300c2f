"""Parts of a symbolic axis of about the same length, which adaptive pools reduce.

Part i of p reaches from floor(i * size / p) to ceil((i + 1) * size / p), so that neighbours overlap
where p does not divide the size.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.algebra.dims import Dim
from .elementwise import cast
from .nodes import ModelNode
from .shapes import places_of, product_along, unsqueezed
from .values import Value


def mean_of_parts(node: ModelNode, x: Value, axis: int, parts: int) -> Value:
    """The mean of each part of an axis, as a product with a matrix of weights."""
    inside, lengths = _parts(node, x.shape[axis], parts)
    counts = cast(node, lengths, x.dtype)
    weights = node.div(cast(node, inside, x.dtype), counts)
    return product_along(node, x, axis, weights)


def maximum_of_parts(node: ModelNode, x: Value, axis: int, parts: int) -> Value:
    """The maximum of each part of an axis."""
    inside, _ = _parts(node, x.shape[axis], parts)
    last = list(range(2, 1 + x.rank - axis))
    chosen = unsqueezed(node, inside, last)
    lowest = node.known(np.array(-math.inf, x.dtype))
    repeated = node.where(chosen, unsqueezed(node, x, [axis + 1]), lowest)
    return node.reduce(repeated, kind="max", axes=[axis])


def _parts(node: ModelNode, size: Dim, parts: int) -> tuple[Value, Value]:
    """Whether each element is in each part, [size, parts], and the lengths of the parts."""
    count, number = node.known(np.array(parts)), node.number(size)
    # Sizes are not negative, so that quotients are rounded down.
    before = node.mul(node.known(np.arange(parts)), number)
    after = node.mul(node.known(np.arange(1, parts + 1)), number)
    starts = node.div(before, count)
    above = node.add(after, node.known(np.array(parts - 1)))
    ends = node.div(above, count)
    places = unsqueezed(node, places_of(node, size), [1])
    inside = node.logical_and(node.less_equal(starts, places), node.less(places, ends))
    return inside, node.sub(ends, starts)

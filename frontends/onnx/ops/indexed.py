"""Gathers and scatters by index, selections by value, cumulative operators, and top-k."""

from __future__ import annotations

import numpy as np

from ....core.algebra.dims import Dim, product
from ...importing.selection import (
    checked_sizes,
    gathered_beside,
    scattered_beside,
    sliced,
    whole,
)
from ...importing.shapes import (
    broadcast,
    places_of,
    reshaped,
    squeezed,
    transposed,
    unsqueezed,
)
from ...importing.values import Value
from ..axes import along_axis_by
from ..dynamic import Element
from ..extents import top_k_by
from ..nodes import Node
from ..registry import converts


@converts("GatherElements", since=11)
def gather_elements(node: Node) -> Value:
    x, indices = node.input(0), node.input(1)
    axis = node.axis(node.attr_int("axis"), x.rank)
    return gathered_beside(node, x, indices, axis)


@converts("Scatter", since=9)
@converts("ScatterElements", since=11)
def scatter_elements(node: Node) -> Value:
    x, indices, updates = (node.input(number) for number in range(3))
    axis = node.axis(node.attr_int("axis"), x.rank)
    return scattered_beside(node, x, indices, updates, axis, _reduction(node))


def _reduction(node: Node) -> str:
    kind, known = node.attr_string("reduction", "none"), ("none", "add", "mul", "max", "min")
    if kind not in known:
        raise node.broken('attribute "reduction" is unknown', ", ".join(known), kind)
    return kind


@converts("GatherND", since=11)
def gather_nd(node: Node) -> Value:
    x, indices = node.input(0), node.input(1)
    count = node.attr_int("batch_dims")
    if not 0 <= count < min(x.rank, indices.rank):
        limit = min(x.rank, indices.rank)
        raise node.broken("batch_dims out of range", f"0 <= batch_dims < {limit}", count)
    batches = [_batch(node, x, indices, axis) for axis in range(count)]
    places = [*batches, *_components(node, x.rank - count, indices)]
    return node.gather_nd(x, places)


@converts("ScatterND", since=11)
def scatter_nd(node: Node) -> Value:
    x, indices, updates = (node.input(number) for number in range(3))
    places = _components(node, x.rank, indices)
    return node.scatter_nd(x, updates, places, kind=_reduction(node))


def _components(node: Node, limit: int, indices: Value) -> list[Value]:
    """The tensors of which the last dimension of `indices` holds an element each."""
    last = indices.rank - 1
    if last < 0:
        raise node.broken("indices have no dimension", "rank >= 1", "rank 0")
    dim = indices.shape[last]
    if not dim.is_static:
        raise node.unsupported(f"a number of indices that is symbolic dimension {dim}")
    if not 1 <= dim.value <= limit:
        raise node.broken("wrong number of indices", f"1 to {limit}", dim.value)
    ranges = whole(indices)
    parts = [[*ranges[:last], (at, at + 1, 1)] for at in range(dim.value)]
    return [squeezed(node, sliced(node, indices, part), [last]) for part in parts]


def _batch(node: Node, x: Value, indices: Value, axis: int) -> Value:
    """The place of each index along a batch dimension, which indices and data have in common."""
    sizes = indices.shape[:-1]
    if all(dim.is_static for dim in sizes):
        places = node.known(np.indices([dim.value for dim in sizes])[axis])
    else:
        others = [other for other in range(len(sizes)) if other != axis]
        places = broadcast(node, unsqueezed(node, places_of(node, sizes[axis]), others), sizes)
    return checked_sizes(node, places, x.shape[axis], sizes[axis], f"batch dimensions {axis}")


@converts("TopK", since=1)
def top_k_attribute(node: Node) -> list[Value]:
    return _top_k(node, Dim.of(node.attr_int("k")))


@converts("TopK", since=10)
def top_k(node: Node) -> list[Value]:
    counts = node.elements(1)
    if len(counts) != 1:
        raise node.broken("wrong number of counts", 1, len(counts))
    node.ignore("sorted")  # without it any order is valid
    return _top_k(node, counts[0], largest=bool(node.attr_int("largest", 1)))


def _top_k(node: Node, k: Element, largest: bool = True) -> list[Value]:
    x = node.input(0)
    axis = node.axis(node.attr_int("axis", -1), x.rank)
    if not isinstance(k, Dim) or not k.is_static:
        return top_k_by(node, x, k, axis, largest=largest)
    return list(node.top_k(x, k=k.value, axis=axis, largest=largest))


@converts("NonZero", since=9)
def nonzero(node: Node) -> Value:
    x = node.input(0)
    if not x.rank:
        raise node.unsupported("not supported for a scalar")
    *indices, _ = node.nonzero(x)
    rows = [unsqueezed(node, places, [0]) for places in indices]
    return rows[0] if len(rows) == 1 else node.concat(rows, axis=0)


@converts("Compress", since=9)
def compress(node: Node) -> Value:
    x, condition = node.input(0), node.input(1)
    if condition.rank != 1:
        raise node.broken("the condition has the wrong rank", 1, condition.rank)
    if node.has("axis"):
        axis = node.axis(node.attr_int("axis"), x.rank)
    else:
        x, axis = reshaped(node, x, [product(x.shape)]), 0
    places, _ = node.nonzero(condition)
    return node.gather(x, places, axis=axis)


_MOST_COLUMNS = 64
"""The longest slices that are compared: each of their elements takes a sort."""


@converts("Unique", since=11)
def unique(node: Node) -> list[Value]:
    x, in_order = node.input(0), bool(node.attr_int("sorted", 1))
    axis = node.axis(node.attr_int("axis"), x.rank) if node.has("axis") else None
    if axis is None or x.rank == 1:
        flat = reshaped(node, x, [product(x.shape)])
        return list(node.unique(flat, sorted=in_order))[:4]
    # A number for each slice along an axis: equal for equal ones, in lexicographic order.
    rest = [dim for dim in range(x.rank) if dim != axis]
    length = product(tuple(x.shape[dim] for dim in rest))
    if not length.is_static or not 1 <= length.value <= _MOST_COLUMNS:
        reason = f"slices of {length} elements along axis {axis}"
        raise node.unsupported(f"{reason} are not compared, at most {_MOST_COLUMNS}")
    rows = reshaped(node, transposed(node, x, [axis, *rest]), [x.shape[axis], length])
    numbers: Value | None = None
    for column in range(length.value):
        part = sliced(node, rows, [whole(rows)[0], (column, column + 1, 1)])
        _, _, own, _, count = node.unique(squeezed(node, part, [1]))
        if numbers is None:
            numbers = own
            continue
        pairs = node.add(node.mul(numbers, count), own)
        _, _, numbers, _, _ = node.unique(pairs)
    assert numbers is not None
    _, first, inverse, counts, _ = node.unique(numbers, sorted=in_order)
    return [node.gather(x, first, axis=axis), first, inverse, counts]


def _register() -> None:
    for operator, kind, since in (("CumSum", "sum", 11), ("CumProd", "prod", 26)):
        converts(operator, since=since)(lambda node, kind=kind: _cumulative(node, kind))


def _cumulative(node: Node, kind: str) -> Value:
    x, axes = node.input(0), node.elements(1)
    if len(axes) != 1:
        raise node.broken("wrong number of axes", 1, len(axes))
    exclusive, reverse = (bool(node.attr_int(name)) for name in ("exclusive", "reverse"))

    def along(axis: int) -> Value:
        return node.cumulative(x, kind=kind, axis=axis, exclusive=exclusive, reverse=reverse)

    (axis,) = axes
    if isinstance(axis, Value) and x.rank:
        return along_axis_by(node, x, axis, along)
    return along(node.axis(node.integers(1)[0], x.rank))


_register()

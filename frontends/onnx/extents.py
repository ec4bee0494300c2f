"""TopK, Split, Tile, Pad and OneHot whose counts come at run time, and so the sizes of results."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

from ...core.algebra.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.dtypes import element_type
from ..importing.elementwise import remainder
from ..importing.nodes import Number
from ..importing.selection import cut_by, sliced
from ..importing.shapes import reshaped, squeezed, unsqueezed
from ..importing.values import Value
from .dynamic import Element, numbers_below
from .nodes import Node

_I64 = np.dtype(np.int64)


def top_k_by(node: Node, x: Value, count: Element, axis: int, *, largest: bool) -> list[Value]:
    """The first elements of a sorted axis, and their places; more than it has are an error."""
    ordered = list(node.sort(x, axis=axis, descending=largest))
    if count == x.shape[axis]:
        return ordered
    taken = node.value(count, _I64)
    return [_taken(node, value, axis, Dim.of(0), taken, n) for n, value in enumerate(ordered)]


def split_by(
    node: Node, x: Value, axis: int, sizes: Sequence[Element], *, are_results: bool = True
) -> list[Value]:
    """Parts of an axis, results of the node; sizes that do not add up to its own are an error, as
    is a negative one."""
    dim = x.shape[axis]
    starts = list(itertools.accumulate(sizes, node.add, initial=Dim.of(0)))
    total, size, least = (
        node.value(n, _I64) for n in (starts[-1], dim, functools.reduce(node.min, sizes))
    )
    text = f"parts of dimension {axis} do not add up to its size, expected {{0}}, got {{1}}"
    first = node.check(node.value(sizes[0], _I64), node.equal(total, size), [size, total], text)
    text = f"a part of dimension {axis} has a negative size, expected 0 or more, got {{0}}"
    first = node.check(first, node.less_equal(0, least), [least], text)
    parts = zip(starts, [first, *sizes[1:]], strict=False)
    results = itertools.count() if are_results else itertools.repeat(None)
    return [_taken(node, x, axis, *part, result=n) for part, n in zip(parts, results, strict=False)]


def even_sizes(node: Node, size: Dim, count: int, uneven: bool) -> list[Element]:
    """The sizes of parts of a symbolic axis; with `uneven` the last ones may be smaller."""
    part = node.div(node.add(size, count - 1) if uneven else node.value(size, _I64), count)
    if not uneven:
        return [part] * count
    return [node.max(node.min(part, node.sub(size, node.mul(part, n))), 0) for n in range(count)]


def _taken(
    node: Node, x: Value, axis: int, start: Element, count: Element, result: int | None
) -> Value:
    """Some neighbouring elements of an axis, which may be a result of the node."""
    declared = None if result is None else node.declared_sizes(x.rank, result)[axis]
    size = count.value if isinstance(count, Dim) and count.is_static else declared
    return cut_by(node, x, axis, start, Dim.of(1), count, size)


def tiled_by(node: Node, x: Value, repeats: Sequence[Element]) -> Value:
    """`x` repeated along each dimension; a negative number is an error."""
    apart = reshaped(node, x, [d for dim in x.shape for d in (Dim.of(1), dim)])
    target = [e for repeat, dim in zip(repeats, x.shape, strict=True) for e in (repeat, dim)]
    sizes = [e.value if isinstance(e, Dim) and e.is_static else -1 for e in target]
    given = [e for e, n in zip(target, sizes, strict=True) if n < 0]
    kinds = [DYNAMIC_INDEX if n < 0 else n for n in sizes]
    for axis, (dim, size) in enumerate(zip(x.shape, node.declared_sizes(x.rank), strict=True)):
        if size is not None and dim.is_static and dim.value and size % dim.value == 0:
            kinds[2 * axis] = size // dim.value
    kind = TensorType(element_type(x.dtype), kinds)
    wide = node.apply(graph.DynamicBroadcastOp, apart, given, sizes, kind)
    pairs = zip(wide.shape[::2], wide.shape[1::2], strict=True)
    return reshaped(node, wide, [repeat * dim for repeat, dim in pairs])


def one_hot_by(node: Node, indices: Value, depth: Value, values: Value, axis: int) -> Value:
    """The second of two values where an index is the place along a new axis, else the first."""
    size = node.declared_sizes(indices.rank + 1)[axis]
    others = [other for other in range(indices.rank + 1) if other != axis]
    places = unsqueezed(node, numbers_below(node, depth, size), others)
    own = node.where(node.less(indices, 0), node.add(indices, depth), indices)
    off, on = (squeezed(node, sliced(node, values, [(n, n + 1, 1)]), [0]) for n in (0, 1))
    return node.where(node.equal(unsqueezed(node, own, [axis]), places), on, off)


def padded_by(
    node: Node, low: Sequence[Element], high: Sequence[Element], fill: float | Value, mode: str
) -> Value:
    """The operand with padding; negative numbers remove elements first."""
    x = node.input(0)
    for axis, ends in enumerate(zip(low, high, strict=True)):
        if ends != (0, 0):
            x = _padded_axis(node, x, axis, ends, fill, mode)
    return x


def _padded_axis(
    node: Node,
    x: Value,
    axis: int,
    ends: tuple[Element, Element],
    fill: float | Value,
    mode: str,
) -> Value:
    """The elements of an axis, some of them repeated, or the constant, which follows them."""
    size = x.shape[axis]
    added, removed = (
        [node.max(end, 0) for end in ends],
        [node.max(node.sub(0, end), 0) for end in ends],
    )
    left = node.sub(node.sub(size, removed[0]), removed[1])
    count = node.where(node.less(left, 0), -1, node.add(node.add(left, added[0]), added[1]))
    place = numbers_below(node, count, node.declared_sizes(x.rank)[axis])
    place = node.sub(place, added[0])
    source = node.add(_place_in(node, place, left, mode), removed[0])
    if mode != "constant":
        return node.gather(x, source, axis=axis)
    inside = node.logical_and(node.less_equal(0, place), node.less(place, left))
    high = [int(other == axis) for other in range(x.rank)]
    number = 0 if isinstance(fill, Value) else fill
    x = node.pad(x, low=[0] * x.rank, high=high, value=number, mode=mode)
    found = node.gather(x, node.where(inside, source, size), axis=axis)
    if not isinstance(fill, Value):
        return found
    others = [other for other in range(x.rank) if other != axis]
    return node.where(unsqueezed(node, inside, others), found, fill)


def _place_in(node: Node, place: Value, size: Number, mode: str) -> Value:
    """The place below `size` that a place before 0 or past the end repeats."""
    if mode == "edge":
        return node.max(node.min(place, node.sub(size, 1)), 0)
    if mode == "wrap":
        period = node.max(size, 1)
        return remainder(node, node.add(remainder(node, place, period), period), period)
    if mode == "reflect":
        period = node.max(node.mul(node.sub(size, 1), 2), 1)
        forward = remainder(node, node.abs(place), period)
        return node.min(forward, node.sub(period, forward))
    return place

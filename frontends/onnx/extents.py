"""TopK, Split, Tile, Pad and OneHot whose counts come at run time, and so the sizes of results."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.dtypes import element_type
from ..importing.selection import sliced
from ..importing.shapes import reshaped, squeezed, unsqueezed
from ..importing.values import Value
from .arithmetic import Arithmetic, Number
from .dynamic import Element
from .nodes import Node

_I64 = np.dtype(np.int64)


def top_k_by(node: Node, x: Value, count: Element, axis: int, *, largest: bool) -> list[Value]:
    """The first elements of a sorted axis, and their places; more than it has are an error."""
    ordered = node.emit_all(graph.SortOp, x, axis=axis, descending=largest)
    if count == x.shape[axis]:
        return ordered
    taken = Arithmetic(node).value(count, _I64)
    return [_taken(node, value, axis, Dim.of(0), taken, n) for n, value in enumerate(ordered)]


def split_by(
    node: Node, x: Value, axis: int, sizes: Sequence[Element], *, are_results: bool = True
) -> list[Value]:
    """Parts of an axis, results of the node; sizes that do not add up to its own are an error, as
    is a negative one."""
    b, dim = Arithmetic(node), x.shape[axis]
    starts = list(itertools.accumulate(sizes, b.add, initial=Dim.of(0)))
    total, size, least = (
        b.value(n, _I64) for n in (starts[-1], dim, functools.reduce(b.min, sizes))
    )
    text = f"parts of dimension {axis} do not add up to its size, expected {{0}}, got {{1}}"
    first = node.check(b.value(sizes[0], _I64), b.equal(total, size), text, [size, total])
    text = f"a part of dimension {axis} has a negative size, expected 0 or more, got {{0}}"
    first = node.check(first, b.less_equal(0, least), text, [least])
    parts = zip(starts, [first, *sizes[1:]], strict=False)
    results = itertools.count() if are_results else itertools.repeat(None)
    return [_taken(node, x, axis, *part, result=n) for part, n in zip(parts, results, strict=False)]


def even_sizes(node: Node, size: Dim, count: int, uneven: bool) -> list[Element]:
    """The sizes of parts of a symbolic axis; with `uneven` the last ones may be smaller."""
    b = Arithmetic(node)
    part = b.div(b.add(size, count - 1) if uneven else b.value(size, _I64), count)
    if not uneven:
        return [part] * count
    return [b.max(b.min(part, b.sub(size, b.mul(part, n))), 0) for n in range(count)]


def _taken(
    node: Node, x: Value, axis: int, start: Element, count: Element, result: int | None
) -> Value:
    """Some neighbouring elements of an axis, which may be a result of the node."""
    sizes = [dim.value if dim.is_static else DYNAMIC_INDEX for dim in x.shape]
    declared = None if result is None else node.declared_sizes(x.rank, result)[axis]
    known = count.value if isinstance(count, Dim) and count.is_static else declared
    sizes[axis] = DYNAMIC_INDEX if known is None else known
    kind = TensorType(element_type(x.dtype), sizes)
    first, step, own = (Arithmetic(node).value(n, _I64) for n in (start, 1, count))
    return node.emit(graph.DynamicSliceOp, x, first, step, own, axis=axis, result_type=kind)


def tiled_by(node: Node, x: Value, repeats: Sequence[Element]) -> Value:
    """`x` repeated along each dimension; a negative number is an error."""
    apart = reshaped(node, x, [d for dim in x.shape for d in (Dim.of(1), dim)])
    target = [e for repeat, dim in zip(repeats, x.shape, strict=True) for e in (repeat, dim)]
    sizes = [e.value if isinstance(e, Dim) and e.is_static else -1 for e in target]
    given = [Arithmetic(node).value(e, _I64) for e, n in zip(target, sizes, strict=True) if n < 0]
    kinds = [DYNAMIC_INDEX if n < 0 else n for n in sizes]
    for axis, (dim, size) in enumerate(zip(x.shape, node.declared_sizes(x.rank), strict=True)):
        if size is not None and dim.is_static and dim.value and size % dim.value == 0:
            kinds[2 * axis] = size // dim.value
    kind = TensorType(element_type(x.dtype), kinds)
    wide = node.emit(_broadcast, apart, *given, shape=sizes, kind=kind)
    pairs = zip(wide.shape[::2], wide.shape[1::2], strict=True)
    return reshaped(node, wide, [repeat * dim for repeat, dim in pairs])


def _broadcast(x: SSAValue, *sizes: SSAValue, shape: list[int], kind: TensorType) -> Operation:
    return graph.DynamicBroadcastOp(x, sizes, shape, kind)


def one_hot_by(node: Node, indices: Value, depth: Value, values: Value, axis: int) -> Value:
    """The second of two values where an index is the place along a new axis, else the first."""
    b = Arithmetic(node)
    size = node.declared_sizes(indices.rank + 1)[axis]
    kind = TensorType(element_type(_I64), [DYNAMIC_INDEX if size is None else size])
    others = [other for other in range(indices.rank + 1) if other != axis]
    places = unsqueezed(node, node.emit(graph.ArangeOp, depth, result_type=kind), others)
    own = b.where(b.less(indices, 0), b.add(indices, depth), indices)
    off, on = (squeezed(node, sliced(node, values, [(n, n + 1, 1)]), [0]) for n in (0, 1))
    return node.emit(graph.WhereOp, b.equal(unsqueezed(node, own, [axis]), places), on, off)


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
    b, size = Arithmetic(node), x.shape[axis]
    added, removed = [b.max(end, 0) for end in ends], [b.max(b.sub(0, end), 0) for end in ends]
    left = b.sub(b.sub(size, removed[0]), removed[1])
    count = b.where(b.less(left, 0), -1, b.add(b.add(left, added[0]), added[1]))
    declared = node.declared_sizes(x.rank)[axis]
    kind = TensorType(element_type(_I64), [DYNAMIC_INDEX if declared is None else declared])
    place = b.sub(node.emit(graph.ArangeOp, count, result_type=kind), added[0])
    source = b.add(_place_in(b, place, left, mode), removed[0])
    if mode != "constant":
        return node.emit(graph.GatherOp, x, source, axis=axis)
    inside = b.logical_and(b.less_equal(0, place), b.less(place, left))
    high = [int(other == axis) for other in range(x.rank)]
    number = 0 if isinstance(fill, Value) else fill
    x = node.emit(graph.PadOp, x, low=[0] * x.rank, high=high, value=number, mode=mode)
    found = node.emit(graph.GatherOp, x, b.where(inside, source, size), axis=axis)
    if not isinstance(fill, Value):
        return found
    others = [other for other in range(x.rank) if other != axis]
    return node.emit(graph.WhereOp, unsqueezed(node, inside, others), found, fill)


def _place_in(b: Arithmetic, place: Value, size: Number, mode: str) -> Value:
    """The place below `size` that a place before 0 or past the end repeats."""
    if mode == "edge":
        return b.max(b.min(place, b.sub(size, 1)), 0)
    if mode == "wrap":
        period = b.max(size, 1)
        return _rest(b, b.add(_rest(b, place, period), period), period)
    if mode == "reflect":
        period = b.max(b.mul(b.sub(size, 1), 2), 1)
        forward = _rest(b, b.abs(place), period)
        return b.min(forward, b.sub(period, forward))
    return place


def _rest(b: Arithmetic, number: Value, divisor: Value) -> Value:
    """The remainder of a division, which has the sign of the number."""
    return b.sub(number, b.mul(b.div(number, divisor), divisor))

"""Concatenations, slices, paddings, gathers and scatters of values with symbolic shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

from ...core.algebra.dims import Dim
from ...dialects.graph import ops as graph
from ...dialects.graph.ops.moves.select import WHOLE_END
from .dtypes import element_type
from .nodes import ModelNode, Number
from .shapes import places_of, sliced_to, transposed, unsqueezed
from .values import Value


def whole(x: Value) -> list[tuple[int, int, int]]:
    """Start, end and step of each dimension for a slice of the whole tensor."""
    return [(0, dim.value if dim.is_static else WHOLE_END, 1) for dim in x.shape]


def sliced(node: ModelNode, x: Value, parts: Sequence[tuple[int, int, int]]) -> Value:
    """The slice (start, end, step) of `x` in each dimension; `x` itself for the whole tensor."""
    if list(parts) == whole(x):
        return x
    starts, ends, steps = zip(*parts, strict=True)
    return node.slice(x, starts=starts, ends=ends, steps=steps)


def taken(node: ModelNode, x: Value, axis: int, places: np.ndarray) -> Value:
    """The elements of `x` at known places along an axis; a slice where they are evenly spaced."""
    steps = set(np.diff(places).tolist()) or {1}
    if not places.size or len(steps) > 1 or min(steps) < 1:
        return node.gather(x, node.known(places), axis=axis)
    parts = whole(x)
    parts[axis] = int(places[0]), int(places[-1]) + 1, steps.pop()
    return sliced(node, x, parts)


def apart(node: ModelNode, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Neighbouring parts of `x` along an axis, of these sizes, which add up to its own."""
    results: list[Value] = []
    start = 0
    for size in sizes:
        parts = whole(x)
        parts[axis] = (start, start + size, 1)
        results.append(sliced(node, x, parts))
        start += size
    return results


def cut_by(
    node: ModelNode,
    x: Value,
    axis: int,
    first: Number,
    step: Number,
    count: Number,
    size: int | None = None,
) -> Value:
    """`count` elements of an axis, which the model may declare to be this size."""
    sizes = [dim.value if dim.is_static else DYNAMIC_INDEX for dim in x.shape]
    sizes[axis] = DYNAMIC_INDEX if size is None else size
    kind = TensorType(element_type(x.dtype), sizes)
    start, by, own = (node.value(n, np.dtype(np.int64)) for n in (first, step, count))
    return node.apply(graph.DynamicSliceOp, x, start, by, own, axis=axis, result_type=kind)


def padded(
    node: ModelNode,
    x: Value,
    low: Sequence[int],
    high: Sequence[int],
    value: float | int = 0,
    mode: str = "constant",
) -> Value:
    """`x` with padding; negative numbers remove elements first."""
    parts = whole(x)
    for axis, (before, after) in enumerate(zip(low, high, strict=True)):
        if before >= 0 and after >= 0:
            continue
        if not x.shape[axis].is_static:
            first, last = max(0, -before), max(0, -after)
            x = cut_by(node, x, axis, Dim.of(first), Dim.of(1), x.shape[axis] - first - last)
            parts[axis] = 0, WHOLE_END, 1
            continue
        size = x.shape[axis].value
        start, end = max(0, -before), size - max(0, -after)
        if start > end:
            raise node.broken("negative pads exceed the size", f"at most {size}", [before, after])
        parts[axis] = start, end, 1
    x = sliced(node, x, parts)
    low, high = [max(0, n) for n in low], [max(0, n) for n in high]
    if not any(low) and not any(high):
        return x
    if mode != "constant":
        for axis, dim in enumerate(x.shape):
            if not dim.is_static:
                x = _repeated_ends(node, x, axis, low[axis], high[axis], mode)
                low[axis] = high[axis] = 0
    return node.pad(x, low=low, high=high, value=value, mode=mode) if any((*low, *high)) else x


def _repeated_ends(node: ModelNode, x: Value, axis: int, low: int, high: int, mode: str) -> Value:
    """`x` between elements of its own along an axis; of too few ones, indices are out of range."""
    before, after = {
        "edge": ([0] * low, [-1] * high),
        "reflect": (range(low, 0, -1), range(-2, -2 - high, -1)),
        "wrap": (range(-low, 0), range(high)),
    }[mode]
    ends = [node.known(np.array(places, np.int64)) for places in (before, after)]
    first, last = (node.gather(x, own, axis=axis) for own in ends)
    parts = [*([first] if low else []), x, *([last] if high else [])]
    return node.concat(parts, axis=axis) if len(parts) > 1 else x


def checked_sizes(node: ModelNode, x: Value, one: Dim, other: Dim, what: str) -> Value:
    """`x`, after a check that two sizes agree.

    Raises:
        ImportModelError: if they are known and differ.
    """
    if one == other:
        return x
    if one.is_static and other.is_static:
        raise node.broken(f"{what} differ", one, other)
    sizes = [node.value(size, np.dtype(np.int64)) for size in (one, other)]
    text = f"{what} differ, expected {{0}}, got {{1}}"
    return node.check(x, node.equal(*sizes), sizes, text)


def triangle(node: ModelNode, x: Value, k: Number, *, upper: bool) -> Value:
    """The elements of matrices on one side of the k-th diagonal, and on it; others are 0."""
    if x.rank < 2:
        raise node.broken("operand is not a matrix", "rank >= 2", f"rank {x.rank}")
    rows, columns = x.shape[-2:]
    nothing = node.known(np.zeros((), x.dtype))
    if not isinstance(k, int) or not rows.is_static or not columns.is_static:
        row, column = (places_of(node, size) for size in (rows, columns))
        distance = node.sub(unsqueezed(node, column, [0]), unsqueezed(node, row, [1]))
        kept = node.less_equal(k, distance) if upper else node.less_equal(distance, k)
        return node.where(kept, x, nothing)
    shape = (rows.value, columns.value)
    k = min(max(k, -sum(shape)), sum(shape))
    kept = np.triu(np.ones(shape, np.bool_), k) if upper else np.tril(np.ones(shape, np.bool_), k)
    return node.where(node.known(kept), x, nothing)


def gathered_beside(node: ModelNode, x: Value, indices: Value, axis: int) -> Value:
    """The elements of `x` at indices along an axis, of which there may be fewer along others."""
    for other in _longer(x, indices, axis):
        x = sliced_to(node, x, other, Dim.of(0), indices.shape[other])
    return node.gather_elements(x, indices, axis=axis)


def scattered_beside(
    node: ModelNode, x: Value, indices: Value, updates: Value, axis: int, kind: str
) -> Value:
    """`x` with updates at indices along an axis, of which there may be fewer along others."""
    if not (longer := _longer(x, indices, axis)):
        return node.scatter_elements(x, indices, updates, axis=axis, kind=kind)
    other, count = longer[0], indices.shape[longer[0]]
    part = sliced_to(node, x, other, Dim.of(0), count)
    part = scattered_beside(node, part, indices, updates, axis, kind)
    return by_rows(node, x, other, places_of(node, count), part, "none")


def _longer(x: Value, indices: Value, axis: int) -> list[int]:
    """The axes on which indices may be fewer than elements in a call."""
    pairs = enumerate(zip(x.shape, indices.shape, strict=False))
    return [
        other
        for other, (size, count) in pairs
        if other != axis and size != count and not (size.is_static and count.is_static)
    ]


def by_rows(node: ModelNode, x: Value, axis: int, index: Value, src: Value, kind: str) -> Value:
    """x with whole slices along an axis replaced by, or joined with, those of `src`."""
    order = [axis, *(i for i in range(x.rank) if i != axis)]
    back = [order.index(i) for i in range(x.rank)]
    rows, new = (transposed(node, part, order) for part in (x, src))
    return transposed(node, node.scatter_nd(rows, new, [index], kind=kind), back)

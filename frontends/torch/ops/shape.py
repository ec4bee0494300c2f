"""Operators of ATen that move elements, join tensors or select parts of them by position."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim, product
from ...importing.elementwise import modulo
from ...importing.selection import apart, padded, sliced, whole
from ...importing.shapes import (
    broadcast,
    places_of,
    repeated,
    reshaped,
    sliced_to,
    transposed,
    unsqueezed,
)
from ...importing.values import Value, is_static
from ..nodes import Node
from ..registry import converts
from ..sizes import ENDLESS

_END = 2**63 - 1


@converts(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten._reshape_copy.default",
    "aten.view_copy.default",
)
def view(node: Node, x: Value, size: Sequence[Any]) -> Value:
    return reshaped(node, x, _target(node, size))


def _target(node: Node, sizes: Sequence[Any]) -> list[Dim | None]:
    """The shape of the result; None for a -1 that is no sum of products of known sizes."""
    target: list[Dim | None] = []
    for given, found in zip(sizes, node.results[0].shape, strict=True):
        known = node.sizes.dim(found)
        target.append(known if known is not None or given == -1 else node.dimension(given))
    return target


@converts("aten.flatten.using_ints")
def flatten(node: Node, x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    return reshaped(node, x, node.result_shape)


@converts("aten.unflatten.int")
def unflatten(node: Node, x: Value, dim: int, sizes: Sequence[Any]) -> Value:
    return reshaped(node, x, node.result_shape)


@converts("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(node: Node, x: Value, dim: int) -> Value:
    return unsqueezed(node, x, [node.axis(dim, x.rank + 1)])


@converts("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.dims")
def squeeze(node: Node, x: Value, dims: Any = None) -> Value:
    # torch has decided which symbolic dimensions are 1: none.
    given = range(x.rank) if dims is None else [dims] if isinstance(dims, int) else dims
    axes = node.axes(given, x.rank) if x.rank else []
    return reshaped(node, x, [dim for i, dim in enumerate(x.shape) if i not in axes or dim != 1])


@converts("aten.permute.default", "aten.permute_copy.default")
def permute(node: Node, x: Value, dims: Sequence[int]) -> Value:
    return transposed(node, x, node.axes(dims, x.rank))


@converts("aten.transpose.int", "aten.transpose_copy.int")
def transpose(node: Node, x: Value, dim0: int, dim1: int) -> Value:
    order = list(range(x.rank))
    if order:
        a, b = node.axis(dim0, x.rank), node.axis(dim1, x.rank)
        order[a], order[b] = b, a
    return transposed(node, x, order)


@converts("aten.t.default", "aten.numpy_T.default")
def t(node: Node, x: Value) -> Value:
    return transposed(node, x, list(reversed(range(x.rank))))


@converts("aten.expand.default", "aten.expand_copy.default")
def expand(node: Node, x: Value, size: Sequence[Any], implicit: bool = False) -> Value:
    return broadcast(node, x, node.result_shape)


@converts("aten.expand_as.default")
def expand_as(node: Node, x: Value, other: Value) -> Value:
    return broadcast(node, x, other.shape)


@converts("aten.repeat.default")
def repeat(node: Node, x: Value, repeats: Sequence[Any]) -> Value:
    counts = node.dims(repeats)
    return repeated(node, unsqueezed(node, x, range(len(counts) - x.rank)), counts)


@converts("aten.flip.default")
def flip(node: Node, x: Value, dims: Sequence[int]) -> Value:
    parts = whole(x)
    for axis in node.axes(dims, x.rank):
        size = x.shape[axis]
        if size.is_static:
            parts[axis] = (size.value - 1, -1, -1)
            continue
        places = places_of(node, size)
        backward = node.sub(node.number(size - 1), places)
        x = node.gather(x, backward, axis=axis)
    return sliced(node, x, parts)


@converts("aten.roll.default")
def roll(node: Node, x: Value, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Value:
    if not dims:
        flat = reshaped(node, x, [product(x.shape)])
        return reshaped(node, roll(node, flat, shifts, [0]), x.shape)
    for shift, axis in zip(shifts, node.axes(dims, x.rank), strict=True):
        size, by = x.shape[axis], node.dimension(shift)
        if size.is_static and by.is_static:
            start = -by.value % max(size.value, 1)
            last, first = whole(x), whole(x)
            last[axis], first[axis] = (start, size.value, 1), (0, start, 1)
            x = node.concat([sliced(node, x, last), sliced(node, x, first)], axis=axis)
            continue
        moved = node.sub(places_of(node, size), node.number(by))
        places = modulo(node, moved, node.number(size))
        x = node.gather(x, places, axis=axis)
    return x


@converts("aten.cat.default", "aten.concat.default")
def cat(node: Node, tensors: Sequence[Value], dim: int = 0) -> Value:
    axis = node.axis(dim, len(node.result_shape))
    # A vector without elements is left out, whatever the rank of the others.
    parts = [x for x in tensors if x.rank > 1 or x.shape != (Dim.of(0),)] or tensors[:1]
    parts = [node.operand(x, node.dtype) for x in parts]
    return parts[0] if len(parts) == 1 else node.concat(parts, axis=axis)


@converts("aten.stack.default")
def stack(node: Node, tensors: Sequence[Value], dim: int = 0) -> Value:
    axis = node.axis(dim, tensors[0].rank + 1)
    parts = [unsqueezed(node, node.operand(x, node.dtype), [axis]) for x in tensors]
    return parts[0] if len(parts) == 1 else node.concat(parts, axis=axis)


@converts("aten.select.int", "aten.select_copy.int")
def select(node: Node, x: Value, dim: int, index: Any) -> Value:
    axis = node.axis(dim, x.rank)
    size, at = x.shape[axis], node.dimension(index)
    if not size.is_static or not at.is_static:
        place = node.operand(at, node.index)
        return node.gather(x, place, axis=axis)
    parts, start = whole(x), at.value % max(size.value, 1)
    parts[axis] = (start, start + 1, 1)
    part = sliced(node, x, parts)
    return reshaped(node, part, [d for i, d in enumerate(part.shape) if i != axis])


@converts("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    node: Node, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Value:
    axis = node.axis(dim, x.rank)
    first = node.dimension(0 if start is None else start)
    last = node.dimension(_END if end is None else end)
    return part_of(node, x, axis, first, last, node.integer(step, "a step"))


def part_of(node: Node, x: Value, axis: int, first: Dim, last: Dim, step: int) -> Value:
    """Elements from `first` up to before `last` along an axis."""
    size = x.shape[axis]
    if size.is_static and first.is_static and last.is_static:
        parts = whole(x)
        parts[axis] = slice(first.value, last.value, step).indices(size.value)
        return sliced(node, x, parts)
    at_end = (last.is_static and last.value >= ENDLESS) or last == size
    if first == 0 and step == 1 and at_end:
        return x
    # The sizes that torch has decided on: places from `first` on, as many as the result has.
    count = node.result_shape[axis]
    if first.is_static and first.value < 0:
        first = size + first
    return sliced_to(node, x, axis, first, count, step)


@converts("aten.split_with_sizes.default", "aten.split_with_sizes_copy.default")
def split_with_sizes(node: Node, x: Value, sizes: Sequence[Any], dim: int = 0) -> list[Value]:
    axis, parts = node.axis(dim, x.rank), node.dims(sizes)
    if x.shape[axis].is_static and is_static(parts):
        return apart(node, x, axis, [part.value for part in parts])
    starts = itertools.accumulate(parts, initial=Dim.of(0))
    pairs = zip(starts, parts, strict=False)
    return [sliced_to(node, x, axis, start, part) for start, part in pairs]


@converts("aten.split.Tensor", "aten.chunk.default")
def split(node: Node, x: Value, size: Any, dim: int = 0) -> list[Value]:
    axis = node.axis(dim, x.rank)
    return split_with_sizes(node, x, [part.shape[axis] for part in node.results], dim)


@converts("aten.unbind.int")
def unbind(node: Node, x: Value, dim: int = 0) -> list[Value]:
    axis = node.axis(dim, x.rank)
    return [select(node, x, axis, number) for number in range(len(node.results))]


@converts("_operator.getitem")
def getitem(node: Node, values: Sequence[Value | None], index: int) -> Value:
    found = values[index]
    if found is None:
        raise node.unsupported(f"result {index} is not supported")
    return found


@converts("aten.constant_pad_nd.default")
def constant_pad(node: Node, x: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    return _pad(node, x, pad, "constant", value)


@converts(
    "aten.reflection_pad1d.default",
    "aten.reflection_pad2d.default",
    "aten.reflection_pad3d.default",
)
def reflection_pad(node: Node, x: Value, pad: Sequence[Any]) -> Value:
    return _pad(node, x, pad, "reflect", 0)


@converts(
    "aten.replication_pad1d.default",
    "aten.replication_pad2d.default",
    "aten.replication_pad3d.default",
)
def replication_pad(node: Node, x: Value, pad: Sequence[Any]) -> Value:
    return _pad(node, x, pad, "edge", 0)


def _pad(node: Node, x: Value, pad: Sequence[Any], mode: str, value: Any) -> Value:
    """Padding as torch gives it: before and after each dimension, the last one first."""
    sizes = [node.integer(size, "a padding") for size in pad]
    low, high = [0] * x.rank, [0] * x.rank
    for number in range(len(sizes) // 2):
        axis = x.rank - 1 - number
        low[axis], high[axis] = sizes[2 * number], sizes[2 * number + 1]
    return padded(node, x, low, high, value, mode)


@converts("aten.pixel_shuffle.default")
def pixel_shuffle(node: Node, x: Value, factor: int) -> Value:
    *batch, c, h, w = x.shape
    depth, b, n = c.exact_div(factor * factor), Dim.of(factor), len(batch)
    if depth is None:
        raise node.unsupported(f"a factor that does not divide {c} channels")
    blocks = reshaped(node, x, [*batch, depth, b, b, h, w])
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return reshaped(node, transposed(node, blocks, order), [*batch, depth, h * factor, w * factor])


@converts("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(node: Node, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    a, b = node.axis(dim1, x.rank), node.axis(dim2, x.rank)
    rest = [axis for axis in range(x.rank) if axis not in (a, b)]
    front = transposed(node, x, [a, b, *rest])
    count = node.results[0].shape[-1]
    places = places_of(node, node.dimension(count))
    rows = cols = places
    if offset > 0:
        cols = node.add(places, offset)
    if offset < 0:
        rows = node.add(places, -offset)
    found = node.gather_nd(front, [rows, cols])
    return transposed(node, found, [*range(1, found.rank), 0])


@converts("aten.unfold.default")
def unfold(node: Node, x: Value, dimension: int, size: int, step: int) -> Value:
    """Windows along an axis, whose elements are a new last dimension."""
    if not x.rank:
        return reshaped(node, x, [Dim.of(1)])
    axis = node.axis(dimension, x.rank)
    starts = places_of(node, node.dimension(node.results[0].shape[axis]))
    if step != 1:
        starts = node.mul(starts, step)
    places = node.add(unsqueezed(node, starts, [1]), node.known(np.arange(size)))
    windows = node.gather(x, places, axis=axis)
    return transposed(node, windows, [i for i in range(windows.rank) if i != axis + 1] + [axis + 1])


@converts("aten.as_strided.default")
def as_strided(
    node: Node, x: Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> Value:
    flat = reshaped(node, x, [product(x.shape)])
    return node.gather(flat, _memory(node, size, stride, storage_offset), axis=0)


@converts("aten.as_strided_scatter.default")
def as_strided_scatter(
    node: Node,
    x: Value,
    src: Value,
    size: Sequence[Any],
    stride: Sequence[Any],
    storage_offset: Any = None,
) -> Value:
    flat, places = (
        reshaped(node, x, [product(x.shape)]),
        _memory(node, size, stride, storage_offset),
    )
    return reshaped(node, node.scatter_nd(flat, src, [places]), x.shape)


def _memory(node: Node, size: Sequence[Any], stride: Sequence[Any], offset: Any) -> Value:
    """The places in memory that sizes and strides name; that of an operand is in order."""
    if not node.fx.args[0].meta["val"].is_contiguous():
        raise node.unsupported("strides in memory of a tensor that is not contiguous", "reshape")
    sizes, steps = (
        [node.integer(n, f"a {what}") for n in given]
        for what, given in (("size", size), ("stride", stride))
    )
    places = np.array(node.integer(offset or 0, "an offset"))
    for count, step in zip(sizes, steps, strict=True):
        places = places[..., None] + np.arange(count) * step
    return node.known(places)

"""DeformConv: a convolution whose windows have places of their own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....core.algebra.dims import Dim
from ...importing.formulas import FormulaTerm
from ...importing.grids import interpolated
from ...importing.selection import apart
from ...importing.shapes import matrix_product, reshaped, squeezed, transposed, unsqueezed
from ...importing.values import Value, is_static
from ..nodes import Node
from ..registry import converts


@dataclass(frozen=True)
class _Windows:
    """The windows of an image: their sizes, their number along each axis, and groups of channels.

    Each group of offsets moves the elements of the windows of its own channels.
    """

    window: Sequence[int]
    counts: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    groups: int
    offset_groups: int

    @property
    def taps(self) -> int:
        """The number of elements of a window."""
        return math.prod(self.window)

    def regular(self, axis: int) -> np.ndarray:
        """The place of each element of each window along an axis, before it is moved."""
        starts = np.arange(self.counts[axis]) * self.strides[axis] - self.before[axis]
        shape = [1] * len(self.counts)
        shape[axis] = -1
        own = np.array([tap[axis] for tap in itertools.product(*map(range, self.window))])
        return own.reshape(-1, *[1] * len(shape)) * self.dilations[axis] + starts.reshape(shape)


@converts("DeformConv", since=19)
def deform_conv(node: Node) -> Value:
    x, w, offset = (node.input(index) for index in range(3))
    windows = _windows(node, x, w, offset)
    image = reshaped(node, x, _grouped(windows, x, *x.shape[2:]))
    last = transposed(node, image, [0, *range(2, image.rank), 1])
    found = interpolated(node, last, x.shape[2:], _places(node, windows, x, offset))
    if (mask := node.optional(4)) is not None:
        shape = [Dim.of(n) for n in (windows.taps, *windows.counts)]
        own = reshaped(node, mask, [x.shape[0] * windows.offset_groups, *shape])
        found = node.mul(found, unsqueezed(node, own, [own.rank]))
    # y[n, g, o, p] == sum_k w[g, o, k] * columns[n, g, k, p], where k is a channel of the group
    # and an element of the window, and p the place of the window
    rank, groups, places = found.rank, windows.groups, math.prod(windows.counts)
    rows = x.shape[1].value // groups * windows.taps
    columns = transposed(node, found, [0, rank - 1, *range(1, rank - 1)])
    columns = reshaped(node, columns, [x.shape[0], *map(Dim.of, (groups, rows, places))])
    filters = reshaped(node, w, [Dim.of(n) for n in (groups, w.shape[0].value // groups, rows)])
    total = matrix_product(node, filters, columns)
    result = reshaped(node, total, [x.shape[0], w.shape[0], *map(Dim.of, windows.counts)])
    if (bias := node.optional(3)) is None:
        return result
    return node.add(result, unsqueezed(node, bias, list(range(1, x.rank - 1))))


def _windows(node: Node, x: Value, w: Value, offset: Value) -> _Windows:
    count = x.rank - 2
    if count < 1 or w.rank != x.rank or offset.rank != x.rank:
        raise node.broken("operands have wrong ranks", f"rank {x.rank}", [w.rank, offset.rank])
    if not (is_static(w.shape) and is_static(x.shape[1:]) and is_static(offset.shape[1:])):
        raise node.unsupported("images, filters or offsets of symbolic sizes", "a symbolic batch")
    window = [dim.value for dim in w.shape[2:]]
    strides = node.attr_ints("strides") or [1] * count
    dilations = node.attr_ints("dilations") or [1] * count
    pads = node.attr_ints("pads") or [0] * (2 * count)
    given = node.attr_ints("kernel_shape") or window
    if [*map(len, (strides, dilations, pads))] != [count, count, 2 * count] or given != window:
        raise node.broken("kernel_shape, strides, dilations or pads do not fit", f"{count} axes")
    extents = [d * (n - 1) + 1 for d, n in zip(dilations, window, strict=True)]
    counts = [
        (x.shape[2 + n].value + pads[n] + pads[count + n] - extents[n]) // strides[n] + 1
        for n in range(count)
    ]
    groups, offset_groups = node.attr_int("group", 1), node.attr_int("offset_group", 1)
    result = _Windows(window, counts, strides, dilations, pads, groups, offset_groups)
    _check(node, result, x, w, offset)
    return result


def _check(node: Node, windows: _Windows, x: Value, w: Value, offset: Value) -> None:
    channels, filters = x.shape[1].value, w.shape[0].value
    divisors = windows.groups, windows.offset_groups
    if min(divisors) < 1 or any(channels % n for n in divisors) or filters % windows.groups:
        raise node.broken("groups do not divide the channels", f"{channels}, {filters}", divisors)
    if w.shape[1] != Dim.of(channels // windows.groups):
        raise node.broken("filters do not fit", channels // windows.groups, w.shape[1])
    taps = windows.offset_groups * windows.taps
    for name, value, parts in (
        ("offset", offset, len(windows.counts)),
        ("mask", node.optional(4), 1),
    ):
        want = tuple(Dim.of(n) for n in (taps * parts, *windows.counts))
        if value is not None and value.shape[1:] != want:
            got = [str(dim) for dim in value.shape[1:]]
            raise node.broken(f"{name} does not fit the windows", [str(dim) for dim in want], got)


def _grouped(windows: _Windows, x: Value, *sizes: Dim) -> list[Dim]:
    """The shape of images with channels of one group of offsets."""
    channels = x.shape[1].value // windows.offset_groups
    return [x.shape[0] * windows.offset_groups, Dim.of(channels), *sizes]


def _places(node: Node, windows: _Windows, x: Value, offset: Value) -> list[FormulaTerm]:
    """The places of elements of windows along each axis: (n, taps, *counts)."""
    count = len(windows.counts)
    batch = x.shape[0] * windows.offset_groups
    shape = [batch, *map(Dim.of, (windows.taps, count, *windows.counts))]
    moves = apart(node, reshaped(node, offset, shape), 2, [1] * count)
    numbers = [FormulaTerm.of(node, squeezed(node, move, [2]), x.dtype) for move in moves]
    return [move + windows.regular(axis) for axis, move in enumerate(numbers)]

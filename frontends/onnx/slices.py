"""Slices: along axes of known sizes, or by scalars that come at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.algebra.dims import Dim
from ...dialects.graph.ops.moves.select import WHOLE_END
from ..counts import step_count
from ..importing.selection import cut_by, sliced, whole
from ..importing.values import Value
from .dynamic import Element
from .nodes import Node

_BEYOND = 1 << 62
"""An end past that of any axis."""


def sliced_by(
    node: Node,
    x: Value,
    starts: Sequence[Element],
    ends: Sequence[Element],
    axes: Sequence[Element],
    steps: Sequence[Element],
) -> Value:
    """The slice of `x` along axes, where some of the numbers are scalars; clamped as in Python."""
    rank = x.rank
    fits: Value | None = None
    for axis in axes:
        if isinstance(axis, Value):
            inside = node.logical_and(node.less_equal(-rank, axis), node.less(axis, rank))
            fits = inside if fits is None else node.logical_and(fits, inside)
    for axis in range(rank):
        ends_of_axis: list[Element] = [Dim.of(0), Dim.of(_BEYOND), Dim.of(1)]
        for own, *given in zip(axes, starts, ends, steps, strict=True):
            if isinstance(own, Value):
                hit = node.logical_or(node.equal(own, axis), node.equal(own, axis - rank))
                pairs = zip(given, ends_of_axis, strict=True)
                ends_of_axis = [node.where(hit, new, old) for new, old in pairs]
            elif own in (axis, axis - rank):
                ends_of_axis = given
        part = _part(x.shape[axis], ends_of_axis)
        if part is None:
            x = _sliced_axis(node, x, axis, ends_of_axis, fits)
            fits = None
        else:
            x = sliced(node, x, [*whole(x)[:axis], part, *whole(x)[axis + 1 :]])
    return x


def _part(dim: Dim, ends: Sequence[Element]) -> tuple[int, int, int] | None:
    """Start, end and step of the slice of an axis, if they are known; clamped as in Python."""
    known = [end.value for end in ends if isinstance(end, Dim) and end.is_static]
    start, end, step = ends
    if not dim.is_static and start == 0 and step == 1 and end in (dim, _BEYOND):
        return 0, WHOLE_END, 1
    if len(known) < len(ends) or not dim.is_static:
        return None
    return slice(*known).indices(dim.value)


def _sliced_axis(
    node: Node, x: Value, axis: int, ends: Sequence[Element], fits: Value | None
) -> Value:
    """The slice of one axis; unless `fits`, its size is an error of the call."""
    size = x.shape[axis]
    start, end, step = ends
    if isinstance(step, Dim):
        if step == 0:
            raise node.broken("a step is 0")
        low: Element = Dim.of(-1 if step.value < 0 else 0)
        high: Element = size + low
    else:
        low = node.where(node.less(step, 0), -1, 0)
        high = node.add(low, size)

    def clamped(place: Element) -> Value:
        """A place from the front, inside of the axis or at its ends."""
        own = node.where(node.less(place, 0), node.add(place, size), place)
        return node.min(node.max(own, low), high)

    first, last, by = clamped(start), clamped(end), node.value(step, np.dtype(np.int64))
    if step == 1:
        count = node.max(node.sub(last, first), 0)
    else:
        count = step_count(node, first, last, by, of_floats=False)
    if fits is not None:
        count = node.where(fits, count, -1)
    return cut_by(node, x, axis, first, by, count, node.declared_sizes(x.rank)[axis])

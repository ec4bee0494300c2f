"""Operators that join or select parts of tensors: concatenations, gathers, slices."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.algebra.dims import Dim
from ....dialects.graph.ops.moves.select import WHOLE_END
from ...importing.selection import apart, sliced, whole
from ...importing.shapes import reshaped, squeezed
from ...importing.values import Value
from ..dynamic import Element, static_sizes
from ..extents import even_sizes, split_by
from ..nodes import Node
from ..registry import converts
from ..slices import sliced_by

_BEYOND = 1_000_000_000
"""Exporters write a start or end of at least this magnitude for the border of a dimension."""


@converts("Concat", since=1)
def concat(node: Node) -> Value:
    xs = node.variadic()
    if not node.has("axis") and node.opset >= 4:
        raise node.broken('attribute "axis" is missing')
    axis = node.axis(node.attr_int("axis", 1), xs[0].rank)
    if len(xs) == 1:
        return xs[0]
    result = node.concat(xs, axis=axis)
    if xs[0].rank == 1 and xs[0].dtype.kind in "iu":
        result.parts = xs
    return result


@converts("Gather", since=1)
def gather(node: Node) -> Value:
    x, indices = node.input(0), node.input(1)
    axis = node.axis(node.attr_int("axis"), x.rank)
    return node.gather(x, indices, axis=axis)


@converts("Slice", since=1)
def slice_attributes(node: Node) -> Value:
    starts, ends = node.attr_ints("starts"), node.attr_ints("ends")
    if starts is None or ends is None:
        raise node.broken('attributes "starts" and "ends" are needed')
    return _sliced(node, starts, ends, node.attr_ints("axes"), None)


@converts("Slice", since=10)
def slice_(node: Node) -> Value:
    starts, ends = node.elements(1), node.elements(2)
    given = node.optional(3) is not None, node.optional(4) is not None
    axes = node.elements(3) if given[0] else list(map(Dim.of, range(len(starts))))
    steps = node.elements(4) if given[1] else [Dim.of(1)] * len(starts)
    numbers = [static_sizes(values) for values in (starts, ends, axes, steps)]
    if all(values is not None for values in numbers):
        return _sliced(node, *(values for values in numbers if values is not None))
    x = node.input(0)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        counts = [len(starts), len(ends), len(axes), len(steps)]
        raise node.broken("starts, ends, axes and steps differ in length", got=counts)
    if numbers[2] is not None:
        axes = list(map(Dim.of, node.axes(numbers[2], x.rank)))
    return sliced_by(node, x, starts, ends, axes, steps)


def _sliced(
    node: Node,
    starts: Sequence[int],
    ends: Sequence[int],
    given: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Value:
    x = node.input(0)
    axes = node.axes(range(len(starts)) if given is None else given, x.rank)
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        counts = [len(starts), len(ends), len(axes), len(steps)]
        raise node.broken("starts, ends, axes and steps differ in length", got=counts)
    parts = whole(x)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step == 0:
            raise node.broken("a step is 0")
        part = _part(x.shape[axis], start, end, step)
        if part is None:
            numbers = (list(map(Dim.of, values)) for values in (starts, ends, axes, steps))
            return sliced_by(node, x, *numbers)
        parts[axis] = part
    return sliced(node, x, parts)


def _part(dim: Dim, start: int, end: int, step: int) -> tuple[int, int, int] | None:
    """Start, end and step of a slice, clamped as in Python; None for a part of an unknown size."""
    if dim.is_static:
        return slice(start, end, step).indices(dim.value)
    if step == 1 and (start == 0 or start <= -_BEYOND) and end >= _BEYOND:
        return 0, WHOLE_END, 1
    return None


@converts("Split", since=1)
def split_attribute(node: Node) -> list[Value]:
    given = node.attr_ints("split")
    if node.optional(1) is not None:  # only in opset 1
        return _split(node, node.elements(1))
    return _split(node, None if given is None else list(map(Dim.of, given)))


@converts("Split", since=13)
def split(node: Node) -> list[Value]:
    return _split(node, None if node.optional(1) is None else node.elements(1))


@converts("Split", since=18)
def split_into(node: Node) -> list[Value]:
    count = node.attr_int("num_outputs") if node.has("num_outputs") else None
    if node.optional(1) is not None:
        return _split(node, node.elements(1))
    if count is not None and count != len(node.outputs):
        raise node.broken("num_outputs differs from the results", len(node.outputs), count)
    return _split(node, None, uneven=True)


def _split(node: Node, given: Sequence[Element] | None, *, uneven: bool = False) -> list[Value]:
    x, count = node.input(0), len(node.outputs)
    axis = node.axis(node.attr_int("axis"), x.rank)
    dim = x.shape[axis]
    if given is None and not dim.is_static:
        part = dim.exact_div(Dim.of(count))
        if part is not None:
            return _runs(node, x, axis, part)
        given = even_sizes(node, dim, count, uneven)
    sizes = _even_parts(node, dim.value, uneven) if given is None else static_sizes(given)
    if sizes is None or not dim.is_static:
        if given is None or len(given) != count:
            raise node.broken("wrong number of parts", count, None if given is None else len(given))
        return split_by(node, x, axis, given)
    if len(sizes) != count or sum(sizes) != dim.value or any(n < 0 for n in sizes):
        raise node.broken(f"parts do not fit {count} results", dim, sizes)
    return apart(node, x, axis, sizes)


def _runs(node: Node, x: Value, axis: int, part: Dim) -> list[Value]:
    """Parts of an axis of a symbolic size, of this size each."""
    count = len(node.outputs)
    rows = reshaped(node, x, [*x.shape[:axis], Dim.of(count), part, *x.shape[axis + 1 :]])
    results: list[Value] = []
    for n in range(count):
        parts = whole(rows)
        parts[axis] = (n, n + 1, 1)
        results.append(squeezed(node, sliced(node, rows, parts), [axis]))
    return results


def _even_parts(node: Node, size: int, uneven: bool) -> list[int]:
    """Parts of the same size; with `uneven` the last one may be smaller."""
    count = len(node.outputs)
    if count == 0 or (size % count and not uneven):
        raise node.broken("the dimension does not split evenly", f"a multiple of {count}", size)
    part = -(-size // count)
    return [max(0, min(part, size - i * part)) for i in range(count)]

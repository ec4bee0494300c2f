"""Operators defined by positions of elements: EyeLike, ReverseSequence, TensorScatter."""

from __future__ import annotations

from ...importing.elementwise import cast, modulo
from ...importing.shapes import broadcast, places_of, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts


@converts("EyeLike", since=9)
def eye_like(node: Node) -> Value:
    # 1 where column - row == k, else 0
    x, k = node.input(0), node.attr_int("k")
    if x.rank != 2:
        raise node.broken("operand is not a matrix", "rank 2", f"rank {x.rank}")
    rows, columns = (_along(node, x, axis) for axis in range(2))
    return cast(node, node.equal(node.sub(columns, rows), k), node.attr_dtype("dtype", x.dtype))


@converts("ReverseSequence", since=10)
def reverse_sequence(node: Node) -> Value:
    # y[b, t] == x[b, lens[b] - 1 - t] for t < lens[b], else x[b, t]
    x, lens = node.input(0), node.input(1)
    axes = batch, time = node.attr_int("batch_axis", 1), node.attr_int("time_axis")
    if sorted(axes) != [0, 1] or x.rank < 2:
        raise node.broken("batch_axis and time_axis do not fit", "0 and 1, of rank >= 2", axes)
    if lens.shape != (x.shape[batch],):
        got = [str(dim) for dim in lens.shape]
        raise node.broken("sequence_lens has the wrong shape", [str(x.shape[batch])], got)
    length = unsqueezed(node, node.wide(lens), [time])
    place = _along(node, x, time, rank=2)
    turned = node.where(node.less(place, length), node.sub(node.sub(length, 1), place), place)
    places = [turned, _along(node, x, batch, rank=2)]
    shape = x.shape[:2]
    both = [broadcast(node, own, shape) for own in (places if time == 0 else places[::-1])]
    return node.gather_nd(x, both)


@converts("TensorScatter", since=24)
def tensor_scatter(node: Node) -> Value:
    # cache[b, ..., start[b] + s, ...] = update[b, ..., s, ...]
    x, update, start = node.input(0), node.input(1), node.optional(2)
    axis, mode = node.axis(node.attr_int("axis", -2), x.rank), node.attr_string("mode", "linear")
    if mode not in ("linear", "circular"):
        raise node.broken("mode is unknown", "linear or circular", mode)
    others = [n for n in range(x.rank) if n != axis]
    if update.rank != x.rank or any(update.shape[n] != x.shape[n] for n in others) or not axis:
        shapes = [[str(dim) for dim in value.shape] for value in (x, update)]
        raise node.broken("the update does not fit", f"{shapes[0]} but for axis {axis}", shapes[1])
    place = _along(node, update, axis, rank=axis + 1)
    if start is not None:
        first = unsqueezed(node, node.wide(start), list(range(1, axis + 1)))
        place = node.add(place, first)
    if mode == "circular":
        place = modulo(node, place, node.number(x.shape[axis]))
    shape = update.shape[: axis + 1]
    own = [_along(node, update, n, rank=axis + 1) for n in range(axis)]
    places = [broadcast(node, value, shape) for value in (*own, place)]
    return node.scatter_nd(x, update, places)


def _along(node: Node, x: Value, axis: int, rank: int | None = None) -> Value:
    """The position along an axis of `x`, in a tensor of `rank` dimensions (default: its own)."""
    count = x.rank if rank is None else rank
    return unsqueezed(node, places_of(node, x.shape[axis]), [n for n in range(count) if n != axis])

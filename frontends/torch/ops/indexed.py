"""Gathers and scatters of ATen: by index along an axis, by several indices, by truth values."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core.algebra.dims import Dim, product
from ....core.dtype_names import is_real
from ...importing.elementwise import cast, floor_quotient
from ...importing.selection import by_rows, gathered_beside, scattered_beside
from ...importing.shapes import broadcast, reshaped, sliced_to, transposed, unsqueezed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts
from ..sizes import ENDLESS

_BOOL = np.dtype(np.bool_)


@converts("aten.index_select.default")
def index_select(node: Node, x: Value, dim: int, index: Value) -> Value:
    if not x.rank:
        return x
    axis = node.axis(dim, x.rank)
    return node.gather(x, node.from_front(index, 2, x, axis), axis=axis)


@converts("aten.embedding.default")
def embedding(node: Node, weight: Value, indices: Value, *settings: Any) -> Value:
    return node.gather(weight, node.from_front(indices, 1, weight, 0), axis=0)


@converts("aten.gather.default")
def gather(node: Node, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    if not x.rank:
        return x
    axis = node.axis(dim, x.rank)
    rows = rows_of(node, 2, axis)
    if rows is not None and _same_apart(x, index, axis):
        return node.gather(x, node.from_front(rows, 2, x, axis), axis=axis)
    return gathered_beside(node, x, node.from_front(index, 2, x, axis), axis)


def rows_of(node: Node, position: int, axis: int) -> Value | None:
    """The vector that an index repeats along all other axes than `axis`; None if it is none.

    An index [E] that is expanded to [E, F] means whole rows, which are moved by rows.
    """
    fx = node.fx.args[position]
    shape = fx.meta["val"].shape
    if len(shape) == 1:
        return node.values[fx]
    if str(fx.target) not in ("aten.expand.default", "aten.expand_as.default"):
        return None
    source = fx.args[0]
    sizes = source.meta["val"].shape
    first = len(shape) - len(sizes)
    lone = all(node.sizes.dim(n) == 1 for i, n in enumerate(sizes, first) if i != axis)
    if axis < first or not lone:
        return None
    value = node.values[source]
    if value.shape[axis - first] != node.dimension(shape[axis]):
        return None
    return node.vector(value, value.shape[axis - first])


def _same_apart(x: Value, other: Value, axis: int) -> bool:
    """Whether two shapes are the same apart from an axis."""
    return len(x.shape) == len(other.shape) and all(
        a == b for i, (a, b) in enumerate(zip(x.shape, other.shape, strict=True)) if i != axis
    )


# Scatters


@converts("aten.scatter_add.default")
def scatter_add(node: Node, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _scattered(node, x, dim, index, src, "add")


@converts("aten.scatter.src")
def scatter_src(node: Node, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _scattered(node, x, dim, index, src, "none")


@converts("aten.scatter.value")
def scatter_value(node: Node, x: Value, dim: int, index: Value, value: Any) -> Value:
    number = node.operand(value, x.dtype)
    return _scattered(node, x, dim, index, broadcast(node, number, index.shape), "none")


@converts("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_reduced(
    node: Node, x: Value, dim: int, index: Value, src: Any, *, reduce: str
) -> Value:
    if not isinstance(src, Value) or not src.rank:
        src = broadcast(node, node.operand(src, x.dtype), index.shape)
    return _scattered(node, x, dim, index, src, {"add": "add", "multiply": "mul"}[reduce])


def _scattered(node: Node, x: Value, dim: int, index: Value, src: Value, kind: str) -> Value:
    """x with updates at indices along an axis; by whole rows where the index repeats a vector."""
    if not x.rank:
        row = [reshaped(node, part, [Dim.of(1)]) for part in (x, index, src)]
        found = node.scatter_elements(*row, axis=0, kind=kind)
        return reshaped(node, found, [])
    axis = node.axis(dim, x.rank)
    for other, (size, own) in enumerate(zip(index.shape, src.shape, strict=True)):
        if size != own:
            src = sliced_to(node, src, other, Dim.of(0), size)
    rows = rows_of(node, 2, axis)
    if rows is not None and _same_apart(x, src, axis):
        return by_rows(node, x, axis, node.from_front(rows, 2, x, axis), src, kind)
    index = node.from_front(index, 2, x, axis)
    return scattered_beside(node, x, index, src, axis, kind)


_KINDS = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}


@converts("aten.scatter_reduce.two")
def scatter_reduce(
    node: Node,
    x: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    scatter = functools.partial(_scattered, node, dim=dim, index=index)
    return _reduced(node, x, src, reduce, include_self, scatter)


def _reduced(
    node: Node, x: Value, src: Value, reduce: str, include_self: bool, scatter: Callable[..., Value]
) -> Value:
    """x joined with what is scattered to it, or that alone; `scatter` joins by a kind."""
    kind = _KINDS[reduce]
    start = x if include_self else _filled(node, x, _neutral(x.dtype, kind))
    found = scatter(x=start, src=src, kind=kind)
    if include_self and reduce != "mean":
        return found
    ones = broadcast(node, node.known(np.array(1, x.dtype)), src.shape)
    counts = scatter(x=_filled(node, x, int(include_self)), src=ones, kind="add")
    if reduce == "mean":
        divisor = node.max(counts, 1)
        if is_real(x.dtype):
            found = node.div(found, divisor)
        else:
            found = floor_quotient(node, found, divisor)
    if include_self:
        return found
    # Where nothing is scattered to, x remains.
    hit = node.less(0, counts)
    return node.where(hit, found, x)


def _neutral(dtype: np.dtype, kind: str) -> float | int:
    if kind in ("add", "mul"):
        return int(kind == "mul")
    if is_real(dtype):
        return -math.inf if kind == "max" else math.inf
    limits = np.iinfo(dtype)
    return int(limits.min if kind == "max" else limits.max)


def _filled(node: Node, like: Value, number: float | int) -> Value:
    return broadcast(node, node.known(np.array(number).astype(like.dtype)), like.shape)


@converts("aten.index_add.default")
def index_add(node: Node, x: Value, dim: int, index: Value, src: Value, *, alpha: Any = 1) -> Value:
    if alpha != 1:
        src = node.mul(src, node.operand(alpha, src.dtype))
    return _by_index(node, x, dim, index, src, "add")


@converts("aten.index_copy.default")
def index_copy(node: Node, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _by_index(node, x, dim, index, src, "none")


def _by_index(node: Node, x: Value, dim: int, index: Value, src: Value, kind: str) -> Value:
    """x with slices along an axis at an index, the argument at position 2, as `by_rows` does."""
    axis = node.axis(dim, x.rank)
    return by_rows(node, x, axis, node.from_front(index, 2, x, axis), src, kind)


@converts("aten.index_reduce.default")
def index_reduce(
    node: Node,
    x: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    scatter = functools.partial(_by_index, node, dim=dim, index=index)
    return _reduced(node, x, src, reduce, include_self, scatter)


@converts("aten.select_scatter.default")
def select_scatter(node: Node, x: Value, src: Value, dim: int, index: Any) -> Value:
    axis = node.axis(dim, x.rank)
    place = node.operand(node.dimension(index), node.index)
    return by_rows(
        node, x, axis, reshaped(node, place, [Dim.of(1)]), unsqueezed(node, src, [axis]), "none"
    )


@converts("aten.slice_scatter.default")
def slice_scatter(
    node: Node,
    x: Value,
    src: Value,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> Value:
    axis = node.axis(dim, x.rank)
    if not x.shape[axis].is_static and step == 1:
        return _spliced(node, x, axis, src, node.dimension(start or 0), end)
    first, last = (None if n is None else node.integer(n, "a place") for n in (start, end))
    size = node.integer(x.shape[axis], "steps along a size")
    places = np.arange(size)[slice(first, last, step)]
    if len(places) == size:
        return src
    return by_rows(node, x, axis, node.known(places), src, "none")


def _spliced(node: Node, x: Value, axis: int, src: Value, start: Dim, end: Any) -> Value:
    """x with `src` between two places along an axis of symbolic size."""
    size = x.shape[axis]
    last = size if end is None else node.dimension(end)
    if any(place.is_static and place.value < 0 for place in (start, last)):
        raise node.unsupported("a place that counts from the end of a symbolic size")
    parts = [src]
    if start != 0:
        parts.insert(0, sliced_to(node, x, axis, Dim.of(0), start))
    if last != size and not (last.is_static and last.value >= ENDLESS):
        parts.append(sliced_to(node, x, axis, last, size - last))
    return node.concat(parts, axis=axis)


# Several indices


@converts("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index_(node: Node, x: Value, indices: Sequence[Value | None]) -> Value:
    places = _places(node, x, indices)
    axes = [axis for axis, place in enumerate(places) if place is not None]
    given = [place for place in places if place is not None]
    if len(given) == 1:
        return node.gather(x, given[0], axis=axes[0])
    rest = [axis for axis in range(x.rank) if axis not in axes]
    found = node.gather_nd(transposed(node, x, [*axes, *rest]), _together(node, given))
    # Indices of neighbouring axes stay where they are, others come to the front.
    first, count = axes[0], found.rank - len(rest)
    if axes != list(range(first, first + len(axes))):
        return found
    order = [*range(count, count + first), *range(count), *range(count + first, found.rank)]
    return transposed(node, found, order)


def _places(node: Node, x: Value, indices: Sequence[Value | None]) -> list[Value | None]:
    """One index or None for each axis: a mask becomes the places where it holds."""
    places: list[Value | None] = []
    for index in indices:
        if index is None or index.dtype not in (_BOOL, np.uint8):
            places.append(index)
            continue
        places += node.places_of(index)
    return [*places, *[None] * (x.rank - len(places))]


def _together(node: Node, places: Sequence[Value]) -> list[Value]:
    """Indices of one shape."""
    wide = [cast(node, place, node.index) for place in places]
    if all(place.shape == wide[0].shape for place in wide):
        return wide
    zeros = None
    for place in wide:
        nothing = node.mul(place, 0)
        zeros = nothing if zeros is None else node.add(zeros, nothing)
    assert zeros is not None
    return [node.add(place, zeros) for place in wide]


@converts("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    node: Node,
    x: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
) -> Value:
    kind, only = "add" if accumulate else "none", indices[0]
    values = node.operand(values, x.dtype)
    one_mask = len(indices) == 1 and only is not None and only.dtype == _BOOL
    if one_mask and only is not None and all(d == 1 for d in values.shape):
        number = reshaped(node, values, [])
        if accumulate:
            number = node.add(x, number)
        mask = unsqueezed(node, only, range(only.rank, x.rank))
        return node.where(mask, number, x)
    places = _places(node, x, indices)
    axes = [axis for axis, place in enumerate(places) if place is not None]
    given = _together(node, [place for place in places if place is not None])
    rest = [axis for axis in range(x.rank) if axis not in axes]
    order, count = [*axes, *rest], given[0].rank
    # Values are in the order in which `index_` gives elements.
    first = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    before = [x.shape[axis] for axis in rest[:first]]
    shape = [*before, *given[0].shape, *(x.shape[axis] for axis in rest[first:])]
    own = _spread(node, values, shape)
    moved = [*range(first, first + count), *range(first), *range(first + count, own.rank)]
    found = node.scatter_nd(
        transposed(node, x, order), transposed(node, own, moved), given, kind=kind
    )
    return transposed(node, found, [order.index(i) for i in range(x.rank)])


def _spread(node: Node, values: Value, shape: Sequence[Dim]) -> Value:
    """Values repeated where torch repeats them: along new dimensions and those of size 1.

    Others have the size that is needed, which is checked in each call if it is not known.
    """
    first = len(shape) - values.rank
    own = zip(values.shape, shape[first:], strict=True)
    wanted = [*shape[:first], *(size if dim == 1 else dim for dim, size in own)]
    return broadcast(node, values, wanted)


@converts("aten.masked_select.default")
def masked_select(node: Node, x: Value, mask: Value) -> Value:
    shape = tuple(a if b == 1 else b for a, b in _paired(x.shape, mask.shape))
    return index_(node, broadcast(node, x, shape), [broadcast(node, mask, shape)])


def _paired(a: Sequence[Dim], b: Sequence[Dim]) -> Iterator[tuple[Dim, Dim]]:
    """The dimensions of two shapes that meet in a broadcast."""
    rank, one = max(len(a), len(b)), Dim.of(1)
    return zip(
        *([*[one] * (rank - len(shape)), *shape] for shape in (a, b)),
        strict=True,
    )


@converts("aten.masked_scatter.default")
def masked_scatter(node: Node, x: Value, mask: Value, source: Value) -> Value:
    """Where a mask holds, one element of the source after the other."""
    shape = tuple(a if b == 1 else b for a, b in _paired(x.shape, mask.shape))
    wide = broadcast(node, mask, shape)
    flat = cast(node, reshaped(node, wide, [product(shape)]), node.index)
    before = node.cumulative(flat, kind="sum", axis=0, exclusive=True)
    elements = reshaped(node, source, [product(source.shape)])
    # Places that no element is taken from count as 0.
    places = node.mul(before, flat)
    taken = reshaped(node, node.gather(elements, places, axis=0), shape)
    return node.where(wide, taken, broadcast(node, x, shape))


@converts("aten.put.default")
def put(node: Node, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    flat = reshaped(node, x, [product(x.shape)])
    values = reshaped(node, source, index.shape)
    kind = "add" if accumulate else "none"
    return reshaped(node, node.scatter_nd(flat, values, [index], kind=kind), x.shape)


@converts("aten.nonzero.default")
def nonzero(node: Node, x: Value) -> Value:
    columns = [unsqueezed(node, place, [1]) for place in node.places_of(x)]
    return columns[0] if len(columns) == 1 else node.concat(columns, axis=1)

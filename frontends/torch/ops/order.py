"""Sorts, the largest elements, and different elements of ATen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.algebra.dims import Dim, product
from ....core.dtype_names import is_real
from ...importing.elementwise import is_nan
from ...importing.shapes import broadcast, reshaped, sliced_to, transposed
from ...importing.values import Value
from ..nodes import Node
from ..registry import converts


@converts("aten.sort.default")
def sort(node: Node, x: Value, dim: int = -1, descending: bool = False) -> list[Value]:
    if not x.rank:
        return [x, node.known(np.array(0))]
    return list(node.sort(x, axis=node.axis(dim, x.rank), descending=descending))


@converts("aten.sort.stable")
def sort_stable(
    node: Node,
    x: Value,
    *,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
) -> list[Value]:
    return sort(node, x, dim, descending)


@converts("aten.argsort.default")
def argsort(node: Node, x: Value, dim: int = -1, descending: bool = False) -> Value:
    return sort(node, x, dim, descending)[1]


@converts("aten.argsort.stable")
def argsort_stable(
    node: Node, x: Value, *, stable: bool = True, dim: int = -1, descending: bool = False
) -> Value:
    return sort(node, x, dim, descending)[1]


@converts("aten.topk.default")
def topk(
    node: Node, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Value]:
    if not x.rank:
        return [x, node.known(np.array(0))]
    count, axis = node.dimension(k), node.axis(dim, x.rank)
    if count.is_static:
        return list(node.top_k(x, k=count.value, axis=axis, largest=largest))
    return [sliced_to(node, part, axis, Dim.of(0), count) for part in sort(node, x, dim, largest)]


@converts("aten.kthvalue.default")
def kth_value(node: Node, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> list[Value]:
    axis = node.axis(dim, x.rank)
    found = []
    for part in sort(node, x, dim):
        places = node.known(np.array([k - 1] if keepdim else k - 1))
        found.append(node.gather(part, places, axis=axis))
    return found


@converts("aten.median.dim")
def median(node: Node, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    """The lower one of the elements in the middle; NaN if there is one."""
    return _middle(node, x, dim, keepdim, skips=False)


@converts("aten.nanmedian.dim")
def nanmedian(node: Node, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    """The same of the elements that are not NaN."""
    return _middle(node, x, dim, keepdim, skips=True)


@converts("aten.median.default")
def median_of_all(node: Node, x: Value) -> Value:
    return median(node, reshaped(node, x, [product(x.shape)]), 0)[0]


@converts("aten.nanmedian.default")
def nanmedian_of_all(node: Node, x: Value) -> Value:
    return nanmedian(node, reshaped(node, x, [product(x.shape)]), 0)[0]


def _middle(node: Node, x: Value, dim: int, keepdim: bool, *, skips: bool) -> list[Value]:
    """The element in the middle of a sorted axis, in which NaNs are last, and its place."""
    if not x.rank:
        return [x, node.known(np.array(0))]
    axis = node.axis(dim, x.rank)
    wide = node.operand(is_nan(node, x), node.index)
    nans = node.reduce(wide, kind="sum", axes=[axis], keepdims=True)
    numbers = node.sub(node.number(x.shape[axis]), nans)
    before = node.sub(numbers, node.known(np.array(1)))
    place = node.div(before, node.known(np.array(2)))
    if not skips:
        none = node.equal(nans, node.known(np.array(0)))
        place = node.where(none, place, numbers)
    found = [node.gather_elements(part, place, axis=axis) for part in sort(node, x, dim)]
    shape = [size for i, size in enumerate(x.shape) if keepdim or i != axis]
    if keepdim:
        return found
    return [reshaped(node, part, shape) for part in found]


@converts("aten.mode.default")
def mode(node: Node, x: Value, dim: int = -1, keepdim: bool = False) -> list[Value]:
    """The most frequent element, of several the smallest, and its last place."""
    if not x.rank:
        return [x, node.known(np.array(0))]
    axis = node.axis(dim, x.rank)
    last = [*(i for i in range(x.rank) if i != axis), axis]
    ordered, order = node.sort(transposed(node, x, last), axis=x.rank - 1)
    first = node.searchsorted(ordered, ordered)
    count = node.sub(node.searchsorted(ordered, ordered, right=True), first)
    # NaNs differ from each other.
    count = node.where(is_nan(node, ordered), 1, count) if is_real(x.dtype) else count
    place = node.arg_reduce(count, kind="max", axis=x.rank - 1, keepdims=True)
    after = node.add(place, node.gather_elements(count, place, axis=x.rank - 1))
    places = place, node.sub(after, node.known(np.array(1)))
    shape = list(x.shape)
    shape[axis : axis + 1] = [Dim.of(1)] if keepdim else []
    return [
        reshaped(node, node.gather_elements(part, where, axis=x.rank - 1), shape)
        for part, where in zip((ordered, order), places, strict=True)
    ]


@converts("aten._unique2.default", "aten._unique.default")
def unique(
    node: Node,
    x: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Value | None]:
    flat = reshaped(node, x, [product(x.shape)])
    values, _, inverse, counts, _ = node.unique(flat, sorted=True)
    return [
        values,
        reshaped(node, inverse, x.shape) if return_inverse else None,
        counts if return_counts else None,
    ]


@converts("aten.bincount.default")
def bincount(node: Node, x: Value, weights: Value | None = None, minlength: Any = 0) -> Value:
    size = node.results[0].shape[0]
    if isinstance(size, int):
        return node.histogram(x, size, weights)
    least = node.known(np.array([node.integer(minlength, "a number of bins") - 1], x.dtype))
    largest = node.reduce(node.concat([x, least], axis=0), kind="max", axes=[0])
    count = node.operand(node.add(largest, 1), node.index)
    bins = node.arange(count)
    empty = node.operand(node.mul(bins, 0), node.dtype)
    one = broadcast(node, node.known(np.array(1, node.dtype)), x.shape)
    added = one if weights is None else node.operand(weights, node.dtype)
    return node.scatter_elements(empty, x, added, axis=0, kind="add")


@converts("aten.histc.default")
def histc(node: Node, x: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
    """The numbers of elements in bins of one width, of which the last one has its upper bound."""
    x = reshaped(node, x, [product(x.shape)])
    low, high = (node.operand(bound, x.dtype) for bound in (min, max))
    if min == max:
        low, high = (node.reduce(x, kind=kind, axes=[0]) for kind in ("min", "max"))
        is_point = node.equal(low, high)
        low = node.where(is_point, node.sub(low, 1), low)
        high = node.where(is_point, node.add(high, 1), high)
    scaled = node.mul(node.sub(x, low), node.scalar(bins, x))
    place = node.floor(node.div(scaled, node.sub(high, low)))
    inside = node.logical_and(node.greater_equal(x, low), node.greater_equal(high, x))
    # Other elements go to a bin after the last one.
    place = node.where(inside, node.clip(place, 0, bins - 1), node.scalar(bins, x))
    counts = node.histogram(node.operand(place, node.index), bins=bins + 1)
    return node.operand(sliced_to(node, counts, 0, Dim.of(0), Dim.of(bins)), node.dtype)


@converts("aten.repeat_interleave.Tensor")
def repeat_interleave(node: Node, repeats: Value, output_size: Any = None) -> Value:
    """Each place as often as a number says: that of the first sum of numbers that is larger."""
    ends = node.cumulative(node.operand(repeats, node.index), kind="sum", axis=0)
    zero = node.known(np.array([0]))
    total = node.reduce(node.concat([ends, zero], axis=0), kind="max", axes=[0])
    return node.searchsorted(ends, node.arange(total), right=True)


@converts("aten.one_hot.default")
def one_hot(node: Node, x: Value, num_classes: Any = -1) -> Value:
    depth = node.integer(num_classes, "a number of classes")
    if depth < 0:
        raise node.unsupported("a number of classes that depends on data", "num_classes")
    values = node.known(np.array([0, 1]))
    return node.one_hot(x, values, depth=depth, axis=x.rank)


@converts("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(
    node: Node,
    rows: Value,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    if sorter is not None:
        rows = node.gather_elements(rows, sorter, axis=rows.rank - 1)
    found = node.searchsorted(*node.common(rows, values), right=right or side == "right")
    return node.operand(found, node.dtype)


@converts("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(
    node: Node, values: Any, boundaries: Value, *, out_int32: bool = False, right: bool = False
) -> Value:
    return searchsorted(node, boundaries, values, right=right)

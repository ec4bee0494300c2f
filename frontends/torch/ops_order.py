"""Sorts, the largest elements, and different elements of ATen."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dims import Dim, product
from ...dialects.graph import ops as graph
from ..importing.shapes import reshaped
from ..importing.values import Value
from .nodes import Node
from .registry import converts


@converts("aten.sort.default")
def sort(node: Node, x: Value, dim: int = -1, descending: bool = False) -> list[Value]:
    if not x.rank:
        return [x, node.known(np.array(0))]
    return node.emit_all(graph.SortOp, x, axis=node.axis(dim, x.rank), descending=descending)


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
    count, axis = node.integer(k, "a number of elements"), node.axis(dim, x.rank)
    return node.emit_all(graph.TopKOp, x, k=count, axis=axis, largest=largest)


@converts("aten.kthvalue.default")
def kth_value(node: Node, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> list[Value]:
    axis = node.axis(dim, x.rank)
    found = []
    for part in sort(node, x, dim):
        places = node.known(np.array([k - 1] if keepdim else k - 1))
        found.append(node.emit(graph.GatherOp, part, places, axis=axis))
    return found


@converts("aten._unique2.default", "aten._unique.default")
def unique(
    node: Node,
    x: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Value]:
    flat = reshaped(node, x, [product(x.shape)])
    values, _, inverse, counts, _ = node.emit_all(graph.UniqueOp, flat, sorted=True)
    return [values, reshaped(node, inverse, x.shape), counts]


@converts("aten.bincount.default")
def bincount(node: Node, x: Value, weights: Value | None = None, minlength: int = 0) -> Value:
    size = node.results[0].shape[0]
    if not isinstance(size, int):
        raise node.unsupported("a number of bins that depends on data", "scatter_add")
    return node.emit(graph.HistogramOp, x, weights, bins=size)


@converts("aten.one_hot.default")
def one_hot(node: Node, x: Value, num_classes: Any = -1) -> Value:
    depth = node.integer(num_classes, "a number of classes")
    if depth < 0:
        raise node.unsupported("a number of classes that depends on data", "num_classes")
    values = node.known(np.array([0, 1]))
    return node.emit(graph.OneHotOp, x, values, depth=depth, axis=x.rank)


@converts("aten.searchsorted.Tensor", "aten.bucketize.Tensor")
def searchsorted(node: Node, boundaries: Value, x: Value, **settings: Any) -> Value:
    """The number of boundaries below each element, for a short vector of boundaries."""
    first, second = (boundaries, x) if "searchsorted" in node.subject else (x, boundaries)
    right = settings.get("right", False)
    if first.rank != 1 or settings.get("side") or not first.shape[0].is_static:
        raise node.unsupported("only for a vector of boundaries of a known size")
    count = first.shape[0].value
    if count > 256:
        raise node.unsupported(f"{count} boundaries", "at most 256")
    rows = reshaped(node, second, [*second.shape, Dim.of(1)])
    build = graph.LessEqualOp if right else graph.LessOp
    below = node.emit(build, *node.common(first, rows))
    wide = node.operand(below, node.index)
    return node.emit(graph.ReduceOp, wide, kind="sum", axes=[second.rank])

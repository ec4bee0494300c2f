"""Maxima of windows with the places where they are, in maxima pools of ATen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dims import Dim
from ...dialects.graph import ops as graph
from ..importing.shapes import reshaped, transposed
from ..importing.values import Value
from ..importing.windows import Axis
from .nodes import Node
from .ops_window import max_pool, max_pool_axes, spatial
from .registry import converts


@converts("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(node: Node, x: Value, *settings: Any) -> list[Value | None]:
    if not node.uses(1):
        return [max_pool(node, x, *settings), None]
    return _windowed(node, x, [_places(node, axis) for axis in max_pool_axes(node, x, *settings)])


def _places(node: Node, axis: Axis) -> np.ndarray:
    """For each position of a window, the places of its elements: [positions, window].

    A place outside of the operand is another one of the same window.
    """
    size = node.integer(axis.size, "a size of an image")
    starts = np.arange(axis.positions)[:, None] * axis.stride - axis.low
    first = np.maximum(-(starts // axis.dilation), 0)
    last = np.minimum((size - 1 - starts) // axis.dilation, axis.window - 1)
    return starts + np.clip(np.arange(axis.window)[None], first, last) * axis.dilation


@converts("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(node: Node, x: Value, output_size: Sequence[Any]) -> list[Value | None]:
    tables: list[np.ndarray] = []
    for axis, result in enumerate(output_size, x.rank - spatial(node)):
        size, count = (node.integer(n, "a size of a pool") for n in (x.shape[axis], result))
        starts = np.arange(count) * size // max(count, 1)
        ends = -(-np.arange(1, count + 1) * size // max(count, 1))
        width = max(ends - starts, default=1)
        tables.append(np.minimum(starts[:, None] + np.arange(width), ends[:, None] - 1))
    return _windowed(node, x, tables)


def _windowed(node: Node, x: Value, tables: Sequence[np.ndarray]) -> list[Value | None]:
    """The maxima of windows, and their places in the image as one number.

    Args:
        node: the node.
        x: images, [..., *sizes].
        tables: for each axis the places of the elements of a window, [positions, window].
    """
    first, sizes = x.rank - len(tables), x.shape[x.rank - len(tables) :]
    for number, table in enumerate(tables):
        x = node.emit(graph.GatherOp, x, node.known(table), axis=first + 2 * number)
    order = [*range(first), *range(first, x.rank, 2), *range(first + 1, x.rank, 2)]
    x = transposed(node, x, order)
    shape = [*x.shape[: first + len(tables)], Dim.of(math.prod(t.shape[1] for t in tables))]
    elements = reshaped(node, x, shape)
    last = len(shape) - 1
    values = node.emit(graph.ReduceOp, elements, kind="max", axes=[last], keepdims=False)
    if not node.uses(1):
        return [values, None]
    best = node.emit(graph.ArgReduceOp, elements, kind="max", axis=last, keepdims=False)
    numbers = _numbers(tables, [size.value for size in sizes])
    rows = np.arange(math.prod(numbers.shape[:-1])).reshape(numbers.shape[:-1])
    entries = node.emit(graph.AddOp, best, node.known(rows * numbers.shape[-1]))
    return [values, node.emit(graph.GatherOp, node.known(numbers.reshape(-1)), entries, axis=0)]


def _numbers(tables: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """The number in its image of each element of each window: [*positions, elements]."""
    count = len(tables)
    total = np.zeros((1,) * (2 * count), np.int64)
    for axis, (table, size) in enumerate(zip(tables, sizes, strict=True)):
        shape = [1] * (2 * count)
        shape[axis], shape[count + axis] = table.shape
        total = total * size + table.reshape(shape)
    return total.reshape(*total.shape[:count], -1)

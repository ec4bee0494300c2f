"""Maxima of windows with the places where they are, in maxima pools of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...importing.parts import maximum_of_parts
from ...importing.values import Value, is_static
from ...importing.windows import Places, placed_maxima, places_along
from ..nodes import Node
from ..registry import converts
from .window import max_pool, max_pool_axes, spatial


@converts("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(node: Node, x: Value, *settings: Any) -> list[Value | None]:
    if not node.uses(1):
        return [max_pool(node, x, *settings), None]
    return _windowed(
        node, x, [places_along(node, axis) for axis in max_pool_axes(node, x, *settings)]
    )


@converts("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(node: Node, x: Value, output_size: Sequence[Any]) -> list[Value | None]:
    first = x.rank - spatial(node)
    if not is_static(x.shape[first:]) and not node.uses(1):
        for axis, result in enumerate(output_size, first):
            x = maximum_of_parts(node, x, axis, node.integer(result, "a size of a pool"))
        return [x, None]
    tables: list[np.ndarray] = []
    for axis, result in enumerate(output_size, first):
        size, count = (node.integer(n, "a size of a pool") for n in (x.shape[axis], result))
        starts = np.arange(count) * size // max(count, 1)
        ends = -(-np.arange(1, count + 1) * size // max(count, 1))
        width = max(ends - starts, default=1)
        tables.append(np.minimum(starts[:, None] + np.arange(width), ends[:, None] - 1))
    return _windowed(node, x, tables)


def _windowed(node: Node, x: Value, tables: Sequence[Places]) -> list[Value | None]:
    """The maxima of windows, and their places in the image as one number.

    Args:
        node: the node.
        x: images, [..., *sizes].
        tables: for each axis the places of the elements of its windows.
    """
    values, places = placed_maxima(node, x, tables)
    return [values, places if node.uses(1) else None]

"""Packing: a constant laid out as the loops that read it run through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir.affine import AffineMap


def pack_array(array: np.ndarray, packing: AffineMap, shape: Sequence[int]) -> np.ndarray:
    """The packed form of a constant, zero where its index is outside of the constant.

    Args:
        array: the constant.
        packing: from an index of the result to an index of `array` (`loop.packing`).
        shape: the shape of the result (that of the kernel's argument).

    >>> panels = AffineMap.from_callable(lambda j0, k, j1: (j0 * 2 + j1, k))
    >>> pack_array(np.arange(6).reshape(3, 2), panels, (2, 2, 2)).tolist()
    [[[0, 2], [1, 3]], [[4, 0], [5, 0]]]
    """
    if not array.size:
        return np.zeros(shape, array.dtype)
    # Open grids: what a result of the map does not depend on costs no memory.
    grid = cast(Any, np.ogrid[tuple(slice(size) for size in shape)])
    index: list[np.ndarray] = []
    inside: Any = np.True_
    for expr, size in zip(packing.results, array.shape, strict=True):
        place = np.asarray(expr.eval(grid, []))
        inside = inside & (place >= 0) & (place < size)
        index.append(np.clip(place, 0, size - 1))
    gathered = np.broadcast_to(array[tuple(index)], shape)
    return np.where(inside, gathered, array.dtype.type(0))

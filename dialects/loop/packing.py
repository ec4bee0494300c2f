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
    """
    grid = np.ogrid[tuple(slice(0, n) for n in shape)]
    inside = np.ones(tuple(shape), dtype=bool)
    places: list[np.ndarray] = []
    for expr, size in zip(packing.results, array.shape, strict=True):
        index = np.asarray(expr.eval(cast(Any, grid), []))
        inside &= (index >= 0) & (index < size)
        places.append(np.broadcast_to(index, inside.shape))
    result = np.zeros(tuple(shape), dtype=array.dtype)
    result[inside] = array[tuple(place[inside] for place in places)]
    return result

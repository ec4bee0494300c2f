"""Packing: a constant laid out in the order in which loops read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir.affine import AffineMap

from ...core.algebra.affine import polynomial
from ...core.algebra.expressions import Variable


def pack_array(array: np.ndarray, packing: AffineMap, shape: Sequence[int]) -> np.ndarray:
    """The packed form of a constant, zero where the map leads outside of the constant.

    Args:
        array: the constant.
        packing: from an index of the result to an index of `array` (`loop.packing`).
        shape: the shape of the result (that of the kernel's argument).

    Returns:
        An array, or a view of `array` where one suffices.

    >>> panels = AffineMap.from_callable(lambda j0, k, j1: (j0 * 2 + j1, k))
    >>> pack_array(np.arange(6).reshape(3, 2), panels, (2, 2, 2)).tolist()
    [[[0, 2], [1, 3]], [[4, 0], [5, 0]]]
    """
    if not array.size:
        return np.zeros(shape, array.dtype)
    view = _view(array, packing, shape)
    if view is not None:
        return view
    # Only the last panel extends past the constant.
    before = _view(array, packing, (shape[0] - 1, *shape[1:])) if shape else None
    if before is None:
        return _gathered(array, packing, [slice(size) for size in shape])
    result = np.empty(shape, array.dtype)
    result[:-1] = before
    last = slice(shape[0] - 1, shape[0])
    result[last] = _gathered(array, packing, [last, *(slice(size) for size in shape[1:])])
    return result


def unpack_array(packed: np.ndarray, packing: AffineMap, shape: Sequence[int]) -> np.ndarray:
    """The constant of a shape whose packed form this is; 0 where the packed form lacks an element.

    >>> panels = AffineMap.from_callable(lambda j0, k, j1: (j0 * 2 + j1, k))
    >>> unpack_array(np.array([[[0, 2], [1, 3]], [[4, 0], [5, 0]]]), panels, (3, 2)).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    array = np.zeros(shape, packed.dtype)
    if not array.size or not packed.size:
        return array
    # As when it was packed, only the last panel may extend past the constant.
    for count in (len(packed), len(packed) - 1):
        view = _view(array, packing, (count, *packed.shape[1:]), writeable=True)
        if view is not None:
            view[...] = packed[:count]
            break
    else:
        count = 0
    part = [slice(count, len(packed)), *(slice(size) for size in packed.shape[1:])]
    rest = packed[count:]
    index, inside = _places(array, packing, part)
    inside = np.broadcast_to(inside, rest.shape)
    places = (np.broadcast_to(place, rest.shape)[inside] for place in index)
    array[tuple(places)] = rest[inside]
    return array


def _view(
    array: np.ndarray, packing: AffineMap, shape: Sequence[int], *, writeable: bool = False
) -> np.ndarray | None:
    """The packed form as a view, if the map is linear and stays inside of the constant."""
    strides, first = [0] * len(shape), list[slice]()
    for expr, size, stride in zip(packing.results, array.shape, array.strides, strict=True):
        value = polynomial(expr)
        low = high = value.constant
        for monomial, factor in value.terms:
            if not monomial:
                continue
            (term,) = monomial
            if not isinstance(term, Variable):
                return None
            reach = factor * (shape[term.position] - 1)
            low, high = low + min(0, reach), high + max(0, reach)
            strides[term.position] += factor * stride
        if low < 0 or high >= size:
            return None
        first.append(slice(value.constant, None))
    begin = array[tuple(first)]
    return np.lib.stride_tricks.as_strided(begin, shape, strides, writeable=writeable)


def _gathered(array: np.ndarray, packing: AffineMap, part: Sequence[slice]) -> np.ndarray:
    """A part of the packed form, element by element."""
    index, inside = _places(array, packing, part)
    gathered = np.broadcast_to(array[tuple(index)], [one.stop - (one.start or 0) for one in part])
    return np.where(inside, gathered, array.dtype.type(0))


def _places(
    array: np.ndarray, packing: AffineMap, part: Sequence[slice]
) -> tuple[list[np.ndarray], np.ndarray]:
    """The index in the constant for each element of a part of the packed form, and whether there
    is such an element."""
    # Open grids: a dimension that a result of the map does not depend on costs no memory.
    grid = cast(Any, np.ogrid[tuple(part)])
    index: list[np.ndarray] = []
    inside: Any = np.True_
    for expr, size in zip(packing.results, array.shape, strict=True):
        place = np.asarray(expr.eval(grid, []))
        inside = inside & (place >= 0) & (place < size)
        index.append(np.clip(place, 0, size - 1))
    return index, inside

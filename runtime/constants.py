"""Constants as compiled code wants them: laid out by their packing, contiguous, aligned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from ..core.errors import CompileError, explain
from ..core.module import numpy_dtype
from ..core.weights import WeightStore
from ..dialects import rt

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ALIGNMENT = 64


def materialise(op: rt.ConstantOp, weights: WeightStore) -> np.ndarray:
    """The array that a constant of the program points to.

    Raises:
        CompileError: if the store lacks it, or its shape does not fit.
    """
    name, buffer = op.weight.data, cast(MemRefType, op.result.type)
    array, shape = _lookup(name, weights, buffer.element_type), buffer.get_shape()
    if isinstance(op.packing, AffineMapAttr):
        array = pack(array, op.packing.data, shape)
    declared = (list(shape), str(numpy_dtype(buffer.element_type)))
    # A boolean takes a byte.
    dtype = np.dtype(np.int8) if array.dtype == np.bool_ else array.dtype
    stored = (list(array.shape), str(dtype))
    if declared != stored:
        raise CompileError(
            explain(f'constant "{name}"', "wrong array", expected=declared, got=stored)
        )
    return aligned(array)


def _lookup(name: str, weights: WeightStore, element_type: Attribute) -> np.ndarray:
    """A dense array of the store, or one of the three arrays of a CSR matrix in it."""
    if name in weights and isinstance(array := weights[name], np.ndarray):
        return array
    matrix, _, part = name.rpartition(".")
    if matrix in weights and not isinstance(weights[matrix], np.ndarray):
        csr = cast("csr_array", weights[matrix])
        if part in ("indptr", "indices"):
            return getattr(csr, part).astype(numpy_dtype(element_type), copy=False)
        if part == "values":
            return csr.data
    raise CompileError(explain(f'constant "{name}"', "is not in the weight store"))


def pack(array: np.ndarray, map: AffineMap, shape: tuple[int, ...]) -> np.ndarray:
    """The array of `shape` whose element at an index is that of `array` at `map` of it.

    Where the map leaves `array` there is a zero.

    >>> from xdsl.ir.affine import AffineMap
    >>> panels = AffineMap.from_callable(lambda j0, k, j1: (j0 * 2 + j1, k))
    >>> pack(np.arange(6).reshape(3, 2), panels, (2, 2, 2)).tolist()
    [[[0, 2], [1, 3]], [[4, 0], [5, 0]]]
    """
    grid = np.ogrid[tuple(slice(size) for size in shape)]
    index: list[np.ndarray] = []
    inside: Any = np.True_
    for result, size in zip(map.results, array.shape, strict=True):
        place = np.asarray(result.eval(cast(Any, grid), []))
        inside = inside & (place >= 0) & (place < size)
        index.append(np.clip(place, 0, max(size - 1, 0)))
    if not array.size:
        return np.zeros(shape, array.dtype)
    gathered = np.broadcast_to(array[tuple(index)], shape)
    return np.where(inside, gathered, array.dtype.type(0))


def aligned(array: np.ndarray) -> np.ndarray:
    """A contiguous array of the same elements that begins at a multiple of 64 bytes."""
    if array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0:
        return array
    raw = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    result = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result

"""Constants as compiled code wants them: laid out by their packing, contiguous, aligned."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Attribute

from ..core.errors import CompileError, explain
from ..core.module import numpy_dtype
from ..core.weights import WeightStore
from ..dialects.loop.packing import pack_array
from ..dialects.program import Constant

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ALIGNMENT = 64


def materialise(constant: Constant, weights: WeightStore) -> np.ndarray:
    """The array that a constant of the program points to.

    Raises:
        CompileError: if the store lacks it, or its shape does not fit.
    """
    name, buffer = constant.weight, constant.type
    array, shape = _lookup(name, weights, buffer.element_type), buffer.get_shape()
    if isinstance(constant.packing, AffineMapAttr):
        array = pack_array(array, constant.packing.data, shape)
    declared = (list(shape), str(numpy_dtype(buffer.element_type)))
    # A boolean takes a byte, and integers have no sign.
    dtype = np.dtype(f"i{array.itemsize}") if array.dtype.kind in "bu" else array.dtype
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
        if part == "indptr":
            _check(matrix, csr)
        if part in ("indptr", "indices"):
            return getattr(csr, part).astype(numpy_dtype(element_type), copy=False)
        if part == "values":
            return csr.data
    raise CompileError(explain(f'constant "{name}"', "is not in the weight store"))


def _check(name: str, matrix: csr_array) -> None:
    """Refuse indices that would leave a buffer: those of constants are not checked by calls."""
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise CompileError(explain(f'constant "{name}"', f"inconsistent CSR: {error}")) from error


def aligned(array: np.ndarray) -> np.ndarray:
    """A contiguous array of the same elements that begins at a multiple of 64 bytes."""
    if array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0:
        return array
    raw = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    result = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result

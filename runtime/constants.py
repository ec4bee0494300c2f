"""Constants in the layout of compiled code: packed, contiguous, aligned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir.affine import AffineMap

from ..core.algebra.affine import DivisorError
from ..core.boundary.arrays import csr_sharing
from ..core.dtype_names import as_buffer
from ..core.dtypes import dtype_of
from ..core.errors import CompileError, explain
from ..core.files.reading import ReadingError, amount, check_size, memory
from ..core.ir.weights import WeightStore
from ..dialects.loop.packing import pack_array
from ..dialects.program import EXTREMES, Constant
from ..dialects.rt.abi import ALIGNMENT
from .frames import aligned_bytes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_PARTS = {"indptr": "indptr", "indices": "indices", "values": "data"}


def materialised(constants: Iterable[Constant], weights: WeightStore) -> tuple[np.ndarray, ...]:
    """The arrays of the constants of a program.

    They do not change: what others may write to is copied, such as a tensor of torch. Other arrays
    share memory with the store if their layout allows it, apart from integers, which may be indices
    and are checked.

    Raises:
        CompileError: if the store lacks an array, or its shape does not fit.
    """
    matrices: dict[str, csr_array] = {}
    return tuple(_materialise(constant, weights, matrices) for constant in constants)


def renewed(
    constants: Sequence[Constant], arrays: Sequence[np.ndarray], weights: WeightStore
) -> tuple[np.ndarray, ...]:
    """The arrays of constants after a change of weights; those that are no weights stay.

    Raises:
        CompileError: if the shape of an array does not fit.
    """
    matrices: dict[str, csr_array] = {}
    return tuple(
        _materialise(constant, weights, matrices)
        if constant.weight in weights or constant.weight.rpartition(".")[0] in weights
        else array
        for constant, array in zip(constants, arrays, strict=True)
    )


def _materialise(
    constant: Constant, weights: WeightStore, matrices: dict[str, csr_array]
) -> np.ndarray:
    name, buffer = constant.weight, constant.type
    array, shape = _lookup(name, weights, matrices), buffer.get_shape()
    if name not in weights:  # The type of the matrix determines the width of its indices.
        array = array.astype(dtype_of(buffer.element_type), copy=False)
    if isinstance(constant.packing, AffineMapAttr):
        array = _packed(name, array, constant.packing.data, shape)
    declared = (list(shape), str(dtype_of(buffer.element_type)))
    stored = (list(array.shape), str(as_buffer(array).dtype))
    if declared != stored:
        raise CompileError(
            explain(f'constant "{name}"', "wrong array", expected=declared, got=stored)
        )
    return aligned(array.copy() if _is_foreign(array) else array)


def _packed(name: str, array: np.ndarray, packing: AffineMap, shape: Sequence[int]) -> np.ndarray:
    """The packed form of a constant.

    Raises:
        CompileError: if the map is not one to its elements, or there is not enough memory.
    """
    needed = math.prod(shape) * array.itemsize
    ranks = len(shape), 0, array.ndim
    try:
        if (packing.num_dims, packing.num_symbols, len(packing.results)) == ranks:
            check_size(needed, memory())
            return pack_array(array, packing, shape)
    except (DivisorError, OverflowError):
        pass
    except (MemoryError, ReadingError) as error:
        fact = f"not enough memory for {amount(needed)}"
        raise CompileError(explain(f'constant "{name}"', fact)) from error
    expected = f"a map from {len(shape)} to {array.ndim} dimensions in 64 bits"
    raise CompileError(
        explain(f'constant "{name}"', "wrong packing", expected=expected, got=packing)
    )


def _is_foreign(array: np.ndarray) -> bool:
    """Whether the memory of an array is not NumPy's, and may be written to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base is not None and array.flags.writeable


def _lookup(name: str, weights: WeightStore, matrices: dict[str, csr_array]) -> np.ndarray:
    """A dense array of the store, its extremes, or one of the arrays of a CSR matrix in it."""
    if name in weights and isinstance(array := weights[name], np.ndarray):
        return array.copy() if array.dtype.kind in "iu" else array
    matrix, _, part = name.rpartition(".")
    if matrix in weights and isinstance(array := weights[matrix], np.ndarray):
        if part == EXTREMES and array.size:
            return np.array([array.min(), array.max()])
    elif matrix in weights and part in _PARTS:
        if matrix not in matrices:
            matrices[matrix] = _checked(matrix, cast("csr_array", weights[matrix]))
        return getattr(matrices[matrix], _PARTS[part])
    raise CompileError(explain(f'constant "{name}"', "is not in the weight store"))


def _checked(name: str, matrix: csr_array) -> csr_array:
    """A matrix with private indices, which are checked here because calls do not check them.

    Raises:
        CompileError: if the matrix is inconsistent.
    """
    own = csr_sharing(matrix.indptr.copy(), matrix.indices.copy(), matrix.data, matrix.shape)
    try:
        own.check_format(full_check=True)
    except ValueError as error:
        raise CompileError(explain(f'constant "{name}"', f"inconsistent CSR: {error}")) from error
    return own


def aligned(array: np.ndarray) -> np.ndarray:
    """A contiguous array of the same elements, aligned to `ALIGNMENT` bytes."""
    if array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0:
        return array
    result = aligned_bytes(array.nbytes).view(array.dtype).reshape(array.shape)
    result[...] = array
    return result

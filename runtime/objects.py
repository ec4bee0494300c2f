"""The layouts of Python's and NumPy's objects that the compiled call boundary reads, and a check.

The layouts are those of CPython and of NumPy's ABI. They are checked on known objects before use:
they may differ in another Python or a debug build, where calls go through Python only.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..backends.llvm.boundary.layout import ENTRIES, PLAN, Layout

_HEADER = object.__basicsize__
_TYPE = _HEADER - 8
_DATA, _RANK, _SHAPE, _DESCR, _FLAGS = (_HEADER + offset for offset in (0, 8, 16, 40, 48))
_KIND = _HEADER + 8
_DTYPE_MASK = int.from_bytes(b"\xff\xff\xff\0\xff\xff\xff\xff", sys.byteorder, signed=True)
"""Masks out the byte between the kind, character and byte order of a dtype and its number."""

_CONTIGUOUS, _ALIGNED, _WRITABLE = 0x1, 0x100, 0x400
_ABI_VERSION, _NDARRAY = 0, 2
_FUNCTIONS = {
    "PyArray_Resize": 80,
    "PyArray_NewFromDescr": 94,
    "PyArray_SetBaseObject": 282,
}
"""Indices into NumPy's table of functions, which never change."""
_ABI = 0x2000000

_NAMES = {
    "name_out": "out",
    "name_to_csr": "to_csr",
    "name_shape": "_shape",
    "name_indptr": "indptr",
    "name_indices": "indices",
    "name_values": "data",
}
_OBJECTS: dict[str, object] = {
    **{key: sys.intern(name) for key, name in _NAMES.items()},
    "array_type": np.ndarray,
    "byte_type": np.dtype(np.uint8),
    "tuple_type": tuple,
    "none": None,
    "exception_type": Exception,
}
"""Objects that the compiled boundary uses, by their names in its IR."""


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _int(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


def dtype_word(dtype: np.dtype[Any]) -> int:
    """The word of a dtype with its kind, byte order and number."""
    return _word(id(dtype) + _KIND) & _DTYPE_MASK


@functools.cache
def are_known() -> bool:
    """Whether objects have the layout that the compiled boundary expects."""
    if sys.implementation.name != "cpython" or hasattr(sys, "gettotalrefcount"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if _word(id(np.ndarray) + _TYPE) != id(type) or _word(id(()) + _TYPE) != id(tuple):
        return False
    table = _numpy_functions()
    version = ctypes.CFUNCTYPE(ctypes.c_uint32)(table[_ABI_VERSION])
    if table[_NDARRAY] != id(np.ndarray) or version() != _ABI:
        return False
    return all(map(_is_as_expected, _examples())) and _dtypes_differ()


def _examples() -> Iterator[np.ndarray]:
    yield np.zeros(())
    yield np.zeros((3, 5, 2), np.float32)
    yield np.zeros((3, 5), np.int64)[:, ::2]
    yield np.zeros((4, 6), np.complex128).T
    yield np.zeros(17, np.uint8)[1:].view(np.float64)
    frozen = np.zeros(7, np.bool_)
    frozen.flags.writeable = False
    yield frozen


def _is_as_expected(array: np.ndarray) -> bool:
    at, flags = id(array), array.flags
    expected = (
        _CONTIGUOUS * flags.c_contiguous + _ALIGNED * flags.aligned + _WRITABLE * flags.writeable
    )
    shape = _word(at + _SHAPE)
    return (
        _word(at + _TYPE) == id(np.ndarray)
        and _word(at + _DATA) == array.ctypes.data
        and _int(at + _RANK) == array.ndim
        and [_word(shape + 8 * axis) for axis in range(array.ndim)] == list(array.shape)
        and _word(at + _DESCR) == id(array.dtype)
        and _int(at + _FLAGS) & (_CONTIGUOUS | _ALIGNED | _WRITABLE) == expected
    )


def _dtypes_differ() -> bool:
    """Whether the words of two dtypes are equal exactly if the dtypes are."""
    names = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64")
    dtypes = [np.dtype(name) for name in names]
    dtypes += [dtype.newbyteorder() for dtype in dtypes if dtype.itemsize > 1]
    copies = [np.dtype(dtype.str, copy=True) for dtype in dtypes]
    words = list(map(dtype_word, dtypes))
    return len(set(words)) == len(words) and words == list(map(dtype_word, copies))


_matrix_types = (ctypes.c_int64 * 2)()


def matrix_types() -> int:
    """The address of two words: the types of CSR matrices, once `look_for_scipy` has found them."""
    return ctypes.addressof(_matrix_types)


def look_for_scipy() -> None:
    """Record the types of SciPy's matrices if they are imported: importing them here is slow."""
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and hasattr(sparse, "csr_array") and hasattr(sparse, "csr_matrix"):
        _matrix_types[:] = id(sparse.csr_array), id(sparse.csr_matrix)


def _numpy_functions() -> Any:
    module = importlib.import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get(vars(module)["_ARRAY_API"], None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_size_t))


def entries(plan: int) -> list[int]:
    """The entries of the table of the boundary.

    Args:
        plan: the offset of the address of its plan in an executable.
    """
    return [plan if name == PLAN else id(_OBJECTS[name]) for name in ENTRIES]


def functions() -> dict[str, int]:
    """The addresses of the functions of NumPy that the boundary calls, by their names."""
    table = _numpy_functions()
    return {name: table[number] for name, number in _FUNCTIONS.items()}


def layout() -> Layout:
    """The layout of objects for the compiled boundary."""
    return Layout(
        type=_TYPE,
        data=_DATA,
        rank=_RANK,
        shape=_SHAPE,
        dtype=_DESCR,
        flags=_FLAGS,
        kind=_KIND,
        dtype_mask=_DTYPE_MASK,
        readable=_CONTIGUOUS | _ALIGNED,
        writable=_CONTIGUOUS | _ALIGNED | _WRITABLE,
    )

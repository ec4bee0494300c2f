"""Calls of registered functions from compiled programs."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

from ..core.dtypes import dtype_of
from ..core.functions import call, registered
from ..dialects.program import Function
from ..dialects.sparse_tensor import index_type, is_sparse, position_type

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
_raised = threading.local()


def callback(called_function: Function) -> Any:
    """A registered function, in the form that compiled code calls.

    It receives the address and all sizes of each buffer, and returns 1 if the function raised; the
    error is then kept for `take_error`.
    """
    name, function = called_function.callee, registered(called_function.callee)
    inputs = len(called_function.type.inputs)
    types = (*called_function.type.inputs, *called_function.type.outputs)
    kinds = [cast(TensorType, kind) for kind in types]

    def called(words: Any) -> int:
        source = _words(words)
        arrays = [_array(source, kind, n >= inputs) for n, kind in enumerate(kinds)]
        call(name, function, arrays[:inputs], arrays[inputs:])
        return 0

    return _CALLBACK(guarded(called))


def guarded(function: Callable[[Any], int]) -> Callable[[Any], int]:
    """A function that compiled code can call: an error in it is kept for `take_error`."""

    def called(argument: Any) -> int:
        try:
            return function(argument)
        except BaseException as error:  # It cannot propagate through compiled code.
            _raised.error = error
            return 1

    return called


def _words(words: Any) -> Iterator[int]:
    position = 0
    while True:
        yield words[position]
        position += 1


def _array(words: Iterator[int], kind: TensorType, writable: bool) -> Array:
    """A view of the memory at the addresses and with the sizes in the next words."""
    dtype = dtype_of(kind.element_type)
    if not is_sparse(kind):
        return _view(words, dtype, kind.get_num_dims(), writable)
    from scipy.sparse import csr_array

    indptr = _view(words, dtype_of(position_type(kind)), 1, writable)
    indices = _view(words, dtype_of(index_type(kind)), 1, writable)
    values = _view(words, dtype, 1, writable)
    columns = kind.get_shape()[1]
    shape = (len(indptr) - 1, next(words) if columns == DYNAMIC_INDEX else columns)
    matrix = csr_array(shape, dtype=dtype)
    # Set one by one: the constructor may convert, and so copy, the indices.
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, values
    return matrix


def _view(words: Iterator[int], dtype: np.dtype[Any], rank: int, writable: bool) -> np.ndarray:
    address = next(words)
    shape: Sequence[int] = tuple(next(words) for _ in range(rank))
    raw = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
    if writable:
        return np.ndarray(shape, dtype, cast(Any, raw))
    # The flag alone could be reset; `np.ndarray` would expose the memory of a read-only view.
    memory = memoryview(raw).toreadonly() if len(raw) else b""
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


def take_error() -> BaseException | None:
    """The error that a registered function raised in this thread, if any; clears it."""
    error = getattr(_raised, "error", None)
    _raised.error = None
    return error

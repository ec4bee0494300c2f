"""Calls of registered functions from compiled programs."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..core.boundary.arrays import csr_sharing
from ..core.boundary.functions import call, registered
from ..core.dtype_names import dtype_named

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int64))
_raised = threading.local()


@dataclass(frozen=True)
class Operand:
    """A tensor that a registered function takes or fills.

    A symbolic size is None; `indices` are the types of the positions and of the column indices of a
    CSR matrix, None for a dense tensor.
    """

    dtype: str
    shape: tuple[int | None, ...]
    indices: tuple[str, str] | None


@dataclass(frozen=True)
class Callee:
    """A registered function that a program calls."""

    name: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


def callback(callee: Callee) -> Any:
    """A registered function, in the form that compiled code calls.

    It receives the address and all sizes of each buffer, and returns 1 if the function raised; the
    error is then kept for `take_error`.
    """
    name, function = callee.name, registered(callee.name)
    inputs = len(callee.inputs)
    operands = (*callee.inputs, *callee.outputs)

    def called(words: Any) -> int:
        source = _words(words)
        arrays = [_array(source, operand, n >= inputs) for n, operand in enumerate(operands)]
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


def _array(words: Iterator[int], operand: Operand, writable: bool) -> Array:
    """A view of the memory at the addresses and with the sizes in the next words."""
    dtype = dtype_named(operand.dtype)
    if operand.indices is None:
        return _view(words, dtype, len(operand.shape), writable)
    positions, columns = map(dtype_named, operand.indices)
    indptr = _view(words, positions, 1, writable)
    indices = _view(words, columns, 1, writable)
    values = _view(words, dtype, 1, writable)
    width = operand.shape[1]
    shape = (len(indptr) - 1, next(words) if width is None else width)
    return csr_sharing(indptr, indices, values, shape)


def _view(words: Iterator[int], dtype: np.dtype[Any], rank: int, writable: bool) -> np.ndarray:
    address = next(words)
    shape: Sequence[int] = tuple(next(words) for _ in range(rank))
    raw = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
    if writable:
        return np.ndarray(shape, dtype, cast(Any, raw))
    # The flag alone could be reset; `np.ndarray` would expose the memory of a read-only view.
    memory = memoryview(raw).toreadonly() if len(raw) else b""
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


@contextmanager
def keep_error() -> Iterator[None]:
    """Keep an error for `take_error`: it cannot propagate through compiled code."""
    try:
        yield
    except BaseException as error:
        _raised.error = error


def may_go_on() -> bool:
    """Whether no error is kept in this thread."""
    return getattr(_raised, "error", None) is None


def take_error() -> BaseException | None:
    """The error that a registered function raised in this thread, if any; clears it."""
    error = getattr(_raised, "error", None)
    _raised.error = None
    return error

"""Memory against unmapped pages, for the buffers of programs: `memory.ll` as functions.

`pytest --guarded front` and `pytest --guarded back` put buffers behind and in front of a page that
cannot be accessed, so that an access outside of one ends the process. All arrays of NumPy are such
buffers, and so inputs and results; `programs.py` does the same for what programs allocate.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from pathlib import Path
from typing import Any, Literal

import llvmlite.binding as llvm
import numpy as np

from stepwell.backends.llvm.machine import machine
from stepwell.core.target import host
from stepwell.runtime import objects

Place = Literal["front", "back"]
"""Whether the guard is the page before a buffer, or the one after it. The other one is not far."""

PAGE = 4096
_SET_HANDLER, _GET_HANDLER = 304, 305
"""Indices into NumPy's table of functions."""
_CAPSULE = b"mem_handler"
_FUNCTIONS = ("numpy_malloc", "numpy_calloc", "numpy_realloc", "numpy_free")


class _Handler(ctypes.Structure):
    """A `PyDataMem_Handler` of NumPy."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
    )


class Memory:
    """The functions of `memory.ll` in this process."""

    def __init__(self, place: Place) -> None:
        text = Path(__file__).with_name("memory.ll").read_text()
        self._engine: Any = llvm.create_mcjit_compiler(
            llvm.parse_assembly(text), machine(host(), jit=True)
        )
        self._engine.finalize_object()
        self.at_end = place == "back"
        self._word("at_end").value = self.at_end
        sizes = ctypes.c_int64, ctypes.c_int64
        allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, *sizes)
        self._allocate = allocate(self.address("guarded_allocate"))
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address("guarded_free"))
        """Frees the buffer at an address."""
        self._handler = _Handler(b"guarded", 1, None, *map(self.address, _FUNCTIONS))

    def address(self, function: str) -> int:
        """The address of a function of `memory.ll`."""
        return self._engine.get_function_address(function)

    def _word(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._engine.get_global_value_address(name))

    @property
    def damaged(self) -> int:
        """How many buffers were freed with other bytes around them than they were made with."""
        return self._word("damaged").value

    @property
    def buffers(self) -> int:
        """How many buffers there are."""
        return self._word("buffers").value

    def allocate(self, alignment: int, size: int) -> int:
        """The address of a new buffer.

        Raises:
            MemoryError: if there is none.
        """
        address = self._allocate(alignment, size)
        if not address:
            raise MemoryError(f"no guarded buffer of {size} bytes")
        return address

    def bytes(self, alignment: int, size: int) -> np.ndarray:
        """A new buffer, which lives as long as a view of it."""
        address = self.allocate(alignment, size)
        raw = (ctypes.c_uint8 * size).from_address(address)
        weakref.finalize(raw, self.free, address).atexit = False
        return np.frombuffer(raw, np.uint8) if size else np.empty(0, np.uint8)

    def take_numpy(self) -> None:
        """Use this memory for all arrays that NumPy makes from now on in this thread."""
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        capsule = make(ctypes.addressof(self._handler), _CAPSULE, None)
        set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
        set_handler(objects._numpy_functions()[_SET_HANDLER])(capsule)


def protect(address: int, size: int, protection: int = 0) -> None:
    """Make pages inaccessible, or accessible in the ways that `protection` says."""
    function = ctypes.CDLL(None).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if function(address, size, protection):
        raise MemoryError("pages cannot be protected")


@functools.cache
def memory(place: Place) -> Memory:
    """The memory of this process, which is never freed: arrays may outlive everything else."""
    return Memory(place)

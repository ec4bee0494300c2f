"""Launches of the kernels of a program on its device, which is emulated."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType

from ..backends.llvm.device import DeviceCode, DeviceKernel
from ..backends.ptx.counters import Emulation
from ..backends.ptx.decoding import granules
from ..backends.ptx.emulation import launched
from ..backends.ptx.machine import Shape
from ..backends.ptx.memory import GlobalMemory, Region
from ..backends.ptx.text import read_ptx
from ..backends.reference.numbers import shape_with
from ..core.dtypes import dtype_of
from .functions import keep_error, may_go_on

_LAUNCH = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


@dataclass(frozen=True)
class DeviceProgram:
    """The machine code of a program, its device, and the function that calls both."""

    code: Any
    device: EmulatedDevice
    entry: Any


class EmulatedDevice:
    """Executes the kernels of a program where compiled code launches them.

    A launch that fails keeps its error; launches after it in the same call do nothing, and the call
    raises the error.

    Args:
        code: the kernels.
    """

    def __init__(self, code: DeviceCode) -> None:
        self.code = code
        self.launches: list[Emulation] = []
        """The launches of the latest call, counted."""
        self._kernels = read_ptx(code.text) if code.kernels else {}
        self._callback = _LAUNCH(self._launched)

    @property
    def address(self) -> int:
        """The address of the function that compiled code calls."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def entry(self, function: int) -> Any:
        """A function like one that takes a frame, which fails if a launch has."""
        call = _ENTRY(function)

        def called(frame: int) -> int:
            self.launches = []
            return call(frame) or int(not may_go_on())

        return _ENTRY(called)

    def _launched(self, number: int, words: Any, count: int) -> None:
        if count <= 0 or not may_go_on():
            return
        with keep_error():
            self._launch(self.code.kernels[number], words, count)

    def _launch(self, kernel: DeviceKernel, words: Any, count: int) -> None:
        """Execute a kernel with the arguments that an array of words has.

        Raises:
            EmulationError: if a thread does what it must not.
        """
        found, block = self._kernels[kernel.name], self.code.device.block
        passed, buffers, names = [count], list[tuple[int, int, int]](), dict[int, str]()
        source = (words[n] for n in range(1 << 20))
        for number, kind in enumerate(kernel.arguments):
            place = len(passed)
            passed.append(next(source))
            if isinstance(kind, MemRefType):
                sizes = [next(source) for n in kind.get_shape() if n == DYNAMIC_INDEX]
                passed += sizes
                shape, item = shape_with(kind, iter(sizes)), dtype_of(kind.element_type).itemsize
                buffers.append((place, passed[place], math.prod(shape) * item))
                names[place] = f"argument {number} ({kind})"
        memory = GlobalMemory()
        for places, address, size in _apart(buffers):
            raw = (ctypes.c_char * size).from_address(address) if size else b""
            data = np.frombuffer(cast(Any, raw), np.uint8)
            name = ", ".join(names[place] for place in places)
            start = memory.add(Region(name, data, granules(found)))
            for place in places:
                passed[place] += start - address
        parameters = np.zeros(max(p.offset + p.size for p in found.parameters), np.uint8)
        for parameter, value in zip(found.parameters, passed, strict=True):
            # A scalar is in the first bytes of its word.
            at = slice(parameter.offset, parameter.offset + parameter.size)
            parameters[at] = list((value % (1 << 64)).to_bytes(8, "little"))[: parameter.size]
        grid = Shape((-(-count // block), 1, 1), (block, 1, 1))
        shared = found.bytes_in("shared")
        self.launches.append(launched(found, grid, memory, parameters, shared, sys.maxsize))


def _apart(buffers: Sequence[tuple[int, int, int]]) -> Iterator[tuple[list[int], int, int]]:
    """Buffers that overlap as one: the numbers of arguments, the address, and the bytes."""
    places, start, end = list[int](), 0, -1
    for place, address, size in sorted(buffers, key=lambda buffer: buffer[1]):
        if places and address < end:
            places.append(place)
            end = max(end, address + size)
            continue
        if places:
            yield places, start, end - start
        places, start, end = [place], address, address + size
    if places:
        yield places, start, end - start

"""Launches of the kernels of a program on its device, or on one that is emulated."""

from __future__ import annotations

import ctypes
import itertools
import math
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType

from ..backends.llvm.device import DeviceCode, DeviceKernel
from ..backends.ptx.counters import Emulation
from ..backends.ptx.decoding import granules
from ..backends.ptx.emulation import launched
from ..backends.ptx.machine import Shape
from ..backends.ptx.memory import GlobalMemory, Region
from ..backends.ptx.text import read_ptx
from ..backends.reference.numbers import shape_with
from ..core.dtypes import dtype_of
from ..dialects.program import launched_arguments
from .functions import keep_error, may_go_on

_LAUNCH = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_thread = threading.local()


@dataclass(frozen=True)
class Buffers:
    """Buffers of a launch that overlap, as one.

    Attributes:
        places: the positions of their addresses in the arguments.
        address, size: the bytes of all, in the memory of the host.
        written: whether the kernel may write to them.
        name: the arguments that they are, for messages.
    """

    places: tuple[int, ...]
    address: int
    size: int
    written: bool
    name: str


class ProgramDevice(ABC):
    """A device that runs the kernels of a program where compiled code launches them.

    Args:
        code: the kernels.
    """

    def __init__(self, code: DeviceCode) -> None:
        self.code = code
        self.launches: list[Emulation] = []
        """The launches of the latest call, counted where the device is emulated."""

    def launch(self, number: int, words: Any, count: int) -> None:
        """Execute a kernel in `count` threads, or blocks, with the arguments in an array of words.

        Raises:
            StepwellError: if it fails.
        """
        kernel, passed, buffers = self.code.kernels[number], [count], list[Buffers]()
        source = (words[n] for n in itertools.count())
        arguments = launched_arguments(kernel.arguments, source)
        for position, (kind, first, sizes) in enumerate(arguments):
            if isinstance(kind, MemRefType):
                item = dtype_of(kind.element_type).itemsize
                size = item * math.prod(shape_with(kind, iter(sizes)))
                written, name = kernel.written[position], f"argument {position} ({kind})"
                buffers.append(Buffers((len(passed),), first, size, written, name))
            passed += [first, *sizes]
        self._run(kernel, passed, list(_apart(buffers)))

    def _grid(self, kernel: DeviceKernel, count: int) -> tuple[int, int]:
        """How many blocks a launch of so many threads, or blocks, has, and the threads of each."""
        if kernel.block is not None:
            return count, kernel.block
        threads = self.code.device.block
        return -(-count // threads), threads

    @abstractmethod
    def _run(self, kernel: DeviceKernel, passed: list[int], buffers: Sequence[Buffers]) -> None:
        """Execute a kernel.

        Args:
            kernel: the kernel.
            passed: the words of its arguments; first the number of threads or blocks, from 1 on.
            buffers: those whose addresses are among them, none of which overlap.
        """


class EmulatedDevice(ProgramDevice):
    """Executes kernels by the emulator, on the memory of the host."""

    def __init__(self, code: DeviceCode) -> None:
        super().__init__(code)
        self._kernels = read_ptx(code.text) if code.kernels else {}

    def _run(self, kernel: DeviceKernel, passed: list[int], buffers: Sequence[Buffers]) -> None:
        found, (blocks, threads) = self._kernels[kernel.name], self._grid(kernel, passed[0])
        memory = GlobalMemory()
        for one in buffers:
            raw = (ctypes.c_char * one.size).from_address(one.address) if one.size else b""
            data = np.frombuffer(cast(Any, raw), np.uint8)
            start = memory.add(Region(one.name, data, granules(found)))
            for place in one.places:
                passed[place] += start - one.address
        parameters = np.zeros(max(p.offset + p.size for p in found.parameters), np.uint8)
        for parameter, value in zip(found.parameters, passed, strict=True):
            # A scalar is in the first bytes of its word.
            at = slice(parameter.offset, parameter.offset + parameter.size)
            parameters[at] = list((value % (1 << 64)).to_bytes(8, "little"))[: parameter.size]
        grid = Shape((blocks, 1, 1), (threads, 1, 1))
        shared = found.bytes_in("shared")
        self.launches.append(launched(found, grid, memory, parameters, shared, sys.maxsize))


class DeviceProgram:
    """The machine code of a program, its device, and the function that calls both.

    A launch that fails keeps its error; launches after it in the same call do nothing, and the call
    raises the error.

    Args:
        code: the owner of the machine code.
        function: the address of its function that takes a frame.
        device: what runs the kernels that it launches.
    """

    def __init__(self, code: Any, function: int, device: ProgramDevice) -> None:
        self.code, self.device = code, device
        call = _ENTRY(function)

        def called(frame: int) -> int:
            before = getattr(_thread, "device", None)
            _thread.device, device.launches = device, []
            try:
                return call(frame) or int(not may_go_on())
            finally:
                _thread.device = before

        self._called = _ENTRY(called)

    @property
    def entry(self) -> int:
        """The address of a function that takes a frame, and fails if a launch has."""
        return ctypes.cast(self._called, ctypes.c_void_p).value or 0


def launch_address() -> int:
    """The address of the function of the run time that launches kernels (`rt.abi.LAUNCH`)."""
    return ctypes.cast(_launch, ctypes.c_void_p).value or 0


@_LAUNCH
def _launch(number: int, words: Any, count: int) -> None:
    """Launch a kernel of the program that this thread is in."""
    if count <= 0 or not may_go_on():
        return
    with keep_error():
        _thread.device.launch(number, words, count)


def _apart(buffers: Sequence[Buffers]) -> Iterator[Buffers]:
    """Buffers, those that overlap as one."""
    last: Buffers | None = None
    for one in sorted(buffers, key=lambda buffer: buffer.address):
        if last is None:
            last = one
        elif one.address < last.address + last.size:
            end = max(last.address + last.size, one.address + one.size)
            written, name = last.written or one.written, f"{last.name}, {one.name}"
            places = last.places + one.places
            last = Buffers(places, last.address, end - last.address, written, name)
        else:
            yield last
            last = one
    if last is not None:
        yield last

"""Launches of the kernels of a program on its device, or on one that is emulated."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..backends.ptx.counters import Emulation
from ..backends.ptx.decoding import granules
from ..backends.ptx.emulation import launched
from ..backends.ptx.kernels import DeviceCode, DeviceKernel
from ..backends.ptx.machine import Shape
from ..backends.ptx.memory import GlobalMemory, Region
from ..backends.ptx.text import read_ptx
from ..dialects.rt.abi import LAUNCH
from .functions import keep_error, may_go_on

_LAUNCH = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
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

    A launch that fails keeps its error; launches after it in the same call do nothing.

    Args:
        code: the kernels.
    """

    def __init__(self, code: DeviceCode) -> None:
        self.code = code
        self.launches: list[Emulation] = []
        """The launches of the latest call, counted where the device is emulated."""

    def call(self, entry: Callable[[int], int], frame: int) -> int:
        """The status of a call of compiled code with a frame: not 0 if a launch has failed."""
        before = getattr(_thread, "device", None)
        _thread.device, self.launches = self, []
        try:
            return entry(frame) or int(not may_go_on())
        finally:
            _thread.device = before

    def launch(self, number: int, words: Any, count: int) -> None:
        """Execute a kernel in `count` threads, or blocks, with the arguments in an array of words.

        Raises:
            StepwellError: if it fails.
        """
        kernel, passed, buffers = self.code.kernels[number], [count], list[Buffers]()
        source = (words[n] for n in itertools.count())
        for position, (argument, first, sizes) in enumerate(kernel.launched(source)):
            if argument.shape is not None:
                size, name = argument.size(sizes), f"argument {position} ({argument.type})"
                buffers.append(Buffers((len(passed),), first, size, argument.written, name))
            passed += [first, *sizes]
        self._run(kernel, passed, list(_apart(buffers)))

    def _grid(self, kernel: DeviceKernel, count: int) -> tuple[int, int]:
        """How many blocks a launch of so many threads, or blocks, has, and the threads of each."""
        if kernel.block is not None:
            return count, kernel.block
        threads = self.code.block
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


def functions_for_devices() -> Mapping[str, int]:
    """The addresses of the functions of the run time that code for a device calls."""
    return {LAUNCH: ctypes.cast(_launch, ctypes.c_void_p).value or 0}


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

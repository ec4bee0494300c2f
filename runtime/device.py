"""Calls of programs whose kernels run on a device, or on one that is emulated.

A device has memory of its own for the buffers of a call. Compiled code knows them by their
addresses on the host: it launches kernels and copies memory by functions of the run time, which
pass on to the call that the thread is in.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import gcd
from typing import Any, cast

import numpy as np

from ..backends.ptx.counters import Emulation
from ..backends.ptx.decoding import granules
from ..backends.ptx.emulation import launched
from ..backends.ptx.kernels import DeviceCode, DeviceKernel
from ..backends.ptx.machine import Shape
from ..backends.ptx.memory import GlobalMemory, Region
from ..backends.ptx.residence import Residence
from ..backends.ptx.text import read_ptx
from ..core.errors import EmulationError, explain
from ..dialects.rt.abi import LAUNCH, TO_DEVICE, TO_HOST
from .functions import keep_error, may_go_on

Span = tuple[int, int]
"""An address on the host, and a number of bytes."""
ALIGNED = 256
"""Each part of the memory of a call begins at a multiple of this on a device, whatever its address
on the host: code for kernels relies on 16."""

_LAUNCH = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
_COPY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
_thread = threading.local()


@dataclass(frozen=True)
class CallMemory:
    """The memory of the host that a call has: its arena, its arguments, and its results."""

    arena: Span
    given: Sequence[Span]
    results: Sequence[Span]


@dataclass(frozen=True)
class LaunchBuffer:
    """A buffer of a launch.

    Attributes:
        place: the position of its address in the arguments.
        address, size: its bytes on the host.
        read: whether the kernel reads it, and does not write to it.
        written: whether the kernel may write to it.
        name: what it is called in messages.
    """

    place: int
    address: int
    size: int
    read: bool
    written: bool
    name: str


@dataclass(frozen=True)
class Launch:
    """A kernel, and what it is executed with.

    Attributes:
        kernel: the kernel.
        blocks: the number of blocks.
        threads: the threads of each.
        words: those of its arguments; first the number of threads or blocks, from 1 on.
        buffers: those whose addresses are among them, on the host.
    """

    kernel: DeviceKernel
    blocks: int
    threads: int
    words: Sequence[int]
    buffers: Sequence[LaunchBuffer]

    def placed(self, addresses: Mapping[int, int]) -> list[int]:
        """The words with the addresses of buffers on a device, each by its place among them."""
        return [addresses.get(place, word) for place, word in enumerate(self.words)]


class DeviceCall(ABC):
    """A call of a program on a device.

    Args:
        code: its kernels.
    """

    def __init__(self, code: DeviceCode) -> None:
        self._code = code

    def launch(self, number: int, words: Any, count: int) -> None:
        """Execute a kernel in `count` threads, or blocks, with the arguments in an array of words.

        Raises:
            StepwellError: if it fails.
        """
        kernel, passed, buffers = self._code.kernels[number], [count], list[LaunchBuffer]()
        source = (words[n] for n in itertools.count())
        for position, (argument, first, sizes) in enumerate(kernel.launched(source)):
            if argument.shape is not None:
                size, name = argument.size(sizes), f"argument {position} ({argument.type})"
                access = argument.read, argument.written
                buffers.append(LaunchBuffer(len(passed), first, size, *access, name))
            passed += [first, *sizes]
        threads = kernel.block or self._code.block
        blocks = count if kernel.block else -(-count // threads)
        self._run(Launch(kernel, blocks, threads, passed, buffers))

    @abstractmethod
    def _run(self, launch: Launch) -> None:
        """Execute a kernel."""

    @abstractmethod
    def to_device(self, address: int, size: int) -> None:
        """Copy memory of the host to the device."""

    @abstractmethod
    def to_host(self, address: int, size: int) -> None:
        """Copy memory back, unless it is of an argument or a constant."""

    @abstractmethod
    def end(self) -> None:
        """Complete the call, whose results are on the host.

        Raises:
            StepwellError: if a launch has failed, or a result is not there.
        """


class ProgramDevice(ABC):
    """A device with the kernels of a program.

    Args:
        code: the kernels.
    """

    def __init__(self, code: DeviceCode) -> None:
        self.code = code
        self.launches: list[Emulation] = []
        """The launches of the latest call, counted where the device is emulated."""
        self.waits = False
        """Whether a launch waits for its kernel, so that clocks around it see its time."""

    @abstractmethod
    def place(self, constants: Sequence[np.ndarray]) -> Any:
        """Copy the constants of a program to the device, where they stay while the result lives.

        Raises:
            DeviceError: if the device has too little memory.
        """

    @abstractmethod
    def begin(self, placed: Any, memory: CallMemory) -> AbstractContextManager[DeviceCall]:
        """Begin a call, which ends with the context.

        Raises:
            DeviceError: if the device has too little memory.
        """

    def call(self, entry: Callable[[], int], placed: Any, memory: CallMemory) -> int:
        """The status of a call of compiled code: not 0 if a launch or a copy has failed.

        Its error is kept, and launches and copies after it do nothing.

        Args:
            entry: calls the code.
            placed: the constants of the program on the device.
            memory: the memory of the call.

        Raises:
            DeviceError: if the device has too little memory.
        """
        before = getattr(_thread, "call", None)
        with self.begin(placed, memory) as call:
            _thread.call = call
            try:
                status = entry()
                if not status:
                    _guarded(call.end)
            finally:
                _thread.call = before
        return status or int(not may_go_on())


class EmulatedDevice(ProgramDevice):
    """Executes kernels by the emulator, on the memory of the host.

    Copies move nothing, and are checked: a kernel reads what was copied to the device, and the
    results are what was copied back.
    """

    def __init__(self, code: DeviceCode) -> None:
        super().__init__(code)
        self.kernels = read_ptx(code.text) if code.kernels else {}

    def place(self, constants: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """The constants, where they are."""
        return constants

    @contextmanager
    def begin(self, placed: Sequence[np.ndarray], memory: CallMemory) -> Iterator[_EmulatedCall]:
        """Begin a call, and count its launches."""
        parts = [(array.ctypes.data, array.nbytes) for array in placed]
        parts += [*memory.given, memory.arena, *memory.results]
        call = _EmulatedCall(self, memory.results, parts)
        for array in placed:
            call.to_device(array.ctypes.data, array.nbytes)
        self.launches = call.launches
        yield call


class _EmulatedCall(DeviceCall):
    def __init__(
        self, device: EmulatedDevice, results: Sequence[Span], parts: Sequence[Span]
    ) -> None:
        super().__init__(device.code)
        self._kernels, self._results, self._parts = device.kernels, results, parts
        self._residence = Residence()
        self.launches: list[Emulation] = []

    def to_device(self, address: int, size: int) -> None:
        self._residence.copied(address, size)

    def to_host(self, address: int, size: int) -> None:
        self._residence.copied(address, size)

    def end(self) -> None:
        """Check that the host has the results.

        Raises:
            EmulationError: if only the device has one.
        """
        for number, span in enumerate(self._results):
            if self._residence.is_stale(*span):
                fact = f"only the device has result {number}"
                raise EmulationError(explain("call", fact), kind="stale")

    def _run(self, launch: Launch) -> None:
        found, memory = self._kernels[launch.kernel.name], GlobalMemory()
        addresses = dict[int, int]()
        for one in launch.buffers:
            if one.read and not self._residence.is_on_device(one.address, one.size):
                fact = f"{one.name} was not copied to the device"
                raise EmulationError(explain(launch.kernel.name, fact), kind="stale")
        for joined in _apart(launch.buffers):
            start, size = joined[0].address, max(b.address + b.size for b in joined)
            size -= start
            raw = (ctypes.c_char * size).from_address(start) if size else b""
            data, name = np.frombuffer(cast(Any, raw), np.uint8), ", ".join(b.name for b in joined)
            _, shift = part_with(self._parts, (start, size)) or (0, 0)
            region = Region(name, data, granules(found), shift=shift % ALIGNED, padded=True)
            emulated = memory.add(region)
            for one in joined:
                addresses[one.place] = one.address - start + emulated
        parameters = np.zeros(max(p.offset + p.size for p in found.parameters), np.uint8)
        for parameter, value in zip(found.parameters, launch.placed(addresses), strict=True):
            # A scalar is in the first bytes of its word.
            at = slice(parameter.offset, parameter.offset + parameter.size)
            parameters[at] = list((value % (1 << 64)).to_bytes(8, "little"))[: parameter.size]
        shape = Shape((launch.blocks, 1, 1), (launch.threads, 1, 1))
        shared = found.bytes_in("shared")
        self.launches.append(launched(found, shape, memory, parameters, shared, sys.maxsize))
        for one in launch.buffers:
            if one.written:
                self._residence.written_by_device(one.address, one.size)


def part_with(parts: Sequence[Span], span: Span) -> tuple[int, int] | None:
    """The number of the part of memory that has some bytes, and their offset in it.

    Of arguments that overlap, it is the one in which they are aligned best. None if no part has
    them.
    """
    (address, size), found = span, list[tuple[int, int]]()
    for number, (start, length) in enumerate(parts):
        if start <= address and address + size <= start + length:
            found.append((number, address - start))
    return max(found, key=lambda pair: gcd(pair[1], ALIGNED), default=None)


def _apart(buffers: Sequence[LaunchBuffer]) -> Iterator[list[LaunchBuffer]]:
    """Buffers by address; those that overlap, and of which some are written, together."""
    together, end = list[LaunchBuffer](), 0
    for one in sorted(buffers, key=lambda buffer: buffer.address):
        if together and one.address >= end:
            yield from _joined(together)
            together = []
        end = max(end, one.address + one.size) if together else one.address + one.size
        together.append(one)
    yield from _joined(together)


def _joined(overlapping: Sequence[LaunchBuffer]) -> Iterator[list[LaunchBuffer]]:
    if any(one.written for one in overlapping):
        yield list(overlapping)
    else:
        yield from ([one] for one in overlapping)


def functions_for_devices() -> Mapping[str, int]:
    """The addresses of the functions of the run time that code for a device calls."""
    functions = {LAUNCH: _launch, TO_DEVICE: _to_device, TO_HOST: _to_host}
    return {
        name: ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in functions.items()
    }


@_LAUNCH
def _launch(number: int, words: Any, count: int) -> None:
    """Launch a kernel of the program that this thread is in."""
    if count > 0:
        _guarded(lambda: _thread.call.launch(number, words, count))


@_COPY
def _to_device(address: int, size: int) -> None:
    if size > 0:
        _guarded(lambda: _thread.call.to_device(address, size))


@_COPY
def _to_host(address: int, size: int) -> None:
    if size > 0:
        _guarded(lambda: _thread.call.to_host(address, size))


def _guarded(function: Callable[[], None]) -> None:
    """Call a function, whose error is kept, unless there is one already."""
    if may_go_on():
        with keep_error():
            function()

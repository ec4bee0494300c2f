"""`CudaDevice`: the kernels of a program, and its calls, by NVIDIA's driver."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import byref, c_int, c_int64, c_uint64, c_void_p
from dataclasses import dataclass

import numpy as np

from ..backends.ptx.kernels import DeviceCode
from ..core.cuda import Driver, driver
from ..core.errors import DeviceError, explain
from .device import (
    ALIGNED,
    CallMemory,
    DeviceCall,
    EmulatedDevice,
    Launch,
    ProgramDevice,
    Span,
    part_with,
)
from .functions import may_go_on

_LOG, _LOG_BYTES = 5, 6
"""The options of the driver for a text of what is wrong with a module."""


class CudaDevice(ProgramDevice):
    """Executes kernels on the first device of the driver, in the context that other libraries use.

    Constants are on the device as long as the program; a call has one allocation there for its
    arena, arguments and results, which the next one takes over. It uses the default stream, and
    waits for kernels where it copies to the host, or after each one if it `waits`. Threads may call
    concurrently.

    Raises:
        DeviceError: if the driver does not take the kernels.
        TargetError: if there is no driver, or its device is too old.
    """

    def __init__(self, code: DeviceCode) -> None:
        super().__init__(code)
        self._driver = driver()
        self._driver.check(code.processor)
        self._functions = self._loaded() if code.kernels else {}

    def _loaded(self) -> dict[str, c_void_p]:
        """The kernels by their names, which the device has for as long as this object lives."""
        module, log = c_void_p(), ctypes.create_string_buffer(4096)
        values = (c_void_p * 2)(ctypes.addressof(log), len(log))
        options = (c_int * 2)(_LOG, _LOG_BYTES)
        text, functions = self.code.text.encode(), dict[str, c_void_p]()
        with _current(self._driver):
            try:
                load = (byref(module), text, len(options), options, values)
                self._driver.call("cuModuleLoadDataEx", *load, what="the kernels of the program")
            except DeviceError as error:
                said = log.value.decode(errors="replace").strip().partition("\n")[0]
                raise DeviceError(f"{error}: {said}" if said else str(error)) from error
            weakref.finalize(self, _unload, self._driver, module)
            for kernel in self.code.kernels:
                function = functions[kernel.name] = c_void_p()
                name = kernel.name.encode()
                found = (byref(function), module, name)
                self._driver.call("cuModuleGetFunction", *found, what=kernel.name)
        return functions

    def place(self, constants: Sequence[np.ndarray]) -> _Memory:
        """Copy constants to the device."""
        return _Memory(self._driver, constants)

    @contextmanager
    def begin(self, placed: _Memory, memory: CallMemory) -> Iterator[_CudaCall]:
        """Begin a call in memory of its own."""
        given, written = list(dict.fromkeys(memory.given)), [memory.arena, *memory.results]
        places, size = _laid_out([*given, *written])
        with _current(self._driver):
            start = placed.take(size)
            spans = zip([*given, *written], places, strict=True)
            regions = [
                _Region(*span, start + place, number >= len(given))
                for number, (span, place) in enumerate(spans)
            ]
            kernels = self.code, self._driver, self._functions, self.waits
            call = _CudaCall(*kernels, [*placed.constants, *regions])
            try:
                yield call
            finally:
                with suppress(DeviceError):
                    call.end()
                placed.give_back(start, keep=may_go_on())


@dataclass(frozen=True)
class _Region:
    """Memory of the host, by address and bytes, and where it is on the device.

    `written` says that kernels may write to it; otherwise the host always has it.
    """

    address: int
    size: int
    start: int
    written: bool


class _Memory:
    """Memory on the device for the constants of a program, and for its calls.

    It is freed with this object.

    Raises:
        DeviceError: if there is too little.
    """

    def __init__(self, found: Driver, constants: Sequence[np.ndarray]) -> None:
        self._driver, self._lock = found, threading.Lock()
        self._taken, self._idle = dict[int, int](), list[int]()
        weakref.finalize(self, _free, found, self._taken)
        spans = [(array.ctypes.data, array.nbytes) for array in constants]
        places, size = _laid_out(spans)
        what = f"{size} bytes for the constants of the program"
        with _current(found):
            start = self._allocated(size, what)
            self.constants = [
                _Region(*span, start + place, False)
                for span, place in zip(spans, places, strict=True)
            ]
            for one in self.constants:
                if one.size:
                    found.call("cuMemcpyHtoD_v2", one.start, one.address, one.size, what=what)

    def take(self, size: int) -> int:
        """Memory for a call, that of an earlier one if it is large enough."""
        with self._lock:
            if not self._idle:
                start = 0
            elif self._taken[start := self._idle.pop()] >= size:
                return start
        self._free(start)
        return self._allocated(size, f"call: {size} bytes for its buffers")

    def give_back(self, start: int, *, keep: bool) -> None:
        """Keep memory for the next call, or free it."""
        if not keep:
            self._free(start)
        elif start:
            with self._lock:
                self._idle.append(start)

    def _allocated(self, size: int, what: str) -> int:
        start = c_uint64()
        if size:
            self._driver.call("cuMemAlloc_v2", byref(start), size, what=what)
            self._taken[start.value] = size
        return start.value

    def _free(self, start: int) -> None:
        if self._taken.pop(start, 0):
            # After an error of a kernel this fails as well, and the first error is raised.
            with suppress(DeviceError):
                self._driver.call("cuMemFree_v2", start)


class _CudaCall(DeviceCall):
    def __init__(
        self,
        code: DeviceCode,
        found: Driver,
        functions: dict[str, c_void_p],
        waits: bool,
        regions: Sequence[_Region],
    ) -> None:
        super().__init__(code)
        self._driver, self._functions, self._regions = found, functions, regions
        self._waits = waits
        self._running: list[str] = []
        """The kernels that were launched, and not yet waited for."""

    def to_device(self, address: int, size: int) -> None:
        what = f"copy of {size} bytes to the device"
        self._place(address, size, what)
        # Arguments may overlap, and the device has each of them.
        for one in self._regions:
            first, end = max(address, one.address), min(address + size, one.address + one.size)
            if first < end:
                start = one.start + first - one.address
                self._driver.call("cuMemcpyHtoD_v2", start, first, end - first, what=what)

    def to_host(self, address: int, size: int) -> None:
        what = f"copy of {size} bytes to the host"
        start, written = self._place(address, size, what)
        if written:
            self.end()
            self._driver.call("cuMemcpyDtoH_v2", address, start, size, what=what)

    def end(self) -> None:
        """Wait for kernels.

        Raises:
            DeviceError: if one has failed.
        """
        if self._running:
            what, self._running = ", ".join(dict.fromkeys(self._running)), []
            self._driver.call("cuCtxSynchronize", what=what)

    def _run(self, launch: Launch) -> None:
        most, name = self._driver.most_blocks, launch.kernel.name
        if launch.blocks > most:
            fact, expected = "too large a grid", f"at most {most} blocks"
            raise DeviceError(explain(name, fact, expected=expected, got=launch.blocks))
        words = launch.placed(
            {
                one.place: self._place(one.address, one.size, f"{name}: {one.name}")[0]
                for one in launch.buffers
                if one.size
            }
        )
        passed = (c_int64 * len(words))(*words)
        # A scalar is in the first bytes of its word.
        base = ctypes.addressof(passed)
        pointers = (c_void_p * len(words))(*(base + 8 * n for n in range(len(words))))
        shape = launch.blocks, 1, 1, launch.threads, 1, 1
        self._running.append(name)
        arguments = (self._functions[name], *shape, 0, None, pointers, None)
        self._driver.call("cuLaunchKernel", *arguments, what=name)
        if self._waits:
            self.end()

    def _place(self, address: int, size: int, what: str) -> tuple[int, bool]:
        """Where memory of the host is on the device, and whether kernels may write to it."""
        spans = [(one.address, one.size) for one in self._regions]
        found = part_with(spans, (address, size))
        if found is None:
            raise DeviceError(explain(what, "the device has no memory for it"))
        number, offset = found
        return self._regions[number].start + offset, self._regions[number].written


def device_of(code: DeviceCode) -> ProgramDevice:
    """The device for the kernels of a program: the first one of the driver, or an emulated one.

    Raises:
        DeviceError: if the driver does not take them.
        TargetError: if there is no driver, or its device is too old.
    """
    return EmulatedDevice(code) if code.emulated else CudaDevice(code)


def _laid_out(spans: Sequence[Span]) -> tuple[list[int], int]:
    """Places for memory in an allocation, which the driver aligns, and the bytes of all."""
    places, end = list[int](), 0
    for _, size in spans:
        end += -end % ALIGNED
        places.append(end)
        end += size
    return places, end


@contextmanager
def _current(found: Driver) -> Iterator[None]:
    """Make the context of the device that of this thread, and then the one before again."""
    found.call("cuCtxPushCurrent_v2", found.context)
    try:
        yield
    finally:
        with suppress(DeviceError):
            found.call("cuCtxPopCurrent_v2", byref(c_void_p()))


def _unload(found: Driver, module: c_void_p) -> None:
    with suppress(DeviceError), _current(found):
        found.call("cuModuleUnload", module)


def _free(found: Driver, taken: dict[int, int]) -> None:
    for start in taken:
        with suppress(DeviceError), _current(found):
            found.call("cuMemFree_v2", start)

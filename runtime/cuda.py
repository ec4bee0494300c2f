"""`CudaDevice`: launches of the kernels of a program by NVIDIA's driver."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from ctypes import byref, c_int, c_int64, c_uint64, c_void_p

from ..backends.ptx.kernels import DeviceCode, DeviceKernel
from ..core.cuda import Driver, driver
from ..core.errors import DeviceError, explain
from .device import Buffers, EmulatedDevice, ProgramDevice

_ALIGNED = 256
"""The driver aligns memory to this, and addresses on the device are those of the host modulo it."""
_LOG, _LOG_BYTES = 5, 6
"""The options of the driver for a text of what is wrong with a module."""


class CudaDevice(ProgramDevice):
    """Executes kernels on the first device of the driver, in the context that other libraries use.

    Each launch copies the buffers that it takes to the device, and those that it may write to
    back. It uses the default stream, and waits for the kernel. Threads may launch concurrently.

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

    def _run(self, kernel: DeviceKernel, passed: list[int], buffers: Sequence[Buffers]) -> None:
        call, most = self._driver.call, self._driver.most_blocks
        blocks, threads = self._grid(kernel, passed[0])
        if blocks > most:
            fact, expected = "too large a grid", f"at most {most} blocks"
            raise DeviceError(explain(kernel.name, fact, expected=expected, got=blocks))
        with _current(self._driver), ExitStack() as stack:
            copies = list[tuple[Buffers, int]]()
            for one in buffers:
                start = stack.enter_context(self._memory(one, kernel)) if one.size else 0
                if one.size:
                    copies.append((one, start))
                    call("cuMemcpyHtoD_v2", start, one.address, one.size, what=kernel.name)
                for place in one.places:
                    passed[place] += start - one.address
            words = (c_int64 * len(passed))(*passed)
            # A scalar is in the first bytes of its word.
            base = ctypes.addressof(words)
            pointers = (c_void_p * len(passed))(*(base + 8 * n for n in range(len(passed))))
            shape = (blocks, 1, 1, threads, 1, 1)
            function = self._functions[kernel.name]
            call("cuLaunchKernel", function, *shape, 0, None, pointers, None, what=kernel.name)
            call("cuCtxSynchronize", what=kernel.name)
            for one, start in copies:
                if one.written:
                    call("cuMemcpyDtoH_v2", one.address, start, one.size, what=kernel.name)

    @contextmanager
    def _memory(self, one: Buffers, kernel: DeviceKernel) -> Iterator[int]:
        """The address of memory on the device for buffers, which is freed afterwards."""
        start, shift = c_uint64(), one.address % _ALIGNED
        what = f"{kernel.name}: {one.size} bytes for {one.name}"
        self._driver.call("cuMemAlloc_v2", byref(start), shift + one.size, what=what)
        try:
            yield start.value + shift
        finally:
            # After an error of a kernel this fails as well, and the first error is raised.
            with suppress(DeviceError):
                self._driver.call("cuMemFree_v2", start.value)


def device_of(code: DeviceCode) -> ProgramDevice:
    """What runs the kernels of a program.

    Raises:
        DeviceError: if the driver does not take them.
        TargetError: if there is no driver, or its device is too old.
    """
    return EmulatedDevice(code) if code.emulated else CudaDevice(code)


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

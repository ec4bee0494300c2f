"""A stand-in for NVIDIA's driver, which has memory of its own and runs kernels on the emulator."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from stepwell.backends.ptx.decoding import granules
from stepwell.backends.ptx.emulation import launched
from stepwell.backends.ptx.machine import Shape
from stepwell.backends.ptx.memory import GlobalMemory, Region
from stepwell.backends.ptx.text import read_ptx

from ..harness import tool

SOURCE = Path(__file__).with_name("stand_in_driver.c")
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_uint,
    ctypes.POINTER(ctypes.c_void_p),
)


class StandIn:
    """The library, and what its kernels did."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self._launch = _LAUNCH(self._launched)
        self.library.stand_in_reset(self._launch)
        self.addresses: list[int] = []
        """Those on the device that kernels were passed."""
        self.fault = 0
        """The error with which a kernel ends instead of being executed; 0 for none."""
        self.raised: list[Exception] = []

    def __getattr__(self, name: str) -> int:
        """A counter: `live` allocations, `allocated` so far, `modules`, `depth` of contexts,
        `copies_in` and `copies_back`, and their bytes, `copied_in` and `copied_back`."""
        return self.library[f"stand_in_{name}"]()

    def device(self, capability: int = 90, most_blocks: int = 1 << 30, room: int = 1 << 40) -> None:
        self.library.stand_in_device(capability, most_blocks, ctypes.c_long(room))

    def fail(self, function: str, code: int) -> None:
        self.library.stand_in_fail(function.encode(), code)

    def _launched(self, text: bytes, name: bytes, shape: Any, shared: int, given: Any) -> int:
        try:
            return self.fault or self._execute(text, name, shape, shared, given)
        except Exception as error:
            self.raised.append(error)
            return 700

    def _execute(self, text: bytes, name: bytes, shape: Any, shared: int, given: Any) -> int:
        kernel = read_ptx(text.decode())[name.decode()]
        memory, places = GlobalMemory(), list[tuple[int, int, int]]()
        device, host, size, n = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_size_t(), 0
        find = self.library.stand_in_allocation
        more = True
        while more:
            more = find(n, *map(ctypes.byref, (device, host, size)))
            n += 1
            if host.value is None:
                continue
            raw = (ctypes.c_char * size.value).from_address(host.value)
            region = Region(f"{n}", np.frombuffer(raw, np.uint8), granules(kernel))
            places.append((device.value, size.value, memory.add(region)))
        parameters = np.zeros(max(p.offset + p.size for p in kernel.parameters), np.uint8)
        for n, parameter in enumerate(kernel.parameters):
            value = ctypes.string_at(given[n], parameter.size)
            if parameter.size == 8:
                word = int.from_bytes(value, "little", signed=True)
                for start, length, emulated in places:
                    if start <= word < start + length:
                        self.addresses.append(word)
                        value = (word - start + emulated).to_bytes(8, "little")
            at = slice(parameter.offset, parameter.offset + parameter.size)
            parameters[at] = list(value)
        grid, block = tuple(shape[:3]), tuple(shape[3:6])
        bytes_shared = kernel.bytes_in("shared") + shared
        launched(kernel, Shape(grid, block), memory, parameters, bytes_shared)
        return 0


def built(folder: Path, *options: str) -> Path:
    path = folder / "libstandin.so"
    command = [tool("cc", "gcc"), "-shared", "-fPIC", "-pthread", "-Wall", "-Werror", *options]
    subprocess.run([*command, "-o", str(path), str(SOURCE)], check=True)
    return path

"""Images: machine code laid out as it will lie in memory, which needs no linker to be loaded.

An image is position independent. It begins with code and constants, which become read-only and
executable, and ends with data. What remains to be done is to write addresses into some of its
words: of functions outside of it (`imports`), and of places in it (`relative`). `elf.image_of`
makes one of an object file.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import StepwellError, explain

PAGE = 4096
"""The alignment of the parts of an image."""


@dataclass(frozen=True)
class Image:
    """Machine code for Linux on x86-64.

    Args:
        data: its bytes from offset 0; the rest is zeros.
        size: its size in bytes.
        executable: the bytes of code and constants at its beginning, a multiple of `PAGE`.
        symbols: the offsets of its functions and tables, by name.
        imports: the offsets of the words that hold the address of each outside function.
        relative: the offsets of the words to which the address of the image is added.
    """

    data: bytes
    size: int
    executable: int
    symbols: Mapping[str, int]
    imports: Mapping[str, tuple[int, ...]]
    relative: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """All but `data` as values of JSON."""
        return {
            "size": self.size,
            "executable": self.executable,
            "symbols": dict(self.symbols),
            "imports": {name: list(places) for name, places in self.imports.items()},
            "relative": list(self.relative),
        }

    @staticmethod
    def from_dict(data: bytes, facts: Mapping[str, Any]) -> Image:
        """The image that consists of `data` and what `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: if it is none.
        """
        size, executable = int(facts["size"]), int(facts["executable"])
        image = Image(
            data,
            size,
            executable,
            {str(name): int(place) for name, place in facts["symbols"].items()},
            {str(name): tuple(map(int, found)) for name, found in facts["imports"].items()},
            tuple(map(int, facts["relative"])),
        )
        words = [place for found in image.imports.values() for place in found]
        inside = all(0 <= place <= size - 8 for place in (*words, *image.relative))
        inside &= all(0 <= place < size for place in image.symbols.values())
        if not (inside and 0 <= executable <= size >= len(data)) or executable % PAGE:
            raise ValueError("an image exceeds its bounds")
        return image


def can_be_mapped() -> bool:
    """Whether this process can run images: it is one of Linux on x86-64."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


class MappedImage:
    """An image in memory; the code stays while this object lives.

    Args:
        image: the image.
        resolve: returns the address of a function outside of it, by name.

    Raises:
        StepwellError: if a function is missing, or the system does not allow memory that is
            executable.
    """

    def __init__(self, image: Image, resolve: Callable[[str], int]) -> None:
        self._image = image
        # By default the child of a fork would share the memory, and the data in it.
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, max(image.size, 1), private)
        self._memory[: len(image.data)] = image.data
        self._first = ctypes.c_char.from_buffer(self._memory)
        self.base = ctypes.addressof(self._first)
        """The address of the image."""
        for name, places in image.imports.items():
            address = struct.pack("<Q", resolve(name))
            for place in places:
                self._memory[place : place + 8] = address
        for place in image.relative:
            (offset,) = struct.unpack_from("<Q", self._memory, place)
            struct.pack_into("<Q", self._memory, place, (self.base + offset) % (1 << 64))
        # Make memory read-only and executable.
        system = ctypes.CDLL(None, use_errno=True)
        protect = system.mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if protect(self.base, image.executable, mmap.PROT_READ | mmap.PROT_EXEC):
            number = ctypes.get_errno()
            fact = f"the system refuses executable memory: {os.strerror(number)}"
            hint = "its policy must allow it (SELinux: execmem)" if number == errno.EACCES else None
            raise StepwellError(explain("machine code", fact, hint=hint))

    def address(self, name: str) -> int:
        """The address of a function or table of the image.

        Raises:
            StepwellError: if it has none of this name.
        """
        if name not in self._image.symbols:
            raise StepwellError(explain("machine code", f"lacks {name}"))
        return self.base + self._image.symbols[name]

    def keep_forever(self) -> MappedImage:
        """Never free the memory, also not when the interpreter ends: threads may run the code."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        return self


def system_function(name: str) -> int:
    """The address of a function of the C library or the process.

    Raises:
        StepwellError: if there is none.
    """
    try:
        function = ctypes.CDLL(None)[name]
    except AttributeError:
        raise StepwellError(
            explain("machine code", f"this process has no function {name}")
        ) from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0

"""Maps that Python's `mmap` does not make; rings are mapped twice, so each row precedes all others.

The parts of one host exchange a value by writing their rows in one array. A part reads it from its
own first row on: those of later parts follow, and after the end, which is the beginning again,
those of earlier ones. No halo is copied.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os

import numpy as np

from .pages import libc

_FIXED, _NORESERVE = 0x10, 0x4000
"""`MAP_FIXED` and `MAP_NORESERVE`, which `mmap` does not name."""


def has_rings() -> bool:
    """Whether the system maps rings; macOS has no files in memory without a name."""
    return hasattr(os, "memfd_create")


def ring_rows(rows: int, widths: list[int]) -> int:
    """The rows of rings, at least so many, so that each ends where a page does.

    Args:
        rows: the number of rows that are needed.
        widths: the bytes of a row of each ring.
    """
    step = math.lcm(*(mmap.PAGESIZE // math.gcd(mmap.PAGESIZE, width) for width in widths))
    return -(-rows // step) * step


def map_ring(descriptor: int, size: int, write: bool) -> np.ndarray:
    """The bytes of a file, twice in a row, as uint8 (2 * size,). They are freed with the array.

    Args:
        descriptor: the file.
        size: its bytes, which fill pages.
        write: whether to write to it.

    Raises:
        OSError: if it cannot be mapped.
    """
    # Reserves the addresses, and gives back all that is mapped there in the end.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
    memory = np.frombuffer(mmap.mmap(-1, 2 * size, flags), np.uint8)
    access = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
    for place in (memory.ctypes.data, memory.ctypes.data + size):
        found = libc().mmap(place, size, access, mmap.MAP_SHARED | _FIXED, descriptor, 0)
        if found != place:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    memory.flags.writeable = write
    return memory

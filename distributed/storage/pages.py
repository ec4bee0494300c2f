"""The pages of maps, and the memory that this process may use: calls of the C library."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ...core.files.reading import memory

_POPULATE = {False: 22, True: 23}
"""`MADV_POPULATE_READ` or `_WRITE`, which `mmap` does not name."""


def populate(array: np.ndarray) -> None:
    """Map all pages of an array in a file at once, not one by one as they are used.

    The system may not know how (before Linux 5.14): then it is as if this had not been called.
    """
    if sys.platform != "linux":
        return
    begin, size = _pages(array)
    libc().madvise(begin, size, _POPULATE[array.flags.writeable])


def is_cached(array: np.ndarray) -> bool:
    """Whether all pages of an array in a file are in memory; False if the system does not say."""
    if sys.platform != "linux":
        return False
    begin, size = _pages(array)
    found = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    failed = libc().mincore(begin, size, found.ctypes.data)
    return not failed and bool((found & 1).all())


def memory_limit() -> int:
    """The bytes of memory, page cache included, that this process may use.

    That is what the machine has, or less in a control group with a limit.
    """
    return min([memory(), *_group_limits()])


def _group_limits() -> Iterator[int]:
    """The limits of the control groups that this process is in, of version 1 or 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:  # not on this system
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        root = Path("/sys/fs/cgroup", top)
        # A container sees its own group as the root.
        group = root / path.lstrip("/")
        for folder in {
            root,
            group,
            *(parent for parent in group.parents if root in parent.parents),
        }:
            try:
                yield int((folder / name).read_text())
            except (OSError, ValueError):  # no such file, or no limit
                continue


def _pages(array: np.ndarray) -> tuple[int, int]:
    """The address of the first page of an array, and the bytes from there to its end."""
    first, end = byte_bounds(array)
    begin = first - first % mmap.PAGESIZE
    return begin, end - begin


@functools.cache
def libc() -> ctypes.CDLL:
    """The system's C library."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.argtypes = pointer, size, number, number, number, ctypes.c_long
    library.madvise.argtypes = pointer, size, number
    library.mincore.argtypes = pointer, size, pointer
    return library

"""Direct I/O: files that are read and written without the page cache, where the system can.

A file that is larger than memory is evicted from the page cache before it is read again. Filling
the cache then takes longer than the disk does, and evicts pages that are needed again.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import damaged

BLOCK = 4096
"""Direct I/O needs offsets, sizes and addresses that are multiples of so many bytes."""
SPAN = 1 << 21
"""The bytes to transfer at a time: enough for a disk, and they still fit the cache of a core."""


class DirectFile:
    """A file that several threads may read, and whose bytes each may write apart from the others'.

    It is closed with this object.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, write: bool = False, direct: bool = True
    ) -> None:
        """Open a file that exists.

        Args:
            path: the file.
            write: whether to write to it, too.
            direct: whether to use direct I/O where it is possible.

        Raises:
            OSError: if it cannot be opened.
        """
        self.path = Path(path)
        mode = os.O_RDWR if write else os.O_RDONLY
        self._file = os.open(path, mode)
        weakref.finalize(self, os.close, self._file)
        self._direct = self._opened(mode) if direct else None

    def _opened(self, mode: int) -> int | None:
        """A descriptor for direct I/O; None where the system or the file system has none."""
        try:
            opened = os.open(self.path, mode | os.O_DIRECT)
        except (AttributeError, OSError):
            return None
        weakref.finalize(self, os.close, opened)
        return opened

    def read(self, begin: int, end: int, *, cached: bool = False) -> np.ndarray:
        """The bytes of a range, as uint8, which are valid until this thread reads again.

        Args:
            begin: the first byte.
            end: the byte after the last one.
            cached: whether they are in the page cache, and so better read from there.

        Raises:
            InputError: if the file ends before.
            OSError: if the disk fails.
        """
        first = begin - begin % BLOCK
        memory = _blocks(end - first)
        place = self._transfer(os.preadv, memory, first, end, None if cached else self._direct)
        if place < end:
            raise damaged(self.path, f"truncated, expected {end} bytes, got {place}")
        return scratch(begin, end)

    def write(self, begin: int, data: np.ndarray) -> None:
        """Write bytes from a place on.

        Whole blocks are written by direct I/O, if the address of the data is that place, modulo
        `BLOCK`, as that of `scratch` is. Everything else goes through the page cache.

        Args:
            begin: the place of the first one.
            data: uint8 (n,), in one piece.

        Raises:
            OSError: if the disk fails.
        """
        memory, end = data.data, begin + len(data)
        first, last = -(-begin // BLOCK) * BLOCK, end - end % BLOCK
        if first >= last or (data.ctypes.data - begin) % BLOCK:
            first = last = begin
        for start, stop, descriptor in (
            (begin, first, None),
            (first, last, self._direct),
            (last, end, None),
        ):
            self._transfer(
                os.pwritev, memory[start - begin : stop - begin], start, stop, descriptor
            )

    def flush(self) -> None:
        """Have all that was written on the disk."""
        os.fsync(self._file)

    def _transfer(
        self,
        how: Callable[[int, Any, int], int],
        memory: memoryview,
        begin: int,
        end: int,
        direct: int | None,
    ) -> int:
        """Read or write a range; returns where that ended, before `end` only at the file's end."""
        place, descriptor = begin, self._file if direct is None else direct
        while place < end:
            try:
                count = how(descriptor, [memory[place - begin :]], place)
            except OSError as reason:
                if reason.errno != errno.EINVAL or descriptor == self._file:
                    raise
                # A file system with larger blocks.
                self._direct, descriptor = None, self._file
                continue
            if not count and descriptor == self._file:
                break
            # What is left after a short transfer may not begin with a block.
            place, descriptor = place + count, self._file
        return place


_local = threading.local()


def scratch(begin: int, end: int) -> np.ndarray:
    """Memory of this thread for a range of a file, as uint8; `DirectFile.read` uses the same."""
    skipped = begin % BLOCK
    return np.frombuffer(_blocks(skipped + end - begin), np.uint8)[skipped : skipped + end - begin]


def _blocks(size: int) -> memoryview:
    """Memory of this thread that begins with a block, of at least so many bytes, in blocks."""
    size = -(-size // BLOCK) * BLOCK
    held: mmap.mmap | None = getattr(_local, "held", None)
    if held is None or len(held) < size:
        held = _local.held = mmap.mmap(-1, size)
    return memoryview(held)[:size]

"""Files that are read and written past the page cache, where that is asked for and possible.

What is larger than memory is not read again before it has left the cache. To get there costs more
than the disk takes, and other pages, which are needed again, leave for it.
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

from .errors import damaged

BLOCK = 4096
"""The bytes of which places in files, sizes and addresses are multiples, to pass the cache."""


class DirectFile:
    """A file whose bytes several threads may read, or write in different blocks.

    It is closed with this object.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, write: bool = False, direct: bool = True
    ) -> None:
        """Open a file that exists.

        Args:
            path: the file.
            write: whether to write to it, too.
            direct: whether to pass the cache.

        Raises:
            OSError: if it cannot be opened.
        """
        self.path = Path(path)
        mode = os.O_RDWR if write else os.O_RDONLY
        self._file = os.open(path, mode)
        weakref.finalize(self, os.close, self._file)
        self._direct = self._opened(mode) if direct else None

    def _opened(self, mode: int) -> int | None:
        """The file without the cache; None where the system or the file system knows no such."""
        try:
            opened = os.open(self.path, mode | os.O_DIRECT)
        except (AttributeError, OSError):
            return None
        weakref.finalize(self, os.close, opened)
        return opened

    def read(self, begin: int, end: int, *, cached: bool = False) -> np.ndarray:
        """The bytes of a range, as uint8, which are there until this thread reads again.

        Args:
            begin: the first byte.
            end: the byte after the last one.
            cached: whether they are in the cache.

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

        Only whole blocks pass the cache, and only from memory whose address is, modulo `BLOCK`,
        that place, as that of `scratch` is.

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
        """Read or write a range; the place behind what was, which is before `end` at the file's."""
        place, descriptor = begin, self._file if direct is None else direct
        while place < end:
            try:
                count = how(descriptor, [memory[place - begin :]], place)
            except OSError as reason:
                if reason.errno != errno.EINVAL or descriptor == self._file:
                    raise
                # A file system with other blocks.
                self._direct, descriptor = None, self._file
                continue
            if not count and descriptor == self._file:
                break
            # What is left is no block.
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

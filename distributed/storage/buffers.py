"""Memory that outlives a tile: for the arrays of the next one, and for rows that all tiles need.

The system clears pages that are used for the first time, which takes as long as reading them from
a file.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .direct import BLOCK


class TileBuffers:
    """Memory for the arrays of one tile at a time.

    Args:
        size: the bytes that the arrays of a tile take at most; pages are allocated when used.
        count: the number of these arrays.
    """

    def __init__(self, size: int, count: int) -> None:
        self.size = size
        # Each array begins in a block of its own, not always at its beginning.
        self._memory = _memory(size + (2 * count + 1) * BLOCK)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self._used = self._end = 0

    def begin(self, room: int) -> None:
        """Begin a tile, whose arrays may take so many bytes; those of the last one are invalid."""
        kept = -(-room // BLOCK) * BLOCK
        if kept < self._used:
            self._memory.madvise(mmap.MADV_DONTNEED, kept, self._used - kept)
            self._used = kept
        self._end = 0

    def take(self, shape: Sequence[int], dtype: np.dtype[Any], place: int = 0) -> np.ndarray:
        """An array with undefined elements.

        Args:
            shape: its shape.
            dtype: its element type.
            place: where in a file it will be written (`DirectFile.write`).
        """
        size = math.prod(shape) * dtype.itemsize
        first = self._end + (place - self._end) % BLOCK
        self._end = -(-(first + size) // BLOCK) * BLOCK
        self._used = max(self._used, self._end)
        return self._bytes[first : first + size].view(dtype).reshape(shape)


class KeptRows:
    """Memory for rows that all tiles need, after rows of each of them.

    Args:
        shape: the shape of the rows that all tiles need.
        dtype: their element type.
        most: how many rows of its own a tile may have.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], most: int) -> None:
        count = most + shape[0]
        self._width = math.prod(shape[1:]) * dtype.itemsize
        self._memory = _memory(count * self._width)
        elements = np.frombuffer(self._memory, np.uint8)[: count * self._width].view(dtype)
        self._all, self._most = elements.reshape(count, *shape[1:]), most
        self.rows = self._all[most:]
        """The rows that all tiles need."""
        self._used = most

    def size(self, count: int) -> int:
        """The bytes that they take with so many rows of a tile."""
        return (count + len(self.rows)) * self._width

    def behind(self, count: int) -> np.ndarray:
        """These rows, after so many rows of a tile; those of the last one are invalid."""
        first = self._most - count
        # Pages of rows that are not needed are given back.
        begin, end = (row * self._width // BLOCK * BLOCK for row in (self._used, first))
        if begin < end:
            self._memory.madvise(mmap.MADV_DONTNEED, begin, end - begin)
        self._used = first
        return self._all[first:]


def _memory(size: int) -> mmap.mmap:
    """New memory of at least so many bytes."""
    memory = mmap.mmap(-1, -(-max(1, size) // BLOCK) * BLOCK, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # Systems without huge pages do not have the name, or refuse it.
    with suppress(AttributeError, OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory

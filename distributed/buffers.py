"""`Buffers`: memory that the arrays of one tile leave to those of the next."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .direct import BLOCK


class Buffers:
    """Memory for the arrays of one tile at a time.

    The system clears pages that are used for the first time, which takes as long as reading them
    from a file.

    Args:
        size: the bytes that the arrays of a tile take at most; pages are allocated when used.
        count: the number of these arrays.
    """

    def __init__(self, size: int, count: int) -> None:
        self.size = size
        # Each array begins in a block of its own, not always at its beginning.
        length = -(-size // BLOCK) * BLOCK + 2 * count * BLOCK
        self._memory = mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # Systems without huge pages do not have the name, or refuse it.
        with suppress(AttributeError, OSError):
            self._memory.madvise(mmap.MADV_HUGEPAGE)
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

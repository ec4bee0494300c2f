"""Files that are allocated before they are written, and so never end in the middle of a row."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ..errors import unwritten
from .direct import SPAN, DirectFile, scratch


def allocate_npy(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Create a `.npy` file, all of whose memory is allocated; returns where its numbers begin.

    Raises:
        InputError: if the disk has too little room, or the file cannot be written.
    """
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    size = math.prod(shape) * dtype.itemsize
    with allocating(path) as file:
        npy.write_array_header_1_0(file, header)
        begin = file.tell()
        if size:
            allocate(file.fileno(), begin, size)
    return begin


class NewRows:
    """The rows of a new `.npy` file, to be written.

    Args:
        path: the file.
        shape: the shape of the array.
        dtype: its element type.
        direct: whether to write by direct I/O.

    Raises:
        InputError: if the disk has too little room, or the file cannot be written.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], direct: bool
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self._begin = allocate_npy(path, shape, dtype)
        self._width = math.prod(shape[1:]) * dtype.itemsize
        self._file = DirectFile(path, write=True, direct=direct)

    def place(self, row: int) -> int:
        """Where a row is in the file."""
        return self._begin + row * self._width

    def write(self, first: int, values: np.ndarray, pool: Executor) -> None:
        """Write rows from one on; fastest where `Buffers.take` has made them for this place."""
        begin, data = self.place(first), np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        # Each but the first piece begins with a block.
        ends = range(-(-begin // SPAN) * SPAN, begin + len(data), SPAN)

        def write(piece: tuple[int, int]) -> None:
            self._file.write(piece[0], data[piece[0] - begin : piece[1] - begin])

        self._write(write, pairwise([begin, *ends, begin + len(data)]), pool)

    def scatter(self, values: np.ndarray, places: np.ndarray, pool: Executor) -> None:
        """Write rows to some places, none twice; where there are gaps, what is there is read.

        Args:
            values: the rows.
            places: int64 (n,), where each goes.
            pool: threads to share the rows among.
        """
        if not self._width or not len(places):
            return
        order = np.argsort(places, kind="stable")
        spans = places[order] // max(1, SPAN // self._width)
        ends = np.flatnonzero(np.diff(spans)) + 1
        pieces = pairwise([0, *ends.tolist(), len(order)])

        def write(piece: tuple[int, int]) -> None:
            own = order[slice(*piece)]
            first, end = int(places[own[0]]), int(places[own[-1]]) + 1
            begin, stop = self.place(first), self.place(end)
            has_gaps = end - first > len(own)
            data = self._file.read(begin, stop) if has_gaps else scratch(begin, stop)
            found = data.view(self.dtype).reshape(end - first, *self.shape[1:])
            if has_gaps:
                found[places[own] - first] = values[own]
            else:
                # With another mode NumPy copies what it fills, to restore it after an error.
                np.take(values, own, axis=0, out=found, mode="clip")
            self._file.write(begin, data)

        self._write(write, pieces, pool)

    def _write(
        self,
        write: Callable[[tuple[int, int]], None],
        pieces: Iterable[tuple[int, int]],
        pool: Executor,
    ) -> None:
        try:
            for _ in pool.map(write, pieces):
                pass
        except OSError as reason:
            raise unwritten(self._file.path, reason) from reason

    def flush(self) -> None:
        """Have all rows on the disk."""
        try:
            self._file.flush()
        except OSError as reason:
            raise unwritten(self._file.path, reason) from reason


def allocate(descriptor: int, begin: int, size: int) -> None:
    """Allocate bytes of a file, from one on, which are its last ones.

    Where the system does not know how, as macOS, the file has holes, and a disk that is nearly
    full is an error at least.

    Raises:
        OSError: if the disk has too little room.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, begin, size)
        return
    state = os.fstatvfs(descriptor)
    if state.f_bavail * state.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(descriptor, begin + size)


@contextmanager
def allocating(path: Path) -> Iterator[IO[bytes]]:
    """A new file, which is removed again if the disk has too little room.

    It is to be allocated before it is mapped: a store to a map on a full disk ends the process.

    Raises:
        InputError: if the disk has too little room, or the file cannot be written.
    """
    try:
        with open(path, "wb") as file:
            yield file
    except OSError as reason:
        path.unlink(missing_ok=True)
        raise unwritten(path, reason) from reason

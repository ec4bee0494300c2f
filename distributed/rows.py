"""Rows of arrays that memory does not hold: read in order, a block at a time, and written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.lib import format as npy
from numpy.lib.array_utils import byte_bounds

from ..core.reading import ReadingError, map_npy
from .errors import damaged, error, unwritten

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 1 << 24
"""The number of bytes that are read at a time."""


@runtime_checkable
class Rows(Protocol):
    """An array of N rows, of which some are read at a time.

    It may also have `version`, a text that is another one once any of its rows is: only then does
    `stepwell.out_of_core` continue a run with it that was interrupted.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self, rows: np.ndarray, /) -> np.ndarray:
        """The rows of these numbers, int64 in ascending order."""
        ...


@dataclass(frozen=True)
class Extent:
    """The bytes of a file that a map has.

    Attributes:
        path: the file.
        begin: the first byte.
        end: the byte after the last one.
        is_fixed: whether nothing can be written through the map.
    """

    path: str
    begin: int
    end: int
    is_fixed: bool

    @staticmethod
    def of(array: np.ndarray) -> Extent | None:
        """Those of an array; None if it is no map of a file that has a name."""
        base: Any = array
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        while isinstance(base, np.memmap) and isinstance(base.base, np.memmap):
            base = base.base
        if not isinstance(base, np.memmap) or base.filename is None:
            return None
        first, end = byte_bounds(array)
        begin = base.offset + first - base.ctypes.data
        return Extent(str(base.filename), begin, begin + end - first, base.mode == "r")

    def check(self) -> None:
        """Make sure that the file has these bytes: who reads others of a map ends the process.

        Raises:
            InputError: if it has been truncated.
        """
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            # Its pages are there as long as it is mapped.
            return
        if size < self.end:
            raise damaged(self.path, f"truncated, expected {self.end} bytes, got {size}")


def check_files(*arrays: np.ndarray | None) -> None:
    """Make sure that the files of maps are whole.

    Raises:
        InputError: if one has been truncated.
    """
    for array in arrays:
        extent = None if array is None else Extent.of(array)
        if extent is not None:
            extent.check()


class Mapped:
    """The rows of an array, which may be a memory map."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.asarray(array)
        self.extent = Extent.of(array)
        """What it has of a file; then its rows are best read in order."""
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype

    def read(self, rows: np.ndarray) -> np.ndarray:
        if self.extent is not None:
            self.extent.check()
        return np.take(self.array, rows, axis=0)


class Sparse:
    """The rows of a sparse matrix, which are dense as they are read."""

    def __init__(self, matrix: csr_array) -> None:
        self.matrix = matrix
        self.shape: tuple[int, ...] = matrix.shape
        self.dtype: np.dtype[Any] = matrix.dtype

    def read(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix[rows].toarray()


def rows_of(name: str, value: Any) -> Rows:
    """The rows of an argument: an array, a path of a `.npy` file, a matrix, or what has `read`.

    Raises:
        InputError: if it is none of these, or the file is damaged.
    """
    from scipy.sparse import csr_array, issparse

    if isinstance(value, str | os.PathLike):
        try:
            return Mapped(map_npy(value))
        except ReadingError as reason:
            raise damaged(value, reason) from reason
    if isinstance(value, np.ndarray):
        return Mapped(value)
    if isinstance(value, Rows):
        return value
    if issparse(value):
        matrix: Any = value
        return Sparse(csr_array(matrix))
    expected = "an array, a path of a .npy file, a matrix, or an object with shape, dtype and read"
    raise error(f'no rows for input "{name}"', expected, type(value).__name__)


def gather(rows: Rows, wanted: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The rows of some numbers, in their order, in a new array or in `out`.

    They are read in ascending order, by blocks, unless they are in memory.

    Raises:
        InputError: if a number is none of a row, or `rows` returns something else than it promises.
    """
    result = np.empty((len(wanted), *rows.shape[1:]), rows.dtype) if out is None else out
    if len(wanted) and not 0 <= wanted.min() <= wanted.max() < rows.shape[0]:
        raise error("no such row", f"0 to {rows.shape[0] - 1}", f"{wanted.min()} to {wanted.max()}")
    if isinstance(rows, Mapped) and rows.extent is None:
        # With another mode NumPy copies what it fills, in order to restore it after an error.
        return np.take(rows.array, wanted, axis=0, out=result, mode="clip")
    ascending = bool(np.all(wanted[1:] >= wanted[:-1]))
    order = None if ascending else np.argsort(wanted, kind="stable")
    length = max(1, BLOCK // row_bytes(rows))
    for first in range(0, len(wanted), length):
        places: Any = slice(first, first + length)
        places = places if order is None else order[places]
        result[places] = _read(rows, wanted[places])
    return result


def scatter(values: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
    """Write rows to some places of an array of the same width and dtype."""
    width = int(np.prod(out.shape[1:])) * out.dtype.itemsize
    if len(places) and width and out.flags.c_contiguous and values.flags.c_contiguous:
        # A row as one element is copied in one piece.
        row = np.dtype(f"V{width}")
        targets, sources = (a.reshape(len(a), -1).view(row)[:, 0] for a in (out, values))
        targets[places] = sources
    else:
        out[places] = values


def _read(rows: Rows, wanted: np.ndarray) -> np.ndarray:
    """Some rows, in ascending order.

    Raises:
        InputError: if `rows` returns something else than it promises.
    """
    what = f"rows {wanted[0]} to {wanted[-1]}"
    try:
        found = np.asarray(rows.read(wanted))
    except OSError as reason:
        raise error(f"cannot read {what}: {reason}") from reason
    expected = (len(wanted), *rows.shape[1:])
    if found.shape != expected or found.dtype != rows.dtype:
        want, got = f"{expected} of {rows.dtype}", f"{found.shape} of {found.dtype}"
        raise error(f"wrong {what}", want, got)
    return found


def row_bytes(rows: Rows) -> int:
    """The size of a row in bytes, at least 1."""
    return max(1, int(np.prod(rows.shape[1:])) * rows.dtype.itemsize)


def create_npy(path: Path, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A new `.npy` file as a memory map to write, all of whose memory is allocated.

    Raises:
        InputError: if the disk has too little room, or the file cannot be written.
    """
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    with allocating(path) as file:
        npy.write_array_header_1_0(file, header)
        begin = file.tell()
        if size:
            allocate(file.fileno(), begin, size)
    return (
        np.asarray(np.memmap(path, dtype, "r+", begin, shape)) if size else np.empty(shape, dtype)
    )


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

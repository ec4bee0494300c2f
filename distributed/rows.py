"""Rows of arrays that memory does not hold: read in order, a block at a time, and written."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.lib import format as npy
from numpy.lib.array_utils import byte_bounds

from ..core.reading import ReadingError, map_npy
from .direct import DirectFile, scratch
from .errors import damaged, error, unwritten
from .pages import is_cached

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 1 << 24
"""The number of bytes that an object is asked for at a time."""
_SPAN = 1 << 21
"""Those that are read of a file at a time, which are still in the cache of a core thereafter."""
_GAP = 1 << 18
"""Those between two rows of a file that are read along rather than skipped."""
_RUN = 64
"""The rows next to each other from which on they are written faster together."""


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
    """The rows of an array, which may be a memory map.

    Args:
        array: the array.
        named: whether it is a map of what its path is the file of.
    """

    def __init__(self, array: np.ndarray, named: bool = False) -> None:
        self.array, self._named = np.asarray(array), named
        self.extent = Extent.of(array)
        """What it has of a file; then its rows are best read in order."""
        self.shape: tuple[int, ...] = array.shape
        self.dtype: np.dtype[Any] = array.dtype
        self._file: DirectFile | None = None

    def pass_the_cache(self) -> None:
        """Read what is not in the page cache past it from now on, where the file is known."""
        if self._named and self.extent is not None and self.array.flags.c_contiguous:
            self._file = DirectFile(self.extent.path)

    def read(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The rows of these numbers, which exist, ascending; in a new array or in `out`."""
        # With another mode NumPy copies what it fills, in order to restore it after an error.
        if self.extent is None or not len(rows):
            return np.take(self.array, rows, axis=0, out=out, mode="clip")
        self.extent.check()
        if self._file is None:
            return np.take(self.array, rows, axis=0, out=out, mode="clip")
        first, end, width = int(rows[0]), int(rows[-1]) + 1, row_bytes(self)
        begin = self.extent.begin
        cached = is_cached(self.array[first:end])
        span = self._file.read(begin + first * width, begin + end * width, cached=cached)
        found = span.view(self.dtype).reshape(end - first, *self.shape[1:])
        return np.take(found, rows - first, axis=0, out=out, mode="clip")


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
            return Mapped(map_npy(value), named=True)
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


def gather(
    rows: Rows,
    wanted: np.ndarray,
    out: np.ndarray | None = None,
    pool: Executor | None = None,
) -> np.ndarray:
    """The rows of some numbers, in their order.

    They are read in ascending order, some at a time, unless they are in memory.

    Args:
        rows: what has the rows.
        wanted: int64 (n,), their numbers.
        out: the array for them; by default a new one.
        pool: threads that read a file; an object is read by one.

    Raises:
        InputError: if a number is none of a row, or `rows` returns something else than it promises.
    """
    result = np.empty((len(wanted), *rows.shape[1:]), rows.dtype) if out is None else out
    if not len(wanted):
        return result
    if not 0 <= wanted.min() <= wanted.max() < rows.shape[0]:
        raise error("no such row", f"0 to {rows.shape[0] - 1}", f"{wanted.min()} to {wanted.max()}")
    if isinstance(rows, Mapped) and rows.extent is None:
        return rows.read(wanted, result)
    order = None
    if not np.all(wanted[1:] >= wanted[:-1]):
        order = np.argsort(wanted, kind="stable")
        wanted = wanted[order]

    def read(piece: slice) -> None:
        if order is not None:
            _distribute(_read(rows, wanted[piece]), order[piece], result)
        elif isinstance(rows, Mapped):
            _read(rows, wanted[piece], result[piece])
        else:
            result[piece] = _read(rows, wanted[piece])

    several = pool.map if pool is not None and isinstance(rows, Mapped) else map
    for _ in several(read, _pieces(rows, wanted)):
        pass
    return result


def _pieces(rows: Rows, wanted: np.ndarray) -> Iterator[slice]:
    """The rows, in ascending order, that are read at a time."""
    width, count = row_bytes(rows), len(wanted)
    step = max(1, BLOCK // width)
    for first in range(0, count, step):
        end = min(first + step, count)
        if not isinstance(rows, Mapped):
            yield slice(first, end)
            continue
        some = wanted[first:end]
        new = np.diff(some // max(1, _SPAN // width)) | (np.diff(some) * width > _GAP)
        ends = first + 1 + np.flatnonzero(new)
        yield from (slice(*pair) for pair in pairwise([first, *ends.tolist(), end]))


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


def _distribute(values: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
    """Write rows to some places of an array, of which many may be next to each other."""
    order = np.argsort(places, kind="stable")
    targets = places[order]
    ends = np.flatnonzero(np.diff(targets) != 1) + 1
    if len(ends) * _RUN > len(places):
        scatter(values, places, out)
        return
    for first, end in pairwise([0, *ends.tolist(), len(places)]):
        target = out[targets[first] : targets[first] + end - first]
        np.take(values, order[first:end], axis=0, out=target, mode="clip")


def _read(rows: Rows, wanted: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Some rows, in ascending order; those of a map may be read into an array.

    Raises:
        InputError: if `rows` returns something else than it promises.
    """
    what = f"rows {wanted[0]} to {wanted[-1]}"
    try:
        given = rows.read(wanted, out) if isinstance(rows, Mapped) else rows.read(wanted)
        found = np.asarray(given)
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
    begin, size = _allocate_npy(path, shape, np.dtype(dtype))
    return (
        np.asarray(np.memmap(path, dtype, "r+", begin, shape)) if size else np.empty(shape, dtype)
    )


def _allocate_npy(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, int]:
    """Create a `.npy` file; returns where its numbers begin, and their bytes."""
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    size = math.prod(shape) * dtype.itemsize
    with allocating(path) as file:
        npy.write_array_header_1_0(file, header)
        begin = file.tell()
        if size:
            allocate(file.fileno(), begin, size)
    return begin, size


class NewRows:
    """The rows of a new `.npy` file, to be written.

    Args:
        path: the file.
        shape: the shape of the array.
        dtype: its element type.
        direct: whether to write past the page cache.

    Raises:
        InputError: if the disk has too little room, or the file cannot be written.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], direct: bool
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self._begin, _ = _allocate_npy(path, shape, dtype)
        self._width = math.prod(shape[1:]) * dtype.itemsize
        self._file = DirectFile(path, write=True, direct=direct)

    def place(self, row: int) -> int:
        """Where a row is in the file."""
        return self._begin + row * self._width

    def write(self, first: int, values: np.ndarray, pool: Executor) -> None:
        """Write rows from one on; fastest where `Buffers.take` has made them for this place."""
        begin, data = self.place(first), np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        # Each but the first piece begins with a block.
        ends = range(-(-begin // _SPAN) * _SPAN, begin + len(data), _SPAN)

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
        spans = places[order] // max(1, _SPAN // self._width)
        ends = np.flatnonzero(np.diff(spans)) + 1
        pieces = pairwise([0, *ends.tolist(), len(order)])

        def write(piece: tuple[int, int]) -> None:
            own = order[slice(*piece)]
            first, end = int(places[own[0]]), int(places[own[-1]]) + 1
            begin, stop = self.place(first), self.place(end)
            has_gaps = end - first > len(own)
            data = self._file.read(begin, stop) if has_gaps else scratch(begin, stop)
            found = data.view(self.dtype).reshape(end - first, *self.shape[1:])
            found[places[own] - first] = values[own]
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

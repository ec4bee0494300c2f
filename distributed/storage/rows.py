"""Rows of arrays that memory does not hold, read in order, some at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ...core.files.reading import ReadingError, map_npy
from ..errors import damaged, error
from .direct import SPAN, DirectFile
from .pages import is_cached

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 1 << 24
"""The number of bytes that one call of `Rows.read` returns."""
_GAP = 1 << 18
"""The bytes between two rows of a file up to which one read has both."""
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


class MappedRows:
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

    def use_direct_io(self) -> None:
        """From now on, read what is not in the page cache by direct I/O, if the file is known."""
        if self._named and self.extent is not None and self.array.flags.c_contiguous:
            # What is mapped is there, even if its name is not any more.
            with suppress(FileNotFoundError):
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
            return MappedRows(map_npy(value), named=True)
        except ReadingError as reason:
            raise damaged(value, reason) from reason
    if isinstance(value, np.ndarray):
        return MappedRows(value)
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
    if isinstance(rows, MappedRows) and rows.extent is None:
        return rows.read(wanted, result)
    order = None
    if not np.all(wanted[1:] >= wanted[:-1]):
        order = np.argsort(wanted, kind="stable")
        wanted = wanted[order]

    def read(piece: slice) -> None:
        if order is not None:
            _distribute(_read(rows, wanted[piece]), order[piece], result)
        elif isinstance(rows, MappedRows):
            _read(rows, wanted[piece], result[piece])
        else:
            result[piece] = _read(rows, wanted[piece])

    several = pool.map if pool is not None and isinstance(rows, MappedRows) else map
    for _ in several(read, _pieces(rows, wanted)):
        pass
    return result


def _pieces(rows: Rows, wanted: np.ndarray) -> Iterator[slice]:
    """The rows, in ascending order, that are read at a time."""
    width, count = row_bytes(rows), len(wanted)
    step = max(1, BLOCK // width)
    for first in range(0, count, step):
        end = min(first + step, count)
        if not isinstance(rows, MappedRows):
            yield slice(first, end)
            continue
        some = wanted[first:end]
        new = np.diff(some // max(1, SPAN // width)) | (np.diff(some) * width > _GAP)
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
        given = rows.read(wanted, out) if isinstance(rows, MappedRows) else rows.read(wanted)
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

"""`PartBlock`: rows of a value that one part has, in memory or in a file that others can map."""

from __future__ import annotations

import math
import mmap
import os
import socket
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np

from ...core.errors import InputError, StepwellError, explain
from ..errors import unwritten
from .new_files import allocate, allocate_npy, allocating
from .pages import populate
from .rings import map_ring


def hostname() -> str:
    """The name of this host."""
    return socket.gethostname()


class BlockLostError(StepwellError):
    """The file of a block is not on this host; `path` is its name."""

    path: str = ""


@dataclass(frozen=True, eq=False)
class PartBlock:
    """An array of a part: its own rows, and where it is exchanged those of other nodes after them.

    These are its halo, or all other nodes where the parts share a ring (`rings.py`).

    Attributes:
        shape: its shape.
        dtype: its element type.
        array: the array, if it is in memory.
        path: its file otherwise, in the format `.npy`, or the bytes of a ring alone.
        host: the host that has the file.
        kept: whether workers keep maps of the file.
        first: the row of a ring with which it begins; None for an array of its own.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    array: np.ndarray | None = None
    path: str = ""
    host: str = ""
    kept: bool = False
    first: int | None = None

    @staticmethod
    def create(
        place: str | None,
        name: str,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        kept: bool = False,
    ) -> PartBlock:
        """A new block with undefined elements.

        Args:
            place: the folder for its file; None for memory.
            name: the name of the file, which does not exist.
            shape: its shape.
            dtype: its element type.
            kept: whether the file is there for more than one run.

        Raises:
            InputError: if there is no room for it.
        """
        shape = tuple(shape)
        if place is None:
            return PartBlock(shape, dtype, np.empty(shape, dtype))
        path = Path(place, f"{name}.npy")
        allocate_npy(path, shape, dtype)
        return PartBlock(shape, dtype, None, str(path), hostname(), kept)

    @staticmethod
    def create_ring(
        place: str | None,
        name: str,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        kept: bool = False,
    ) -> PartBlock:
        """A new ring with undefined elements, whose rows fill pages; the arguments of `create`.

        Raises:
            InputError: if there is no room for it.
        """
        shape, size = tuple(shape), math.prod(shape) * dtype.itemsize
        if place is not None:
            path = Path(place, name)
            with allocating(path) as file:
                if size:
                    allocate(file.fileno(), 0, size)
            return PartBlock(shape, dtype, None, str(path), hostname(), kept, 0)
        if not size:
            return PartBlock(shape, dtype, np.empty((2 * shape[0], *shape[1:]), dtype), first=0)
        descriptor = os.memfd_create(name)
        try:
            allocate(descriptor, 0, size)
            memory = map_ring(descriptor, size, write=True)
        except OSError as reason:
            raise unwritten(name, reason) from reason
        finally:
            os.close(descriptor)
        return PartBlock(shape, dtype, memory.view(dtype).reshape(-1, *shape[1:]), first=0)

    def from_row(self, first: int) -> PartBlock:
        """The ring as a part has it, whose first row this is."""
        return replace(self, first=first)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def open(self, *, write: bool = False) -> np.ndarray:
        """The array. That of a file is mapped, and others that map it see what is written.

        Raises:
            BlockLostError: if this host does not have the file.
            InputError: if the file is truncated.
        """
        if self.array is not None:
            return self._part_of(self.array)
        try:
            if self.host != hostname():
                raise FileNotFoundError
            return self._part_of(self._kept_map(write) if self.kept else self._mapped(write))
        except FileNotFoundError as error:
            fact = f"{self.path} is on {self.host}, or not there any more"
            lost = BlockLostError(explain("distribute", fact))
            lost.path = self.path
            raise lost from error
        except (ValueError, OSError) as error:
            raise InputError(explain("distribute", f"{self.path}: {error}")) from error

    def open_rows(self, rows: slice | EllipsisType = ..., *, write: bool = False) -> np.ndarray:
        """Rows that are about to be read, or written, all of them."""
        array = self.open(write=write)[rows]
        if self.path and not self.kept and array.nbytes:
            populate(array)
        return array

    def _part_of(self, array: np.ndarray) -> np.ndarray:
        """The rows of a ring from the first one on."""
        return array if self.first is None else array[self.first :][: self.shape[0]]

    def _kept_map(self, write: bool) -> np.ndarray:
        """A map of the file that is made once in a process."""
        size = os.stat(self.path).st_size
        known, length = _maps.get(self.path, (None, 0))
        if size < length:
            raise ValueError(f"truncated, expected {length} bytes, got {size}")
        if known is None or (write and not known.flags.writeable):
            # What others have removed meanwhile takes memory as long as it is mapped.
            for path in [path for path in list(_maps) if not os.path.exists(path)]:
                _maps.pop(path, None)
            known = self._mapped(write)
            _maps[self.path] = known, size
        return known

    def _mapped(self, write: bool) -> np.ndarray:
        with open(self.path, "r+b" if write else "rb") as file:
            if self.first is not None:
                return self._mapped_ring(file.fileno(), write)
            # The length of the header is in its last two bytes before the text.
            begin = 10 + int.from_bytes(file.read(10)[8:], "little")
            if not self.nbytes:
                return np.empty(self.shape, self.dtype)
            expected, size = begin + self.nbytes, os.fstat(file.fileno()).st_size
            if size < expected:
                raise ValueError(f"truncated, expected {expected} bytes, got {size}")
            access = mmap.ACCESS_WRITE if write else mmap.ACCESS_READ
            memory = mmap.mmap(file.fileno(), expected, access=access)
        # No `np.memmap`, whose slices take time to make.
        return np.ndarray(self.shape, self.dtype, memory, begin)

    def _mapped_ring(self, descriptor: int, write: bool) -> np.ndarray:
        size = os.fstat(descriptor).st_size
        if size != self.nbytes:
            raise ValueError(f"truncated, expected {self.nbytes} bytes, got {size}")
        if not size:
            return np.empty((2 * self.shape[0], *self.shape[1:]), self.dtype)
        memory = map_ring(descriptor, size, write)
        return memory.view(self.dtype).reshape(-1, *self.shape[1:])

    def remove(self) -> None:
        """Free its memory or its file."""
        if self.path:
            Path(self.path).unlink(missing_ok=True)


class KeptMaps:
    """The maps of files in a folder that a process keeps; they are freed with this object.

    A copy in another process stands for the maps of that process.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        weakref.finalize(self, _free_maps, place)

    def __reduce__(self) -> tuple[type[KeptMaps], tuple[str]]:
        return KeptMaps, (self.place,)


def _free_maps(place: str) -> None:
    for path in [path for path in list(_maps) if os.path.dirname(path) == place]:
        _maps.pop(path, None)


_maps: dict[str, tuple[np.ndarray, int]] = {}
"""The maps of files that are kept, by path, and the sizes of the files."""

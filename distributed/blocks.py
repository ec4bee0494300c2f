"""`Block`: the rows of a value that one part has, in memory or in a file that others can map."""

from __future__ import annotations

import math
import mmap
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import StepwellError, explain
from .rows import create_npy


def hostname() -> str:
    """The name of this host."""
    return socket.gethostname()


class BlockLostError(StepwellError):
    """The file of a block is not on this host."""


@dataclass(frozen=True, eq=False)
class Block:
    """An array of a part: its own rows, and where it is exchanged those of the halo after them.

    Attributes:
        shape: its shape.
        dtype: its element type.
        array: the array, if it is in memory.
        path: its file otherwise, in the format `.npy`.
        host: the host that has the file.
        kept: whether the file is there for more than one run, so that maps of it are kept too.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    array: np.ndarray | None = None
    path: str = ""
    host: str = ""
    kept: bool = False

    @staticmethod
    def create(
        place: str | None,
        name: str,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        kept: bool = False,
    ) -> Block:
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
            return Block(shape, dtype, np.empty(shape, dtype))
        path = Path(place, f"{name}.npy")
        create_npy(path, shape, dtype)
        return Block(shape, dtype, None, str(path), hostname(), kept)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def open(self, *, write: bool = False) -> np.ndarray:
        """The array. That of a file is mapped, and others that map it see what is written.

        Raises:
            BlockLostError: if this host does not have the file.
            StepwellError: if the file is truncated.
        """
        if self.array is not None:
            return self.array
        try:
            if self.host != hostname():
                raise FileNotFoundError
            return self._kept_map(write) if self.kept else self._mapped(write)
        except FileNotFoundError as error:
            fact = f"{self.path} is on {self.host}, or not there any more"
            raise BlockLostError(explain("distribute", fact)) from error
        except (ValueError, OSError) as error:
            raise StepwellError(explain("distribute", f"{self.path}: {error}")) from error

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
            # The length of the header is in its last two bytes before the text.
            begin = 10 + int.from_bytes(file.read(10)[8:], "little")
            if not self.nbytes:
                return np.empty(self.shape, self.dtype)
            access = mmap.ACCESS_WRITE if write else mmap.ACCESS_READ
            memory = mmap.mmap(file.fileno(), begin + self.nbytes, access=access)
        # No `np.memmap`, whose slices take time to make.
        return np.ndarray(self.shape, self.dtype, memory, begin)

    def remove(self) -> None:
        """Free its memory or its file."""
        if self.path:
            Path(self.path).unlink(missing_ok=True)


_maps: dict[str, tuple[np.ndarray, int]] = {}
"""The maps of files that are kept, by path, and the sizes of the files."""

"""The constants of programs as one block of bytes: in its object file, or in a file of their own.

The block begins with `HEADER` bytes that identify it, and each constant begins at a multiple of 64
bytes. In the object file, the compiler leaves room for it, which is then filled: LLVM IR as text
would take three bytes for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....core.errors import InternalError, explain
from ....dialects.rt.abi import ALIGNMENT, rounded_up

HEADER = ALIGNMENT
_MAGIC = b"stepwell weights, version 1\n\0\0\0\0"
LARGEST_LINKED = 1 << 30
"""No more bytes are linked into an object file: its addresses are offsets of 32 bits."""


@dataclass(frozen=True)
class Weights:
    """The constants of the programs of a library, each in the layout of its code."""

    programs: Sequence[Sequence[np.ndarray]]
    """Those of the program for each target."""

    @cached_property
    def _found(self) -> tuple[list[np.ndarray], list[list[int]]]:
        arrays, numbers = list[np.ndarray](), dict[Hashable, int]()
        slots: list[list[int]] = []
        for program in self.programs:
            slots.append([])
            for array in program:
                key = array.dtype.str, array.shape, hashlib.sha256(_bytes_of(array)).digest()
                if key not in numbers:
                    numbers[key] = len(arrays)
                    arrays.append(array)
                slots[-1].append(numbers[key])
        return arrays, slots

    @property
    def arrays(self) -> Sequence[np.ndarray]:
        """All constants; those with the same bits are stored once."""
        return self._found[0]

    @property
    def slots(self) -> Sequence[Sequence[int]]:
        """Which of `arrays` are the constants of each program."""
        return self._found[1]

    @cached_property
    def offsets(self) -> list[int]:
        """Where each constant begins in the block, and where the block ends."""
        found = [HEADER]
        for array in self.arrays:
            found.append(found[-1] + rounded_up(array.nbytes))
        # An empty constant at the end has an address in the block, too.
        return [*found[:-1], found[-1] + ALIGNMENT]

    @property
    def bytes(self) -> int:
        """The size of the block."""
        return self.offsets[-1]

    @cached_property
    def header(self) -> bytes:
        """The first bytes of the block, which depend on all others."""
        digest = hashlib.sha256()
        for array in self.arrays:
            digest.update(str((array.dtype.str, array.shape)).encode())
            digest.update(_bytes_of(array))
        return _MAGIC + digest.digest()

    def write_to(self, block: memoryview) -> None:
        """Write the block into memory of its size that holds zeros."""
        block[:HEADER] = self.header
        for array, start in zip(self.arrays, self.offsets, strict=False):
            block[start : start + array.nbytes] = _bytes_of(array)

    def block(self) -> bytearray:
        """The block."""
        made = bytearray(self.bytes)
        self.write_to(memoryview(made))
        return made

    def filled(self, code: bytes) -> bytearray:
        """An object file with the block in the place of its header and the zeros after it."""
        place = code.find(self.header)
        if place < 0 or code.find(self.header, place + 1) >= 0:
            raise InternalError(explain("export", "the object file has no place for the weights"))
        made = bytearray(code)
        self.write_to(memoryview(made)[place : place + self.bytes])
        return made


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data

"""The layout of objects that the compiled call boundary reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The memory layout of Python's and NumPy's objects, and objects that the boundary uses.

    Offsets are in bytes. `dtype_mask`, `readable` and `writable` are bit masks, `objects` and
    `functions` are addresses.
    """

    type: int
    data: int
    rank: int
    shape: int
    dtype: int
    flags: int
    kind: int
    """In a dtype: the word with its kind, byte order and number, under `dtype_mask`."""
    plan: int
    """In an executable: the offset of the address of its plan."""
    dtype_mask: int
    readable: int
    """The flags of an array that can be read in place."""
    writable: int
    """The flags of an array to which results can be written."""
    objects: tuple[tuple[str, int], ...]
    """Types, constants and attribute names, by their names in the IR."""
    functions: tuple[tuple[str, int], ...]
    """Functions of NumPy, by their names."""

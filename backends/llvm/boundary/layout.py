"""The layout of objects that the compiled call boundary reads, and its loading as an image."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..images import Image, MappedImage, system_function

CALL, FRAME, OBJECTS = "stepwell_call", "stepwell_frame", "stepwell_objects"
"""The functions and the table that are seen outside."""

PLAN = "offset_of_plan"
ENTRIES = (
    *("name_out", "name_to_csr", "name_shape", "name_indptr", "name_indices", "name_values"),
    *("array_type", "byte_type", "tuple_type", "none", "exception_type"),
    PLAN,
)
"""The entries of the table: objects, which are types, constants and names of attributes, and the
offset of the address of its plan in an executable, which differs between versions of Python."""


@dataclass(frozen=True)
class Layout:
    """The memory layout of Python's and NumPy's objects.

    Offsets are in bytes. `dtype_mask`, `readable` and `writable` are bit masks.
    """

    type: int
    data: int
    rank: int
    shape: int
    dtype: int
    flags: int
    kind: int
    """In a dtype: the word with its kind, byte order and number, under `dtype_mask`."""
    dtype_mask: int
    readable: int
    """The flags of an array that can be read in place."""
    writable: int
    """The flags of an array to which results can be written."""


@dataclass(frozen=True)
class Boundary:
    """Addresses of the functions of the boundary."""

    call: int
    """The vectorcall of executables."""
    frame: int
    """`(address of the head of a list) -> a free frame or null`."""


def mapped(image: Image, entries: Sequence[int], functions: Mapping[str, int]) -> Boundary:
    """The boundary that is an image.

    Args:
        image: the image.
        entries: what the table has, see `ENTRIES`.
        functions: those of functions of NumPy, by their names.
    """
    code = MappedImage(image, lambda name: functions.get(name) or address_of(name)).keep_forever()
    fill(code.address(OBJECTS), entries)
    return Boundary(code.address(CALL), code.address(FRAME))


def fill(table: int, entries: Sequence[int]) -> None:
    """Write entries into a table."""
    (ctypes.c_int64 * len(ENTRIES)).from_address(table)[:] = entries


def address_of(name: str) -> int:
    """The address of a function of Python, or of the C library."""
    function = getattr(ctypes.pythonapi, name, None)
    if function is None:
        return system_function(name)
    return ctypes.cast(function, ctypes.c_void_p).value or 0

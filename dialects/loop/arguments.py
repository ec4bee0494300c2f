"""Attributes of the arguments of a kernel; `KernelOp` says what each means."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

CONSTANT = "loop.constant"
"""Every call passes a constant of the program."""
PACKING = "loop.packing"
"""The affine map from an index of the packed argument to one of the constant it is made of."""
BOUNDS = "loop.bounds"
"""The extents that its integers, which are indices, stay below."""
LEAST = "loop.least"
"""Sizes of what every call passes, each with the least that it has to be: "x0.1 >= 10"."""
FITS = "loop.fits"
"""Of the first argument: comparisons of sizes that hold in every call: "x0.0 <= x1.0+1"."""
OFFSETS = "loop.offsets"
"""The extents that its integers, which never decrease, are from 0 up to."""
INDPTR = "loop.indptr"
"""Every call passes the row pointers of a CSR matrix, which never decrease."""
ENTRIES = "loop.entries"
"""Of column indices: the number of entries of their matrix, if every call has the same."""
IN_PLACE = "loop.in_place"
"""Of an output: the numbers of the inputs that it may be written over."""


def texts_of(kernel: Operation, number: int, name: str) -> tuple[str, ...]:
    """The texts of an attribute of argument `number` of a kernel; none without it."""
    found = attributes_of(kernel, number).get(name)
    return tuple(text.data for text in found) if isa(found, ArrayAttr[StringAttr]) else ()


def attributes_of(kernel: Operation, number: int) -> dict[str, Attribute]:
    """The attributes of argument `number` of a kernel, inputs counted first."""
    given = kernel.properties.get("arg_attrs")
    one = given.data[number] if isinstance(given, ArrayAttr) else None
    return dict(one.data) if isinstance(one, DictionaryAttr) else {}

"""Attributes of the arguments of a kernel; `KernelOp` says what each means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from ...core.dims import Dim

CONSTANT = "loop.constant"
"""Every call passes a constant of the program."""
PACKING = "loop.packing"
"""The affine map from an index of the packed argument to one of the constant it is made of."""
BOUNDS = "loop.bounds"
"""The extents that its integers, which are indices, stay below."""
LEAST = "loop.least"
"""Sizes of what every call passes, each with the least that it has to be: see `LeastSize`."""
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


@dataclass(frozen=True)
class LeastSize:
    """A size that has to be at least a number: "x0.1 >= 10", or "graph.top_k: x0.1 >= 10"."""

    size: Dim
    least: int
    operator: str = ""
    """The name of the operator that needs it; empty where that is the kernel itself."""

    def __str__(self) -> str:
        subject = f"{self.operator}: " if self.operator else ""
        return f"{subject}{self.size} >= {self.least}"

    @classmethod
    def parse(cls, text: str) -> LeastSize:
        """The condition that a text stands for."""
        operator, _, condition = text.rpartition(": ")
        size, _, least = condition.partition(" >= ")
        return cls(Dim.parse(size), int(least), operator)


def least_sizes(kernel: Operation, number: int) -> Iterator[LeastSize]:
    """The conditions on sizes that argument `number` of a kernel has."""
    return map(LeastSize.parse, texts_of(kernel, number, LEAST))

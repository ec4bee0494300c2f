"""Attributes of the arguments of a kernel; `KernelOp` says what each means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ...core.algebra.dims import Dim

CONSTANT = "loop.constant"
"""Every call passes a constant of the program."""
PACKING = "loop.packing"
"""The affine map from an index of the packed argument to one of the constant it is made of."""
BOUNDS = "loop.bounds"
"""The extents that its integers, which are indices, stay below."""
SIZES = "loop.sizes"
"""Conditions on the sizes that every call passes, each with a limit: see `SizeCondition`."""
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
    texts = found.data if isinstance(found, ArrayAttr) else ()
    known = tuple(text.data for text in texts if isinstance(text, StringAttr))
    return known if len(known) == len(texts) else ()


def attributes_of(kernel: Operation, number: int) -> dict[str, Attribute]:
    """The attributes of argument `number` of a kernel, inputs counted first."""
    given = kernel.properties.get("arg_attrs")
    one = given.data[number] if isinstance(given, ArrayAttr) else None
    return dict(one.data) if isinstance(one, DictionaryAttr) else {}


@dataclass(frozen=True)
class SizeCondition:
    """A size that is at least or at most a number: "x0.1 >= 10", "x0.0 <= 2147483647".

    An operator that needs it says for which of its dimensions: "graph.top_k, dimension 1 of x:
    x0.1 >= 10".
    """

    size: Dim
    limit: int
    is_upper: bool
    operator: str = ""
    """The name of the operator; empty where the kernel itself needs it."""
    dimension: str = ""
    """The dimension of an operand of the operator."""

    def __str__(self) -> str:
        subject = f"{self.operator}, {self.dimension}: " if self.operator else ""
        return f"{subject}{self.size} {'<=' if self.is_upper else '>='} {self.limit}"

    @classmethod
    def parse(cls, text: str) -> SizeCondition:
        """The condition that a text stands for.

        Raises:
            ValueError: if it stands for none.
        """
        found = re.fullmatch(r"(?:(\S+), (.+): )?(.+) (<=|>=) (\d+)", text)
        if found is None or int(found[5]) >= 1 << 63:
            raise ValueError(f"not a condition on a size: {text!r}")
        operator, dimension, size, sign, limit = found.groups(default="")
        return cls(Dim.parse(size), int(limit), sign == "<=", operator, dimension)

    def holds(self, size: int) -> bool:
        """Whether a size is within the limit."""
        return size <= self.limit if self.is_upper else size >= self.limit

    @property
    def fact(self) -> str:
        """What is wrong with a size that is not within the limit."""
        return f"{self.dimension or 'a size'} is too {'large' if self.is_upper else 'small'}"

    def expected(self, limit: object) -> str:
        """What is expected of the size, for a text of the limit."""
        return f"at most {limit}" if self.is_upper else f"{limit} or more"


def comparison(text: str) -> tuple[Dim, Dim]:
    """The smaller and the larger side of a text of `FITS`.

    Raises:
        ValueError: if it is no comparison of sizes.
    """
    smaller, sign, larger = text.partition(" <= ")
    if not sign:
        raise ValueError(f"not a comparison of sizes: {text!r}")
    return Dim.parse(smaller), Dim.parse(larger)


TEXTS: dict[str, tuple[Callable[[str], object], str]] = {
    BOUNDS: (Dim.parse, 'an array of sizes such as "x0.1"'),
    OFFSETS: (Dim.parse, 'an array of sizes such as "x0.1"'),
    SIZES: (SizeCondition.parse, 'an array of conditions such as "x0.1 >= 10"'),
    FITS: (comparison, 'an array of comparisons such as "x0.0 <= x1.1+2"'),
}
"""What reads the texts of attributes, and what it expects."""


def are_texts(given: Attribute, read: Callable[[str], object]) -> bool:
    """Whether an attribute is an array of texts that can be read."""
    if not isinstance(given, ArrayAttr):
        return False
    try:
        for text in given:
            if not isinstance(text, StringAttr):
                return False
            read(text.data)
    except ValueError:
        return False
    return True


def size_conditions(kernel: Operation, number: int) -> Iterator[SizeCondition]:
    """The conditions on sizes that argument `number` of a kernel has."""
    return map(SizeCondition.parse, texts_of(kernel, number, SIZES))

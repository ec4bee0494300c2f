"""Validity of the indices that callers pass: of CSR matrices, as a table, of gathers, and offsets.

Compiled code, the interpreter of `rt` and the reference report the same error for a matrix: each
checks `RULES` in order, and reports the first rule that does not hold with its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from .wording import WordingCase, worded


class CsrFault(IntEnum):
    """The rule that does not hold, as `rt.check_csr` stores it beside a position and a value."""

    START = 1
    ORDER = 2
    END = 3
    INDEX = 4


class Wrong(Enum):
    """Why an array is invalid; the first such element and its position are reported."""

    FIRST_IS_NOT_ZERO = "the first element is not 0"
    DECREASES = "an element is above the next one"
    LAST_IS_NOT_COUNT = "the last element is not the number of entries, the position reported"
    OUTSIDE = "an element is below 0, or not below the number of columns"


@dataclass(frozen=True)
class CsrRule:
    """A rule about one of the arrays, and the error text if it does not hold.

    The details of the text are the fault, a position and a value.
    """

    fault: CsrFault
    array: str
    wrong: Wrong
    text: str


RULES = (
    CsrRule(
        CsrFault.START,
        "indptr",
        Wrong.FIRST_IS_NOT_ZERO,
        "indptr does not start at 0, got {2}",
    ),
    CsrRule(
        CsrFault.ORDER,
        "indptr",
        Wrong.DECREASES,
        "indptr decreases after row {1}, got {2}",
    ),
    CsrRule(
        CsrFault.END,
        "indptr",
        Wrong.LAST_IS_NOT_COUNT,
        "indptr does not end at the number of entries, expected {1}, got {2}",
    ),
    CsrRule(
        CsrFault.INDEX,
        "indices",
        Wrong.OUTSIDE,
        "column index out of range at entry {1}, got {2}",
    ),
)
"""In the order in which they are checked: each may rely on those before it."""


CSR = tuple(WordingCase(rule.text, 0, rule.fault, rule.fault) for rule in RULES)
"""Texts about a matrix; the details are a fault, a position and a value."""

_EMPTY = WordingCase("index into an empty dimension at position {0}, got {1}", 2, 0, 0)
INDEX = (_EMPTY, WordingCase("index out of range at position {0}, expected {-2} to {2-1}, got {1}"))
"""Texts about an index that may count from the back; the details are its position, the index and
the extent."""
PLACE = (_EMPTY, WordingCase("index out of range at position {0}, expected 0 to {2-1}, got {1}"))
"""Texts about an index that does not; with the same details."""
OFFSETS = (
    WordingCase("offsets decrease after position {0}, got {1}", 1, 0),
    WordingCase("offset out of range at position {0}, expected 0 to {2}, got {1}"),
)
"""Texts about an offset; the details are its position, the offset and the extent."""


def explained(fault: int, position: int, value: int) -> str:
    """The error text of a fault."""
    return worded(CSR, (fault, position, value))


def fault_of(indptr: np.ndarray, indices: np.ndarray, columns: int) -> tuple[int, int, int] | None:
    """The first rule that does not hold: its fault, a position and a value; None if all hold."""
    if not indptr.size:
        return CsrFault.START, 0, 0
    arrays = {"indptr": indptr.astype(np.int64), "indices": indices}
    for rule in RULES:
        array = arrays[rule.array]
        places = _wrong_places(rule.wrong, array, indices.size, columns)
        if places.size:
            position = int(places[0])
            reported = indices.size if rule.wrong is Wrong.LAST_IS_NOT_COUNT else position
            return rule.fault, reported, int(array[position])
    return None


def _wrong_places(wrong: Wrong, array: np.ndarray, entries: int, columns: int) -> np.ndarray:
    """The positions of the elements that make an array wrong."""
    match wrong:
        case Wrong.FIRST_IS_NOT_ZERO:
            return np.flatnonzero(array[:1])
        case Wrong.DECREASES:
            return np.flatnonzero(np.diff(array) < 0)
        case Wrong.LAST_IS_NOT_COUNT:
            return np.flatnonzero(array[-1:] != entries) + array.size - 1
        case Wrong.OUTSIDE:
            return np.flatnonzero((array < 0) | (array >= columns))


def outside(indices: np.ndarray, extent: int) -> tuple[int, int, int] | None:
    """The first index not in [-extent, extent): its position, its value, and the extent."""
    wrong = np.flatnonzero((indices < -extent) | (indices >= extent))
    if not wrong.size:
        return None
    return int(wrong[0]), int(indices.flat[wrong[0]]), extent


def outside_from_front(indices: np.ndarray, extent: int) -> tuple[int, int, int] | None:
    """The first index not in [0, extent): its position, its value, and the extent."""
    wrong = np.flatnonzero((indices < 0) | (indices >= extent))
    if not wrong.size:
        return None
    return int(wrong[0]), int(indices.flat[wrong[0]]), extent


def wrong_offset(offsets: np.ndarray, extent: int) -> tuple[int, int, int] | None:
    """The first offset not in [0, extent], else the first one above the next one.

    Returns its position, its value, and the extent.
    """
    wrong = np.flatnonzero((offsets < 0) | (offsets > extent))
    if not wrong.size:
        wrong = np.flatnonzero(np.diff(offsets) < 0)
    return (int(wrong[0]), int(offsets[wrong[0]]), extent) if wrong.size else None


def explained_offset(position: int, value: int, extent: int) -> str:
    """The error text of a wrong offset, see `wrong_offset`."""
    return worded(OFFSETS, (position, value, extent))


def explained_index(position: int, value: int, extent: int, *, from_front: bool = False) -> str:
    """The error text of an index out of range; with `from_front`, a negative one is too."""
    return worded(PLACE if from_front else INDEX, (position, value, extent))

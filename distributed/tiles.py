"""Row tiles of a part: consecutive rows whose computation fits a memory budget."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.dtype_names import dtype_named
from ..core.reading import amount
from .errors import error
from .partition import Part, csr_of_parts
from .rows import check_files

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Cost = Callable[[int, int, int], int]
"""The bytes that a tile takes, by its numbers of rows, columns and entries."""

_FULL, _ATTEMPTS = 0.85, 5
"""The part of the budget from which on a tile is not made larger, and how often it is tried."""

_PIECE = 1 << 16
"""The entries that are renumbered at a time."""


@dataclass(frozen=True)
class Tile:
    """Rows `first` to `end` - 1 of a part, as a matrix over the columns that they need.

    Attributes:
        first: the first row.
        end: the row after the last one.
        matrix: these rows, of shape (rows, columns), with renumbered columns.
        columns: int64 (columns,), the number of each column in the part.
    """

    first: int
    end: int
    matrix: csr_array
    columns: np.ndarray


def tiles(part: Part, dtype: str, cost: Cost, budget: int, rows_first: bool) -> Iterator[Tile]:
    """The rows of a part in tiles that cost at most `budget` bytes, in order.

    Args:
        part: the part.
        dtype: the type of the values of its matrix.
        cost: what a tile costs.
        budget: the bytes that a tile may cost.
        rows_first: whether the first columns are the rows of the tile, as those of a part are.

    Raises:
        InputError: if a single row costs more, or a file of the part has been truncated.
    """
    first, goal = 0, _weight(part, part.num_rows)
    while first < part.num_rows:
        check_files(part.indptr, part.indices, part.values, part.halo)
        end, columns = _largest(part, first, goal, cost, budget, rows_first)
        goal = _weight(part, end) - _weight(part, first)
        yield _tile(part, dtype, first, end, columns)
        del columns
        first = end


def _largest(
    part: Part, first: int, goal: int, cost: Cost, budget: int, rows_first: bool
) -> tuple[int, np.ndarray]:
    """The end of a tile that is about as large as the budget, and its columns.

    Args:
        part: the part.
        first: the first row.
        goal: what the tile may weigh.
        cost: what a tile costs.
        budget: the bytes that the tile may cost.
        rows_first: whether the first columns are its rows.

    Raises:
        InputError: if the row costs more than the budget.
    """
    end, above, found = _end(part, first, goal), part.num_rows + 1, None
    for attempt in itertools.count():
        fitting = _fitting(part, first, end, cost, budget, rows_first)
        if fitting is None:
            above = end
        else:
            found = end, *fitting
        if found is None:
            end = _middle(part, first, above)
            continue
        low, columns, spent = found
        if attempt >= _ATTEMPTS or low + 1 >= above or spent >= _FULL * budget:
            return low, columns
        # The cost grows a little less than the weight.
        weight = _weight(part, low) - _weight(part, first)
        end = _end(part, first, math.ceil(weight * budget / spent))
        end = max(low + 1, end if end < above else _middle(part, low, above))
    raise AssertionError


def _weight(part: Part, row: int) -> int:
    """The entries and rows before a row: rows without entries take memory as well."""
    return int(part.indptr[row]) + row


def _end(part: Part, first: int, goal: int) -> int:
    """The end of a tile that weighs at most `goal`, or of one row."""
    ends = range(first + 1, part.num_rows + 1)
    goal += _weight(part, first)
    return first + max(1, bisect_right(ends, goal, key=lambda row: _weight(part, row)))


def _fitting(
    part: Part, first: int, end: int, cost: Cost, budget: int, rows_first: bool
) -> tuple[np.ndarray, int] | None:
    """The columns of a tile and what it costs; None if that is too much.

    Raises:
        InputError: if a single row costs too much.
    """
    single, entries = end - first == 1, int(part.indptr[end] - part.indptr[first])
    # What a tile costs at least is known before its columns are.
    if not single and cost(end - first, 0, entries) > budget:
        return None
    columns = _columns(part, first, end, rows_first)
    spent = cost(end - first, len(columns), entries)
    if spent <= budget:
        return columns, spent
    if single:
        fact = f"row {part.rows[0] + first} does not fit into memory"
        raise error(fact, f"at most {amount(max(0, budget))}", amount(spent))
    return None


def _middle(part: Part, first: int, end: int) -> int:
    """The row that divides the weight of at least two rows into halves."""
    goal = (_weight(part, first) + _weight(part, end)) // 2
    middles = range(first + 1, end - 1)
    return first + 1 + bisect_left(middles, goal, key=lambda row: _weight(part, row))


def _columns(part: Part, first: int, end: int, rows_first: bool) -> np.ndarray:
    """The columns of the entries of some rows, ascending; or those rows, and the other columns."""
    found = np.zeros(part.num_rows + len(part.halo), np.bool_)
    for indices in _some(part, first, end):
        found[indices] = True
    if not rows_first:
        return np.flatnonzero(found)
    found[first:end] = False
    return np.concatenate([np.arange(first, end), np.flatnonzero(found)])


def _tile(part: Part, dtype: str, first: int, end: int, columns: np.ndarray) -> Tile:
    begin, last = (int(part.indptr[row]) for row in (first, end))
    places = np.empty(part.num_rows + len(part.halo), np.int32)
    places[columns] = np.arange(len(columns), dtype=np.int32)
    indices, filled = np.empty(last - begin, np.int32), 0
    for some in _some(part, first, end):
        # With another mode NumPy copies what it fills, in order to restore it after an error.
        np.take(places, some, out=indices[filled : filled + len(some)], mode="clip")
        filled += len(some)
    matrix = csr_of_parts(
        part.indptr[first : end + 1] - begin,
        indices,
        None if part.values is None else part.values[begin:last],
        len(columns),
        dtype_named(dtype),
    )
    return Tile(first, end, matrix, columns)


def _some(part: Part, first: int, end: int) -> Iterator[np.ndarray]:
    """The columns of the entries of some rows, in pieces: NumPy makes larger numbers of them."""
    begin, last = int(part.indptr[first]), int(part.indptr[end])
    for place in range(begin, last, _PIECE):
        yield part.indices[place : min(place + _PIECE, last)]

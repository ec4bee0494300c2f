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
from ..core.files.reading import amount
from .errors import error
from .partition import Part, csr_of_parts
from .storage.columns import TileColumns, entries_of
from .storage.rows import check_files

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Cost = Callable[[int, int, int], int]
"""The bytes that a tile takes, by its numbers of rows, columns and entries."""

_FULL, _ATTEMPTS = 0.85, 5
"""The part of the budget from which on a tile is not made larger, and how often it is tried."""


@dataclass(frozen=True)
class Tile:
    """Rows `first` to `end` - 1 of a part, as a matrix over the columns that they need.

    Attributes:
        first: the first row.
        end: the row after the last one.
        matrix: these rows, of shape (rows, columns), with renumbered columns.
        columns: int64, the number in the part of each column that only this tile has, the first
            ones of the matrix; the others are those that all tiles have (`KeptColumns`).
    """

    first: int
    end: int
    matrix: csr_array
    columns: np.ndarray


def tiles(columns: TileColumns, dtype: str, cost: Cost, budget: int) -> Iterator[Tile]:
    """The rows of a part in tiles that cost at most `budget` bytes, in order.

    Args:
        columns: the columns of the tiles of the part.
        dtype: the type of the values of its matrix.
        cost: what a tile costs.
        budget: the bytes that a tile may cost.

    Raises:
        InputError: if a single row costs more, or a file of the part has been truncated.
    """
    part = columns.part
    first, goal = 0, _weight(part, part.num_rows)
    while first < part.num_rows:
        check_files(part.indptr, part.indices, part.values, part.halo)
        end, own = _largest(columns, first, goal, cost, budget)
        goal = _weight(part, end) - _weight(part, first)
        yield _tile(columns, dtype, first, end, own)
        del own
        first = end


def _largest(
    columns: TileColumns, first: int, goal: int, cost: Cost, budget: int
) -> tuple[int, np.ndarray]:
    """The end of a tile that is about as large as the budget, and its own columns.

    Args:
        columns: the columns of the tiles of the part.
        first: the first row.
        goal: what the tile may weigh.
        cost: what a tile costs.
        budget: the bytes that the tile may cost.

    Raises:
        InputError: if the row costs more than the budget.
    """
    part = columns.part
    end, above, found = _end(part, first, goal), part.num_rows + 1, None
    for attempt in itertools.count():
        fitting = _fitting(columns, first, end, cost, budget)
        if fitting is None:
            above = end
        else:
            found = end, *fitting
        if found is None:
            end = _middle(part, first, above)
            continue
        low, own, spent = found
        if attempt >= _ATTEMPTS or low + 1 >= above or spent >= _FULL * budget:
            return low, own
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
    columns: TileColumns, first: int, end: int, cost: Cost, budget: int
) -> tuple[np.ndarray, int] | None:
    """The own columns of a tile and what it costs; None if that is too much.

    Raises:
        InputError: if a single row costs too much.
    """
    part = columns.part
    single, entries = end - first == 1, columns.entries(first, end)
    # What a tile costs at least is known before its own columns are.
    if not single and cost(end - first, columns.kept, entries) > budget:
        return None
    own = columns.of(first, end)
    spent = cost(end - first, len(own) + columns.kept, entries)
    if spent <= budget:
        return own, spent
    if single:
        fact = f"row {part.rows[0] + first} does not fit into memory"
        raise error(fact, f"at most {amount(max(0, budget))}", amount(spent))
    return None


def _middle(part: Part, first: int, end: int) -> int:
    """The row that divides the weight of at least two rows into halves."""
    goal = (_weight(part, first) + _weight(part, end)) // 2
    middles = range(first + 1, end - 1)
    return first + 1 + bisect_left(middles, goal, key=lambda row: _weight(part, row))


def _tile(columns: TileColumns, dtype: str, first: int, end: int, own: np.ndarray) -> Tile:
    part, count = columns.part, columns.entries(first, end)
    indptr, values = np.zeros(end - first + 1, np.int64), None
    indices, filled = np.empty(count, np.int32), 0
    if count:
        begin, places = int(part.indptr[first]), columns.places(own)
        np.subtract(part.indptr[first : end + 1], begin, out=indptr)
        values = None if part.values is None else part.values[begin : begin + count]
        for some in entries_of(part, first, end):
            # With another mode NumPy copies what it fills, in order to restore it after an error.
            np.take(places, some, out=indices[filled : filled + len(some)], mode="clip")
            filled += len(some)
    numbers = dtype_named(dtype)
    return Tile(
        first, end, csr_of_parts(indptr, indices, values, len(own) + columns.kept, numbers), own
    )

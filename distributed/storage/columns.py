"""The columns of a tile: the nodes whose rows its entries refer to.

A tile reads the rows of its own columns. Where memory has room for the rows of all nodes that any
entry refers to, these are kept for all tiles of a stage instead, and so are read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..partition import Part
from .rows import check_files

_PIECE = 1 << 16
"""The entries that are looked at at a time."""


class TileColumns:
    """The columns of the tiles of a part.

    Args:
        part: the part.
        rows_first: whether the first columns are the rows of the tile, as those of a part are.
    """

    kept = 0
    """How many columns all tiles have, after their own ones."""

    def __init__(self, part: Part, rows_first: bool) -> None:
        self.part, self.rows_first = part, rows_first

    def entries(self, first: int, end: int) -> int:
        """How many entries a tile of some rows has."""
        return int(self.part.indptr[end] - self.part.indptr[first])

    def of(self, first: int, end: int) -> np.ndarray:
        """The own columns of a tile of some rows, int64, by their number in the part."""
        found = _is_column(self.part, first, end)
        if not self.rows_first:
            return np.flatnonzero(found)
        found[first:end] = False
        return np.concatenate([np.arange(first, end), np.flatnonzero(found)])

    def places(self, own: np.ndarray) -> np.ndarray:
        """Where each column of the part is among those of a tile, int32; undefined for others."""
        places = np.empty(self.part.num_rows + len(self.part.halo), np.int32)
        places[own] = np.arange(len(own), dtype=np.int32)
        return places


class NoColumns(TileColumns):
    """What a stage that has no use for the graph takes instead: tiles without entries."""

    def __init__(self, part: Part) -> None:
        super().__init__(part, rows_first=False)

    def entries(self, first: int, end: int) -> int:
        return 0

    def of(self, first: int, end: int) -> np.ndarray:
        return np.empty(0, np.int64)


class KeptColumns(TileColumns):
    """The columns of tiles whose last ones are all nodes that any entry refers to.

    Args:
        part: the part.
        rows_first: whether the first columns are the rows of the tile; there are no other own ones.
        kept: int64 (k,), the nodes, ascending, by their number in the partition.

    Raises:
        InputError: if a file of the part has been truncated.
    """

    def __init__(self, part: Part, rows_first: bool, kept: np.ndarray) -> None:
        super().__init__(part, rows_first)
        check_files(part.halo)
        self.kept = len(kept)
        begin, end = np.searchsorted(kept, part.rows)
        self._places = np.zeros(part.num_rows + len(part.halo), np.int32)
        self._places[kept[begin:end] - part.rows[0]] = np.arange(begin, end)
        self._places[part.num_rows :] = np.searchsorted(kept, part.halo)

    def of(self, first: int, end: int) -> np.ndarray:
        return np.arange(first, end) if self.rows_first else np.empty(0, np.int64)

    def places(self, own: np.ndarray) -> np.ndarray:
        if not len(own):
            return self._places
        places = self._places + np.int32(len(own))
        places[own] = np.arange(len(own), dtype=np.int32)
        return places


def nodes_of(part: Part, columns: np.ndarray) -> np.ndarray:
    """The nodes that some columns of a part are, int64, by their number in the partition."""
    nodes = columns + part.rows[0]
    others = columns >= part.num_rows
    nodes[others] = part.halo[columns[others] - part.num_rows]
    return nodes


def referenced(parts: Sequence[Part], most: int) -> np.ndarray | None:
    """The nodes that entries of any part refer to, int64, ascending; None if they are too many.

    Args:
        parts: the parts of a graph.
        most: how many there may be.

    Raises:
        InputError: if a file of a part has been truncated.
    """
    found: list[np.ndarray] = []
    for part in parts:
        check_files(part.indptr, part.indices, *(other.halo for other in parts))
        is_read = _is_column(part, 0, part.num_rows)[: part.num_rows]
        for other in parts:
            begin, end = other.owners[part.index : part.index + 2]
            is_read[other.halo[begin:end] - part.rows[0]] = True
        most -= int(np.count_nonzero(is_read))
        if most < 0:
            return None
        found.append(np.flatnonzero(is_read) + part.rows[0])
    return np.concatenate(found)


def entries_of(part: Part, first: int, end: int) -> Iterator[np.ndarray]:
    """The columns of the entries of some rows, in pieces: NumPy makes larger numbers of them."""
    begin, last = int(part.indptr[first]), int(part.indptr[end])
    for place in range(begin, last, _PIECE):
        yield part.indices[place : min(place + _PIECE, last)]


def _is_column(part: Part, first: int, end: int) -> np.ndarray:
    """Which columns of a part have an entry in some rows, bool (columns,)."""
    found = np.zeros(part.num_rows + len(part.halo), np.bool_)
    for some in entries_of(part, first, end):
        found[some] = True
    return found

"""Where sparse matrices have entries, in few numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..core.boundary.arguments import Csr
from ..core.ir.module import Module
from .document import SparsityPattern
from .edge_lists import EdgeList

GRID = 96
"""The largest number of cells along each side of the grid."""

_BINS = 24
"""The largest number of bins of the histogram."""


def patterns_of(
    module: Module,
    inputs: Sequence[object],
    edge_lists: Sequence[EdgeList] = (),
    sizes: Mapping[str, int] | None = None,
) -> tuple[SparsityPattern, ...]:
    """The patterns of the sparse constants of a module, and of its sparse inputs.

    Args:
        module: the module.
        inputs: arguments of a call as `core.boundary.arguments.taken` returns them, or none.
        edge_lists: those among the inputs.
        sizes: the symbolic sizes of the call.
    """
    found: list[SparsityPattern] = []
    for name in module.weights:
        array = module.weights[name]
        if not isinstance(array, np.ndarray):
            rows, columns = map(int, array.shape)
            found.append(pattern(name, (rows, columns), array.indptr, array.indices))
    for spec, value in zip(module.inputs, inputs, strict=False):
        if isinstance(value, Csr):
            found.append(pattern(spec.name, value.shape, value.indptr, value.indices))
    for one in edge_lists:
        if (matrix := one.matrix(inputs, sizes or {})) is not None:
            found.append(_of_entries(one.name, *matrix))
    return tuple(found)


def pattern(
    name: str, shape: tuple[int, int], indptr: np.ndarray, indices: np.ndarray
) -> SparsityPattern:
    """The pattern of a CSR matrix."""
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    return _of_entries(name, shape, rows, indices.astype(np.int64))


def _of_entries(
    name: str, shape: tuple[int, int], row: np.ndarray, column: np.ndarray
) -> SparsityPattern:
    """The pattern of a matrix with entries in these rows and columns."""
    rows, columns = shape
    lengths = np.bincount(row, minlength=rows)
    across, down = max(1, min(GRID, columns)), max(1, min(GRID, rows))
    place = row * down // max(rows, 1) * across + column * across // max(columns, 1)
    cells = np.bincount(place, minlength=across * down)
    return SparsityPattern(
        name,
        shape,
        len(column),
        across,
        tuple(cells.tolist()),
        tuple(_histogram(lengths)),
        int(lengths.max(initial=0)),
    )


def _histogram(lengths: np.ndarray) -> Iterator[tuple[int, int]]:
    """The bins of a histogram: lengths that occur, or powers of two where these are many."""
    starts = np.unique(lengths)
    if len(starts) > _BINS:
        most = int(starts[-1])
        starts = np.array([0, *(1 << n for n in range(most.bit_length()))])
    counts = np.bincount(np.searchsorted(starts, lengths, side="right") - 1, minlength=len(starts))
    yield from zip(starts.tolist(), counts.tolist(), strict=True)

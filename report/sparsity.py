"""Where sparse matrices have entries, in few numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..core.arguments import Csr
from ..core.module import Module
from .document import Pattern

GRID = 96
"""The largest number of cells along each side of the grid."""

_BINS = 24
"""The largest number of bins of the histogram."""


def patterns_of(module: Module, inputs: Sequence[object]) -> tuple[Pattern, ...]:
    """The patterns of the sparse constants of a module, and of its sparse inputs.

    `inputs` are arguments of a call as `core.arguments.taken` returns them, or none.
    """
    return (*_of_weights(module), *_of_inputs(module, inputs))


def _of_weights(module: Module) -> Iterator[Pattern]:
    for name in module.weights:
        array = module.weights[name]
        if not isinstance(array, np.ndarray):
            rows, columns = array.shape
            yield pattern(name, (int(rows), int(columns)), array.indptr, array.indices)


def _of_inputs(module: Module, inputs: Sequence[object]) -> Iterator[Pattern]:
    for spec, value in zip(module.inputs, inputs, strict=False):
        if isinstance(value, Csr):
            yield pattern(spec.name, value.shape, value.indptr, value.indices)


def pattern(name: str, shape: tuple[int, int], indptr: np.ndarray, indices: np.ndarray) -> Pattern:
    """The pattern of a CSR matrix."""
    rows, columns = shape
    lengths = np.diff(indptr)
    across, down = max(1, min(GRID, columns)), max(1, min(GRID, rows))
    row = np.repeat(np.arange(rows), lengths) * down // max(rows, 1)
    column = indices.astype(np.int64) * across // max(columns, 1)
    cells = np.bincount(row * across + column, minlength=across * down)
    return Pattern(
        name,
        shape,
        len(indices),
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

"""Results of a two-layer GCN at some nodes, from the files of a partition, in f64.

What no memory holds cannot be compared as a whole: nodes are drawn, and each is computed from the
rows of its neighbours and of theirs, so those of nodes with few of them only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

import stepwell as sw
from stepwell.frontends import gnn

MOST_NEIGHBOURS, MOST_EDGES = 40, 20_000
"""Of a node that is drawn, and of all its neighbours together."""
MOST_ROWS = 200_000
"""The rows that are kept for others that need them."""


class Rows:
    """Rows of an unweighted graph in parts, by the numbers of nodes in the partition."""

    def __init__(self, parts: sw.Partition) -> None:
        self.parts = [parts[i] for i in range(len(parts))]
        self.starts = np.array([part.rows[0] for part in self.parts])
        self.original = np.concatenate([parts.nodes(i) for i in range(len(parts))])
        self.counts = np.concatenate([np.diff(part.indptr) for part in self.parts])
        self.of = lru_cache(MOST_ROWS)(self._of)

    def _of(self, node: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Neighbours other than itself, how often each occurs, and the degree with a self loop."""
        number = int(np.searchsorted(self.starts, node, "right")) - 1
        part = self.parts[number]
        row = node - self.starts[number]
        columns = np.asarray(part.indices[part.indptr[row] : part.indptr[row + 1]], np.int64)
        is_own = columns < part.num_rows
        halo = np.asarray(part.halo)[np.where(is_own, 0, columns - part.num_rows)]
        columns = np.where(is_own, columns + self.starts[number], halo)
        others = columns[columns != node]
        return *np.unique(others, return_counts=True), len(others) + 1


def difference(
    parts: sw.Partition,
    x: np.ndarray,
    y: np.ndarray,
    convolutions: Sequence[gnn.GCNConv],
    seconds: float,
) -> tuple[int, float]:
    """Compare the results y, shape (N, out), for features x, shape (N, in), in so many seconds.

    Returns:
        The number of nodes, and the largest difference, relative to the largest result.
    """
    rows, (first, second) = Rows(parts), convolutions
    checked, worst, largest, end = 0, 0.0, 0.0, time.monotonic() + seconds

    def hidden(node: int) -> np.ndarray:
        return np.maximum(layer(rows, node, lambda n: x[rows.original[n]], first), 0)

    for drawn in np.random.default_rng(5).permutation(len(rows.original)):
        if time.monotonic() > end:
            break
        node = int(drawn)
        neighbours, _, degree = rows.of(node) if rows.counts[node] < MOST_NEIGHBOURS else ((), 0, 0)
        if not degree or rows.counts[neighbours].sum() > MOST_EDGES:
            continue
        expected = layer(rows, node, hidden, second)
        worst = max(worst, float(np.abs(expected - y[rows.original[node]]).max()))
        largest = max(largest, float(np.abs(expected).max()))
        checked += 1
    return checked, worst / largest


def layer(
    rows: Rows, node: int, features: Callable[[int], np.ndarray], convolution: gnn.GCNConv
) -> np.ndarray:
    """A row of D^-1/2 (A + I) D^-1/2 X W + b."""
    neighbours, counts, degree = rows.of(node)
    total = features(node).astype(np.float64) / degree
    for other, count in zip(neighbours.tolist(), counts, strict=True):
        total += count / np.sqrt(degree * rows.of(other)[2]) * features(other)
    bias = 0 if convolution.bias is None else convolution.bias
    return total @ convolution.weight + bias

"""Edge lists as arguments: an array of shape (2, E), sources then targets, in place of a matrix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..algebra.dims import Dim, Shape
from ..dtype_names import dtype_named
from ..errors import InputError, explain
from .arrays import row_pointers
from .specs import ValueSpec


def is_edge_index(value: object) -> bool:
    """Whether an argument is an edge list: integers in two rows."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.shape[:-1] == (2,)


def csr_of_edges(
    spec: ValueSpec, shape: Shape, edges: np.ndarray, sizes: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """The matrix of an edge list: entry (i, j) is 1 for each edge from j to i, in order of columns.

    Args:
        spec: the input.
        shape: its sizes.
        edges: sources and targets, of shape (2, E).
        sizes: the sizes of symbols that other arguments have.

    Returns:
        Row pointers, columns and values, and the shape.

    Raises:
        InputError: if a node is outside of the matrix, or a size is that of no other argument.
    """
    edges = edges.astype(np.int64)  # a copy: other threads may write to the caller's array
    rows, columns = (_size(spec, dim, sizes) for dim in shape)
    for what, nodes, count in (("source", edges[0], columns), ("target", edges[1], rows)):
        if nodes.size and not (0 <= nodes.min() and nodes.max() < count):
            bad = int(nodes[(nodes < 0) | (nodes >= count)][0])
            fact, expected = f"{what} of an edge out of range", f"0 to {count - 1}"
            raise InputError(explain(f'input "{spec.name}"', fact, expected=expected, got=bad))
    sources, targets = edges
    indptr = row_pointers(targets, rows)
    # One number for each edge, since NumPy sorts numbers by vectors; those of nodes have 32 bits.
    keys = targets * columns + sources
    keys.sort()
    values = np.ones(len(keys), dtype_named(spec.dtype))
    return indptr, keys % columns, values, (rows, columns)


def _size(spec: ValueSpec, dim: Dim, sizes: Mapping[str, int]) -> int:
    if not set(dim.symbols) <= sizes.keys():
        # The largest node would not do: one wrong number would take all memory.
        fact = "an edge list does not say how many nodes there are, nor do other arguments"
        hint = "give a gnn.Graph, or a scipy.sparse matrix"
        raise InputError(explain(f'input "{spec.name}"', fact, hint=hint))
    return dim.evaluate(sizes)

"""Parts by METIS: of about equal size, with few edges between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import error


def metis_labels(matrix: Any, entries: np.ndarray, parts: int) -> np.ndarray:
    """The part of each node of a graph in memory, by `pymetis`.

    Args:
        matrix: the adjacency matrix in CSR; each edge counts for both directions.
        entries: (N,), the entries of each row, which a node weighs.
        parts: the number of parts.

    Raises:
        InputError: if the graph is not in memory, or `pymetis` is not installed.
    """
    if matrix is None:
        raise error('by="metis" needs the graph in memory', "a Graph or a scipy.sparse matrix")
    try:
        import pymetis  # pyright: ignore[reportMissingImports]
    except ImportError as reason:
        raise error('by="metis" needs pymetis; pip install "stepwell[metis]"') from reason
    if parts == 1 or not matrix.shape[0]:
        return np.zeros(matrix.shape[0], np.int64)
    graph = pymetis.CSRAdjacency(*_symmetric(matrix))
    _, labels = pymetis.part_graph(parts, graph, vweights=1 + entries)
    return np.asarray(labels, np.int64)


def _symmetric(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """The row pointers and columns of the pattern in both directions, without self loops."""
    from scipy.sparse import csr_array

    ones = np.ones(len(matrix.indices), np.int8)
    pattern = csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape).astype(np.bool_)
    both = (pattern + pattern.T).tocoo()
    keep = both.row != both.col
    rows, columns = both.row[keep], both.col[keep]
    clean = csr_array((np.ones(len(rows), np.bool_), (rows, columns)), shape=matrix.shape)
    return clean.indptr, clean.indices

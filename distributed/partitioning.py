"""`partition`: cut a graph into parts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..core.boundary.arrays import is_integer
from ..core.progress import report
from .build import Census, build, count, even_ranges
from .edges import Edges, edges_of
from .errors import error, unwritten
from .partition import Partition, new_folder
from .progress import reported
from .storage.arrays import ArraysInMemory


def partition(
    graph: Any,
    parts: int,
    by: Any = "rows",
    out: str | os.PathLike[str] | None = None,
    *,
    num_nodes: int | None = None,
    undirected: bool = False,
) -> Partition:
    """Cut a graph of N nodes into parts, each with its rows, its halo and what it sends.

    The graph may be larger than memory: of a file or a stream, memory holds some tens of bytes
    for each node and a limited number of edges at a time.

    Args:
        graph: one of

            - a `gnn.Graph`, or a `scipy.sparse` matrix whose row i has the edges into node i,
            - an array or `.npy` file of integers, shape (2, E) or (E, 2): sources and targets,
            - a `.parquet` file, or a folder of them (`stepwell[parquet]`): the first two columns
              are sources and targets, a third one is the weights,
            - a folder in the layout of OGB,
            - an object whose `__iter__` yields such arrays, or pairs of one and its weights, and
              begins anew each time.
        parts: the number of parts. A part may be empty.
        by: "rows" for ranges of nodes with equal numbers of entries; "metis" for parts of about
            equal size between which few edges go (`stepwell[metis]`, of a graph in memory); or
            integers (N,), the part of each node.
        out: a folder for a partition that is mapped; without it, the partition is in memory.
        num_nodes: N for edge lists, by default one more than the largest node.
        undirected: whether the graph names each edge once for both directions.

    Raises:
        InputError: if the graph cannot be read, an argument is wrong, or `out` cannot be written.
    """
    if not is_integer(parts) or parts < 1:
        raise error("wrong number of parts", "1 or more", repr(parts))
    edges = edges_of(graph, num_nodes, undirected)
    census = count(reported(edges, "counting edges"))
    part_of = _part_of(edges, census, int(parts), by)
    if out is None:
        return build(edges, census, part_of, int(parts), ArraysInMemory())
    folder = new_folder(out)
    try:
        return build(edges, census, part_of, int(parts), folder)
    except OSError as reason:
        raise unwritten(folder.path, reason) from reason


def _part_of(edges: Edges, census: Census, parts: int, by: Any) -> np.ndarray:
    """The part of each node."""
    kind = np.uint16 if parts <= 1 << 16 else np.uint32
    if isinstance(by, str) and by == "rows":
        sizes = np.diff(even_ranges(census.entries, parts))
        return np.repeat(np.arange(parts, dtype=kind), sizes)
    if isinstance(by, str) and by == "metis":
        report("cutting the graph by METIS", 0, None, f"{len(census.entries) / 1e6:.1f} M nodes")
        return _metis_labels(edges.matrix, census.entries, parts).astype(kind)
    if isinstance(by, str):
        raise error("unknown way to partition", 'by="rows", "metis" or labels', repr(by))
    return _labels(by, len(census.entries), parts).astype(kind)


def _metis_labels(matrix: Any, entries: np.ndarray, parts: int) -> np.ndarray:
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


def _labels(by: Any, nodes: int, parts: int) -> np.ndarray:
    labels = np.asarray(by)
    if labels.dtype.kind not in "iu" and labels.size:
        raise error("the labels have the wrong dtype", "integers", labels.dtype)
    if labels.shape != (nodes,):
        raise error("the labels have the wrong shape", (nodes,), labels.shape)
    if nodes and not (0 <= int(labels.min()) and int(labels.max()) < parts):
        wrong = labels[(labels < 0) | (labels >= parts)][0]
        raise error("a label is out of range", f"0 to {parts - 1}", int(wrong))
    return labels

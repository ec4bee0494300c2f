"""Edge lists as streams: what a partition is built from, in pieces that fit memory.

An edge goes from a source to a target, and is an entry of the target's row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.boundary.arrays import csr_of, is_integer
from ..core.files.reading import ReadingError, map_npy
from ..frontends.arrays import is_scipy
from ..frontends.gnn.graph import Graph
from .errors import damaged, error
from .ogb import is_ogb, read_ogb
from .parquet import read_parquet

CHUNK = 1 << 22
"""The number of edges that are read at a time."""
LARGEST = 1 << 32
"""The largest number of nodes: two of them are one sorted word."""

Chunk = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Targets and sources of edges, and their weights or None; each of shape (n,)."""


@dataclass(frozen=True)
class Edges:
    """A list of edges that can be read several times.

    Attributes:
        read: returns its chunks, from the beginning.
        num_nodes: the number of nodes, or None for one more than the largest in the list.
        matrix: the adjacency matrix in CSR, if it is in memory; edges that are read in both
            directions may be in it once.
    """

    read: Callable[[], Iterable[Chunk]]
    num_nodes: int | None = None
    matrix: Any = None


def edges_of(graph: Any, num_nodes: int | None = None, undirected: bool = False) -> Edges:
    """The edges of a graph, a matrix, a file or a stream; see `stepwell.partition`.

    Raises:
        InputError: if it is none of these, or a file cannot be read.
    """
    if num_nodes is not None and (not is_integer(num_nodes) or num_nodes < 0):
        raise error("num_nodes is wrong", "a count or None", repr(num_nodes))
    edges = _edges_of(graph)
    if edges.num_nodes is None:
        edges = Edges(edges.read, num_nodes)
    elif num_nodes not in (None, edges.num_nodes):
        raise error("num_nodes is not that of the graph", edges.num_nodes, num_nodes)
    if not undirected:
        return edges

    def both() -> Iterator[Chunk]:
        return (chunk for piece in edges.read() for chunk in _both_ways(piece))

    return replace(edges, read=both)


def _edges_of(graph: Any) -> Edges:
    if isinstance(graph, Graph):
        return _of_matrix(graph.adjacency)
    if is_scipy(graph):
        return _of_matrix(graph)
    if isinstance(graph, str | os.PathLike):
        return _of_path(Path(graph))
    if isinstance(graph, np.ndarray):
        return Edges(lambda: _pieces(_ends(graph)))
    if isinstance(graph, Iterator):
        raise error(
            "the stream can be read only once", "one whose __iter__ begins anew", _kind(graph)
        )
    if isinstance(graph, Iterable) and not isinstance(graph, bytes | dict):
        return Edges(lambda: _chunks_of(graph), getattr(graph, "num_nodes", None))
    expected = "a Graph, a scipy.sparse matrix, an array, a path or a stream of arrays"
    raise error("not a graph", expected, _kind(graph))


def _of_matrix(matrix: Any) -> Edges:
    """The entries of a matrix, of which row i has those into node i."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise error("the matrix is not square", "(N, N)", matrix.shape)
    if matrix.dtype.kind not in "biuf":
        raise error("the matrix has the wrong dtype", "numbers", matrix.dtype)
    try:
        csr = csr_of(matrix)
        csr.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as reason:
        raise error(f"the matrix is inconsistent: {reason}") from reason
    return Edges(lambda: _rows(csr), csr.shape[0], csr)


def _rows(matrix: Any) -> Iterator[Chunk]:
    starts = matrix.indptr.astype(np.int64, copy=False)
    for first in range(0, matrix.nnz, CHUNK):
        end = min(first + CHUNK, matrix.nnz)
        # The rows that have one of these entries, and how many each.
        low, high = np.searchsorted(starts, (first, end - 1), "right") - 1
        cuts = np.clip(starts[low : high + 2], first, end)
        targets = np.repeat(np.arange(low, high + 1), np.diff(cuts))
        yield targets, matrix.indices[first:end], matrix.data[first:end]


def _of_path(path: Path) -> Edges:
    if is_ogb(path):
        read, count = read_ogb(path, CHUNK)
        return Edges(lambda: map(_chunk, read()), count)
    if path.suffix == ".npy":
        try:
            array = map_npy(path)
        except ReadingError as reason:
            raise damaged(path, reason) from reason
        return Edges(lambda: _pieces(_ends(array)))
    if path.suffix == ".parquet" or path.is_dir():
        read = read_parquet(path, CHUNK)
        return Edges(lambda: map(_chunk, read()))
    raise error("unknown kind of file", ".npy, .parquet or a folder", path)


def _ends(array: np.ndarray) -> np.ndarray:
    """Edges of shape (2, E) or (E, 2) as a view of shape (2, E)."""
    if array.ndim != 2 or 2 not in array.shape:
        raise error("the edges have the wrong shape", "(2, E) or (E, 2)", array.shape)
    return array if array.shape[0] == 2 else array.T


def _pieces(ends: np.ndarray) -> Iterator[Chunk]:
    for first in range(0, ends.shape[1], CHUNK):
        sources, targets = ends[:, first : first + CHUNK]
        yield _chunk((sources, targets, None))


def _chunks_of(stream: Iterable[Any]) -> Iterator[Chunk]:
    """The pieces of a stream: arrays of edges, or pairs of those and their weights."""
    for item in stream:
        array, weights = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
        sources, targets = _ends(np.asarray(array))
        yield _chunk((sources, targets, None if weights is None else np.asarray(weights)))


def _chunk(piece: tuple[np.ndarray, np.ndarray, np.ndarray | None]) -> Chunk:
    """Checked targets, sources and weights, from sources, targets and weights."""
    sources, targets, weights = piece
    for ends in (sources, targets):
        if ends.dtype.kind not in "iu" and ends.size:
            raise error("the edges have the wrong dtype", "integers", ends.dtype)
    if weights is not None:
        if weights.shape != targets.shape:
            raise error("the weights have the wrong shape", targets.shape, weights.shape)
        if weights.dtype.kind not in "biuf":
            raise error("the weights have the wrong dtype", "numbers", weights.dtype)
    return targets, sources, weights


def _both_ways(chunk: Chunk) -> Iterator[Chunk]:
    """A chunk, and its edges in the other direction, but for self loops."""
    targets, sources, weights = chunk
    yield chunk
    other = targets != sources
    yield sources[other], targets[other], None if weights is None else weights[other]


def _kind(value: object) -> str:
    return type(value).__name__

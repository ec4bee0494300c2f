"""A power-law graph as an edge list on disk: R-MAT, in bounded memory.

Each edge falls into a quadrant of the adjacency matrix by chance, then into one of that quadrant,
and so on (Chakrabarti et al. 2004, with the probabilities of Graph500). Node numbers are mixed, as
those of real data say little about degrees. Nodes without edges, self loops and repeated edges are
kept. The file has shape (2, E): sources, then targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

from stepwell.frontends import gnn

QUADRANTS = (0.57, 0.19, 0.19, 0.05)
CHUNK = 1 << 20
_ODD = 0x9E3779B1


def rmat(nodes: int, edges: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sources and targets of at most `CHUNK` edges at a time, int32."""
    levels = max(1, (nodes - 1).bit_length())
    rng = np.random.default_rng(0)
    for first in range(0, edges, CHUNK):
        count = min(CHUNK, edges - first)
        places = np.zeros((2, count), np.uint32)
        for _ in range(levels):
            _descend(places, rng)
        ends = _mixed(places.astype(np.uint64), levels)
        # Fewer nodes than a power of 2: neighbours among the numbers become one node.
        sources, targets = (ends * np.uint64(nodes) >> np.uint64(levels)).astype(np.int32)
        yield sources, targets


def _descend(ends: np.ndarray, rng: np.random.Generator) -> None:
    """Add the bit of one level: the quadrant of each edge, by 16 random bits."""
    chance = np.frombuffer(rng.bytes(2 * ends.shape[1]), np.uint16)
    a, b, c = (np.uint16(round(65536 * p)) for p in np.cumsum(QUADRANTS[:3]))
    lower = chance >= b
    right = ((chance >= a) & ~lower) | (chance >= c)
    for row, bit in zip(ends, (lower, right), strict=True):
        row <<= np.uint32(1)
        row |= bit


def _mixed(ends: np.ndarray, levels: int) -> np.ndarray:
    """Numbers of `levels` bits, renumbered: each step has an inverse."""
    mask, half = np.uint64((1 << levels) - 1), np.uint64(max(1, levels // 2))
    for _ in range(2):
        ends = ends * np.uint64(_ODD) & mask
        ends ^= ends >> half
    return ends


def write(path: Path, nodes: int, edges: int) -> None:
    file, done = open_memmap(path, "w+", np.int32, (2, edges)), 0
    for pair in rmat(nodes, edges):
        file[:, done : done + len(pair[0])] = pair
        done += len(pair[0])


def graph_of(nodes: int, edges: int) -> gnn.Graph:
    ends = np.concatenate([np.stack(piece) for piece in rmat(nodes, edges)], axis=1)
    return gnn.Graph.from_edge_index(ends, nodes)

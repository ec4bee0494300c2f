"""The time of `gnn.Graph.from_edge_index` beside SciPy's conversion of a COO matrix.

A million random edges with weights. Times are of the processor, minima of interleaved runs. SciPy's
matrix sums edges that are given twice; `from_edge_index` checks the indices, keeps such edges, and
says where each one came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Row, Table, processor_times
from scipy.sparse import coo_array

from stepwell.frontends import gnn

EDGES = 1_000_000
NODES = (10_000, 100_000, 1_000_000)


def calls(nodes: int) -> dict[str, Callable[[], Any]]:
    random = np.random.default_rng(0)
    ends, weights = random.integers(0, nodes, (2, EDGES)), random.random(EDGES, np.float32)
    where, shape = (ends[1], ends[0]), (nodes, nodes)
    return {
        "ours": lambda: gnn.Graph.from_edge_index(ends, nodes, weights),
        "scipy": lambda: coo_array((weights, where), shape).tocsr(),
    }


def row(name: str, nodes: int, *, rounds: int = 9) -> Row:
    times = processor_times(calls(nodes), rounds)
    ours, scipys = times["ours"].minimum, times["scipy"].minimum
    return {
        "from_edge_index": f"{ours * 1e3:.1f} ms",
        "coo.tocsr": f"{scipys * 1e3:.1f} ms",
        "ratio": f"{scipys / ours:.2f}",
    }


TABLES = [Table("nodes", {f"{nodes:,}": nodes for nodes in NODES}, row)]

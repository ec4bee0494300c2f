"""The time of `gnn.Graph.from_edge_index` beside SciPy's conversion of a COO matrix.

    python benchmarks/edge_lists.py

A million random edges with weights. Times are of the processor, minima of interleaved runs. SciPy's
matrix sums edges that are given twice; `from_edge_index` checks the indices, keeps such edges, and
says where each one came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import processor_times
from rich.console import Console
from rich.table import Table
from scipy.sparse import coo_array

from stepwell.frontends import gnn

EDGES, ROUNDS = 1_000_000, 9
NODES = (10_000, 100_000, 1_000_000)


def calls(nodes: int) -> dict[str, Callable[[], Any]]:
    """Both ways to make a matrix of random edges among some nodes."""
    random = np.random.default_rng(0)
    ends, weights = random.integers(0, nodes, (2, EDGES)), random.random(EDGES, np.float32)
    where, shape = (ends[1], ends[0]), (nodes, nodes)
    return {
        "ours": lambda: gnn.Graph.from_edge_index(ends, nodes, weights),
        "scipy": lambda: coo_array((weights, where), shape).tocsr(),
    }


def main() -> None:
    """Print the table."""
    table = Table("nodes", "from_edge_index", "coo.tocsr", "ratio")
    for nodes in NODES:
        times = processor_times(calls(nodes), ROUNDS)
        ours, scipys = times["ours"].minimum, times["scipy"].minimum
        table.add_row(
            f"{nodes:,}", f"{ours * 1e3:.1f} ms", f"{scipys * 1e3:.1f} ms", f"{scipys / ours:.2f}"
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

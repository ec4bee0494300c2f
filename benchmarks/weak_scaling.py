"""Programs on the parts of a graph that grow in number at a constant size, by the model.

A GCN of two layers and 64 features on power-law graphs (`rmat.py`). Nothing runs: times are those
of `report.Machine`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from harness import Row, Table
from large_graphs import module
from rmat import graph_of

import stepwell as sw
from stepwell.distributed.engines import LocalEngine

PARTS = (1, 10, 100, 1000)


@cache
def report(nodes: int, edges: int, parts: int) -> Any:
    partition = sw.partition(graph_of(nodes * parts, edges * parts), parts)
    with LocalEngine(1) as engine:
        # Halos are charged to the network, on which a cluster has them.
        engine.shares = False
        return sw.distribute(module("GCN"), partition, engine, opt_level=0).report()


def row(name: str, parts: int, *, nodes: int = 1000, edges: int = 10_000) -> Row:
    found = report(nodes, edges, parts)
    return {
        "nodes": f"{nodes * parts:,}",
        "halo of a part": f"{sum(cost.halo for cost in found.costs[1]) / parts:,.0f}",
        "exchanged MB": f"{sum(found.exchanged) / 1e6:,.1f}",
        "balance": f"{min(found.balance):.2f}",
        "s": f"{found.seconds:.4f}",
        "efficiency": f"{report(nodes, edges, 1).seconds / found.seconds:.2f}",
    }


TABLES = [Table("parts", {f"{parts:,}": parts for parts in PARTS}, row)]

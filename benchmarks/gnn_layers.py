"""Layers of `stepwell.frontends.gnn`, written by hand, beside those of torch-geometric.

One layer of 64 features on a random graph of 50,000 nodes and 500,000 edges, which is an edge list
and an input of each call; weights are those of torch-geometric's layer, by `from_state_dict`. Times
are of processor time, minima of interleaved rounds, so that they hold on a machine that is shared.
`HeteroConv` has half of the nodes of each of two types, and a quarter of the edges of each of the
four types between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from harness import Case, Make, Table, run
from peers import torch_call
from torch_geometric import nn

import stepwell as sw
from stepwell.frontends import gnn

NODES, EDGES, WIDTH, DIM, HEADS, RELATIONS = 50_000, 500_000, 64, 16, 4, 8


def network(*widths: int) -> Any:
    """A linear layer, then others after a ReLU each."""
    made = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    return torch.nn.Sequential(*(p for lin in made for p in (lin, torch.nn.ReLU())))


def layers(network: Any) -> list[gnn.Layer]:
    return [
        gnn.Linear.from_state_dict(part.state_dict()) if hasattr(part, "weight") else gnn.ReLU()
        for part in network
    ]


def layer(kind: str, *args: Any, extra: str = "", ours: Sequence[str] = (), **options: Any) -> Make:
    """A layer of torch-geometric, and ours with the same weights.

    Args:
        kind: the name of both.
        args: the arguments of torch-geometric's; widths stand for a network.
        extra: what a call takes beside features and edges: "attr", "weight", "type" or nothing.
        ours: the options that ours has, too.
        options: those of torch-geometric's.
    """

    def make() -> Case:
        torch.manual_seed(0)
        given = [network(*a) if isinstance(a, tuple) else a for a in args or (WIDTH, WIDTH)]
        theirs = getattr(nn, kind)(*given, **options).eval()
        networks = [layers(a) for a in given if isinstance(a, torch.nn.Module)]
        own = {name: options[name] for name in ours}
        conv = getattr(gnn, kind).from_state_dict(theirs.state_dict(), "", *networks, **own)
        module = gnn.Sequential(conv).to_module(
            gnn.EdgeListSpec(weighted=extra == "weight"),
            sw.TensorSpec((None, WIDTH)),
            edge_attr=sw.TensorSpec((None, DIM)) if extra == "attr" else None,
            edge_type=sw.TensorSpec((None,), "i64") if extra == "type" else None,
        )
        rng = np.random.default_rng(0)
        x = rng.standard_normal((NODES, WIDTH), np.float32)
        edges = rng.integers(0, NODES, (2, EDGES))
        extras: dict[str, np.ndarray] = {
            "attr": rng.standard_normal((EDGES, DIM), np.float32),
            "weight": rng.random(EDGES, np.float32) + 0.5,
            "type": rng.integers(0, RELATIONS, EDGES),
        }
        more = [extras[extra]] if extra else []
        arrays = [edges, *more, x] if extra == "weight" else [edges, x, *more]
        return beside(module, arrays, theirs, x, edges, *more)

    return make


def beside(module: sw.Module, arrays: Sequence[Any], theirs: Any, *given: Any) -> Case:
    """A program, and the layer of torch-geometric on other arguments."""
    return Case(
        arrays,
        module=module,
        others=lambda threads: {"torch-geometric": torch_call(theirs, given, threads)},
        tolerance=1e-4,
        goals=(1.0, 1.0),
    )


def hetero() -> Case:
    """A `SAGEConv` for each of four types of edges between two types of nodes."""
    torch.manual_seed(0)
    rng, nodes = np.random.default_rng(0), ("author", "paper")
    kinds = [(source, "to", target) for source in nodes for target in nodes]
    theirs = nn.HeteroConv({kind: nn.SAGEConv((WIDTH, WIDTH), WIDTH) for kind in kinds}).eval()
    convs = {kind: gnn.SAGEConv.from_state_dict(theirs.convs[kind].state_dict()) for kind in kinds}
    module = gnn.HeteroSequential(gnn.HeteroConv(convs)).to_module(
        dict.fromkeys(kinds, gnn.EdgeListSpec()),
        dict.fromkeys(nodes, sw.TensorSpec((None, WIDTH))),
    )
    x = {name: rng.standard_normal((NODES // 2, WIDTH), np.float32) for name in nodes}
    edges = {kind: rng.integers(0, NODES // 2, (2, EDGES // len(kinds))) for kind in kinds}
    xs = {name: torch.from_numpy(array) for name, array in x.items()}
    ends = {kind: torch.from_numpy(array) for kind, array in edges.items()}
    arrays = [*edges.values(), *x.values()]
    return beside(module, arrays, lambda: list(map(theirs(xs, ends).get, nodes)))


_OF_HEADS = (WIDTH, WIDTH // HEADS)
CASES: dict[str, Make] = {
    "GCNConv": layer("GCNConv"),
    "GraphConv, weighted": layer("GraphConv", extra="weight"),
    "GraphConv, max": layer("GraphConv", ours=["aggr"], aggr="max"),
    "GATConv, one head": layer("GATConv"),
    "GATConv, edge features": layer("GATConv", *_OF_HEADS, extra="attr", heads=HEADS, edge_dim=DIM),
    "GATv2Conv": layer("GATv2Conv", *_OF_HEADS, heads=HEADS),
    "GATv2Conv, one head": layer("GATv2Conv"),
    "GATv2Conv, edge features": layer(
        "GATv2Conv", *_OF_HEADS, extra="attr", heads=HEADS, edge_dim=DIM
    ),
    "TransformerConv": layer("TransformerConv", *_OF_HEADS, ours=["heads"], heads=HEADS),
    "TransformerConv, one head": layer("TransformerConv"),
    "TransformerConv, edge features": layer(
        "TransformerConv", *_OF_HEADS, extra="attr", ours=["heads"], heads=HEADS, edge_dim=DIM
    ),
    "GINEConv": layer("GINEConv", (WIDTH, WIDTH), extra="attr", edge_dim=DIM),
    "EdgeConv": layer("EdgeConv", (2 * WIDTH, WIDTH)),
    "EdgeConv, two layers": layer("EdgeConv", (2 * WIDTH, WIDTH, WIDTH)),
    "RGCNConv": layer("RGCNConv", WIDTH, WIDTH, RELATIONS, extra="type"),
    "SGConv, K = 2": layer("SGConv", ours=["K"], K=2),
    "TAGConv": layer("TAGConv"),
    "ChebConv, K = 3": layer("ChebConv", WIDTH, WIDTH, 3),
    "HeteroConv": hetero,
}


TABLES = [Table("layer", CASES, partial(run, rounds=5, by="minimum", clock="processor"))]

"""Layers of `stepwell.frontends.gnn`, written by hand, beside those of torch-geometric.

One layer of 64 features on a random graph of 50,000 nodes and 500,000 edges, which is an edge list
and an input of each call; weights are those of torch-geometric's layer, by `from_state_dict`. Times
are of processor time, minima of interleaved rounds, so that they hold on a machine that is shared.
`HeteroConv` has half of the nodes of each of two types, and a quarter of the edges of each of the
four types between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from harness import Row, Table, processor_times, timed
from peers import OURS, torch_call

import stepwell as sw
from stepwell.frontends import gnn

NODES, EDGES, WIDTH, DIM, HEADS, RELATIONS = 50_000, 500_000, 64, 16, 4, 8
TOLERANCE = 1e-4
"""The largest difference to torch-geometric's result, relative to its largest element."""


Calls = tuple[Callable[[], Any], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """A layer of torch-geometric, and how ours is made.

    Attributes:
        kind: the name of both.
        args: the arguments of torch-geometric's.
        options: the same by name.
        ours: further arguments of ours.
        extra: what a call takes beside features and edges: "attr", "weight", "type" or nothing.
    """

    kind: str
    args: tuple[Any, ...] = (WIDTH, WIDTH)
    options: tuple[tuple[str, Any], ...] = ()
    ours: tuple[tuple[str, Any], ...] = ()
    extra: str = ""

    def made(self) -> tuple[Any, gnn.Layer]:
        """Both layers, with the same weights."""
        import torch
        from torch_geometric import nn

        torch.manual_seed(0)
        args = [network(*a) if isinstance(a, tuple) else a for a in self.args]
        theirs = getattr(nn, self.kind)(*args, **dict(self.options)).eval()
        given = [layers(a) for a in args if isinstance(a, torch.nn.Module)]
        make = getattr(gnn, self.kind).from_state_dict
        return theirs, make(theirs.state_dict(), "", *given, **dict(self.ours))

    def calls(self, threads: int) -> Calls:
        """A call of ours, and one of torch-geometric's."""
        import torch

        rng = np.random.default_rng(0)
        theirs, layer = self.made()
        x, edges = (
            rng.standard_normal((NODES, WIDTH), np.float32),
            rng.integers(0, NODES, (2, EDGES)),
        )
        extras: dict[str, np.ndarray] = {
            "attr": rng.standard_normal((EDGES, DIM), np.float32),
            "weight": rng.random(EDGES, np.float32) + 0.5,
            "type": rng.integers(0, RELATIONS, EDGES),
        }
        extra = [extras[self.extra]] if self.extra else []
        module = gnn.Sequential(layer).to_module(
            gnn.EdgeListSpec(weighted=self.extra == "weight"),
            sw.TensorSpec((None, WIDTH)),
            edge_attr=sw.TensorSpec((None, DIM)) if self.extra == "attr" else None,
            edge_type=sw.TensorSpec((None,), "i64") if self.extra == "type" else None,
        )
        exe = sw.compile(module, threads=threads)
        arrays = [edges, *extra, x] if self.extra == "weight" else [edges, x, *extra]
        tensors = [torch.from_numpy(array) for array in (x, edges, *extra)]
        return (
            lambda: exe(*arrays),
            torch_call(lambda: theirs(*tensors), (), threads),
        )


@dataclass(frozen=True)
class Hetero:
    """A `SAGEConv` for each of four types of edges between two types of nodes."""

    def calls(self, threads: int) -> Calls:
        """A call of ours, and one of torch-geometric's."""
        import torch
        from torch_geometric import nn

        torch.manual_seed(0)
        rng, nodes = np.random.default_rng(0), ("author", "paper")
        kinds = [(source, "to", target) for source in nodes for target in nodes]
        theirs = nn.HeteroConv({kind: nn.SAGEConv((WIDTH, WIDTH), WIDTH) for kind in kinds})
        convs = {
            kind: gnn.SAGEConv.from_state_dict(theirs.convs[kind].state_dict()) for kind in kinds
        }
        module = gnn.HeteroSequential(gnn.HeteroConv(convs)).to_module(
            dict.fromkeys(kinds, gnn.EdgeListSpec()),
            dict.fromkeys(nodes, sw.TensorSpec((None, WIDTH))),
        )
        exe = sw.compile(module, threads=threads)
        x = {name: rng.standard_normal((NODES // 2, WIDTH), np.float32) for name in nodes}
        edges = {kind: rng.integers(0, NODES // 2, (2, EDGES // len(kinds))) for kind in kinds}
        xs = {name: torch.from_numpy(array) for name, array in x.items()}
        ends = {kind: torch.from_numpy(array) for kind, array in edges.items()}

        def call() -> Any:
            found = theirs.eval()(xs, ends)
            return torch.cat([found[name] for name in nodes])

        return (
            lambda: np.concatenate(exe(*edges.values(), *x.values())),
            torch_call(call, (), threads),
        )


def network(*widths: int) -> Any:
    """A linear layer, then others after a ReLU each."""
    import torch

    made = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    return torch.nn.Sequential(*(p for lin in made for p in (lin, torch.nn.ReLU())))


def layers(nn: Any) -> list[gnn.Layer]:
    """The layers of a network."""
    return [
        gnn.Linear.from_state_dict(part.state_dict()) if hasattr(part, "weight") else gnn.ReLU()
        for part in nn
    ]


_HEADS, _DIM = ("heads", HEADS), ("edge_dim", DIM)
_OF_HEADS = (WIDTH, WIDTH // HEADS)
CASES: dict[str, Case | Hetero] = {
    "GCNConv": Case("GCNConv"),
    "GraphConv, weighted": Case("GraphConv", extra="weight"),
    "GraphConv, max": Case("GraphConv", options=(("aggr", "max"),), ours=(("aggr", "max"),)),
    "GATConv, one head": Case("GATConv"),
    "GATConv, edge features": Case("GATConv", _OF_HEADS, (_HEADS, _DIM), extra="attr"),
    "GATv2Conv": Case("GATv2Conv", _OF_HEADS, (_HEADS,)),
    "GATv2Conv, one head": Case("GATv2Conv"),
    "GATv2Conv, edge features": Case("GATv2Conv", _OF_HEADS, (_HEADS, _DIM), extra="attr"),
    "TransformerConv": Case("TransformerConv", _OF_HEADS, (_HEADS,), (_HEADS,)),
    "TransformerConv, one head": Case("TransformerConv"),
    "TransformerConv, edge features": Case(
        "TransformerConv", _OF_HEADS, (_HEADS, _DIM), (_HEADS,), extra="attr"
    ),
    "GINEConv": Case("GINEConv", ((WIDTH, WIDTH),), (_DIM,), extra="attr"),
    "EdgeConv": Case("EdgeConv", ((2 * WIDTH, WIDTH),)),
    "EdgeConv, two layers": Case("EdgeConv", ((2 * WIDTH, WIDTH, WIDTH),)),
    "RGCNConv": Case("RGCNConv", (WIDTH, WIDTH, RELATIONS), extra="type"),
    "SGConv, K = 2": Case("SGConv", options=(("K", 2),), ours=(("K", 2),)),
    "TAGConv": Case("TAGConv"),
    "ChebConv, K = 3": Case("ChebConv", options=(("K", 3),)),
    "HeteroConv": Hetero(),
}


def run(name: str, case: Case | Hetero, *, threads: int = 1, rounds: int = 5) -> Row:
    """Time one layer.

    Raises:
        SystemExit: if the results differ.
    """
    ours, theirs = case.calls(threads)
    calls = {OURS: ours, "torch-geometric": theirs}
    measured = partial(processor_times, rounds=rounds)
    return timed(name, calls, threads, TOLERANCE, measured, "minimum").row(goal=1.0)


TABLES = [Table("layer", CASES, run)]

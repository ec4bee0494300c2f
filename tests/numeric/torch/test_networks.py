"""Whole networks of torch-geometric, compiled for any batch of graphs, beside torch itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import stepwell as sw

from ...harness import package
from .compared import as_torch, close_to_torch, torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pyg: Any = package("torch_geometric.nn", "torch-geometric")

pytestmark = pytest.mark.slow
ANY = torch.export.Dim.DYNAMIC
nn = torch.nn


def batch(nodes: int, edges: int, sizes: list[int]) -> list[Any]:
    """Features, edges, and the graph of each node."""
    number = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return [torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges)), number]


class Network(nn.Module):
    """A network of nodes, perhaps a norm of each graph, and perhaps a pool."""

    def __init__(self, network: Any, norm: Any = None, pool: Any = None) -> None:
        super().__init__()
        self.network, self.norm, self.pool = network, norm, pool
        self.lin = nn.LazyLinear(3)

    def forward(self, x: Any, edges: Any, number: Any) -> Any:
        x = self.network(x, edges)
        x = x if self.norm is None else self.norm(x, number)
        return self.lin(x if self.pool is None else self.pool(x, number))


class Shrinking(nn.Module):
    """A network that leaves out half of the nodes of each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GraphConv(8, 8), pyg.GraphConv(8, 4)
        self.pool = pyg.TopKPooling(8, ratio=0.5)

    def forward(self, x: Any, edges: Any, number: Any) -> Any:
        x = self.first(x, edges).relu()
        x, edges, _, number, _, _ = self.pool(x, edges, batch=number)
        return pyg.global_mean_pool(self.second(x, edges), number)


DEGREES = torch.tensor([1, 3, 2, 1])
GATE = (nn.Linear(6, 1), nn.Linear(6, 5))
NETWORKS: dict[str, Callable[[], Any]] = {
    "GIN": lambda: Network(pyg.GIN(8, 6, 2, norm="batch_norm"), None, pyg.global_add_pool),
    "GAT": lambda: Network(pyg.GAT(8, 6, 2, heads=2), pyg.GraphNorm(6), pyg.global_max_pool),
    "PNA": lambda: Network(
        pyg.PNA(
            *(8, 6, 1),
            aggregators=["mean", "max", "std"],
            scalers=["identity", "attenuation"],
            deg=DEGREES,
        ),
        pyg.PairNorm(),
    ),
    "EdgeCNN": lambda: Network(pyg.EdgeCNN(8, 6, 1), pyg.InstanceNorm(6), pyg.global_mean_pool),
    "jumps": lambda: Network(pyg.GCN(8, 6, 2, jk="lstm")),
    "softmax": lambda: Network(pyg.GraphSAGE(8, 6, 1), None, pyg.SoftmaxAggregation(learn=True)),
    "attentional": lambda: Network(pyg.GCN(8, 6, 1), None, pyg.AttentionalAggregation(*GATE)),
    "set2set": lambda: Network(pyg.GCN(8, 6, 1), pyg.LayerNorm(6), pyg.Set2Set(6, 2)),
    "ordered": lambda: Network(pyg.GCN(8, 6, 1), None, pyg.LSTMAggregation(6, 5)),
    "sorted": lambda: Network(pyg.GCN(8, 6, 1), None, pyg.SortAggregation(3)),
    "shrinking": Shrinking,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_network(name: str) -> None:
    torch.manual_seed(0)
    model, args = NETWORKS[name]().eval(), batch(9, 14, [3, 2, 4])
    with torch.no_grad():
        model(*args)
    other = batch(7, 30, [4, 3])
    as_torch(model, args, ({0: ANY}, {1: ANY}, {0: ANY}), [other])


KINDS = [("user", "likes", "item"), ("item", "liked", "user"), ("user", "knows", "user")]


def relations(users: int, items: int) -> tuple[dict[str, Any], dict[Any, Any]]:
    """The features of each kind of nodes, and the edges of each kind."""
    sizes = {"user": users, "item": items}
    ends = {
        kind: torch.stack([torch.randint(0, sizes[kind[k]], (11,)) for k in (0, 2)])
        for kind in KINDS
    }
    return {kind: torch.randn(size, 8) for kind, size in sizes.items()}, ends


class Hetero(nn.Module):
    """A convolution for each kind of edges, summed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.HeteroConv({kind: pyg.SAGEConv((8, 8), 4) for kind in KINDS}, aggr="sum")

    def forward(self, features: Any, ends: Any) -> Any:
        return self.conv(features, ends)


def converted() -> Any:
    return pyg.to_hetero(pyg.GraphSAGE((8, 8), 4, 2), (["user", "item"], KINDS))


@pytest.mark.parametrize("make", [Hetero, converted])
def test_several_kinds_of_nodes(make: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    model, args = make().eval(), relations(5, 6)
    shapes = ({key: {0: ANY} for key in args[0]}, {key: {1: ANY} for key in args[1]})
    exe = sw.compile(sw.from_torch(model, args, dynamic_shapes=shapes))
    for given in (args, relations(3, 9)):
        leaves = torch.utils._pytree.tree_leaves(given)
        close_to_torch(exe(*leaves), model(*given))

"""Layers of torch-geometric, compiled for any graph, beside torch itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.backends.reference.samples import random_inputs
from stepwell.core.errors import ImportModelError, InputError

from ...harness import package
from .compared import as_torch, torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pyg: Any = package("torch_geometric.nn", "torch-geometric")

ANY = torch.export.Dim.DYNAMIC
nn = torch.nn


def mlp(inputs: int, outputs: int) -> Any:
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


def graphs(*sizes: Any) -> list[list[Any]]:
    """A graph with self loops, repeated edges and a lone node; a node alone; and a random graph.

    Args:
        sizes: what else the layer takes: the width of a tensor for each edge, or a function of
            the numbers of nodes and edges.
    """
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2, 3, 3, 3, 5], [1, 2, 0, 3, 3, 4, 1]])
    many = torch.randint(0, 9, (2, 30))
    found = []
    for nodes, index in ((7, edges), (1, torch.zeros(2, 0, dtype=torch.int64)), (9, many)):
        count = index.shape[1]
        more = [s(nodes, count) if callable(s) else torch.randn(count, s) for s in sizes]
        found.append([torch.randn(nodes, 8), index, *more])
    return found


def weights(nodes: int, edges: int) -> Any:
    return torch.rand(edges) + 0.1


def positions(nodes: int, edges: int) -> Any:
    return torch.randn(nodes, 3)


def initial(nodes: int, edges: int) -> Any:
    return torch.randn(nodes, 8)


def kinds(nodes: int, edges: int) -> Any:
    return torch.randint(0, 3, (edges,))


class Points(nn.Module):
    """A layer that takes positions in front of edges."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any, edges: Any, places: Any) -> Any:
        return self.layer(x, places, edges)


class PointGNN(Points):
    def __init__(self) -> None:
        super().__init__(pyg.PointGNNConv(mlp(8, 3), mlp(11, 8), mlp(8, 8)))


class Signed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.SignedConv(8, 4, first_aggr=True)

    def forward(self, x: Any, edges: Any) -> Any:
        return self.layer(x, edges, edges.flip(0))


class DNA(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.DNAConv(8, heads=2)

    def forward(self, x: Any, edges: Any) -> Any:
        return self.layer(torch.stack([x, x * 2], 1), edges)


class GCN2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.GCN2Conv(8, 0.1)

    def forward(self, x: Any, edges: Any) -> Any:
        return self.layer(x, x * 0.5, edges)


class HEAT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.HEATConv(8, 4, 3, 3, 2, 3, 4)

    def forward(self, x: Any, edges: Any, kinds: Any, features: Any) -> Any:
        return self.layer(x, edges, x[:, 0].long().clamp(0, 2), kinds, features)


class FA(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.FAConv(8)

    def forward(self, x: Any, edges: Any, first: Any) -> Any:
        return self.layer(x, first, edges)


FAST: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "GCN": (lambda: pyg.GCNConv(8, 4), ()),
    "SAGE": (lambda: pyg.SAGEConv(8, 4), ()),
    "GIN": (lambda: pyg.GINConv(mlp(8, 4)), ()),
    "GAT": (lambda: pyg.GATConv(8, 4, heads=2), ()),
}
DEGREES = torch.tensor([0, 3, 2, 1])
SLOW: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "AGNN": (pyg.AGNNConv, ()),
    "APPNP": (lambda: pyg.APPNP(2, 0.1), ()),
    "ARMA": (lambda: pyg.ARMAConv(8, 4, 2, 2), ()),
    "AntiSymmetric": (lambda: pyg.AntiSymmetricConv(8), ()),
    "CG": (lambda: pyg.CGConv(8, 3), (3,)),
    "Cheb": (lambda: pyg.ChebConv(8, 4, 3), ()),
    "ClusterGCN": (lambda: pyg.ClusterGCNConv(8, 4), ()),
    "DirGNN": (lambda: pyg.DirGNNConv(pyg.SAGEConv(8, 4)), ()),
    "EG": (lambda: pyg.EGConv(8, 8, aggregators=["sum", "mean", "max"]), ()),
    "Edge": (lambda: pyg.EdgeConv(mlp(16, 4)), ()),
    "FA": (FA, (initial,)),
    "FeaSt": (lambda: pyg.FeaStConv(8, 4, heads=2), ()),
    "FiLM": (lambda: pyg.FiLMConv(8, 4), ()),
    "GAT_edges": (lambda: pyg.GATConv(8, 4, edge_dim=3), (3,)),
    "GATv2": (lambda: pyg.GATv2Conv(8, 4, heads=2), ()),
    "GCN2": (GCN2, ()),
    "GCN_weights": (lambda: pyg.GCNConv(8, 4), (weights,)),
    "GEN": (lambda: pyg.GENConv(8, 4, aggr="softmax"), ()),
    "GINE": (lambda: pyg.GINEConv(mlp(8, 4), edge_dim=3), (3,)),
    "GMM": (lambda: pyg.GMMConv(8, 4, dim=2, kernel_size=2), (2,)),
    "GPS": (lambda: pyg.GPSConv(8, pyg.SAGEConv(8, 8), heads=2), ()),
    "GatedGraph": (lambda: pyg.GatedGraphConv(8, 2), ()),
    "General": (lambda: pyg.GeneralConv(8, 4), ()),
    "Graph": (lambda: pyg.GraphConv(8, 4), ()),
    "HEAT": (HEAT, (kinds, 3)),
    "Hypergraph": (lambda: pyg.HypergraphConv(8, 4), ()),
    "LE": (lambda: pyg.LEConv(8, 4), ()),
    "LG": (pyg.LGConv, ()),
    "MF": (lambda: pyg.MFConv(8, 4, max_degree=3), ()),
    "MixHop": (lambda: pyg.MixHopConv(8, 4), ()),
    "NN": (lambda: pyg.NNConv(8, 4, mlp(3, 32)), (3,)),
    "PAN": (lambda: pyg.PANConv(8, 4, 2), ()),
    "PDN": (lambda: pyg.PDNConv(8, 4, 3, 5), (3,)),
    "PNA": (
        lambda: pyg.PNAConv(
            8, 4, ["mean", "min", "max", "std"], ["identity", "amplification"], DEGREES
        ),
        (),
    ),
    "RGCN": (lambda: pyg.RGCNConv(8, 4, 3), (kinds,)),
    "FastRGCN": (lambda: pyg.FastRGCNConv(8, 4, 3), (kinds,)),
    "RGAT": (lambda: pyg.RGATConv(8, 4, 3), (kinds,)),
    "ResGatedGraph": (lambda: pyg.ResGatedGraphConv(8, 4), ()),
    "SAGE_max": (lambda: pyg.SAGEConv(8, 4, aggr="max"), ()),
    "SAGE_project": (lambda: pyg.SAGEConv(8, 4, project=True, normalize=True), ()),
    "SG": (lambda: pyg.SGConv(8, 4, 2), ()),
    "SSG": (lambda: pyg.SSGConv(8, 4, 0.1, 2), ()),
    "Signed": (Signed, ()),
    "Simple": (lambda: pyg.SimpleConv("mean", "self_loop"), ()),
    "SuperGAT": (lambda: pyg.SuperGATConv(8, 4, heads=2), ()),
    "TAG": (lambda: pyg.TAGConv(8, 4, 2), ()),
    "Transformer": (lambda: pyg.TransformerConv(8, 4, heads=2), ()),
    "WLContinuous": (pyg.WLConvContinuous, ()),
    "PointNet": (lambda: Points(pyg.PointNetConv(mlp(11, 8), mlp(8, 4))), (positions,)),
    "PointTransformer": (lambda: Points(pyg.PointTransformerConv(8, 4)), (positions,)),
    "PointGNN": (PointGNN, (positions,)),
    "DNA": (DNA, ()),
}


def compare(make: Callable[[], Any], more: tuple[Any, ...], *, compiles: bool = True) -> None:
    torch.manual_seed(0)
    first, *others = graphs(*more)
    dynamic = [{1: ANY} if i == 1 else {0: ANY} for i in range(len(first))]
    as_torch(make().eval(), first, tuple(dynamic), others, compiles=compiles)


@pytest.mark.parametrize("name", FAST)
def test_layer(name: str, all_tests: bool) -> None:
    compare(*FAST[name], compiles=all_tests or name == "GCN")


@pytest.mark.slow
def test_layer_that_needs_another_package() -> None:
    with pytest.raises(ImportModelError, match=r"torch cannot export .*'torch-sparse'"):
        compare(*SLOW["PAN"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SLOW if name != "PAN"])
def test_other_layer(name: str) -> None:
    compare(*SLOW[name])


def test_made_up_edges_are_those_of_a_graph() -> None:
    x, edges, weights = torch.randn(6, 8), torch.tensor([[0, 1], [1, 2]]), torch.ones(2)
    dynamic = ({0: ANY}, {1: ANY}, {0: ANY})
    module = sw.from_torch(pyg.GCNConv(8, 4).eval(), (x, edges, weights), dynamic_shapes=dynamic)
    nodes, (_, count) = module.inputs[0].shape[0], module.inputs[1].shape
    given = random_inputs(module.inputs, {str(nodes): 30, str(count): 200}, module)
    assert len(np.unique(given[1])) > 20
    assert given[2].min() >= 0.5
    assert np.isfinite(module.run_reference(*given)).all()


def test_messages_are_products_with_one_matrix() -> None:
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2, 3, 3, 3, 5], [1, 2, 0, 3, 3, 4, 1]])
    layer, shapes = pyg.SAGEConv(64, 64).eval(), ({0: ANY}, {1: ANY})
    exe = as_torch(layer, [torch.randn(6, 64), edges], shapes, opt_level=3)
    text = exe.ir("optimized")
    assert text.count("graph.aggregate mean") == text.count("graph.sort_edges") == 1
    assert "scatter" not in text
    edges[0, 2] = 6
    with pytest.raises(InputError, match="index"):
        exe(torch.randn(6, 64), edges)

"""Edge lists of models of torch-geometric, as reports find them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import stepwell as sw
from stepwell.core.algebra.dims import Dim
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.report.edge_lists import EdgeList, End, edge_lists_of

from ...harness import cases, package
from .compared import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pyg: Any = package("torch_geometric.nn", "torch-geometric")

ANY = torch.export.Dim.DYNAMIC


CASES = [
    (kind, dynamic) for dynamic in (True, False) for kind in ("GCNConv", "GATConv", "SAGEConv")
]


@pytest.mark.parametrize("case", cases(CASES, [CASES[n] for n in (0, 1, 3)]))
def test_edges_of_layers(case: tuple[str, bool]) -> None:
    kind, dynamic = case
    edges = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 2, 3, 0, 4, 0]])
    shapes = ({0: ANY}, {1: ANY}) if dynamic else None
    layer = getattr(pyg, kind)(8, 4).eval()
    module = sw.from_torch(layer, (torch.randn(5, 8), edges), dynamic_shapes=shapes)
    (found,) = edge_lists_of(Compilation.of(Request(module, threads=1)).at("optimized").main)
    nodes = Dim.symbol("x_0") if dynamic else Dim.of(5)
    assert found == EdgeList("edge_index", End(1, 1, nodes), End(1, 0, nodes))

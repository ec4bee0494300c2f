"""Layers of torch-geometric, compiled for any graph, beside torch itself."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from .compared import check, torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pyg: Any = pytest.importorskip("torch_geometric.nn", reason="torch-geometric is not installed")

ANY = torch.export.Dim.DYNAMIC


def graphs() -> list[list[Any]]:
    """A graph with self loops, repeated edges and a lone node; a node alone; and a random graph."""
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2, 3, 3, 3, 5], [1, 2, 0, 3, 3, 4, 1]])
    many = torch.randint(0, 9, (2, 30))
    return [
        [torch.randn(7, 8), edges],
        [torch.randn(1, 8), torch.zeros(2, 0, dtype=torch.int64)],
        [torch.randn(9, 8), many],
    ]


LAYERS = {
    "GCN": lambda: pyg.GCNConv(8, 4),
    "SAGE": lambda: pyg.SAGEConv(8, 4),
    "GIN": lambda: pyg.GINConv(torch.nn.Linear(8, 4)),
    "GAT": lambda: pyg.GATConv(8, 4, heads=2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str) -> None:
    torch.manual_seed(0)
    first, *others = graphs()
    check(LAYERS[name]().eval(), first, ({0: ANY}, {1: ANY}), others)

"""Layers of torch-geometric that came by ONNX, from either exporter of torch, beside torch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import stepwell as sw

from ...harness import package
from .compared import close_to_torch, torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pyg: Any = package("torch_geometric.nn", "torch-geometric")

NAMES = ["x", "edge_index"]
nn = torch.nn


def mlp(inputs: int, outputs: int) -> Any:
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


LAYERS: dict[str, Callable[[], Any]] = {
    "GCN": lambda: pyg.GCNConv(8, 8),
    "GAT": lambda: pyg.GATConv(8, 8, heads=2),
    "SAGE": lambda: pyg.SAGEConv(8, 8),
    "GIN": lambda: pyg.GINConv(mlp(8, 8)),
    "Graph": lambda: pyg.GraphConv(8, 8),
}


def graph(nodes: int, edges: int) -> tuple[Any, Any]:
    torch.manual_seed(nodes)
    return torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges))


def traced(model: Any, dynamic: bool) -> bytes:
    """What the older exporter makes, which traces a call with TorchScript."""
    file, sizes = io.BytesIO(), {"x": {0: "nodes"}, "edge_index": {1: "edges"}}
    more = {"opset_version": 18, "dynamic_axes": sizes if dynamic else None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, graph(7, 23), file, dynamo=False, input_names=NAMES, **more)
    return file.getvalue()


def exported(model: Any, dynamic: bool) -> Any:
    """What the newer exporter makes, which goes by `torch.export`."""
    any_size = torch.export.Dim.DYNAMIC
    sizes = ({0: any_size}, {1: any_size}) if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package("onnxscript")
        more = {"dynamic_shapes": sizes, "input_names": NAMES, "verbose": False}
        return torch.onnx.export(model, graph(7, 23), dynamo=True, **more).model_proto


def compare(name: str, export: Callable[[Any, bool], Any], dynamic: bool) -> None:
    """Compare a layer with torch, and look for one sorted edge list instead of scatters."""
    torch.manual_seed(0)
    model = LAYERS[name]().eval()
    exe = sw.compile(sw.from_onnx(export(model, dynamic)))
    text = exe.ir("optimized")
    assert "graph.scatter" not in text
    assert "graph.aggregate" in text
    assert text.count("graph.sort_edges") == 1
    others = [(1, 0), (1, 3), (5, 0), (9, 40)] if dynamic else []
    for sizes in [(7, 23), *others]:
        x, ends = graph(*sizes)
        close_to_torch(exe(x.numpy(), ends.numpy()), model(x, ends))


def test_a_traced_layer_for_any_graph() -> None:
    compare("GCN", traced, dynamic=True)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", LAYERS)
def test_traced_layers(name: str, dynamic: bool) -> None:
    compare(name, traced, dynamic)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", LAYERS)
def test_exported_layers(name: str, dynamic: bool) -> None:
    if name == "GAT" and dynamic:
        pytest.skip("torch cannot export it: a branch on the number of edges, which is computed")
    compare(name, exported, dynamic)

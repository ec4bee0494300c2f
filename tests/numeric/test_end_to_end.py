"""Real models on real data, compared with stored results."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends import gnn

RealData = Callable[[str], Path]
TOLERANCE = 1e-4
"""Single precision, sums of up to 1433 products in another order than the stored results."""


def fashion_model(weights: dict[str, np.ndarray], batch: int | str) -> onnx.ModelProto:
    """The perceptron 784-128-10 as an ONNX model."""
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"], "fc0", transB=1),
        helper.make_node("Relu", ["h"], ["a"], "relu"),
        helper.make_node("Gemm", ["a", "w1", "b1"], ["y"], "fc1", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 784])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 10])],
        [numpy_helper.from_array(weights[name], name) for name in ("w0", "b0", "w1", "b1")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.fixture(scope="module")
def fashion(real_data: RealData) -> dict[str, np.ndarray]:
    data = dict(np.load(real_data("fashion_mnist_900.npz")))
    weights = dict(np.load(real_data("fashion_mlp_weights.npz")))
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    x = data["images"].astype(np.float32) / np.float32(255)
    hidden = np.maximum(x @ weights["w0"].T + weights["b0"], 0)
    y = hidden @ weights["w1"].T + weights["b1"]
    return {**weights, "x": x, "labels": data["labels"], "y": y}


@pytest.mark.parametrize("batch", [1, 64, 900])
def test_fashion_mlp_with_a_fixed_batch(fashion: dict[str, np.ndarray], batch: int) -> None:
    exe = sw.compile(sw.from_onnx(fashion_model(fashion, batch)), threads=1)
    rows = [fashion["x"][i : i + batch] for i in range(0, 900 - batch + 1, batch)][:20]
    logits = np.concatenate([exe(x) for x in rows])
    np.testing.assert_allclose(logits, fashion["y"][: len(logits)], rtol=0, atol=TOLERANCE)
    if batch == 900:
        assert int((logits.argmax(1) == fashion["labels"]).sum()) == 797


def test_fashion_mlp_with_a_symbolic_batch(fashion: dict[str, np.ndarray]) -> None:
    exe = sw.compile(sw.from_onnx(fashion_model(fashion, "batch")), threads=1)
    for batch in (1, 2, 13, 64, 900):
        logits = exe(fashion["x"][:batch])
        np.testing.assert_allclose(logits, fashion["y"][:batch], rtol=0, atol=TOLERANCE)
    assert int((logits.argmax(1) == fashion["labels"]).sum()) == 797
    assert exe(fashion["x"][:0]).shape == (0, 10)


def test_fashion_mlp_with_the_batch_fixed_on_import(fashion: dict[str, np.ndarray]) -> None:
    model = fashion_model(fashion, "batch")
    exe = sw.compile(sw.from_onnx(model.SerializeToString(), shapes={"x": (64, 784)}), threads=1)
    np.testing.assert_allclose(exe(fashion["x"][:64]), fashion["y"][:64], rtol=0, atol=TOLERANCE)
    assert exe.inputs[0].shape == (64, 784)


@pytest.fixture(scope="module")
def cora(real_data: RealData) -> dict[str, Any]:
    data = dict(np.load(real_data("cora.npz")))
    weights = dict(np.load(real_data("gcn_cora_weights.npz")))
    indptr, indices = data["x_indptr"].astype(np.int32), data["x_indices"].astype(np.int32)
    counts = np.diff(indptr)
    values = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    x = csr_array((values, indices, indptr), shape=tuple(data["x_shape"]))
    graph = nx.Graph()
    graph.add_nodes_from(range(x.shape[0]))
    graph.add_edges_from(data["edge_index"].T.tolist())
    model = gnn.Sequential(
        gnn.GCNConv(weights["W1"].astype(np.float32), weights["b1"].astype(np.float32)),
        gnn.ReLU(),
        gnn.Dropout(0.5),
        gnn.GCNConv(weights["W2"].astype(np.float32), weights["b2"].astype(np.float32)),
    )
    return {
        **data,
        "x": x,
        "graph": gnn.Graph.from_networkx(graph),
        "model": model,
        "logits": weights["logits"],
    }


def check_cora(cora: dict[str, Any], logits: np.ndarray) -> None:
    np.testing.assert_allclose(logits, cora["logits"], rtol=0, atol=TOLERANCE)
    test = cora["test_idx"]
    accuracy = (logits[test].argmax(1) == cora["labels"][test]).mean()
    assert accuracy == pytest.approx(0.818, abs=5e-4)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_cora_with_constant_features(cora: dict[str, Any], kind: str) -> None:
    x = cora["x"] if kind == "sparse" else cora["x"].toarray()
    exe = sw.compile(cora["model"].to_module(cora["graph"], features=x), threads=1)
    check_cora(cora, exe())


def test_cora_with_sparse_features_at_run_time(cora: dict[str, Any]) -> None:
    spec = sw.SparseSpec((2708, 1433), "f32", nnz=49216)
    exe = sw.compile(cora["model"].to_module(cora["graph"], features=spec), threads=1)
    check_cora(cora, exe(cora["x"]))
    assert "tensor<2708x1433xf32>" not in exe.ir("fused"), "the features were made dense"


def test_cora_with_dense_features_at_run_time(cora: dict[str, Any]) -> None:
    spec = sw.TensorSpec((2708, 1433), "f32")
    exe = sw.compile(cora["model"].to_module(cora["graph"], features=spec), threads=1)
    check_cora(cora, exe(cora["x"].toarray()))


@pytest.fixture(scope="module")
def of_any_graph(cora: dict[str, Any]) -> sw.Executable:
    spec = sw.TensorSpec((None, 1433), "f32")
    return sw.compile(cora["model"].to_module(gnn.GraphSpec(), features=spec), threads=1)


def test_cora_with_the_graph_at_run_time(cora: dict[str, Any], of_any_graph: sw.Executable) -> None:
    exe = of_any_graph
    x = cora["x"].toarray()
    check_cora(cora, exe(cora["graph"], x))
    small = gnn.Graph.from_networkx(nx.path_graph(5))
    bound = sw.compile(cora["model"].to_module(small, features=x[:5]), threads=1)
    np.testing.assert_allclose(exe(small, x[:5]), bound(), rtol=0, atol=TOLERANCE)


def test_cora_with_graph_and_sparse_features_at_run_time(cora: dict[str, Any]) -> None:
    spec = sw.SparseSpec((None, 1433), "f32")
    exe = sw.compile(cora["model"].to_module(gnn.GraphSpec(), features=spec), threads=1)
    check_cora(cora, exe(cora["graph"], cora["x"]))


def test_a_graph_without_edges(cora: dict[str, Any], of_any_graph: sw.Executable) -> None:
    empty = gnn.Graph.from_edge_index(np.zeros((2, 0), np.int64), 3)
    x = cora["x"].toarray()[:3]
    module = cora["model"].to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 1433), "f32"))
    wanted = module.run_reference(empty, x)
    np.testing.assert_allclose(of_any_graph(empty, x), wanted, atol=TOLERANCE)


def test_cora_with_sparse_features_is_three_kernels(real_data: RealData) -> None:
    data, trained = np.load(real_data("cora.npz")), np.load(real_data("gcn_cora_weights.npz"))
    shape = tuple(int(n) for n in data["x_shape"])
    rows = np.diff(data["x_indptr"])
    values = np.repeat(1 / np.maximum(rows, 1), rows).astype(np.float32)
    features = csr_array((values, data["x_indices"], data["x_indptr"]), shape=shape)
    model = gnn.Sequential(
        gnn.GCNConv(trained["W1"], trained["b1"]),
        gnn.ReLU(),
        gnn.GCNConv(trained["W2"], trained["b2"]),
    )
    graph = gnn.Graph.from_edge_index(data["edge_index"], shape[0])
    module = model.to_module(graph, sw.SparseSpec(shape, "f32", features.nnz))
    exe = sw.compile(module, threads=1)
    np.testing.assert_allclose(exe(features), trained["logits"], atol=1e-4)
    fused = exe.ir("fused")
    kernels = re.findall(r"func\.func private @(\w+)", fused)
    assert kernels == ["fused_spmm", "fused_spmm_add_relu_matmul", "fused_spmm_add"]
    assert "graph.normalize" not in fused
    assert "graph.degree" not in fused
    # Of the wide tensors only the weights are dense: no operand is sparse and was filled up.
    assert set(re.findall(r"tensor<(\d+x1433|1433x\d+|2708x2708)xf32>", fused)) == {"1433x16"}
    costs = [d.cost for d in exe.decisions if d.pass_name == "graph-fuse-ops" and d.cost]
    flops = [cost.removesuffix("FLOP").split(" ") for cost in costs]
    assert len(flops) == 3
    assert sum(float(n) * {"": 1, "k": 1e3, "M": 1e6}[prefix] for n, prefix in flops) <= 2_900_000

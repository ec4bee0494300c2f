"""Graph neural networks against torch-geometric's semantics written out on dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.core.boundary.specs import SparseSpec, TensorSpec
from stepwell.core.errors import InputError
from stepwell.core.ir.module import Module
from stepwell.frontends import gnn

from ..harness import floats


def gcn_norm(
    edges: np.ndarray, weights: np.ndarray, nodes: int, add_self_loops: bool = True
) -> np.ndarray:
    """torch-geometric's `gcn_norm` on an edge list, then the edges as a dense matrix.

    `add_remaining_self_loops` takes away all loops and gives each node one, of the weight that its
    last one had, else 1; degrees are sums over the edges that arrive, and an infinite deg^-0.5
    counts as 0.
    """
    row, col = edges
    if add_self_loops:
        loops, own = row == col, np.ones(nodes)
        for node, weight in zip(row[loops], weights[loops], strict=True):
            own[node] = weight
        row, col = (np.concatenate([ends[~loops], np.arange(nodes)]) for ends in (row, col))
        weights = np.concatenate([weights[~loops], own])
    degree = np.zeros(nodes)
    np.add.at(degree, col, weights)
    with np.errstate(all="ignore"):
        scale = degree**-0.5
    scale[np.isinf(scale)] = 0
    matrix = np.zeros((nodes, nodes))
    # Messages go from row to col and are added up at col.
    np.add.at(matrix, (col, row), scale[row] * weights * scale[col])
    return matrix


def random_edges(nodes: int, count: int, seed: int = 0) -> np.ndarray:
    """Edges, some of them and some self loops several times."""
    return np.random.default_rng(seed).integers(0, nodes, (2, count))


@pytest.mark.parametrize("nodes", [1, 2, 9])
@pytest.mark.parametrize("count", [0, 1, 30])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_gcn_conv_is_that_of_torch_geometric(
    nodes: int, count: int, weighted: bool, add_self_loops: bool
) -> None:
    edges = random_edges(nodes, count, seed=count)
    weights = np.abs(floats(edges.shape[1])) + 0.1 if weighted else None
    graph = gnn.Graph.from_edge_index(edges, nodes, weights)
    x, w, bias = floats(nodes, 4), floats(4, 3), floats(3)
    model = gnn.Sequential(gnn.GCNConv(w, bias, add_self_loops=add_self_loops))
    plain = np.ones(edges.shape[1]) if weights is None else weights.astype(float)
    expected = gcn_norm(edges, plain, nodes, add_self_loops) @ x @ w + bias
    for module, inputs in variants(model, graph, x):
        np.testing.assert_allclose(module.run_reference(*inputs), expected, rtol=1e-4, atol=1e-5)


def variants(
    model: gnn.Sequential, graph: gnn.Graph, x: np.ndarray
) -> list[tuple[Module, tuple[Any, ...]]]:
    """The model with graph and features each a constant or an argument, dense or sparse."""
    sparse = sp.csr_array(x)
    spec, sparse_spec = TensorSpec((None, x.shape[1])), SparseSpec((None, x.shape[1]))
    return [
        (model.to_module(graph, x), ()),
        (model.to_module(graph, sparse), ()),
        (model.to_module(graph, spec), (x,)),
        (model.to_module(graph, sparse_spec), (sparse,)),
        (model.to_module(gnn.GraphSpec(), x), (graph,)),
        (model.to_module(gnn.GraphSpec(), spec), (graph, x)),
        (model.to_module(gnn.GraphSpec(), sparse_spec), (graph.adjacency, sparse)),
        (model.to_module(gnn.GraphSpec(graph.num_nodes, graph.num_edges), x), (graph,)),
    ]


def test_without_normalization_the_weights_are_used_as_they_are() -> None:
    edges = np.array([[0, 0, 2], [1, 1, 1]])
    graph = gnn.Graph.from_edge_index(edges, 3, [2.0, 0.5, -1.0])
    x, w = floats(3, 2), floats(2, 2)
    module = gnn.Sequential(gnn.GCNConv(w, normalize=False)).to_module(graph, x)
    expected = np.array([[0, 0, 0], [2.5, 0, -1], [0, 0, 0]]) @ x @ w
    np.testing.assert_allclose(module.run_reference(), expected, rtol=1e-5, atol=1e-6)


def test_a_deep_model_with_every_layer() -> None:
    graph = gnn.Graph.from_networkx(nx.karate_club_graph())
    w = [floats(34, 8), floats(8, 5), floats(3, 5), floats(3, 3)]
    b = [floats(n) for n in (8, 5, 3)]
    model = gnn.Sequential(
        gnn.Dropout(0.6),
        gnn.GCNConv(w[0], b[0]),
        gnn.ReLU(),
        gnn.Dropout(),
        gnn.GCNConv(w[1], b[1]),
        gnn.Linear(w[2], b[2]),
        gnn.Linear(w[3]),
    )
    x = np.eye(34, dtype=np.float32)
    a = gcn_norm(np.stack(np.nonzero(graph.adjacency.toarray())), np.ones(156), 34)
    hidden = np.maximum(a @ x @ w[0] + b[0], 0)
    expected = ((a @ hidden @ w[1] + b[1]) @ w[2].T + b[2]) @ w[3].T
    for module, inputs in variants(model, graph, x):
        np.testing.assert_allclose(module.run_reference(*inputs), expected, rtol=1e-4, atol=1e-4)


def test_linear_takes_sparse_features() -> None:
    graph = gnn.Graph.from_edge_index([[0], [1]], 3)
    x, w, b = floats(3, 4), floats(2, 4), floats(2)
    model = gnn.Sequential(gnn.Linear(w, b))
    for module, inputs in variants(model, graph, x):
        np.testing.assert_allclose(module.run_reference(*inputs), x @ w.T + b, rtol=1e-5, atol=1e-6)


def test_a_directed_graph_sends_messages_along_its_edges() -> None:
    graph = gnn.Graph.from_networkx(nx.DiGraph([(0, 1)]))
    model = gnn.Sequential(gnn.GCNConv(np.eye(1, dtype=np.float32), normalize=False))
    got = model.to_module(graph, np.array([[5.0], [7.0]], np.float32)).run_reference()
    np.testing.assert_array_equal(got, [[0], [5]])


@pytest.mark.parametrize(
    ("features", "weights", "expected"),
    [
        ("f4", "f4", "f4"),
        ("f8", "f4", "f8"),
        ("f4", "f8", "f8"),
        ("i8", "f4", "f4"),
        ("?", "f4", "f4"),
    ],
)
def test_constant_features_are_promoted_as_numpy_does(
    features: str, weights: str, expected: str
) -> None:
    graph = gnn.Graph.from_edge_index([[0], [1]], 2)
    model = gnn.Sequential(gnn.GCNConv(np.ones((2, 2), weights)))
    for form in (np.eye(2, dtype=features), sp.csr_array(np.eye(2, dtype=features))):
        module = model.to_module(graph, form)
        assert module.run_reference().dtype == np.dtype(expected)


def test_module_names_its_arguments_and_layers() -> None:
    model = gnn.Sequential(gnn.GCNConv(floats(4, 3), floats(3)), gnn.ReLU())
    module = model.to_module(gnn.GraphSpec(), TensorSpec((None, 4)))
    assert [str(v) for v in module.inputs] == [
        "graph: nodesxnodesxf32, csr, nnz=edges",
        "features: nodesx4xf32",
    ]
    assert [str(v) for v in module.outputs] == ["output: nodesx3xf32"]
    assert list(module.weights) == ["gcnconv_0.weight", "gcnconv_0.bias"]
    assert 'loc("relu_1")' in module.text(locations=True)


GRAPH = gnn.Graph.from_edge_index([[0], [1]], 3)
CONV = gnn.Sequential(gnn.GCNConv(np.ones((4, 2), np.float32)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gnn.GCNConv(np.ones(3)), "GCNConv: the weight is not a matrix, expected two"),
        (lambda: gnn.GCNConv(np.ones((2, 2), int)), "the weight has the wrong dtype"),
        (lambda: gnn.GCNConv(np.ones((2, 3)), np.ones(2)), r"expected \(3,\), got \(2,\)"),
        (lambda: gnn.Linear(np.ones((2, 3)), np.ones(3)), r"expected \(2,\), got \(3,\)"),
        (
            lambda: gnn.GCNConv(np.ones((2, 2)), normalize=False, add_self_loops=True),
            "add_self_loops requires normalize",
        ),
        (lambda: gnn.Dropout(1.5), "Dropout: p is not a probability, expected 0 to 1, got 1.5"),
        (gnn.Sequential, "Sequential: there is no layer"),
        (lambda: gnn.Sequential(gnn.ReLU), "not a layer, .*got ReLU"),  # type: ignore[arg-type]
        (lambda: CONV.to_module(nx.path_graph(3), np.ones((3, 4))), "not a graph, .*got Graph"),  # type: ignore[arg-type]
        (lambda: CONV.to_module(GRAPH, [[1.0]]), "not features, .*got list"),
        (lambda: CONV.to_module(GRAPH, np.ones(3)), "features are not a matrix"),
        (lambda: CONV.to_module(GRAPH, np.ones((2, 4))), "expected 3 rows, got 2"),
        (lambda: CONV.to_module(GRAPH, TensorSpec((2, 4))), "expected 3 rows, got 2"),
        (lambda: CONV.to_module(GRAPH, np.ones((3, 5))), "expected 5 inputs, got 4"),
        (lambda: CONV.to_module(GRAPH, TensorSpec((3, None))), "the width of the features"),
        (lambda: CONV.to_module(GRAPH, TensorSpec((3, 4), "i32")), "wrong dtype, .*got i32"),
        (lambda: CONV.to_module(GRAPH, np.ones((3, 4), complex)), "expected numbers"),
        (lambda: CONV.to_module(GRAPH, TensorSpec((3, 4), "f16")), "expected f32 or f64, got f16"),
        (
            lambda: CONV.to_module(gnn.GraphSpec(dtype="f64"), TensorSpec((3, 4))),
            "graph and features differ in dtype, expected f32, got f64",
        ),
        (
            lambda: gnn.Sequential(gnn.ReLU()).to_module(GRAPH, sp.csr_array((3, 4))),
            "the layers leave the features sparse",
        ),
        (
            lambda: gnn.Sequential(gnn.Dropout()).to_module(GRAPH, sp.csr_array((3, 4))),
            "the layers leave the features sparse",
        ),
    ],
)
def test_bad_models_are_one_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


W = floats(3, 2)
CONVOLUTION = gnn.Sequential(gnn.GCNConv(W))


@pytest.fixture(scope="module")
def convolution() -> tuple[Module, sw.Executable]:
    module = CONVOLUTION.to_module(gnn.GraphSpec(), TensorSpec((None, 3)))
    return module, sw.compile(module, threads=1)


@settings(max_examples=settings().max_examples * 60 // 100, deadline=None)
@given(
    nodes=st.integers(0, 6),
    edges=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(0.25, 4, width=16)), max_size=15
    ),
)
def test_any_graph(
    convolution: tuple[Module, sw.Executable], nodes: int, edges: list[tuple[int, int, float]]
) -> None:
    index = np.array([e[:2] for e in edges if nodes], int).reshape(-1, 2).T % max(nodes, 1)
    weights = np.array([e[2] for e in edges if nodes])
    graph = gnn.Graph.from_edge_index(index, nodes, weights)
    x = floats(nodes, 3)
    expected = gcn_norm(index, weights, nodes) @ x @ W
    module, exe = convolution
    bound = CONVOLUTION.to_module(graph, TensorSpec((nodes, 3)))
    for result in (module.run_reference(graph, x), exe(graph, x), bound.run_reference(x)):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_cora(real_data: Callable[[str], Path]) -> None:
    data, trained = np.load(real_data("cora.npz")), np.load(real_data("gcn_cora_weights.npz"))
    rows = np.diff(data["x_indptr"])
    values = np.repeat(1 / np.maximum(rows, 1), rows).astype(np.float32)
    shape = tuple(int(n) for n in data["x_shape"])
    features = sp.csr_array((values, data["x_indices"], data["x_indptr"]), shape=shape)
    graph = gnn.Graph.from_edge_index(data["edge_index"], shape[0])
    model = gnn.Sequential(
        gnn.GCNConv(trained["W1"], trained["b1"]),
        gnn.ReLU(),
        gnn.GCNConv(trained["W2"], trained["b2"]),
    )
    test = data["test_idx"]
    for module, inputs in variants(model, graph, features.toarray()):
        logits = module.run_reference(*inputs)
        np.testing.assert_allclose(logits, trained["logits"], atol=1e-4)
        accuracy = np.mean(logits.argmax(1)[test] == data["labels"][test])
        assert round(float(accuracy), 4) == 0.818

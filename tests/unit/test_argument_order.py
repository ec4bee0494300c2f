"""Features before the graph, as torch-geometric's models are called: `exe(x, edge_index)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.core.boundary.argument_order import graph_first, in_order
from stepwell.core.boundary.specs import ValueSpec
from stepwell.frontends import gnn

from ..harness import RNG, floats, package

N = 6
EDGES = np.array([[0, 3, 3, 5, 2, 2], [1, 0, 5, 5, 4, 1]])
WEIGHTS = RNG.random(6, np.float32)
X = floats(N, 3)
GRAPH = gnn.Graph.from_edge_index(EDGES, N)
MODEL = gnn.Sequential(gnn.GCNConv(floats(3, 2), normalize=False))
FEATURES = sw.TensorSpec((None, 3), "f32")


@pytest.fixture(scope="module")
def programs() -> dict[str, sw.Executable]:
    specs = {
        "matrix": gnn.GraphSpec(),
        "list": gnn.EdgeListSpec(),
        "weighted": gnn.EdgeListSpec(weighted=True),
    }
    return {
        name: sw.compile(MODEL.to_module(spec, FEATURES), threads=1, opt_level=1)
        for name, spec in specs.items()
    }


@pytest.mark.parametrize("graph", [EDGES, GRAPH, GRAPH.to_csr()], ids=["edges", "graph", "csr"])
def test_features_come_before_a_matrix(programs: dict[str, sw.Executable], graph: Any) -> None:
    exe, expected = programs["matrix"], programs["list"](EDGES, X)
    np.testing.assert_array_equal(exe(graph, X), exe(X, graph))
    np.testing.assert_allclose(exe(X, graph), expected, rtol=1e-5)
    arrays = GRAPH.to_csr()
    np.testing.assert_array_equal(
        exe(X, (arrays.indptr, arrays.indices, arrays.data)), exe(X, graph)
    )


def test_features_come_before_an_edge_list(programs: dict[str, sw.Executable]) -> None:
    exe, weighted = programs["list"], programs["weighted"]
    np.testing.assert_array_equal(exe(X, EDGES), exe(EDGES, X))
    np.testing.assert_array_equal(weighted(X, EDGES, WEIGHTS), weighted(EDGES, WEIGHTS, X))
    module = MODEL.to_module(gnn.EdgeListSpec(), FEATURES)
    np.testing.assert_array_equal(module.run_reference(X, EDGES), module.run_reference(EDGES, X))
    np.testing.assert_array_equal(exe.run_at("fused", X, EDGES), exe.run_at("fused", EDGES, X))
    assert exe.sizes_of(X, EDGES) == exe.sizes_of(EDGES, X) == {"nodes": 6, "edges": 6}


def test_by_position_and_by_name(programs: dict[str, sw.Executable]) -> None:
    exe, weighted = programs["list"], programs["weighted"]
    expected = weighted(EDGES, WEIGHTS, X)
    for found in (
        weighted(X, EDGES, edge_weight=WEIGHTS),
        weighted(X, edge_weight=WEIGHTS, edge_index=EDGES),
        weighted(edge_weight=WEIGHTS, features=X, edge_index=EDGES),
        weighted(EDGES, features=X, edge_weight=WEIGHTS),
    ):
        np.testing.assert_array_equal(found, expected)
    out = np.empty((N, 2), np.float32)
    assert exe(X, EDGES, out=out) is out
    np.testing.assert_array_equal(out, exe(EDGES, X))
    with pytest.raises(sw.InputError, match='"features" is given by position and by name'):
        exe(X, EDGES, features=X)
    with pytest.raises(sw.InputError, match='"features" is missing, got edge_index, edge_weight'):
        weighted(EDGES, edge_weight=WEIGHTS)
    with pytest.raises(sw.InputError, match='"edge_weight" is missing, got features, edge_index'):
        weighted(X, edge_index=EDGES)


def test_a_tensor_of_torch(programs: dict[str, sw.Executable]) -> None:
    torch = package("torch")
    x, edges = torch.from_numpy(X), torch.from_numpy(EDGES)
    for exe in (programs["matrix"], programs["list"]):
        np.testing.assert_array_equal(exe(x, edges), exe(EDGES, X))


def test_errors_name_the_inputs_that_are_meant(programs: dict[str, sw.Executable]) -> None:
    exe = programs["list"]
    for call, message in (
        (lambda: exe(X[:, :2], EDGES), r'input "features": wrong shape, expected \[nodes, 3\]'),
        (lambda: exe(X, EDGES + 5), 'node "edge_index": index out of range'),
        (lambda: exe(X, X), 'input "edge_index": wrong dtype, expected int64, got float32'),
        (lambda: exe(X, EDGES, WEIGHTS), "wrong number of inputs"),
        (lambda: exe(X), "wrong number of inputs"),
    ):
        with pytest.raises(sw.InputError, match=message):
            call()


def _spec(name: str, shape: tuple[int | str, ...], dtype: str = "f32", csr: bool = False) -> Any:
    return ValueSpec(name, shape, dtype, "csr" if csr else None)


def test_other_programs_take_arguments_in_their_order_only() -> None:
    x, a = _spec("x", ("n", 3)), _spec("a", ("n", "n"), csr=True)
    edges, sparse = _spec("edges", (2, "e"), "i64"), _spec("x", ("n", 3), csr=True)
    matrix = sp.csr_array(X)
    for specs, inputs in (
        ((x, edges), (EDGES, X)),  # the signature of a model of torch
        ((a, sparse), (matrix, matrix)),  # either may be the graph
        ((edges, edges, x), (X, EDGES, EDGES)),  # several graphs
        ((_spec("y", (3,)), x), (X, X[0])),
        ((a,), (X,)),
        ((), ()),
    ):
        assert graph_first(specs, inputs) is None
    assert graph_first((a, x), (X, EDGES)) == [EDGES, X]
    assert graph_first((edges, sparse), (matrix, EDGES)) == [EDGES, matrix]
    with pytest.raises(sw.InputError, match='"x" is given by position and by name'):
        in_order((x, edges), (EDGES,), {"x": X})

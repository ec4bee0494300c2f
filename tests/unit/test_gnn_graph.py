"""`gnn.Graph`: what comes from networkx, edge lists and SciPy, and what is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.core.errors import InputError
from stepwell.frontends.gnn.graph import Graph, GraphSpec


def dense(graph: Graph) -> np.ndarray:
    matrix = graph.adjacency
    assert matrix.has_sorted_indices
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    return matrix.toarray()


def test_an_edge_is_in_the_row_of_its_target() -> None:
    expected = np.zeros((3, 3))
    expected[1, 0] = expected[2, 1] = 1
    graphs = [
        Graph.from_networkx(nx.DiGraph([(0, 1), (1, 2)])),
        Graph.from_edge_index([[0, 1], [1, 2]], 3),
        Graph.from_scipy(nx.to_scipy_sparse_array(nx.DiGraph([(0, 1), (1, 2)]))),
    ]
    for graph in graphs:
        np.testing.assert_array_equal(dense(graph), expected)
        assert graph.adjacency.dtype == (np.float32)
        assert (graph.num_nodes, graph.num_edges) == (3, 2)


def test_an_undirected_edge_goes_both_ways_and_a_self_loop_once() -> None:
    graph = Graph.from_networkx(nx.Graph([("a", "b"), ("b", "b")]))
    np.testing.assert_array_equal(dense(graph), [[0, 1], [1, 1]])
    assert graph.nodes == ("a", "b")


def test_edges_that_are_given_twice_and_zero_weights_stay() -> None:
    graph = Graph.from_edge_index([[0, 0, 0, 1], [1, 1, 0, 0]], 3, [1.0, 2.5, 0.0, -1.0])
    np.testing.assert_array_equal(dense(graph), [[0, -1, 0], [3.5, 0, 0], [0, 0, 0]])
    assert graph.num_edges == 4
    assert graph.adjacency.data.tolist() == [0, -1, 1, 2.5]
    double = Graph.from_edge_index([[0, 0], [1, 1]], 2, np.array([1.0, 2.5]))
    for dtype in ("f32", "f64"):
        assert double.to_csr(dtype).data.tolist() == [1, 2.5]
    multi = Graph.from_networkx(nx.MultiDiGraph([(0, 1), (0, 1)]))
    np.testing.assert_array_equal(dense(multi), [[0, 0], [2, 0]])
    assert multi.num_edges == 2


def test_isolated_nodes_and_graphs_without_edges() -> None:
    assert dense(Graph.from_networkx(nx.empty_graph(3))).tolist() == np.zeros((3, 3)).tolist()
    assert dense(Graph.from_edge_index(np.empty((2, 0)), 2)).shape == (2, 2)
    assert dense(Graph.from_edge_index([[], []], 0)).shape == (0, 0)


def test_networkx_weights_and_node_order() -> None:
    graph = nx.DiGraph()
    graph.add_edge("x", "y", w=0.1)
    graph.add_edge("y", "z", w=2)
    plain = Graph.from_networkx(graph, weight="w", nodelist=["z", "y", "x"])
    np.testing.assert_array_equal(dense(plain), [[0, 2, 0], [0, 0, 0.1], [0, 0, 0]])
    assert plain.adjacency.dtype == np.float64
    assert plain.to_csr("f32").dtype == np.float32
    graph.add_edge("z", "x")
    with pytest.raises(InputError, match=r"attribute \"w\" of edge \('z', 'x'\) is missing"):
        Graph.from_networkx(graph, weight="w")
    graph.add_edge("z", "x", w="heavy")
    with pytest.raises(InputError, match="is not a number but 'heavy'"):
        Graph.from_networkx(graph, weight="w")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_every_scipy_format(form: str) -> None:
    matrix = sp.coo_array(np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3]])).asformat(form)
    np.testing.assert_array_equal(dense(Graph.from_scipy(matrix)), matrix.toarray().T)


def test_hostile_csr_is_refused() -> None:
    matrix = sp.csr_array(np.eye(3))
    matrix.indices = np.array([0, 1, 99], dtype=np.int32)
    with pytest.raises(InputError, match="Graph: the matrix is inconsistent"):
        Graph.from_scipy(matrix)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Graph.from_networkx(3), "not a networkx graph, got int"),  # type: ignore[arg-type]
        (
            lambda: Graph.from_networkx(nx.path_graph(3), nodelist=[0, 1]),
            "nodelist is not an order",
        ),
        (
            lambda: Graph.from_networkx(nx.path_graph(2), nodelist=[0, 0]),
            "nodelist is not an order",
        ),
        (lambda: Graph.from_edge_index([[0], [1], [2]], 3), r"expected \(2, E\), got \(3, 1\)"),
        (lambda: Graph.from_edge_index([0, 1], 3), r"wrong shape, expected \(2, E\)"),
        (lambda: Graph.from_edge_index([[0.5], [1]], 3), "expected integers, got float64"),
        (lambda: Graph.from_edge_index([[0], [3]], 3), "out of range, expected 0 to 2, got 3"),
        (lambda: Graph.from_edge_index([[-1], [0]], 3), "out of range, expected 0 to 2, got -1"),
        (lambda: Graph.from_edge_index([[0], [1]], -2), "num_nodes is wrong, expected a count"),
        (lambda: Graph.from_edge_index([[0], [1]], 2.0), "num_nodes is wrong"),  # type: ignore[arg-type]
        (lambda: Graph.from_edge_index([[0], [1]], 2**40), "too many nodes for 32-bit indices"),
        (lambda: Graph.from_edge_index([[0], [1]], 2, [1.0, 2.0]), r"expected \(1,\), got \(2,\)"),
        (lambda: Graph.from_edge_index([[0], [1]], 2, [1j]), "expected numbers, got complex128"),
        (lambda: Graph.from_scipy(np.eye(2)), "not a scipy.sparse matrix, got ndarray"),
        (lambda: Graph.from_scipy(sp.csr_array((2, 3))), r"not square, expected \(N, N\)"),
        (lambda: Graph.from_edge_index([[0], [1]], 2).to_csr("i8"), "unknown dtype"),
        (lambda: GraphSpec(num_nodes=-1), "GraphSpec: num_nodes is wrong"),
        (lambda: GraphSpec(dtype="i32"), "GraphSpec: unknown dtype"),
        (lambda: GraphSpec(indptr_dtype="i8"), "GraphSpec: unknown indptr_dtype, .* got i8"),
    ],
)
def test_bad_input_is_one_error(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_order_of_edges() -> None:
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "c"), ("c", "a")])
    features = np.array([10, 20, 30, 40])
    for edge, feature in zip(graph.edges, features, strict=True):
        graph.edges[edge]["x"] = int(feature)
    found = Graph.from_networkx(graph, weight="x")
    assert found.edge_order is not None
    assert features[found.edge_order].tolist() == found.adjacency.data.tolist()
    matrix = sp.coo_array(([1.0, 2.0, 3.0], ([2, 0, 0], [0, 2, 1])), (3, 3))
    found = Graph.from_scipy(matrix)
    assert matrix.data[found.edge_order].tolist() == found.adjacency.data.tolist()


@settings(max_examples=settings().max_examples * 50 // 100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-3, 3)), max_size=20))
def test_any_edge_list_is_its_dense_sum(edges: list[tuple[int, int, int]]) -> None:
    expected = np.zeros((5, 5))
    for source, target, weight in edges:
        expected[target, source] += weight
    index = np.array([e[:2] for e in edges], dtype=np.int64).reshape(-1, 2).T
    graph = Graph.from_edge_index(index, 5, np.array([e[2] for e in edges], dtype=float))
    np.testing.assert_array_equal(dense(graph), expected)
    assert graph.edge_order is not None
    assert graph.edge_order.tolist() == np.lexsort(index).tolist()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("stepwell.frontends.gnn.graph._KEY_BITS", 0)  # as of more edges and nodes
        other = Graph.from_edge_index(index, 5, np.array([e[2] for e in edges], dtype=float))
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(
            getattr(graph.adjacency, name), getattr(other.adjacency, name)
        )
    np.testing.assert_array_equal(graph.edge_order, other.edge_order)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64])
def test_edge_lists_of_any_integers(dtype: type) -> None:
    graph = Graph.from_edge_index(np.array([[120, 1, 0], [0, 120, 120]], dtype), 121)
    found = graph.adjacency.tocoo()
    assert [*zip(found.row.tolist(), found.col.tolist(), strict=True)] == [
        (0, 120),
        (120, 0),
        (120, 1),
    ]
    assert graph.edge_order is not None
    assert graph.edge_order.tolist() == [0, 2, 1]


def test_nodes_of_an_edge_list_are_not_listed() -> None:
    graph = Graph.from_edge_index([[0], [1]], 1000)
    assert graph.nodes == range(1000)

"""What a report draws of sparse arguments that come as lists of edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.report.collecting import collect
from stepwell.report.document import SparsityPattern
from stepwell.report.edge_lists import edge_lists_of
from stepwell.report.sparsity import patterns_of
from stepwell.runtime.profile import CallFacts

from ..harness import floats

EDGES = np.array([[0, 1, 2, 3, 3, 4], [1, 2, 3, 0, 4, 0]])
ROWS = {(1, 0), (2, 1), (3, 2), (0, 3), (4, 3), (0, 4)}
"""The entries of the matrix: edges begin in its columns."""


def patterns(module: sw.Module, *inputs: Any, **sizes: int) -> tuple[SparsityPattern, ...]:
    return collect(
        Compilation.of(Request(module, threads=1)), CallFacts(None, inputs, sizes)
    ).patterns


def entries(found: SparsityPattern) -> set[tuple[int, int]]:
    """The cells with entries."""
    places = np.flatnonzero(found.cells)
    return {(int(place) // found.columns, int(place) % found.columns) for place in places}


def model(layer: Any, **options: Any) -> sw.Module:
    spec = gnn.EdgeListSpec(**options)
    return gnn.Sequential(layer).to_module(spec, sw.TensorSpec((None, 4), "f32"))


@pytest.mark.parametrize("kind", ["gcn", "sage", "gat"])
def test_edge_lists_of_graph_networks(kind: str) -> None:
    layers = {
        "gcn": lambda: gnn.GCNConv(floats(4, 8), floats(8)),
        "sage": lambda: gnn.SAGEConv(floats(8, 4), floats(8), floats(8, 4)),
        "gat": lambda: gnn.GATConv(floats(8, 4), floats(2, 4), floats(2, 4), floats(8)),
    }
    inputs, sizes = (EDGES, floats(6, 4)), {"edges": 6, "nodes": 6}
    module = model(layers[kind]())
    (found,) = patterns_of(module, inputs, edge_lists_of(module.main), sizes)
    assert (found.name, found.shape, found.entries) == ("edge_index", (6, 6), 6)
    assert entries(found) == ROWS
    assert found.lengths == ((0, 1), (1, 4), (2, 1))


def sorted_ends(rows: int, columns: int) -> sw.Module:
    """A product with the matrix of two vectors of indices."""
    b = sw.Builder("main")
    first, second = (b.input(name, ("edges",), "i64") for name in ("targets", "sources"))
    x = b.input("x", (columns, 2), "f32")
    matrix, _ = b.csr_from_edges(first, second, (rows, columns))
    b.output(b.spmm(matrix, x), name="y")
    return b.module()


def test_vectors_of_ends_and_indices_from_the_back() -> None:
    targets, sources = np.array([0, -1, 1]), np.array([2, 0, -4])
    (found,) = patterns(sorted_ends(3, 4), targets, sources, floats(4, 2), edges=3)
    assert (found.name, found.shape) == ("sources, targets", (3, 4))
    assert entries(found) == {(0, 2), (2, 0), (1, 0)}


def test_edges_that_are_gathered_and_scattered() -> None:
    b = sw.Builder("main")
    x = b.input("x", (5, 2), "f32")
    edges = b.input("edges", (2, 6), "i64")
    sources, targets = (vector(b, edges, row) for row in range(2))
    messages = b.gather(x, sources, axis=0)
    b.output(b.scatter_nd(x, messages, targets, kind="add"), name="y")
    (found,) = patterns(b.module(), floats(5, 2), EDGES)
    assert (found.name, found.shape, found.entries) == ("edges", (5, 5), 6)
    assert entries(found) == ROWS


def test_edges_with_self_loops_added() -> None:
    b = sw.Builder("main")
    loops = np.broadcast_to(np.arange(5), (2, 5))
    edges = b.concat([b.input("edges", (2, 6), "i64"), loops], axis=1)
    sources, targets = (vector(b, edges, n, 11) for n in range(2))
    matrix, _ = b.csr_from_edges(targets, sources, (5, 5))
    b.output(b.spmm(matrix, b.input("x", (5, 2), "f32")), name="y")
    (found,) = patterns(b.module(), EDGES, floats(5, 2))
    assert (found.name, found.entries) == ("edges", 6)
    assert entries(found) == ROWS


def test_the_largest_index_says_how_many_nodes_there_are() -> None:
    (found,) = edge_lists_of(model(gnn.GCNConv(floats(4, 8), floats(8))).main)
    matrix = found.matrix((EDGES, floats(6, 4)), {})
    assert matrix is not None
    assert matrix[0] == (5, 5)
    assert found.matrix((), {}) is None


def vector(b: Any, edges: Any, row: int, length: int = 6) -> Any:
    """A row of edges."""
    return b.reshape(b.slice(edges, [row, 0], [row + 1, length], [1, 1]), [length])


def moved(b: Any, gathered: Any, scattered: Any, axis: int = 0) -> None:
    """Gather by some indices, and scatter by others."""
    x = b.input("x", (6, 6), "f32")
    b.output(b.scatter_nd(x, b.gather(x, gathered, axis=axis), [scattered], kind="add"))


def by_elements(b: Any, edges: Any) -> None:
    x = b.input("x", (6, 6), "f32")
    targets = b.broadcast_to(b.reshape(vector(b, edges, 1), [6, 1]), [6, 6])
    messages = b.gather(x, vector(b, edges, 0), axis=0)
    b.output(b.scatter_elements(x, targets, messages, axis=0, kind="add"))


def twice(b: Any, edges: Any) -> None:
    x = b.input("x", (6, 6), "f32")
    sources, targets = (vector(b, edges, row) for row in range(2))
    for _ in range(2):
        x = b.scatter_nd(x, b.gather(x, sources, axis=0), targets, kind="add")
    b.output(x)


def backwards(b: Any, edges: Any) -> None:
    """The rows change places before they are taken apart."""
    other = b.gather(edges, np.array([1, 0]), axis=0)
    moved(b, vector(b, other, 0), vector(b, other, 1))


def of_a_matrix(b: Any, edges: Any) -> None:
    indices = b.reshape(edges, [12])
    matrix, _ = b.csr_from_edges(indices, indices, (6, 6))
    b.output(b.spmm(matrix, b.input("x", (6, 2), "f32")))


def both_rows(b: Any, edges: Any) -> None:
    indices = b.reshape(b.slice(edges, [0, 0], [2, 6], [1, 1]), [12])
    matrix, _ = b.csr_from_edges(indices, indices, (6, 6))
    b.output(b.spmm(matrix, b.input("x", (6, 2), "f32")))


@pytest.mark.parametrize(
    ("build", "number"),
    [
        (lambda b, e: moved(b, vector(b, e, 0), vector(b, e, 1)), 1),
        (by_elements, 1),
        (twice, 1),
        (lambda b, e: moved(b, vector(b, e, 0), vector(b, e, 0)), 0),
        (lambda b, e: moved(b, vector(b, e, 0), vector(b, b.input("f", (2, 6), "i64"), 1)), 0),
        (lambda b, e: moved(b, vector(b, e, 0), vector(b, e, 1), axis=1), 0),
        (backwards, 0),
        (of_a_matrix, 0),
        (both_rows, 0),
    ],
)
def test_what_is_a_list_of_edges(build: Callable[[Any, Any], None], number: int) -> None:
    """Its rows, and neither one row twice, nor rows of two lists, nor other parts of it."""
    b = sw.Builder("main")
    build(b, b.input("edges", (2, 6), "i64"))
    assert [one.name for one in edge_lists_of(b.module().main)] == ["edges"] * number


def test_indices_of_something_else_are_no_edges() -> None:
    b = sw.Builder("main")
    chosen = b.input("chosen", (2, 3), "i64")
    b.output(b.gather(b.input("x", (5, 2), "f32"), chosen, axis=0), name="y")
    assert patterns(b.module(), np.zeros((2, 3), np.int64), floats(5, 2)) == ()

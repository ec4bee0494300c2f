"""Edge lists in place of matrices: `exe(edge_index, x)`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends import gnn

from ..harness import floats

N = 7
EDGES = np.array([[0, 3, 3, 6, 2, 2, 3, 0], [1, 0, 6, 6, 5, 5, 2, 4]])
X = floats(N, 3)


@pytest.fixture(scope="module")
def programs() -> dict[str, sw.Executable]:
    """One GCN for any graph, and one for graphs of seven nodes."""
    w = floats(3, 2)
    model = gnn.Sequential(gnn.GCNConv(w))
    any_graph = model.to_module(gnn.GraphSpec(), features=sw.TensorSpec((None, 3), "f32"))
    seven = model.to_module(gnn.GraphSpec(num_nodes=N), features=sw.TensorSpec((N, 3), "f32"))
    return {"any": sw.compile(any_graph, threads=1), "seven": sw.compile(seven, threads=1)}


@pytest.mark.parametrize("program", ["any", "seven"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_an_edge_list_is_its_graph(
    programs: dict[str, sw.Executable], program: str, dtype: Any
) -> None:
    exe, edges = programs[program], EDGES.astype(dtype)
    expected = exe(gnn.Graph.from_edge_index(EDGES, N), X)
    np.testing.assert_array_equal(exe(edges, X), expected)
    names = [spec.name for spec in exe.inputs]
    np.testing.assert_array_equal(exe({names[1]: X, names[0]: edges}), expected)
    none = exe(np.empty((2, 0), dtype), X)
    np.testing.assert_array_equal(none, exe(gnn.Graph.from_edge_index([[], []], N), X))


def test_sizes_that_no_other_argument_has() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((None, 7), "f32"))
    b.output(b.reduce(b.spmm(a, np.ones((7, 1), np.float32)), "sum", axes=[1]), name="y")
    message = (
        'input "a": an edge list does not say how many nodes there are, nor do other arguments'
    )
    with pytest.raises(sw.InputError, match=f"^{message}; give a gnn.Graph, or a scipy.sparse"):
        sw.compile(b.module(), threads=1)(EDGES)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 7], [1, 0]], "source of an edge out of range, expected 0 to 6, got 7"),
        ([[0, 1], [1, -1]], "target of an edge out of range, expected 0 to 6, got -1"),
        ([[0.0, 1.0], [1.0, 0.0]], "a sparse matrix is needed, expected scipy.sparse CSR"),
        ([[0, 1]], "a sparse matrix is needed, expected scipy.sparse CSR"),
        ([[0, 1], [1, 0], [1, 1]], "a sparse matrix is needed, expected scipy.sparse CSR"),
    ],
)
def test_lists_that_do_not_fit(
    programs: dict[str, sw.Executable], edges: list[list[Any]], message: str
) -> None:
    for exe in programs.values():
        with pytest.raises(sw.InputError, match=re.escape(message)):
            exe(np.array(edges), X)

"""Edge lists that become sparse matrices at run time, against their references and SciPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

import stepwell as sw
from stepwell.frontends import gnn
from stepwell.frontends.builder import Value

from ..harness import RNG, as_reference, cases, close, same
from .test_operators import LEVELS, build, check_all, random

EDGES = {
    "some": (np.array([4, 0, 4, 2, 0, 4, 4]), np.array([1, 5, 1, -1, 0, 4, 0])),
    "none": (np.zeros(0, np.int64), np.zeros(0, np.int64)),
    "one": (np.array([3]), np.array([3])),
    "sorted": (np.arange(5), np.arange(5)),
}
"""Edge lists with duplicates, self loops, negative indices, and rows without edges."""
ROWS, COLUMNS = 5, 6


def products(b: sw.Builder, rows: Value, columns: Value, x: Value, w: Value) -> Value:
    """A product with weights, one without, and a maximum, by the matrix of an edge list."""
    y = b.reduce(x, "sum", [1])
    weighted, order = b.csr_from_edges(rows, columns, (ROWS, y), w)
    plain, _ = b.csr_from_edges(rows, columns, (ROWS, x))
    scores = b.edge_softmax(plain, b.gather(w, order, axis=0))
    parts = [
        b.spmm(weighted, x),
        b.spmm(plain, x),
        b.aggregate(plain, x, kind="max"),
        b.aggregate(plain, x, scores),
        b.reshape(b.degree(plain), [-1, 1]),
    ]
    return b.concat(parts, axis=1)


@pytest.mark.parametrize("name", cases(list(EDGES), ["some"]))
def test_products_of_edge_lists(name: str, all_tests: bool) -> None:
    rows, columns = EDGES[name]
    weights, x = random((len(rows),)), random((COLUMNS, 3))
    inputs = [rows, columns, x, weights]
    exe = as_reference(build(products, inputs, False), *inputs, rtol=2e-5, threads=1)
    narrow = [rows.astype(np.int32), columns.astype(np.int32), x, weights]
    check_all([(products, narrow)], symbolic=True, levels=LEVELS if all_tests else [0])
    entries = weights, (rows % ROWS, columns % COLUMNS)
    want = coo_array(entries, shape=(ROWS, COLUMNS)).tocsr() @ x
    close(exe(*inputs)[:, :3], want, 1e-5, 1e-6)


@functools.cache
def sorting(count: int = 3) -> sw.Executable:
    """Row pointers, columns and order of an edge list, one after the other, or the first ones."""
    b = sw.Builder()
    ends = [b.input(name, ("e",), "i64") for name in ("rows", "columns")]
    nodes = [b.input(name, (name[0],), "f64") for name in ("targets", "sources")]
    b.output(b.concat(list(b.sort_edges(*ends, *nodes, name="edges"))[:count], axis=0))
    return sw.compile(b.module(), threads=2)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_edges_keep_their_order(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 9))
    ends = st.integers(-nodes, nodes - 1)
    edges = np.array(data.draw(st.lists(st.tuples(ends, ends))), np.int64).reshape(-1, 2)
    got = sorting()(edges[:, 0].copy(), edges[:, 1].copy(), np.zeros(nodes), np.zeros(nodes))
    pointers, columns, order = np.split(got, [nodes + 1, nodes + 1 + len(edges)])
    rows = edges[:, 0] % nodes
    alone = sorting(2)(edges[:, 0].copy(), edges[:, 1].copy(), np.zeros(nodes), np.zeros(nodes))
    np.testing.assert_array_equal(alone, got[: nodes + 1 + len(edges)])
    np.testing.assert_array_equal(order, np.argsort(rows, kind="stable"))
    np.testing.assert_array_equal(columns, edges[order, 1] % nodes)
    np.testing.assert_array_equal(np.diff(pointers), np.bincount(rows, minlength=nodes))


def test_many_edges() -> None:
    nodes, edges = 3001, 40_009
    rows, columns = RNG.integers(0, nodes, (2, edges))
    got = sorting()(rows, columns, np.zeros(nodes), np.zeros(nodes))
    np.testing.assert_array_equal(got[nodes + 1 + edges :], np.argsort(rows, kind="stable"))


def test_no_nodes() -> None:
    none = np.zeros(0, np.int64)
    np.testing.assert_array_equal(sorting()(none, none, np.zeros(0), np.zeros(3)), [0])


@pytest.mark.parametrize(
    ("ends", "sizes", "fault"),
    [
        (([0, 4], [0, 0]), (4, 9), "index out of range at position 1, expected -4 to 3, got 4"),
        (([0, 0], [-10, 0]), (4, 9), "index out of range at position 0, expected -9 to 8, got -10"),
        (([0], [0]), (0, 9), "index into an empty dimension at position 0, got 0"),
        (([0, 1], [0]), (4, 9), "1|2"),
    ],
)
def test_wrong_edges_are_an_error(
    ends: tuple[list[int], list[int]], sizes: tuple[int, int], fault: str
) -> None:
    inputs = [*map(np.array, ends), *map(np.zeros, sizes)]
    exe = sorting()
    for run in (exe, lambda *inputs: exe.run_at("graph", *inputs)):
        with pytest.raises(sw.InputError, match=fault):
            run(*inputs)


def test_a_constant_edge_list_is_a_constant_matrix() -> None:
    rows, columns = EDGES["some"]
    b = sw.Builder()
    x = b.input("x", (COLUMNS, 3))
    matrix, _ = b.csr_from_edges(rows, columns, (ROWS, COLUMNS))
    b.output(b.spmm(matrix, x))
    exe, x = sw.compile(b.module()), random((COLUMNS, 3))
    assert exe.ir("kernels").count("loop.kernel") == 1
    want = coo_array((np.ones(7), (rows, columns % COLUMNS)), shape=(ROWS, COLUMNS)) @ x
    close(exe(x), want.astype(np.float32))


def test_indices_of_an_edge_list_are_copied() -> None:
    rows, columns = EDGES["some"]
    inputs = [rows, columns, random((COLUMNS, 3)), random((7,))]
    module = build(products, inputs, False)
    exe = sw.compile(module, copy_indices=True, threads=1)
    same(exe(*inputs), sw.compile(module, threads=1)(*inputs))


# Matrices of parts.


def assembled(b: sw.Builder, indptr: Value, indices: Value, values: Value, x: Value) -> Value:
    return b.spmm(b.assemble(indptr, indices, values, x, name="graph"), x)


PARTS = [np.array([0, 2, 2, 3]), np.array([1, 0, 3]), random((3,))]


@pytest.mark.parametrize("symbolic", [False, True])
def test_products_of_parts(symbolic: bool) -> None:
    x = random((4, 5))
    narrow = [*(part.astype(np.int32) for part in PARTS[:2]), PARTS[2], x]
    check_all([(assembled, [*PARTS, x]), (assembled, narrow)], symbolic=symbolic)


@functools.cache
def assembled_any() -> tuple[sw.Module, sw.Executable]:
    module = build(assembled, [*PARTS, random((4, 5))], False)
    return module, sw.compile(module, threads=1)


@pytest.mark.parametrize(
    ("indptr", "indices", "fault"),
    [
        ([1, 2, 2, 3], [1, 0, 3], "indptr does not start at 0, got 1"),
        ([0, 2, 1, 3], [1, 0, 3], "indptr decreases after row 1, got 2"),
        (
            [0, 2, 2, 4],
            [1, 0, 3],
            "indptr does not end at the number of entries, expected 3, got 4",
        ),
        ([0, 2, 2, 3], [1, 0, 4], "column index out of range at entry 2, got 4"),
        ([0, 2, 2, 3], [1, -1, 3], "column index out of range at entry 1, got -1"),
    ],
)
def test_wrong_parts_are_an_error(indptr: list[int], indices: list[int], fault: str) -> None:
    inputs = [np.array(indptr), np.array(indices), PARTS[2], random((4, 5))]
    module, exe = assembled_any()
    out = np.full((3, 5), 7, np.float32)
    for run in (
        lambda: exe(*inputs, out=out),
        lambda: exe.run_at("buffers", *inputs),
        lambda: module.run_reference(*inputs),
    ):
        with pytest.raises(sw.InputError, match=f'"graph".*{fault}'):
            run()
    assert (out == 7).all()


def test_a_matrix_keeps_the_buffers_of_its_parts() -> None:
    def program(b: sw.Builder, rows: Value, columns: Value, x: Value) -> Value:
        p, j, order = b.sort_edges(rows, columns, x, x)
        values = b.cast(order, "f32") * 0.5
        a = b.assemble(p, j, values, x)
        # Kernels that could write over the parts, if these were dead.
        more = b.relu(b.exp(values) + 1) + b.cast(j + j, "f32")
        y = b.spmm(a, b.spmm(a, b.tanh(b.spmm(a, x))))
        return b.concat([b.reshape(y, [-1]), more, b.cast(p * 2, "f32")], axis=0)

    rows, columns = EDGES["some"]
    check_all([(program, [rows % 6, columns % 6, random((6, 3))])])


# Graph neural networks.


@pytest.mark.parametrize("weighted", cases([False, True], [True]))
def test_layers_on_an_edge_list(weighted: bool) -> None:
    nodes, width = 7, 5
    edges = RNG.integers(0, nodes, (2, 23))
    edges[:, :4] = [[2, 2, 3, 3], [2, 3, 3, 3]]
    x, weights = random((nodes, width)), np.abs(random((23,))) + 0.5
    w = [random((width, width), seed=n) * 0.3 for n in range(4)]
    model = gnn.Sequential(
        gnn.GCNConv(w[0]),
        gnn.ReLU(),
        gnn.SAGEConv(w[1], weight_r=w[2]),
        gnn.GATConv(w[3], random((1, width), seed=8), random((1, width), seed=9)),
    )
    spec = gnn.EdgeListSpec(weighted=weighted)
    features = sw.TensorSpec((None, width), "f32")
    exe = sw.compile(model.to_module(spec, features=features), threads=1)
    assert [i.name for i in exe.inputs] == ["edge_index", *["edge_weight"] * weighted, "features"]
    given = (edges, weights, x) if weighted else (edges, x)
    graph = gnn.Graph.from_edge_index(edges, nodes, weights if weighted else None)
    want = model.to_module(graph, features=features).run_reference(x)
    close(exe(*given), want, 1e-4, 1e-5)
    # Sums of other sizes need no other program.
    alone = (np.zeros((2, 0), np.int64), *([weights[:0]] * weighted), x[:1])
    assert exe(*alone).shape == (1, width)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"num_nodes": -1}, "EdgeListSpec: num_nodes is wrong, expected a count or None, got -1"),
        ({"dtype": "i8"}, "EdgeListSpec: unknown dtype, expected f32 or f64, got i8"),
        ({"index_dtype": "f32"}, "EdgeListSpec: unknown index_dtype, expected i32 or i64, got f32"),
    ],
)
def test_wrong_specifications(arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(sw.InputError, match=fault):
        gnn.EdgeListSpec(**arguments)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (((3,),), "shape is not a pair"),
        (((3, -1),), "wrong number of rows or columns, expected a count, or a value with rows"),
        (((3, 3), None, "q8"), "unknown element type"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], fault: str) -> None:
    b = sw.Builder()
    ends = b.input("ends", (4,), "i64")
    with pytest.raises(sw.InputError, match=f"csr_from_edges: {fault}"):
        b.csr_from_edges(ends, ends, *arguments)

"""Products of aggregated messages with weights for each relation, against their references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import cases, close
from .test_operators import LEVELS, check_all, random

NODES, PARTS, SOURCES = 5, 3, 7


def matrix(nodes: int, parts: int, sources: int, entries: int, dtype: str = "f32") -> csr_array:
    """A matrix with rows of no entry, and some of several; repeated entries are kept."""
    rng = np.random.default_rng(nodes)
    rows = np.sort(rng.integers(0, nodes * parts, entries))
    indptr = np.searchsorted(rows, np.arange(nodes * parts + 1)).astype(np.int32)
    columns = rng.integers(0, sources, entries, np.int32)
    return csr_array((random((entries,), dtype), columns, indptr), (nodes * parts, sources))


def products(b: sw.Builder, a: Value, x: Value, w: Value) -> Value:
    """The products for each kind of aggregation."""
    kinds = ("sum", "mean", "max", "min", "var", "std")
    return b.concat([b.aggregate_dense(a, x, w, kind=kind) for kind in kinds], axis=1)


def test_kinds(all_tests: bool) -> None:
    inputs = [matrix(NODES, PARTS, SOURCES, 9), random((SOURCES, 6)), random((PARTS, 6, 5))]
    check_all([(products, inputs)], levels=LEVELS if all_tests else (3,))


SIZES = {
    "one": [("f32", 1, 1, 1, 1, 1, 1), ("f64", 3, 4, 6, 9, 5, 2)],
    "large": [("f32", 600, 2, 50, 700, 33, 37), ("f16", 3, 4, 6, 9, 5, 2)],
    "small": [("f32", 3, 4, 6, 9, 5, 2), ("f32", 3, 4, 2, 0, 5, 2)],
    "flat": [("f32", 2, 2, 3, 5, 0, 4), ("f32", 2, 2, 3, 5, 4, 0)],
    "no nodes": [("f32", 0, 2, 3, 0, 4, 4)],
}
"""Element types, and the sizes N, P, M, of the entries, K and F."""


@pytest.mark.parametrize("sizes", cases(list(SIZES), ["large", "no nodes"]))
def test_sizes_and_types(sizes: str, all_tests: bool) -> None:
    def product(b: sw.Builder, a: Value, x: Value, w: Value) -> Value:
        return b.relu(b.aggregate_dense(a, b.tanh(x), w, kind="mean") + 1.0)

    check_all(
        (
            (product, [matrix(n, p, m, e, t), random((m, k), t), random((p, k, f), t)])
            for t, n, p, m, e, k, f in SIZES[sizes]
        ),
        levels=LEVELS if all_tests else (0 if sizes == "no nodes" else 3,),
    )


def edge_lists(parts: int, w: np.ndarray | None, threads: int) -> tuple[sw.Module, sw.Executable]:
    """The products of an edge list of any size, with weights of shape [P, K, F] or any."""
    b = sw.Builder("main")
    x, nodes = b.input("x", ("m", "k" if w is None else w.shape[1])), b.input("nodes", ("n",))
    rows, columns = b.input("rows", ("e",), "i64"), b.input("columns", ("e",), "i64")
    weights = b.input("w", (parts, "k", "f")) if w is None else b.constant(w, "w")
    a, _ = b.csr_from_edges(rows, columns, (b.concat([nodes] * parts, axis=0), x))
    b.output(b.aggregate_dense(a, x, weights, kind="mean"))
    module = b.module()
    return module, sw.compile(module, threads=threads)


def arguments(nodes: int, parts: int, entries: int, width: int) -> list[np.ndarray]:
    """Features, a vector with an element for each node, and the edges."""
    rng = np.random.default_rng(0)
    edges = rng.integers(0, nodes * parts, entries), rng.integers(0, nodes, entries)
    return [random((nodes, width)), np.zeros(nodes, np.float32), *edges]


def test_symbolic_sizes() -> None:
    module, exe = edge_lists(2, None, 1)
    for nodes, entries, k, f in ((4, 9, 3, 5), (1, 0, 1, 1), (2, 3, 0, 4), (300, 700, 17, 20)):
        inputs = [*arguments(nodes, 2, entries, k), random((2, k, f))]
        close(exe(*inputs), module.run_reference(*inputs))


def test_symbolic_rows_of_all_parts() -> None:
    """The number of nodes follows from the rows of the matrix, and is checked to do so."""
    b = sw.Builder("main")
    a, x = b.input("a", sw.SparseSpec(("n", 7), "f32")), b.input("x", (7, 2))
    b.output(b.aggregate_dense(a, x, random((3, 2, 4))))
    module = b.module()
    exe = sw.compile(module, threads=1)
    for nodes in (0, 1, 5):
        inputs = [matrix(nodes, 3, 7, 9 if nodes else 0), random((7, 2))]
        close(exe(*inputs), module.run_reference(*inputs))
    for run in (exe, module.run_reference):
        with pytest.raises(sw.InputError, match="size n is not divisible"):
            run(matrix(4, 1, 7, 5), random((7, 2)))


def test_a_symbolic_number_of_parts_is_not_zero() -> None:
    b = sw.Builder("main")
    a, x = b.input("a", sw.SparseSpec(("n", 7), "f32")), b.input("x", (7, 2))
    b.output(b.aggregate_dense(a, x, b.input("w", ("p", 2, 4))))
    with pytest.raises(sw.InputError, match=r"expected .*1.*, got 0"):
        b.module().run_reference(matrix(0, 1, 7, 0), random((7, 2)), random((0, 2, 4)))


def test_a_symbolic_number_of_parts_divides_the_rows() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("m", "n")))
    x, w = b.input("x", ("n", 6)), b.input("w", ("p", 6, 5))
    b.output(b.aggregate_dense(a, x, w))
    module, one = b.module(), csr_array(np.ones((3, 2), np.float32))
    with pytest.raises(sw.InputError, match="each node, expected a multiple of 2, got 3"):
        module.run_reference(one, random((2, 6)), random((2, 6, 5)))


def test_rows_without_entries_are_not_multiplied() -> None:
    parts = np.ones(1, np.float32), np.zeros(1, np.int32), np.array([0, 1, 1, 1, 1], np.int32)
    a = csr_array(parts, (4, 1))
    weights = np.stack([np.ones((2, 3), np.float32), np.full((2, 3), np.nan, np.float32)])
    check_all([(lambda b, a, x, w: b.aggregate_dense(a, x, w), [a, random((1, 2)), weights])])


def test_threads() -> None:
    w, inputs = random((3, 20, 24)), arguments(1000, 3, 4000, 20)
    (module, one), (_, two) = (edge_lists(3, w, threads) for threads in (1, 2))
    found = one(*inputs)
    np.testing.assert_array_equal(found, two(*inputs))
    close(found, module.run_reference(*inputs))
    assert "split(i1, 1, tail=mask); tiles(i10)" in two.explain()

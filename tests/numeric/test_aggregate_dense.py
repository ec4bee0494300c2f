"""Products of aggregated messages with weights for each relation, against their references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.frontends.builder import Value

from .test_operators import check, check_all, random

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


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_kinds(dtype: str) -> None:
    a = matrix(NODES, PARTS, SOURCES, 9, dtype)
    check(products, [a, random((SOURCES, 6), dtype), random((PARTS, 6, 5), dtype)])


def test_sizes() -> None:
    def product(b: sw.Builder, a: Value, x: Value, w: Value) -> Value:
        return b.relu(b.aggregate_dense(a, b.tanh(x), w, kind="mean") + 1.0)

    sizes = [(1, 1, 1, 1, 1, 1), (600, 2, 50, 700, 33, 37), (3, 4, 2, 0, 5, 2), (0, 2, 3, 0, 4, 4)]
    sizes += [(2, 2, 3, 5, 0, 4), (2, 2, 3, 5, 4, 0)]
    check_all(
        (product, [matrix(n, p, m, e), random((m, k)), random((p, k, f))])
        for n, p, m, e, k, f in sizes
    )


def test_symbolic_sizes() -> None:
    a, x, w = matrix(4, 2, 6, 9), random((6, 3)), random((2, 3, 5))
    b = sw.Builder("main")
    given = b.input("a", sw.SparseSpec(("n", "m"), "f32")), b.input("x", ("m", "k"))
    b.output(b.aggregate_dense(*given, b.input("w", (2, "k", "f"))))
    module = b.module()
    exe = sw.compile(module, threads=2)
    np.testing.assert_allclose(exe(a, x, w), module.run_reference(a, x, w), rtol=1e-5, atol=1e-6)
    with pytest.raises(sw.InputError, match="one row for each part of each node"):
        exe(a[:5], x, w)


def test_rows_without_entries_are_not_multiplied() -> None:
    parts = np.ones(1, np.float32), np.zeros(1, np.int32), np.array([0, 1, 1, 1, 1], np.int32)
    a = csr_array(parts, (4, 1))
    weights = np.stack([np.ones((2, 3), np.float32), np.full((2, 3), np.nan, np.float32)])
    check(lambda b, a, x, w: b.aggregate_dense(a, x, w), [a, random((1, 2)), weights])


def test_threads() -> None:
    a, x, w = matrix(3000, 3, 500, 9000), random((500, 20)), random((3, 20, 24))
    b = sw.Builder("main")
    given = b.input("a", sw.SparseSpec(("n", 500), "f32")), b.input("x", (500, 20))
    b.output(b.aggregate_dense(*given, b.constant(w, "w")))
    module = b.module()
    one, two = (sw.compile(module, threads=threads)(a, x) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one, module.run_reference(a, x), rtol=1e-4, atol=1e-4)

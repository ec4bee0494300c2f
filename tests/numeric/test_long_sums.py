"""Long sums of products and of rows are precise: chunks of them are accumulated on their own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw

TERMS = 8192


def factors(*shape: int) -> np.ndarray:
    """Positive numbers, of which nothing cancels."""
    return np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.max(abs(found - exact) / np.spacing(exact.astype(np.float32))))


def test_long_sums() -> None:
    """One after the other, terms of a product would be off by tens of units."""
    w, filters = factors(TERMS, 33), factors(17, TERMS // 9, 3, 3)
    b = sw.Builder("main")
    x, y, image = (
        b.input(name, shape, "f32")
        for name, shape in (("x", (14, TERMS)), ("y", ("n", TERMS)), ("i", (1, TERMS // 9, 5, 5)))
    )
    results = {
        "product": b.matmul(x, w),
        "of any number of rows": b.matmul(y, w),
        "convolution": b.conv(image, filters),
        "rows": b.reduce(x, "sum", axes=[1]),
    }
    for name, value in results.items():
        b.output(value, name=name)
    exe = sw.compile(b.module(), threads=1)
    inputs = factors(14, TERMS), factors(21, TERMS), factors(1, TERMS // 9, 5, 5)
    found = exe(*inputs)
    wide: list[Any] = [array.astype(np.float64) for array in inputs]
    windows = np.lib.stride_tricks.sliding_window_view(wide[2], (3, 3), (2, 3))
    exact = (
        wide[0] @ w,
        wide[1] @ w,
        np.einsum("nchwrs,fcrs->nfhw", windows, filters.astype(np.float64)),
        wide[0].sum(1),
    )
    for name, got, right in zip(results, found, exact, strict=True):
        assert ulps(got, right) <= 4, name


@pytest.mark.parametrize(("width", "heads"), [(1, 0), (64, 0), (8, 3)])
def test_long_rows(width: int, heads: int) -> None:
    """Of a sparse matrix, beside short and empty ones: as blocks, in lanes, and of heads."""
    lengths = [0, 3, TERMS, 1, 255, 1030, 0, 4 * TERMS]
    indptr = np.cumsum([0, *lengths])
    rng = np.random.default_rng(1)
    indices = rng.integers(0, 50, indptr[-1])
    matrix = sp.csr_array((factors(len(indices)), indices, indptr), shape=(len(lengths), 50))
    shape = (50, heads, width) if heads else (50, width)
    x, scores = factors(*shape), factors(len(indices), max(heads, 1))
    b = sw.Builder("main")
    a, y = b.input("a", sw.SparseSpec((len(lengths), 50), nnz="e")), b.input("x", shape)
    if heads:
        b.output(b.aggregate(a, y, b.input("s", ("e", heads))), name="y")
    else:
        b.output(b.spmm(a, y), name="y")
    exe = sw.compile(b.module(), threads=1)
    found = exe(matrix, x, scores) if heads else exe(matrix, x)
    weights = scores[:, :, None] if heads else matrix.data[:, None]
    terms = weights.astype(np.float64) * x[indices]
    exact = np.stack([terms[p:q].sum(0) for p, q in pairwise(indptr)])
    assert ulps(found, exact) <= 4

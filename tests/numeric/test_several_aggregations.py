"""Aggregations of the same messages over the same rows: one kernel, which visits a row once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import RNG, as_reference, cases, close, floats
from .test_edges import PATTERNS

KINDS = ("mean", "max", "min", "sum", "prod")


def spread(b: sw.Builder, mean: Value, square: Value) -> Value:
    """The standard deviation as torch-geometric computes it."""
    root = b.sqrt(b.clip(square - mean * mean, minimum=1e-5))
    return b.where(b.less_equal(root, np.float32(0.0031)), np.float32(0), root)


def program(shape: tuple[int, ...]) -> sw.Module:
    """All aggregations of a message of both ends, and what follows from two of them."""
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "m"), "f32", nnz="e"))
    x, y = b.input("x", ("n", *shape)), b.input("y", ("m", *shape))
    sent = b.at_entries(a, x, axis=0) - b.at_entries(a, y, axis=1)
    found = {kind: b.reduce_entries(a, sent, kind=kind) for kind in KINDS}
    square = b.reduce_entries(a, sent * sent, kind="mean")
    for value in (*found.values(), spread(b, found["mean"], square)):
        b.output(value)
    return b.module()


@pytest.mark.parametrize("shape", cases([(1,), (5,), (2, 24), (200,)], [(1,), (2, 24)]), ids=str)
def test_rows_are_visited_once(shape: tuple[int, ...]) -> None:
    module = program(shape)
    exe = sw.compile(module, threads=2)
    kernels = exe.ir("scheduled")
    assert kernels.count("loop.kernel") == 1
    assert kernels.count("merge(e, ") == 4, "a mean is a sum first"
    for a in PATTERNS.values():
        given = a, floats(a.shape[0], *shape), floats(a.shape[1], *shape)
        close(exe(*given), module.run_reference(*given), 2e-5, atol=3e-3)


def test_nan_and_infinity_stay_in_their_rows() -> None:
    module, a = program((5,)), PATTERNS["usual"]
    x, y = floats(11, 5), floats(9, 5)
    x[5, 1], y[3, 2], y[7, 4] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        as_reference(module, a, x, y, rtol=2e-5, atol=3e-3, threads=1)


def test_one_after_the_other_stays_apart() -> None:
    """The second aggregation reads rows of the first one, of the columns."""
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec((11, 11), "f32", nnz=40))
    x = b.input("x", (11, 20))
    once = b.aggregate(a, x, kind="mean")
    twice = b.aggregate(a, once, kind="mean")
    b.output(b.aggregate(a, x, kind="max") + twice)
    module = b.module()
    exe = sw.compile(module)
    assert exe.ir("kernels").count("loop.kernel") == 2
    ends = RNG.integers(0, 11, (2, 40))
    order = np.argsort(ends[0], kind="stable")
    indptr = np.searchsorted(ends[0][order], np.arange(12)).astype(np.int32)
    values = np.ones(40, np.float32), ends[1][order].astype(np.int32), indptr
    given = sp.csr_array(values, shape=(11, 11)), floats(11, 20)
    close(exe(*given), module.run_reference(*given), 2e-5, atol=1e-6)

"""Reductions along few columns, of which several rows fill a vector."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw

from ..harness import cases


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("case", cases([(2, 1), (4, 2), (8, 1), (3, 1)], [(4, 2), (3, 1)]), ids=str)
def test_reductions_of_few_columns(case: tuple[int, int]) -> None:
    columns, threads = case
    b = sw.Builder()
    rng = np.random.default_rng(columns)
    for rows, name in ((67, None), (0, "m")):
        x = b.input(f"x{rows}", ("n", name or rows, columns))
        for value in (
            b.softmax(x, axis=1),
            b.reduce(x, "sum", axes=[1], keepdims=False),
            b.reduce(x, "max", axes=[1], keepdims=False),
        ):
            b.output(value)
    exe = sw.compile(b.module(), threads=threads)
    for count, rows in ((3, 67), (1, 1), (2, 6)):
        a, c = (rng.standard_normal((count, n, columns), np.float32) for n in (67, rows))
        a[0, 66, 1] = np.nan
        c[-1, 0, 0] = -np.inf
        found = exe(a, c)
        for x, (soft, sums, most) in ((a, found[:3]), (c, found[3:])):
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(soft, softmax(x), rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(sums, x.sum(axis=1), rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(most, x.max(axis=1))

"""Lanes that are a few elements apart, or in reverse: slices, pools and transposes of them."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw

from ..harness import RNG

STEPS = (2, 3, 4, 5, -1, -2, -3)
ROWS, COLUMNS = 5, 71
DTYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8}


def check(program: sw.Module, x: np.ndarray, target: str = "host") -> None:
    got = sw.compile(program, target=target, threads=1)(x)
    for found, expected in zip(got, program.run_reference(x), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("target", ["host", "x86-64-v3"])
@pytest.mark.parametrize("kind", DTYPES)
def test_slices(kind: str, target: str) -> None:
    b = sw.Builder("main")
    x = b.input("x", (ROWS, COLUMNS), kind)
    for step in STEPS:
        start, end = (1, COLUMNS) if step > 0 else (COLUMNS - 1, -1)
        b.output(b.slice(x, starts=[0, start], ends=[ROWS, end], steps=[1, step]))
    check(b.module(), (RNG.random((ROWS, COLUMNS)) * 100).astype(DTYPES[kind]), target)


@pytest.mark.parametrize("columns", [COLUMNS, "n"])
def test_pools(columns: int | str) -> None:
    b = sw.Builder("main")
    x = b.input("x", (1, ROWS, columns))
    for window in (2, 3, 4):
        b.output(b.pool(x, kind="max", window=[window], strides=[window - 1]))
    check(b.module(), RNG.random((1, ROWS, COLUMNS)).astype(np.float32))


def test_of_short_rows() -> None:
    """A vector of several rows, or of elements across rows."""
    x = RNG.random((40, 6)).astype(np.float32)
    b = sw.Builder("main")
    value = b.input("x", x.shape)
    b.output(b.slice(value, starts=[0, 0], ends=[40, 6], steps=[1, 2]))
    b.output(b.slice(value, starts=[0, 5], ends=[40, -1], steps=[1, -1]))
    b.output(b.slice(b.reshape(value, [240]), starts=[3], ends=[240], steps=[3]))
    check(b.module(), x)

"""Indices that are checked row by row, in the tiles that use them."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.pipelines import pipeline

ROWS, COLUMNS, PLACES = 7, 128, 200


def gathering(kind: str) -> sw.Module:
    b = sw.Builder()
    x, at = b.input("x", (ROWS, PLACES)), b.input("at", (ROWS, COLUMNS), kind)
    b.output(b.gather_elements(x, at, axis=1, name="picked"))
    return b.module()


@pytest.mark.parametrize(("kind", "threads"), [("i64", 1), ("i32", 2)])
def test_the_first_wrong_index_is_reported(kind: str, threads: int) -> None:
    texts = pipeline(3, threads=threads)
    texts["scheduled"] = 'loop-schedule{trace="split(i, 3, tail=mask); tiles(i0)"}'
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, PLACES), np.float32)
    at = rng.integers(-PLACES, PLACES, (ROWS, COLUMNS)).astype(kind.replace("i", "int"))
    # Each pass is interpreted, so that the words of the interpreter are tested, too.
    exe = sw.compile(gathering(kind), pipeline=texts, check=[x, at])
    assert "rt_are_indices" in exe.ir("llvm")
    expected = np.take_along_axis(x, at.astype(np.int64), 1)
    np.testing.assert_array_equal(exe(x, at), expected)
    for places in ([0], [COLUMNS - 1, 5 * COLUMNS], [ROWS * COLUMNS - 1], [3 * COLUMNS, 400]):
        for wrong in (PLACES, -PLACES - 1):
            bad = at.copy()
            bad.flat[places] = wrong
            message = f"position {min(places)}, expected -{PLACES} to {PLACES - 1}, got {wrong}$"
            with pytest.raises(
                sw.InputError, match=f'node "picked": index out of range at {message}'
            ):
                exe(x, bad)
    np.testing.assert_array_equal(exe(x, at), expected)


def test_large_gathers_are_checked_row_by_row() -> None:
    b = sw.Builder()
    x, at = b.input("x", (300, 1024)), b.input("at", (300, 1024), "i64")
    b.output(b.gather_elements(x, at, axis=1))
    exe = sw.compile(b.module(), threads=2)
    assert "rt_are_indices" in exe.ir("llvm")
    assert "rt.unroll" in exe.ir("llvm")
    rng = np.random.default_rng(1)
    values, places = (
        rng.standard_normal((300, 1024), np.float32),
        rng.integers(0, 1024, (300, 1024)),
    )
    np.testing.assert_array_equal(exe(values, places), np.take_along_axis(values, places, 1))
    places[299, 1023] = 1024
    with pytest.raises(sw.InputError, match=f"at position {300 * 1024 - 1}, "):
        exe(values, places)

"""Searches in sorted rows: the reference is NumPy's, and compiled code gives what it gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import as_reference, cases, is_quick
from .test_operators import LEVELS, Build, build, check_all, random

SIDES = {"left": False, "right": True}
DTYPES = ["f16", "f32", "f64", "i1", "i8", "i32", "i64"]


def searched(right: bool) -> Build:
    return lambda b, rows, values: b.searchsorted(rows, values, right=right)


def expected(rows: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """What NumPy finds, in one row or in the row of each."""
    if rows.ndim == 1:
        return np.searchsorted(rows, values, side)
    found = np.empty(values.shape, np.int64)
    for row in np.ndindex(*rows.shape[:-1]):
        found[row] = np.searchsorted(rows[row], values[row], side)
    return found


def ties(shape: tuple[int, ...], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    """Few different numbers, NaNs and zeros of both signs among the floats."""
    x = np.asarray(random(shape, dtype, seed))
    if x.dtype.kind == "f":
        x = np.asarray(np.round(x * 2))
        for number, value in enumerate([np.nan, -0.0, np.inf, -np.inf, 0.0]):
            x.reshape(-1)[number::13] = value
    return x


def check_sides(*searches: tuple[np.ndarray, np.ndarray], symbolic: bool = False) -> None:
    """Compare both sides of searches with the reference, and that with NumPy.

    In quick tests, those of symbolic sizes are compiled without a schedule too.
    """
    programs = list[tuple[Build, list[np.ndarray]]]()
    for rows, values in searches:
        given = [np.sort(rows, axis=-1), values]
        for side, right in SIDES.items():
            reference = build(searched(right), given, False).run_reference(*given)
            np.testing.assert_array_equal(reference, expected(*given, side))
            programs.append((searched(right), given))
    check_all(programs, symbolic=symbolic, levels=LEVELS if symbolic or not is_quick() else (3,))


def test_one_row_for_all_values(all_tests: bool) -> None:
    values = ties((5, 37), seed=1)
    sizes = (0, 1, 2, 3, 7, 8, 100, 1025) if all_tests else (0, 1, 3, 8, 1025)
    check_sides(*((ties((size,)), values) for size in sizes))


def test_values_of_any_shape() -> None:
    rows = ties((41,))
    check_sides(*((rows, ties(shape, seed=1)) for shape in ((), (0,), (1,), (2, 3, 19))))


def test_a_row_for_each_row_of_values() -> None:
    none = ties((0, 5)), ties((0, 3), seed=1)
    check_sides((ties((3, 2, 29)), ties((3, 2, 19), seed=1)), none)


@pytest.mark.parametrize("size", cases([0, 1, 16, 33], [1, 33]))
def test_sizes_that_are_symbolic(size: int) -> None:
    check_sides((ties((size,)), ties((37,), seed=1)), symbolic=True)


def test_rows_of_values_of_symbolic_sizes() -> None:
    check_sides((ties((3, 29)), ties((3, 19), seed=1)), symbolic=True)


def test_numbers_of_a_type() -> None:
    check_sides(*((ties((40,), dtype), ties((100,), dtype, seed=1)) for dtype in DTYPES))


def test_numbers_that_are_far_apart() -> None:
    searches = []
    for dtype in (np.int32, np.int64, np.float64):
        limits = np.finfo(dtype) if dtype is np.float64 else np.iinfo(dtype)
        ends = [limits.min, limits.min, -1, 0, 1, limits.max, limits.max]
        searches.append((np.array(ends, dtype),) * 2)
    check_sides(*searches)


def test_a_row_in_another_order_gives_a_place() -> None:
    rows, values = random((50,)), random((1000,))
    exe = as_reference(build(searched(False), [rows, values], False), rows, values, threads=1)
    found = exe(rows, values)
    assert found.min() >= 0
    assert found.max() <= 50


def test_a_search_is_fused_with_what_is_around_it() -> None:
    def program(b: sw.Builder, rows: Value, values: Value) -> Value:
        return b.searchsorted(rows, b.relu(values)) + 1

    inputs = [np.sort(random((50,))), random((7, 19))]
    exe = as_reference(build(program, inputs, False), *inputs, threads=1)
    assert exe.ir("kernels").count("loop.kernel") == 1


def test_a_search_on_two_threads() -> None:
    inputs = [np.sort(random((1000,))), random((100_000,), seed=1)]
    exe = sw.compile(build(searched(True), inputs, False), threads=2)
    assert " tiles {" in exe.ir("scheduled")
    np.testing.assert_array_equal(exe(*inputs), np.searchsorted(*inputs, "right"))


@settings(deadline=None, max_examples=settings().max_examples * 12 // 100)
@given(st.data())
def test_rows_of_any_sizes(data: st.DataObject) -> None:
    size, count, seed = (data.draw(st.integers(0, 70)) for _ in range(3))
    check_sides((ties((size,), seed=seed), ties((count,), seed=seed + 1)))

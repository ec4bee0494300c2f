"""Scatters and histograms on several threads: they give what one thread gives, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import RNG, cases, close, is_quick, same
from .test_operators import Build, build, random

ROWS = 20_001
"""An odd number of updates, which are worth several threads."""


def compiled(
    program: Build, inputs: Sequence[Any], symbolic: bool = False, most: int = 2
) -> sw.Executable:
    """Check a program on more threads against one, and one against the reference.

    Of two threads in quick tests, unless `most` says three.
    """
    module = build(program, inputs, symbolic)
    alone = sw.compile(module, threads=1)(*inputs)
    exes = [sw.compile(module, threads=n) for n in (2, 3) if n <= most or not is_quick()]
    for exe in exes:
        same(exe(*inputs), alone)
    close(alone, module.run_reference(*inputs), atol=1e-4)
    return exes[0]


def step_of(exe: sw.Executable) -> str:
    """How the updates of the only kernel are parallelised, and why."""
    (decision,) = [d for d in exe.decisions if d.pass_name == "loop-schedule"]
    return str(decision)


def places(count: int, size: int) -> np.ndarray:
    """Indices, of which a half count from the back, and some are frequent."""
    found = RNG.integers(-size, size, count)
    found[::5] = size // 3
    return found


def scattered(kind: str) -> Build:
    def program(b: sw.Builder, x: Value, updates: Value, indices: Value) -> Value:
        return b.scatter_nd(x, updates, [indices], kind=kind)

    return program


WAYS = [(kind, symbolic) for kind in ("add", "none", "mul") for symbolic in (False, True)]


@pytest.mark.parametrize("way", cases(WAYS, [("add", True), ("none", False)]), ids=str)
def test_rows_belong_to_threads(way: tuple[str, bool]) -> None:
    kind, symbolic = way
    inputs = [random((301, 70)), random((ROWS, 70), seed=1), places(ROWS, 301)]
    exe = compiled(scattered(kind), inputs, symbolic, most=3)
    assert "each of 2 threads updates places of its own" in step_of(exe)
    if symbolic:
        few = [inputs[0], inputs[1][:5], inputs[2][:5]]
        expected = build(scattered(kind), few, False).run_reference(*few)
        np.testing.assert_array_equal(exe(*few), expected)
        none = [inputs[0], inputs[1][:0], inputs[2][:0]]
        np.testing.assert_array_equal(exe(*none), inputs[0])


def test_updates_that_are_given_are_not_sorted() -> None:
    inputs = [random((301, 70)), random((ROWS, 70), seed=1), places(ROWS, 301)]
    exe = sw.compile(build(scattered("add"), inputs, False), threads=1)
    assert "nothing is gathered for them" in exe.explain()
    x = inputs[0].copy()
    np.add.at(x, inputs[2], inputs[1])
    np.testing.assert_array_equal(exe(*inputs), x)


def test_rows_of_one_place() -> None:
    """One thread has all of the work, the other one none."""
    inputs = [random((2, 70)), random((ROWS, 70), seed=1), np.zeros(ROWS, np.int64)]
    compiled(scattered("add"), inputs)


def test_rows_at_indices_of_several_dimensions() -> None:
    x, updates = random((31, 9, 70)), random((ROWS, 70), seed=1)

    def program(b: sw.Builder, x: Value, updates: Value, i: Value, j: Value) -> Value:
        return b.scatter_nd(x, updates, [i, j], kind="add")

    exe = compiled(program, [x, updates, places(ROWS, 31), places(ROWS, 9)])
    assert "each of 2 threads updates places of its own" in step_of(exe)


def test_a_wrong_index_is_an_error() -> None:
    inputs = [random((301, 70)), random((ROWS, 70), seed=1), places(ROWS, 301)]
    exe = sw.compile(build(scattered("add"), inputs, False), threads=2)
    inputs[2][77] = 301
    with pytest.raises(sw.InputError, match="index out of range at position 77"):
        exe(*inputs)


@pytest.mark.parametrize("bins", cases([1, 7, 1000], [7]))
def test_counts_are_joined(bins: int) -> None:
    def program(b: sw.Builder, x: Value) -> Value:
        return b.histogram(x, bins)

    exe = compiled(program, [places(100_001, bins)], most=3)
    assert "2 copies are updated at the same time, and joined" in step_of(exe)


@pytest.mark.parametrize(("kind", "dtype"), [("add", "i32"), ("mul", "i64"), ("max", "f32")])
def test_what_has_no_order_is_joined(kind: str, dtype: str) -> None:
    def program(b: sw.Builder, x: Value, updates: Value, indices: Value) -> Value:
        return b.scatter_elements(x, indices, updates, axis=0, kind=kind)

    inputs = [random((101,), dtype), random((100_001,), dtype, 1), places(100_001, 101)]
    if kind == "mul":  # 64 even factors are 0
        inputs[:2] = [array | 1 for array in inputs[:2]]
    if kind == "max":  # all below what other reductions begin with
        inputs[:2] = [-np.abs(array) for array in inputs[:2]]
        inputs[1][::1000] = np.nan
    exe = compiled(program, inputs)
    assert "2 copies are updated at the same time, and joined" in step_of(exe)


def test_sums_of_floats_keep_their_order() -> None:
    def program(b: sw.Builder, x: Value, weights: Value) -> Value:
        return b.histogram(x, 100, weights)

    exe = compiled(program, [places(100_001, 100), random((100_001,))])
    assert "updates stay in order on one thread" in step_of(exe)


def test_few_updates_stay_on_one_thread() -> None:
    inputs = [random((9, 4)), random((60, 4), seed=1), places(60, 9)]
    for count in (1, 2):
        exe = sw.compile(build(scattered("add"), inputs, False), threads=count)
        assert "own(" not in exe.ir("scheduled")


def scattered_along(axis: int, kind: str = "add") -> Build:
    def program(b: sw.Builder, x: Value, indices: Value, updates: Value) -> Value:
        return b.scatter_elements(x, indices, updates, axis=axis, kind=kind)

    return program


@pytest.mark.parametrize("way", cases(WAYS[:4], [("add", False), ("none", True)]), ids=str)
def test_columns_belong_to_threads(way: tuple[str, bool]) -> None:
    kind, symbolic = way
    shape = (211, 401)
    indices = places(211 * 401, 211).reshape(shape)
    inputs = [random(shape), indices, random(shape, seed=1)]
    exe = compiled(scattered_along(0, kind), inputs, symbolic)
    assert "for parts of" in step_of(exe)
    if symbolic:
        few = [array[:5, :3] for array in (inputs[0], indices % 5, inputs[2])]
        expected = build(scattered_along(0, kind), few, False).run_reference(*few)
        np.testing.assert_array_equal(exe(*few), expected)


def test_planes_belong_to_threads() -> None:
    shape = (60, 101, 17)
    indices = places(60 * 101 * 17, 60).reshape(shape)
    exe = compiled(scattered_along(0), [random(shape), indices, random(shape, seed=1)], most=3)
    assert "for parts of" in step_of(exe)


@pytest.mark.parametrize("kind", cases(["add", "none"], ["add"]))
def test_rows_are_filled_and_updated(kind: str) -> None:
    indices = places(211 * 67, 401).reshape(211, 67)
    inputs = [random((211, 401)), indices, random((211, 67), seed=1)]
    assert "merge(" in step_of(compiled(scattered_along(1, kind), inputs))
    inputs[0] = random((213, 401))
    assert "merge(" not in step_of(compiled(scattered_along(1, kind), inputs))

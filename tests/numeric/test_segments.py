"""Segment reductions, histograms and one-hot vectors, against their references and NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.core.boundary.indices import wrong_offset
from stepwell.frontends.builder import Value

from ..harness import RNG, as_reference, cases
from .test_operators import LEVELS, Build, add, build, check_all, random

KINDS = ("sum", "mean", "max", "maxnum", "min", "prod")
OFFSETS = np.array([0, 3, 3, 4, 37])
"""With an empty segment, one of a single slice, and a long one."""


def reduced(kind: str) -> Build:
    return lambda b, x, offsets: b.segment_reduce(x, offsets, kind=kind)


def counted(bins: int) -> Build:
    return lambda b, x, *weights: b.histogram(x, bins, *weights)


def hot(depth: int, axis: int) -> Build:
    return lambda b, i, values: b.one_hot(i, values, depth, axis)


SHAPES = [(37,), (37, 1), (37, 5), (37, 3, 19), (37, 0)]


@pytest.mark.parametrize("shape", cases(SHAPES, [(37,), (37, 3, 19)]), ids=str)
def test_segments(shape: tuple[int, ...], all_tests: bool) -> None:
    x = random(shape)
    programs = [(reduced(kind), [x, OFFSETS]) for kind in KINDS]
    programs.append((reduced("sum"), [x, np.array([2, 2, 30], np.int32)]))
    check_all(programs, levels=LEVELS if all_tests or x.ndim == 1 else [3])
    as_reference(build(reduced("mean"), [x, OFFSETS], True), x, OFFSETS, threads=1)


@pytest.mark.parametrize("dtype", cases(["f16", "f64", "i8", "i64"], ["f16", "i64"]))
def test_segments_of_a_type(dtype: str) -> None:
    check_all([(reduced(kind), [random((37, 3), dtype), OFFSETS]) for kind in KINDS])


def test_segments_of_nothing() -> None:
    none, zeros = np.zeros((0, 3), np.float32), np.zeros(4, np.int64)
    check_all([(reduced(kind), [none, zeros]) for kind in KINDS])
    one = [random((5, 3)), np.array([2])]
    as_reference(build(reduced("sum"), one, False), *one, threads=1)


def test_empty_segments_are_defined() -> None:
    for dtype, expected in (
        ("f32", (0, np.nan, -np.inf, -np.inf, np.inf, 1)),
        ("i64", (0, 0, *[np.iinfo(np.int64).min] * 2, np.iinfo(np.int64).max, 1)),
    ):
        b, inputs = sw.Builder("main"), [random((2,), dtype), np.array([1, 1])]
        for number, kind in enumerate(KINDS):
            add(b, reduced(kind), inputs, False, 2 * number)
        found = sw.compile(b.module(), threads=1)(*inputs * len(KINDS))
        for got, value in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, [value])


def test_a_nan_stays_in_its_segment() -> None:
    x = random((37, 3))
    x[4, 1], x[0, 0] = np.nan, np.inf
    check_all([(reduced(kind), [x, OFFSETS]) for kind in KINDS])


def test_segments_are_fused_with_what_is_around_them() -> None:
    def program(b: sw.Builder, x: Value, offsets: Value) -> Value:
        return b.tanh(b.segment_reduce(b.relu(x), offsets, kind="sum") + 1)

    inputs = [random((37, 5)), OFFSETS]
    exe = as_reference(build(program, inputs, False), *inputs, threads=1)
    assert exe.ir("kernels").count("loop.kernel") == 1


def test_segments_on_two_threads() -> None:
    offsets = np.sort(RNG.integers(0, 60_001, 3000))
    inputs = [random((60_000, 16)), offsets]
    module = build(reduced("sum"), inputs, False)
    exe = sw.compile(module, threads=2)
    assert " tiles {" in exe.ir("scheduled")
    np.testing.assert_array_equal(exe(*inputs), sw.compile(module, threads=1)(*inputs))
    np.testing.assert_allclose(exe(*inputs), module.run_reference(*inputs), atol=1e-4)


@pytest.mark.parametrize(
    ("offsets", "fault"),
    [
        ([0, 3, 2, 5], "offsets decrease after position 1, got 3"),
        ([0, 3, 6, 5], "offset out of range at position 2, expected 0 to 5, got 6"),
        ([-1, 3, 4, 5], "offset out of range at position 0, expected 0 to 5, got -1"),
    ],
)
def test_wrong_offsets_are_an_error(offsets: list[int], fault: str) -> None:
    inputs = [random((5, 3)), np.array(offsets)]

    def program(b: sw.Builder, x: Value, offsets: Value) -> Value:
        return b.segment_reduce(x, offsets, name="pool")

    module = build(program, inputs, True)
    exe, out = sw.compile(module, threads=1), np.full((3, 3), 7, np.float32)
    for run in (
        lambda: exe(*inputs, out=out),
        lambda: exe.run_at("buffers", *inputs),
        lambda: module.run_reference(*inputs),
    ):
        with pytest.raises(sw.InputError, match=f'"pool".*{fault}'):
            run()
    assert (out == 7).all()
    assert wrong_offset(OFFSETS, 37) is None


def test_offsets_that_are_computed_are_checked() -> None:
    inputs = [random((37, 3)), np.diff(OFFSETS)]

    def program(b: sw.Builder, x: Value, counts: Value) -> Value:
        return b.segment_reduce(x, b.cumulative(counts, kind="sum"))

    as_reference(build(program, inputs, False), *inputs, threads=1)
    short = [inputs[0][:36], inputs[1]]
    with pytest.raises(sw.InputError, match="offset out of range at position 3"):
        sw.compile(build(program, short, False), threads=1)(*short)


@pytest.mark.parametrize(
    "shape", cases([(), (0,), (1,), (60,), (5, 12)], [(), (0,), (5, 12)]), ids=str
)
def test_histogram(shape: tuple[int, ...], all_tests: bool) -> None:
    x = np.asarray(RNG.integers(-7, 7, shape))
    weights = [random(shape, dtype) for dtype in ("f32", "f64", "f16", "i32")]
    programs = [(counted(7), [x, w]) for w in weights]
    both = [(counted(7), [x]), (counted(7), [x.astype(np.int32)])]
    check_all([*both, *programs], levels=LEVELS if all_tests or not shape else (3,))
    as_reference(build(counted(7), [x, weights[0]], True), x, weights[0], threads=1)


def test_histogram_is_numpys() -> None:
    x = np.array([3, 3, 3, 0, 8, 3])
    got = sw.compile(build(counted(10), [x], False), threads=2)(x)
    np.testing.assert_array_equal(got, np.bincount(x, minlength=10))
    assert got.dtype == np.int64


def test_histogram_of_special_values() -> None:
    x, w = np.array([0, 0, 1, 2, 2]), np.array([np.inf, 1, np.nan, np.inf, -np.inf], np.float32)
    check_all([(counted(4), [x, w])])


def test_a_number_without_a_bin_is_an_error() -> None:
    x = np.array([0, 3, -4])
    exe = sw.compile(build(lambda b, x: b.histogram(x, 4, name="count"), [x], True), threads=1)
    for number in (4, -5):
        with pytest.raises(sw.InputError, match='"count": index out of range at position 3'):
            exe(np.append(x, number))


def test_one_hot_vectors(all_tests: bool) -> None:
    i = np.array([[0, 3, -1, 2**31], [-4, 2, 9, -5]])
    values = [random((2,), dtype) for dtype in ("f32", "f16", "i8", "i1")]
    pairs = list(itertools.product(values, (0, 1, -1)))
    programs = [(hot(4, axis), [i, v]) for v, axis in (pairs if all_tests else pairs[::2])]
    programs += [(hot(depth, -1), [i.astype(np.int32), values[0]]) for depth in (0, 1, 4)]
    programs.append((hot(3, 0), [np.zeros((0,), np.int64), values[0]]))
    check_all(programs, levels=LEVELS if all_tests else (3,))
    b = sw.Builder("main")
    b.output(b.one_hot(b.input("i", ("n", "m"), "i64"), values[0], 4), name="y")
    np.testing.assert_array_equal(sw.compile(b.module(), threads=1)(i), b.module().run_reference(i))


def test_a_one_hot_vector_is_fused() -> None:
    def program(b: sw.Builder, x: Value, i: Value) -> Value:
        one = b.one_hot(i, np.array([0, 1], np.float32), 19)
        return b.reduce(b.neg(x) * one, "sum", [1])

    inputs: list[Any] = [random((6, 19)), np.array([0, 18, -1, 3, 3, 7])]
    exe = as_reference(build(program, inputs, False), *inputs, threads=1)
    assert exe.ir("kernels").count("loop.kernel") == 1


@settings(deadline=None, max_examples=settings().max_examples * 12 // 100)
@given(st.data())
def test_segments_of_any_sizes(data: st.DataObject) -> None:
    draw: Callable[..., Any] = data.draw
    counts = draw(st.lists(st.integers(0, 40), max_size=6))
    before, after, width = (draw(st.integers(0, 20)) for _ in range(3))
    offsets = before + np.cumsum([0, *counts])
    x = random((int(offsets[-1]) + after, *([width] if draw(st.booleans()) else [])))
    check_all([(reduced(kind), [x, offsets]) for kind in ("sum", "mean", "max")])

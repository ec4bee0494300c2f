"""Compiled programs that only move data: the elements are those of NumPy, in any order of axes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw

from ..harness import cases

KINDS = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "i1": "bool"}
SIZES = st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 24, 33])


def transposed(
    shape: tuple[int, ...], order: list[int], kind: str, named: bool, threads: int = 1
) -> None:
    """Compile for these sizes, or for any, and compare."""
    b = sw.Builder("main")
    sizes = [f"n{axis}" for axis in range(len(shape))] if named else shape
    b.output(b.transpose(b.input("x", tuple(sizes), kind), order), name="y")
    array = np.rint(np.random.default_rng(0).normal(size=shape) * 2).astype(KINDS[kind])
    result = sw.compile(b.module(), threads=threads)(array)
    np.testing.assert_array_equal(result, array.transpose(order))


@settings(max_examples=settings().max_examples * 25 // 100, deadline=None)
@given(
    shape=st.lists(SIZES, min_size=2, max_size=4),
    data=st.data(),
    kind=st.sampled_from(sorted(KINDS)),
    named=st.booleans(),
)
def test_transpose(shape: list[int], data: st.DataObject, kind: str, named: bool) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    transposed(tuple(shape[:2] + [min(n, 9) for n in shape[2:]]), list(order), kind, named)


SHAPES = [(501, 397), (16, 16), (0, 20), (20, 0), (3, 1000)]
NAMED = [*itertools.product(SHAPES, [False, True])]
USUAL = [(SHAPES[0], True), (SHAPES[1], False), (SHAPES[2], False), (SHAPES[3], True)]


@pytest.mark.parametrize("case", cases(NAMED, [*USUAL, (SHAPES[4], False)]), ids=str)
def test_transpose_of_a_matrix_on_threads(case: tuple[tuple[int, int], bool]) -> None:
    shape, named = case
    transposed(shape, [1, 0], "f32", named, threads=2)


@pytest.mark.parametrize("sizes", [(20, 33), (16, 48)])
def test_a_transpose_in_its_consumer(sizes: tuple[int, int]) -> None:
    b = sw.Builder("main")
    x, y = b.input("x", sizes, "f32"), b.input("y", sizes[::-1], "f32")
    b.output(b.relu(b.add(b.transpose(x, [1, 0]), y)), name="z")
    module = b.module()
    exe = sw.compile(module, threads=1)
    assert "squares of" in str(exe.explain())
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape, np.float32) for shape in (sizes, sizes[::-1])]
    np.testing.assert_array_equal(exe(*inputs), module.run_reference(*inputs))


@pytest.mark.parametrize("sizes", [(5,), (5, 8)])
@pytest.mark.parametrize("is_known", [True, False])
def test_windows_read_what_was_gathered(sizes: tuple[int, ...], is_known: bool) -> None:
    b = sw.Builder("main")
    x, scales, place = b.input("x", (1, 2, 8, 8), "f32"), b.input("scales", sizes, "f32"), 2
    where = np.array(place) if is_known else b.input("place", (), "i64")
    b.output(b.pool(b.mul(x, b.gather(scales, where, axis=0)), window=[3, 3], kind="max"), name="y")
    module, rng = b.module(), np.random.default_rng(0)
    inputs = [rng.random(shape, np.float32) for shape in ((1, 2, 8, 8), sizes)]
    inputs += [] if is_known else [np.array(place)]
    got = sw.compile(module, threads=1)(*inputs)
    np.testing.assert_array_equal(got, module.run_reference(*inputs))

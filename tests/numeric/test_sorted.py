"""Sorts and selections, and the local buffers that they work in.

The reference is NumPy's stable sort, so indices are compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.helper import make_node

import stepwell as sw
from stepwell.core.dtypes import element_type_of
from stepwell.frontends.builder import Value

from ..harness import as_onnx, as_reference, cases, same
from .test_onnx_operators import model
from .test_operators import build, random

DTYPES = ["f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32"]


Program = Callable[[sw.Builder, Value], tuple[Value, Value]]
"""Values and indices of an input."""


def ordered(axis: int = -1, descending: bool = False) -> Program:
    return lambda b, x: b.sort(x, axis=axis, descending=descending)


def selected(k: int, axis: int = -1, largest: bool = True) -> Program:
    return lambda b, x: b.top_k(x, k, axis=axis, largest=largest)


def module_of(
    programs: Sequence[tuple[Program, np.ndarray]], symbolic: bool = False
) -> tuple[sw.Module, list[np.ndarray]]:
    """One program with the results of several, and its inputs."""
    b = sw.Builder("main")
    for number, (program, x) in enumerate(programs):
        shape = tuple(f"n{number}_{size}" if symbolic else size for size in x.shape)
        kind = str(element_type_of(x.dtype))
        values, indices = program(b, b.input(f"x{number}", shape, kind))
        b.output(values, name=f"v{number}")
        b.output(indices, name=f"i{number}")
    return b.module(), [x for _, x in programs]


def same_together(
    programs: Sequence[tuple[Program, np.ndarray]], symbolic: bool = False, level: int = 3
) -> None:
    """Compare programs, as one module, with the reference."""
    module, inputs = module_of(programs, symbolic)
    as_reference(module, *inputs, rtol=0, threads=1, opt_level=level)


def ties(shape: tuple[int, ...], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    """Few different numbers."""
    if dtype.startswith("u"):
        numbers = np.random.default_rng(seed).integers(0, 256, shape)
        return (numbers << int(dtype[1:]) - 8).astype(f"uint{dtype[1:]}")
    if dtype == "bf16":
        return ties(shape, "f32", seed).astype(ml_dtypes.bfloat16)
    x = random(shape, dtype, seed)
    return np.round(x * 4) if x.dtype.kind == "f" else x


def special(count: int, dtype: str) -> np.ndarray:
    """NaNs of both signs, zeros of both signs, infinities and the least numbers."""
    x = ties((count,), dtype)
    for number, value in enumerate([np.nan, -0.0, np.inf, 0.0, -np.inf, -np.nan, 6e-8, -6e-8]):
        x[number::11] = value
    return x


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3, 0), (2, 1), (3, 129), (4, 5, 9)])
def test_sort(shape: tuple[int, ...], all_tests: bool) -> None:
    same_together([(ordered(axis, axis % 2 == 0), ties(shape)) for axis in range(len(shape))])
    if all_tests or shape in ((0,), (7,), (3, 129), (4, 5, 9)):
        same_together([(ordered(0), ties(shape))], symbolic=True, level=0)


# Floats have special values below, and signed integers extreme ones.
@pytest.mark.parametrize("dtype", cases(DTYPES, ["i1", "u32"]))
def test_order_of_a_type(dtype: str) -> None:
    short, long = ties((2, 19), dtype), ties((300,), dtype)
    down = ordered(descending=True)
    least = selected(5, largest=False)
    same_together([(ordered(), short), (down, short), (down, long), (least, long)])


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_special_values_are_in_order(dtype: str, all_tests: bool) -> None:
    programs = [ordered(), selected(20), ordered(descending=True), selected(20, largest=False)]
    if not all_tests:
        programs = programs[:2] if dtype in ("f16", "f64") else programs[2:]
    long, short = special(400, dtype), special(40, dtype)
    same_together([(program, long) for program in programs] + [(ordered(), short)])


def test_the_reference_is_numpys() -> None:
    x = special(400, "f32")
    module, _ = module_of([(ordered(), x), (ordered(descending=True), x), (selected(20), x)])
    values, indices, down, places, *top = module.run_reference(x, x, x)
    same(values, np.sort(x, kind="stable"))
    same(indices, np.argsort(x, kind="stable"))
    # As torch.sort(x, stable=True, descending=True) and torch.topk(x, 20) have them.
    numbers = x[~np.isnan(x)]
    assert np.isnan(down[: len(x) - len(numbers)]).all()
    same(down[len(x) - len(numbers) :], numbers[np.argsort(-numbers, kind="stable")])
    same(places[: len(x) - len(numbers)], np.flatnonzero(np.isnan(x)))
    same(top[0], down[:20])
    same(top[1], places[:20])


@pytest.mark.parametrize("dtype", cases(["f32", "f64", "i8", "i64"], ["i8", "i64"]))
def test_extreme_and_equal_elements(dtype: str) -> None:
    kind = random((1,), dtype).dtype
    limits = np.iinfo(kind) if kind.kind == "i" else np.finfo(kind)
    equal = np.full(300, limits.max, kind)
    mixed = equal.copy()
    mixed[::3], mixed[1::3] = limits.min, 0
    programs = [ordered(), ordered(descending=True), selected(9), selected(40, largest=False)]
    module, inputs = module_of([(program, equal) for program in programs])
    exe = as_reference(module, *inputs, rtol=0, threads=1)
    inputs = [mixed] * len(programs)
    same(exe(*inputs), module.run_reference(*inputs))


def test_a_long_row() -> None:
    x = random((1 << 15,))
    same_together([(ordered(), x), (selected(100), x), (selected(1000), x)])


SHAPES = [(1,), (33,), (5, 100), (100, 5), (2, 300)]


@pytest.mark.parametrize("shape", cases(SHAPES, [(1,), (100, 5)]), ids=str)
def test_top_k(shape: tuple[int, ...]) -> None:
    programs: list[tuple[Program, np.ndarray]] = []
    for axis, size in enumerate(shape):
        for k in sorted({0, 1, min(10, size), size // 5, size}):
            programs.append((selected(k, axis, largest=k % 2 == 0), ties(shape)))
    same_together(programs)


@pytest.mark.parametrize("dtype", cases(["f32", "i64"], ["f32"]))
def test_more_elements_are_kept_in_vectors(dtype: str) -> None:
    same_together([(selected(k, largest=k == 20), ties((2, 700), dtype)) for k in (17, 20)])


def test_top_k_of_rows_in_order() -> None:
    # Every element of one of them is inserted, and only the first ones of the other.
    up = np.arange(500, dtype=np.float32)
    module, _ = module_of([(selected(10), up)])
    exe = as_reference(module, up, rtol=0, threads=1)
    same(exe(up[::-1].copy()), module.run_reference(up[::-1].copy()))


def test_threads() -> None:
    x = ties((64, 300))
    for program, symbolic in ((ordered(), True), (ordered(), False), (selected(10), False)):
        module, inputs = module_of([(program, x)], symbolic)
        as_reference(module, *inputs, rtol=0, threads=2)


@settings(deadline=None, max_examples=settings().max_examples * 8 // 100)
@given(st.lists(st.floats(width=32), max_size=200), st.integers(0, 200))
def test_any_row(numbers: list[float], k: int) -> None:
    x, down = np.array(numbers, np.float32), k % 2 == 0
    few = selected(min(k, len(numbers)), largest=down)
    same_together([(ordered(descending=down), x), (few, x)])


def test_what_is_read_and_what_follows_is_one_kernel() -> None:
    x, y = random((37, 50)), random((50,), seed=1)

    def program(b: sw.Builder, x: Value, y: Value) -> Value:
        return b.tanh(b.sort(b.relu(x), axis=0)[0] + y)

    module = build(program, [x, y], False)
    as_reference(module, x, y, threads=1, opt_level=0)
    exe = as_reference(module, x, y, threads=1)
    assert exe.ir("kernels").count("loop.kernel") == 1


@pytest.mark.slow
def test_every_stage_of_an_order_runs() -> None:
    for program, symbolic, sizes in (
        (ordered(), True, (0, 1, 140)),
        (selected(3), False, (140,)),
    ):
        module, _ = module_of([(program, ties((1, sizes[-1])))], symbolic)
        exe = sw.compile(module, threads=1)
        for x in (ties((1, size)) for size in sizes):
            expected = exe(x)
            for stage in ("kernels", "loops", "llvm"):
                same(exe.run_at(stage, x), expected, stage)


def test_top_k_of_onnx() -> None:
    x = ties((4, 50))
    for flags in ({}, {"axis": 0, "largest": 0}, {"axis": 1, "sorted": 1}):
        node = make_node("TopK", ["x", "k"], ["v", "i"], **flags)
        source = model([node], {"x": (x, x.shape)}, {"k": np.array([3])}, 21, outputs=("v", "i"))
        as_onnx(source, x, rtol=0)
    # The reference evaluator of the onnx package does not have the first one.
    first = make_node("TopK", ["x"], ["v", "i"], k=3, axis=-1)
    source = model([first], {"x": (x, x.shape)}, {}, opset=9, outputs=("v", "i"))
    module, _ = module_of([(selected(3), x)])
    same(sw.compile(sw.from_onnx(source), threads=1)(x), module.run_reference(x))


def test_top_k_of_onnx_is_refused() -> None:
    x = ties((4, 5))
    node = make_node("TopK", ["x", "k"], ["v", "i"])
    for k, error in (([6], "wrong k, expected 0 to 5, got 6"), ([1, 1], "wrong number of counts")):
        source = model([node], {"x": (x, x.shape)}, {"k": np.array(k)}, 11, outputs=("v", "i"))
        with pytest.raises(sw.StepwellError, match=error):
            sw.from_onnx(source)


def test_a_row_that_is_too_short() -> None:
    for k in (4, 20):
        x = ties((3, k))
        module, _ = module_of([(selected(k), x)], symbolic=True)
        exe, fact = sw.compile(module, threads=1), f"too small, expected {k} or more, got {k - 1}"
        for rows in (x, ties((2, 300))):
            same(exe(rows), module.run_reference(rows))
        for run in (exe, module.run_reference):
            with pytest.raises(sw.InputError, match=fact):
                run(x[:, 1:].copy())

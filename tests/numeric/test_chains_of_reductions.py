"""Reductions over the same rows, one after the other, are one kernel and give the right numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Value

from ..harness import RNG, cases

Rows = Callable[[sw.Builder, Value], Value]


def total(b: sw.Builder, x: Value, kind: str = "sum") -> Value:
    return b.reduce(x, kind, [1], keepdims=True)


def centred(b: sw.Builder, x: Value) -> Value:
    return b.sub(x, total(b, x, "mean"))


def normalized(b: sw.Builder, x: Value) -> Value:
    d = centred(b, x)
    return b.mul(d, b.rsqrt(b.add(total(b, b.mul(d, d), "mean"), 1e-3)))


def log_sum_exp(b: sw.Builder, x: Value) -> Value:
    most = total(b, x, "max")
    return b.add(b.log(total(b, b.exp(b.sub(x, most)))), most)


def decomposed_softmax(b: sw.Builder, x: Value) -> Value:
    powers = b.exp(b.sub(x, total(b, x, "max")))
    return b.div(powers, total(b, powers))


def decomposed_layer_norm(b: sw.Builder, x: Value) -> Value:
    d = centred(b, x)
    return b.div(d, b.sqrt(b.add(total(b, b.mul(d, d), "mean"), 1e-3)))


def normalized_twice(b: sw.Builder, x: Value) -> Value:
    return normalized(b, normalized(b, x))


def share_of_centred(b: sw.Builder, x: Value) -> Value:
    d = centred(b, x)
    return b.div(d, b.add(total(b, b.abs(d)), 1.0))


def softmax_of_normalized(b: sw.Builder, x: Value) -> Value:
    return b.softmax(normalized(b, x), axis=1)


def without_column_sum(b: sw.Builder, x: Value) -> Value:
    return b.sub(x, b.reduce(x, "sum", [0], keepdims=True))


def compiled(form: Rows, shape: tuple[int | str, ...]) -> sw.Executable:
    b = sw.Builder("main")
    b.output(form(b, b.input("x", shape)))
    return sw.compile(b.module(), target="x86-64-v3", threads=1)


def numbers(x: np.ndarray) -> dict[Rows, np.ndarray]:
    def norm(x: np.ndarray) -> np.ndarray:
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-3)

    d, most = x - x.mean(1, keepdims=True), x.max(1, keepdims=True)
    powers, shifted = np.exp(norm(x)), np.exp(x - most)
    return {
        normalized: norm(x),
        log_sum_exp: np.log(np.exp(x - most).sum(1, keepdims=True)) + most,
        normalized_twice: norm(norm(x)),
        share_of_centred: d / (np.abs(d).sum(1, keepdims=True) + 1),
        decomposed_softmax: shifted / shifted.sum(1, keepdims=True),
        softmax_of_normalized: powers / powers.sum(1, keepdims=True),
        without_column_sum: x - x.sum(0, keepdims=True),
    }


FORMS = [normalized, log_sum_exp, normalized_twice, share_of_centred, softmax_of_normalized]


WIDE = (3, 10000)


@pytest.mark.parametrize(
    ("form", "shape"),
    [
        *((form, ("n", "m")) for form in FORMS),
        (normalized, WIDE),
        *((decomposed_softmax, shape) for shape in [("n", "m"), (1, "m"), WIDE]),
        *(pytest.param(form, WIDE, marks=pytest.mark.slow) for form in FORMS[1:]),
    ],
)
def test_chains_are_one_kernel(form: Rows, shape: tuple[int | str, ...]) -> None:
    exe = compiled(form, shape)
    assert exe.ir("fused").count("graph.primitive") == 1
    sizes = tuple({"n": 5, "m": 37}.get(str(size), size) for size in shape)
    x = RNG.uniform(-2, 2, sizes).astype(np.float32)
    # Sums of up to 10000 terms in f32, in another order.
    np.testing.assert_allclose(exe(x), numbers(x.astype(np.float64))[form], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("sizes", [(5, 37), (4, 1), (0, 3), (3, 0), (1, 9), (2, 5000)])
@pytest.mark.parametrize("sliced", [False, True])
def test_a_row_in_the_result(sizes: tuple[int, int], sliced: bool) -> None:
    """It is kept there unless the loop that replaces it guards a read of its reduction."""
    module, exe = shares(sliced)
    arrays = [RNG.uniform(-2, 2, sizes).astype(np.float32) for _ in range(2)]
    if sliced:
        arrays += map(np.int64, (0, 2, sizes[1] // 2))
    # Sums of up to 5000 terms of f32, in another order.
    np.testing.assert_allclose(exe(*arrays), module.run_reference(*arrays), rtol=2e-5, atol=1e-7)


@functools.cache
def shares(sliced: bool) -> tuple[sw.Module, sw.Executable]:
    """A program for all sizes."""
    b = sw.Builder("main")
    values = [b.input(name, ("n", "m")) for name in ("x", "weights")]
    if sliced:
        places = [b.input(name, (), "i64") for name in ("start", "step", "count")]
        values = [b.dynamic_slice(value, *places, axis=1) for value in values]
    powers = b.exp(values[0])
    b.output(b.div(powers, b.add(total(b, b.mul(powers, values[1])), 1e5)))
    module = b.module()
    exe = sw.compile(module, target="x86-64-v3", threads=1)
    assert exe.ir("fused").count("graph.primitive") == 1
    assert ("loop.load %y" in exe.ir("kernels")) != sliced
    return module, exe


@pytest.mark.parametrize("form", [decomposed_softmax, decomposed_layer_norm])
@pytest.mark.parametrize("depth", [0, 5])
@pytest.mark.parametrize(
    "shape", cases([(5, 37), ("n", 64), (1, 8), (3, 1), (1, 1)], [("n", 64), (1, 8), (1, 1)])
)
def test_decomposed_rows(form: Rows, depth: int, shape: tuple[int | str, int]) -> None:
    """A softmax or a norm of single operators is one kernel, also after a dense layer."""
    b, (rows, columns) = sw.Builder("main"), shape
    w = RNG.uniform(-1, 1, (columns, depth)).astype(np.float32)
    x = b.input("x", (rows, depth or columns))
    b.output(form(b, b.dense(x, w) if depth else x))
    module = b.module()
    exe = sw.compile(module, target="x86-64-v3", threads=1)
    if columns > 1:
        assert exe.ir("fused").count("graph.primitive") == 1
    array = RNG.uniform(-2, 2, (7 if rows == "n" else rows, depth or columns)).astype(np.float32)
    # A few dozen terms of size 1, in another order.
    np.testing.assert_allclose(exe(array), module.run_reference(array), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(10, 1), (1, 10), (1, 1)])
def test_a_reduction_along_a_dimension_of_one(shape: tuple[int, int]) -> None:
    exe = compiled(without_column_sum, shape)
    assert exe.ir("fused").count("graph.primitive") == 1
    x = RNG.uniform(-2, 2, shape).astype(np.float32)
    # Sums of ten terms of f32.
    expected = numbers(x.astype(np.float64))[without_column_sum]
    np.testing.assert_allclose(exe(x), expected, rtol=1e-5, atol=1e-5)

"""Kernels of a user's own with loops that keep their order: recurrences, scans, histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ..harness import RNG, close, same
from .test_operators import random


@sw.kernel
def recurrence(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0]) as i:
        y[i, 0] = x[i, 0]
        with k.serial(x.shape[1] - 1) as j:
            y[i, j + 1] = y[i, j] * 0.5 + x[i, j + 1]


@sw.kernel
def running(k: Any, x: Any, y: Any) -> None:
    """Mean and variance up to each element of a row (Welford)."""
    with k.loops(x.shape[0]) as i:
        start = x[i, 0] * 0

        def step(j: Any, count: Any, mean: Any, square: Any) -> tuple[Any, ...]:
            more, difference = count + 1, x[i, j] - mean
            new = mean + difference / more
            total = square + difference * (x[i, j] - new)
            y[i, j] = total / more
            return more, new, total

        k.carry(x.shape[1], [start, start, start], step)


@sw.kernel
def histogram(k: Any, i: Any, y: Any) -> None:
    with k.loops(*y.shape) as n:
        y[n] = 0.0
    with k.serial(*i.shape) as n:
        y.accumulate(k.minimum(k.maximum(i[n], 0), y.shape[0] - 1), 1.0)


@sw.kernel
def reversed_rows(k: Any, x: Any, y: Any) -> None:
    with k.loops(x.shape[0]) as i:
        row = k.local(x.shape[1], "f32")
        with k.loops(x.shape[1]) as j:
            row[j] = x[i, j] * 2
        with k.loops(x.shape[1]) as j:
            y[i, j] = row[x.shape[1] - 1 - j]


@sw.kernel
def reversed_symbolic_rows(k: Any, x: Any, y: Any) -> None:
    n = x.shape[1]
    with k.loops(x.shape[0]) as i:
        rows, none = k.local((2, n + 1), "f32"), k.local(n - 100)
        assert rows.shape[0] == 2
        with k.loops(n) as j:
            rows[1, j] = x[i, j] + 1.0
        with k.loops(n - 100) as j:
            none[j] = 0.0
        with k.loops(n) as j:
            y[i, j] = rows[1, n - 1 - j]


def call(
    kernel: Any, inputs: list[np.ndarray], shape: tuple[int, ...], level: int
) -> sw.Executable:
    b = sw.Builder()
    dtypes = {"float32": "f32", "int64": "i64"}
    values = [b.input(f"x{n}", a.shape, dtypes[a.dtype.name]) for n, a in enumerate(inputs)]
    (made,) = b.call_kernel(kernel, *values, results=[sw.TensorSpec(shape)])
    b.output(made)
    return sw.compile(b.module(), threads=1, opt_level=level, check=True)


def test_local_buffers_of_symbolic_size() -> None:
    x, b = random((3, 5)), sw.Builder()
    result = sw.TensorSpec(("n", "m"))
    (made,) = b.call_kernel(
        reversed_symbolic_rows, b.input("x", ("n", "m"), "f32"), results=[result]
    )
    b.output(made)
    exe = sw.compile(b.module(), threads=1)
    for stage in ("kernels", "loops", "llvm", "asm"):
        same(exe.run_at(stage, x), x[:, ::-1] + 1, stage)


@sw.kernel
def last_of_a_square(k: Any, x: Any, y: Any) -> None:
    n = x.shape[0]
    with k.loops(*y.shape):
        square = k.local((n, n), "f32")
        square[n - 1, n - 1] = 1.0
        y[()] = square[n - 1, n - 1]


def test_local_buffers_whose_size_wraps_around() -> None:
    b = sw.Builder()
    x = b.input("x", ("n", 0), "f32")
    b.output(b.call_kernel(last_of_a_square, x, results=sw.TensorSpec(())))
    exe = sw.compile(b.module(), threads=1)
    assert exe(np.zeros((3, 0), np.float32)) == 1
    with pytest.raises(MemoryError, match="EiB"):
        exe.run_at("llvm", np.zeros((2**33, 0), np.float32))


@pytest.mark.parametrize("level", [0, 3])
def test_a_recurrence(level: int) -> None:
    x = random((7, 33))
    expected = x.copy()
    for j in range(1, 33):
        expected[:, j] += expected[:, j - 1] * np.float32(0.5)
    got = call(recurrence, [x], x.shape, level)(x)
    # One rounding for two, where the product becomes part of the sum.
    close(got, expected, atol=1e-6)


@pytest.mark.parametrize("level", [0, 3])
def test_carried_values(level: int) -> None:
    x = random((5, 21))
    got = call(running, [x], x.shape, level)(x)
    expected = [x[:, : j + 1].astype(np.float64).var(axis=1) for j in range(21)]
    np.testing.assert_allclose(got, np.stack(expected, axis=1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("level", [0, 3])
def test_a_histogram(level: int) -> None:
    i = RNG.integers(0, 10, 1000)
    got = call(histogram, [i], (10,), level)(i)
    np.testing.assert_array_equal(got, np.bincount(i, minlength=10))


@pytest.mark.parametrize("level", [0, 3])
def test_a_local_buffer(level: int) -> None:
    x = random((5, 12))
    np.testing.assert_array_equal(call(reversed_rows, [x], x.shape, level)(x), 2 * x[:, ::-1])


def refused(body: Any, message: str) -> None:
    @sw.kernel
    def kernel(k: Any, x: Any, y: Any) -> None:
        body(k, x, y)
        with k.loops(*y.shape) as index:
            y[index] = x[index]

    x = random((5, 12))
    with pytest.raises(sw.CompileError, match=message):
        call(kernel, [x], x.shape, 3)


def test_what_a_kernel_is_refused_for() -> None:
    refused(lambda k, x, y: k.carry(3, [], lambda i: ()), "carries nothing, expected one value or")
    hint = r'expected a scalar, got float .*; k.cast\(0, "f32"\) makes one of a number'
    refused(lambda k, x, y: k.carry(3, [1.0], lambda i, a: (a,)), hint)
    refused(lambda k, x, y: k.carry(3, x[0, 0], lambda i, a: (a,)), "expected a list of scalars")
    two = "wrong results of a step, expected a tuple of 1, got "
    refused(lambda k, x, y: k.carry(3, [x[0, 0]], lambda i, a: (a, a)), f"{two}tuple of 2")
    refused(lambda k, x, y: k.carry(3, [x[0, 0]], lambda i, a: a), f"{two}Scalar")
    refused(lambda k, x, y: k.carry(3, [x[0, 0]], lambda i, a: (a < 1,)), "changes the type")
    refused(lambda k, x, y: k.local((3, 0)), r"wrong size of a local buffer, .* got \[3, 0\]")
    refused(lambda k, x, y: k.local(3, "f3"), "unknown element type")
    refused(lambda k, x, y: y.accumulate((0, 0), 1.0, "sub"), "wrong combiner, expected add, mul")


def test_iterations_that_meet_are_refused() -> None:
    def body(k: Any, x: Any, y: Any) -> None:
        with k.loops(*x.shape) as (i, j):
            y.accumulate((i, 0), x[i, j])

    refused(body, 'loop "j"')


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("f32", 1, 1.0),
        ("f32", 1e-3, 1e-3),
        ("f64", 0.1, 0.1),
        ("f16", 70000.0, np.inf),
        ("i8", 300, 44),
        ("i64", -(2**63), -(2**63)),
        ("i32", 2.9, 2),
        ("i1", 2, True),
    ],
)
def test_a_number_is_a_scalar(dtype: str, number: float, expected: float) -> None:
    @sw.kernel
    def filled(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:
            y[i] = k.cast(number, dtype)

    b = sw.Builder("main")
    x = b.input("x", (2,), "f32")
    b.output(b.call_kernel(filled, x, results=sw.TensorSpec((2,), dtype)))
    result = sw.compile(b.module(), threads=1)(np.zeros(2, np.float32))
    assert result.tolist() == np.array([expected] * 2, result.dtype).tolist()


def test_a_product_is_carried_from_a_number_on() -> None:
    @sw.kernel
    def product(k: Any, x: Any, y: Any) -> None:
        with k.loops(*y.shape) as i:
            one = [k.cast(1, "f32")]
            (y[i],) = k.carry(x.shape[1], one, lambda j, total: (total * x[i, j],))

    x = np.array([[1, 2, np.inf], [3, 4, 5]], np.float32)
    b = sw.Builder("main")
    given = b.input("x", ("n", "m"), "f32")
    b.output(b.call_kernel(product, given, results=sw.TensorSpec(("n",), "f32")))
    compiled = sw.compile(b.module(), threads=1)
    assert compiled(x).tolist() == [np.inf, 60]
    assert compiled(x[:, :0]).tolist() == [1, 1]

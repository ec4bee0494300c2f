"""Rows of every width around those of vectors, of all element types: what is left of a row.

`make guard` runs this with each buffer against an unmapped page, where a vector that reaches beyond
the last row ends the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.dtype_names import dtype_named

from ..harness import close

FLOATS, INTEGERS = ("f64", "f32", "f16", "bf16"), ("i64", "i32", "i16", "i8", "ui8")
STATIC = (1, 2, 7, 9, 15, 17, 31, 33, 63, 65)
WIDTHS = range(1, 68)
TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-2, "bf16": 1e-1}

Numbers = Callable[..., np.ndarray]


def numbers(dtype: str) -> Numbers:
    """Makes arrays of a shape, the same for a seed."""

    def make(*shape: int, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        if dtype in FLOATS:
            return rng.standard_normal(shape).astype(dtype_named(dtype))
        return rng.integers(0, 9, shape).astype(dtype_named(dtype))

    return make


def everywhere(b: sw.Builder, x: Any) -> Iterator[Any]:
    """Operators that all element types have."""
    yield x + x
    yield b.transpose(x, [1, 0])
    yield b.reduce(x, "max", axes=[1], keepdims=False)
    yield b.reduce(x, "sum", axes=[0], keepdims=True)
    yield b.concat([x, x], axis=1)
    yield b.gather(x, np.array([0, -1, 0]), axis=0)
    yield b.cumulative(x, "sum", 1)
    yield b.cast(x, "f32")
    yield b.cast(x, "i32")
    yield b.cast(x, "i8")
    yield b.where(b.greater(x, b.transpose(b.transpose(x, [1, 0]), [1, 0]) * 2), x, x + x)
    yield b.sort(x)[0]


def of_floats(b: sw.Builder, x: Any, make: Numbers) -> Iterator[Any]:
    yield b.softmax(x, axis=1)
    yield b.tanh(x) * b.sigmoid(x)
    yield b.matmul(b.transpose(x, [1, 0]), x)
    yield b.matmul(x, b.transpose(x, [1, 0]))
    yield b.conv(b.reshape(x, [1, 1, 3, -1]), make(3, 1, 1, 1))


def program(dtype: str, width: int | str) -> sw.Module:
    b, make = sw.Builder("main"), numbers(dtype)
    x = b.input("x", (3, width), dtype)
    for result in everywhere(b, x):
        b.output(result)
    for result in of_floats(b, x, make) if dtype in FLOATS else ():
        b.output(result)
    if dtype in FLOATS and isinstance(width, int):
        b.output(b.dense(x, make(width, width, seed=1), bias=make(width, seed=2)))
    return b.module()


def as_reference(exe: sw.Executable, module: sw.Module, x: np.ndarray, dtype: str) -> None:
    for number, (found, expected) in enumerate(zip(exe(x), module.run_reference(x), strict=True)):
        tolerance = TOLERANCE[dtype] if dtype in FLOATS else 0.0
        largest = np.abs(expected.astype(np.float64)).max(initial=0)
        close(found, expected, tolerance, tolerance * largest, what=f"result {number}")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_any_width(dtype: str) -> None:
    module, make = program(dtype, "n"), numbers(dtype)
    exe = sw.compile(module, threads=1)
    for width in WIDTHS:
        as_reference(exe, module, make(3, width), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("width", STATIC)
def test_each_width(dtype: str, width: int) -> None:
    module = program(dtype, width)
    as_reference(sw.compile(module, threads=1), module, numbers(dtype)(3, width), dtype)

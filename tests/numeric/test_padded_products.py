"""Sums of products with a constant around them: one kernel stores both."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontends.builder import Builder, Value

from ..harness import cases, close, floats

Program = Callable[[Builder, Value], Value]


def conv(b: Builder, x: Value) -> Value:
    return b.relu(b.conv(x, floats(5, 3, 2, 3)))


PADS: dict[str, tuple[Program, str]] = {
    "rows and columns": (lambda b, x: b.pad(conv(b, x), [0, 0, 1, 2], [0, 0, 2, 1]), "conv_relu"),
    "before": (lambda b, x: b.pad(conv(b, x), [0, 0, 0, 3], [0] * 4), "conv_relu"),
    "after": (lambda b, x: b.pad(conv(b, x), [0] * 4, [0, 0, 2, 0], -np.inf), "conv_relu"),
    "every axis": (lambda b, x: b.pad(conv(b, x), [1, 2, 3, 1], [2, 1, 1, 3], 0.5), "conv_relu"),
    "no activation": (
        lambda b, x: b.pad(b.conv(x, floats(2, 3, 1, 1)), [1] * 4, [0] * 4, -0.0),
        "conv",
    ),
    "a dense layer": (
        lambda b, x: b.pad(b.dense(x, floats(4, 7)), [0, 0, 0, 1], [1, 0, 0, 2]),
        "dense",
    ),
}


USUAL = [*((name, "f32") for name in PADS), ("after", "f64"), ("before", "f16")]


@pytest.mark.parametrize(
    "case", cases([*itertools.product(PADS, ["f64", "f32", "f16"])], USUAL), ids="-".join
)
def test_one_kernel(case: tuple[str, str], all_tests: bool) -> None:
    name, dtype = case
    build, product = PADS[name]
    b = sw.Builder()
    b.output(build(b, b.input("x", ("n", 3, "h", 7), dtype)))
    kind = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[dtype]
    module = b.module()
    for threads in (1, 2) if all_tests or name == "rows and columns" else (2,):
        exe = sw.compile(module, threads=threads)
        assert f"@fused_{product}_pad(" in exe.ir("kernels")
        for images, height in ((2, 9), (1, 2), (0, 5)):
            x = floats(images, 3, height, 7, dtype=kind)
            close(exe(x), module.run_reference(x), 2e-2 if dtype == "f16" else 2e-5)


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_what_is_around_is_no_constant(mode: str) -> None:
    b = sw.Builder()
    y = conv(b, b.input("x", (2, 3, 6, 9)))
    b.output(b.pad(y, [0, 0, 1, 2], [0, 0, 1, 2], mode=mode))
    exe = sw.compile(b.module(), threads=1)
    assert "conv_relu_pad" not in exe.ir("kernels")
    x = floats(2, 3, 6, 9)
    close(exe(x), b.module().run_reference(x), 2e-5)


def test_it_is_needed_without_a_border_too() -> None:
    b = sw.Builder()
    y = conv(b, b.input("x", (2, 3, 6, 9)))
    padded = b.pad(y, [0, 0, 1, 1], [0, 0, 1, 1])
    b.output(b.conv(padded, floats(5, 5, 3, 3)) + y)
    exe = sw.compile(b.module(), threads=1)
    assert "conv_relu_pad" not in exe.ir("kernels")
    x = floats(2, 3, 6, 9)
    close(exe(x), b.module().run_reference(x), 2e-5)


def test_what_follows_the_border_reads_it() -> None:
    b = sw.Builder()
    y = b.dense(b.input("x", (6, 9)), floats(5, 9))
    b.output(b.tanh(b.pad(y, [1, 0], [0, 2], 0.5)) + 1.0)
    exe = sw.compile(b.module(), threads=1)
    x = floats(6, 9)
    close(exe(x), b.module().run_reference(x), 2e-5)

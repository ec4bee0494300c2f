"""Predicted times of a program under other schedules of its kernels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace import structure_of, trace_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.passes.loop.scheduler.predictions import Predictions, instructions


def program(widths: Sequence[int]) -> Compilation:
    """Layers of these widths; those of one shape are calls of one kernel."""
    b = sw.Builder("main")
    x = b.input("x", (8, widths[0]), "f32")
    for before, after in itertools.pairwise(widths):
        x = b.relu(b.dense(x, np.ones((after, before), np.float32)))
    b.output(x, name="y")
    return Compilation.of(Request(b.module(), "x86-64-v3", threads=1))


def kernels(compilation: Compilation) -> list[KernelOp]:
    return [op for op in compilation.unscheduled().op.ops if isinstance(op, KernelOp)]


def predictions(compilation: Compilation) -> Predictions:
    return Predictions(compilation.unscheduled().op, compilation.target, 1)


def test_a_program_is_the_sum_of_all_calls() -> None:
    two, three, mixed = program([64] * 3), program([64] * 4), program([64, 64, 32])
    (one,) = kernels(two)
    key = structure_of(one)
    scalar = predictions(two).ratio(key, "")
    assert scalar is not None
    assert scalar > 2, "scalars in place of vectors"
    assert predictions(three).ratio(key, "") == pytest.approx(scalar)
    first, second = kernels(mixed)
    keys = structure_of(first), structure_of(second)
    assert key in keys
    found = [predictions(mixed).ratio(k, "") for k in keys]
    assert None not in found
    # Each is a part of the program, and the parts add up to all of it.
    times = [instructions(kernel, mixed.target) for kernel in (first, second)]
    scheduled = [op for op in mixed.at("scheduled").op.ops if isinstance(op, KernelOp)]
    whole = sum(instructions(kernel, mixed.target) for kernel in scheduled)
    assert sum(ratio or 0.0 for ratio in found) - 1 == pytest.approx(sum(times) / whole)


def test_the_default_schedule_takes_its_own_time() -> None:
    compilation = program([64, 64, 32])
    scheduled = [op for op in compilation.at("scheduled").op.ops if isinstance(op, KernelOp)]
    for kernel, made in zip(kernels(compilation), scheduled, strict=True):
        ratio = predictions(compilation).ratio(structure_of(kernel), trace_of(made))
        assert ratio == pytest.approx(1.0)


def test_a_trace_that_does_not_fit_has_none() -> None:
    compilation = program([64, 64])
    (kernel,) = kernels(compilation)
    assert predictions(compilation).ratio(structure_of(kernel), "split(gone, 8)") is None
    assert predictions(compilation).ratio("unknown", "") is None

"""Products of few rows wait for their weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.target import Target, named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace import trace_of
from stepwell.passes.loop.schedule import schedule_kernel


def default_trace(kernel: KernelOp, target: Target) -> str:
    kernel.detach()
    return trace_of(schedule_kernel(kernel, target)[0].kernel)


@pytest.mark.parametrize(
    ("rows", "columns", "parallel"),
    # 480 x 512 weights are streamed from beyond a cache of 1 MiB, which threads share the more.
    [(1, 480, True), (4, 480, True), (1, 240, False), (4, 240, False)],
)
def test_one_row_is_as_much_work_as_four(kernels, kernel_of, rows, columns, parallel) -> None:
    kernel = kernel_of(kernels.dense(rows, columns, 512))
    assert ("tiles(" in default_trace(kernel, named("x86-64-v4"))) == parallel


@pytest.mark.parametrize(
    ("rows", "columns", "l2_bytes", "alternating"),
    [
        (1, 1024, 1 << 21, True),
        (None, 1024, 1 << 21, True),
        (1, 1024, 1 << 22, False),  # a cache holds the weights
        (1, 1024, 1 << 17, False),  # too large for any part to stay, and streamed
        (40, 1024, 1 << 20, False),  # the next panel is prefetched
    ],
)
def test_calls_alternate_where_a_cache_keeps_a_part(
    kernels, kernel_of, rows, columns, l2_bytes, alternating
) -> None:
    kernel = kernel_of(kernels.dense(rows, columns, 512))
    target = replace(named("x86-64-v4"), l2_bytes=l2_bytes)
    trace = default_trace(kernel, target)
    assert ("order=alternating" in trace) == alternating
    if alternating:
        assert ("prefetch(1, k, 8192)" in trace) == (rows is not None)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_alternating_tiles_at_every_stage(threads) -> None:
    """What is computed does not depend on the order."""
    b = sw.Builder()
    x = b.input("x", (7, 5))
    b.output(b.softmax(x, axis=1))
    texts = pipeline(3, threads=threads)
    texts["scheduled"] = 'loop-schedule{trace="tiles(i, order=alternating)"}'
    exe = sw.compile(b.module(), pipeline=texts)
    for stage in ("scheduled", "loops", "llvm"):
        array = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)
        expected = b.module().run_reference(array)
        for _ in range(3):
            np.testing.assert_allclose(exe(array), expected, rtol=1e-5)
        np.testing.assert_allclose(exe.run_at(stage, array), expected, rtol=1e-5)
    assert "_turn" in exe.ir("llvm")

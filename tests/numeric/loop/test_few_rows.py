"""Products of few rows wait for their weights."""

from __future__ import annotations

import pytest

from stepwell.core.target import named
from stepwell.dialects.loop.trace import trace_of
from stepwell.passes.loop.schedule import schedule_kernel


@pytest.mark.parametrize(
    ("rows", "columns", "parallel"),
    [(1, 512, True), (3, 512, True), (4, 512, True), (1, 480, False), (4, 480, False)],
)
def test_one_row_is_as_much_work_as_four(kernels, kernel_of, rows, columns, parallel) -> None:
    kernel = kernel_of(kernels.dense(rows, columns, 512))
    kernel.detach()
    after, _ = schedule_kernel(kernel, named("x86-64-v4"))
    assert ("tiles(" in trace_of(after.kernel)) == parallel

"""Rows and reshapes that other kernels read in place, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.pipelines.staircase import pipeline, pipeline_text

from ..harness import cases, close
from .test_operators import random


def sums(threads: int = 1, copied: bool = False) -> tuple[sw.Module, sw.Executable]:
    """Gathers by a row of indices, and sums of a value in two shapes, which lives on."""
    b = sw.Builder("main")
    ends, x = b.input("ends", (2, "e"), "i64"), b.input("x", ("n", 6))
    rows = b.reshape(b.slice(ends, [1, 0], [2, 2**63 - 1]), [-1])
    b.output(b.gather(x, rows, axis=0), name="gathered")
    made = b.matmul(x, random((6, 6)))
    view = b.reshape(made, [-1, 3, 2])
    b.output(b.reduce(view * random((1, 3, 2)), "sum", [2]), name="sums")
    b.output(b.reduce(view * random((1, 3, 2), seed=1), "sum", [2]), name="others")
    # It may not be written over what the view is of, which is read later.
    b.output(b.matmul(b.relu(b.cumulative(made, "sum", axis=0)), random((6, 6))), name="changed")
    b.output(b.cumulative(view, "sum", axis=0), name="pairs")
    module = b.module()
    if copied:
        text = pipeline_text(pipeline(copy_indices=True))
        return module, sw.compile(module, pipeline=text)
    return module, sw.compile(module, threads=threads)


@pytest.mark.parametrize("way", cases([(1, False), (2, False), (1, True)], [(2, False)]), ids=str)
def test_views_are_read_in_place(way: tuple[int, bool]) -> None:
    threads, copied = way
    module, exe = sums(threads, copied)
    fused = exe.ir("fused")
    assert "@fused_reshape(" not in fused
    assert "@fused_slice" not in fused
    for ops in ("graph.slice, graph.reshape", "graph.reshape"):
        assert f"no kernel for {ops}, because" in exe.explain()
    for edges, nodes in ((5, 7), (1, 1), (0, 3)):
        ends = np.stack([np.full(edges, 99), np.arange(edges) % nodes]).astype(np.int64)
        x = random((nodes, 6))
        close(exe(ends, x), module.run_reference(ends, x))
    ends = np.array([[0, 0], [0, 7]])
    with pytest.raises(sw.InputError, match="index out of range at position 1"):
        exe(ends, random((7, 6)))
    for stage in ("kernels", "buffers", "loops"):
        close(exe.run_at(stage, ends * 0, x), exe(ends * 0, x), 1e-6, what=stage)

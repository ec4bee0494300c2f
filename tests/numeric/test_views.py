"""Rows, reshapes and joined parts that need no kernel, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def joined(returned: bool = False, twice: bool = False) -> sw.Module:
    """Products that are joined, with what follows joined again; each can be read by others."""
    b = sw.Builder("main")
    x = b.input("x", (1, 4, 16))
    first, second = (b.matmul(x, random((16, 16), seed=n)) for n in (1, 2))
    pair = b.concat([first, second, *([first] if twice else [])], axis=1)
    # It may be written over neither: both are parts of what is read later.
    changed = b.matmul(b.cumulative(pair, "sum", axis=1), random((16, 16), seed=3))
    one = b.cumulative(first, "sum", axis=2)
    all_of_them = b.concat([pair, changed, one], axis=1)
    products = b.matmul(all_of_them, random((16, 16), seed=4))
    # Its memory is free when all parts have been read, and not before `second` is, at the end.
    later = b.matmul(b.cumulative(products, "sum", axis=1), random((16, 16), seed=5))
    b.output(b.matmul(later, random((16, 16), seed=6)), name="products")
    b.output(b.cumulative(second, "max", axis=1), name="maxima")
    if returned:
        b.output(pair, name="pair")
    return b.module()


@pytest.mark.unguarded("no slots are shared")
@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_parts_are_computed_where_they_are_joined(threads: int) -> None:
    module, x = joined(), random((1, 4, 16), seed=9)
    exe = sw.compile(module, threads=threads)
    why = "because its operands are computed in the buffer of its result"
    assert f"no kernel for graph.concat, {why}" in exe.explain()
    assert exe.ir("scheduled").count("graph.concat") == 2
    # One slot has all parts, one what `changed` is a product of, one `products`.
    assert "arena of 3 slots for " in exe.explain()
    close(exe(x), module.run_reference(x), scaled=True)
    for stage in ("kernels", "scheduled", "buffers", "loops", "llvm"):
        close(exe.run_at(stage, x), exe(x), what=stage, scaled=True)


@pytest.mark.parametrize("case", ["returned", "twice"])
def test_parts_that_are_elsewhere_are_copied(case: str) -> None:
    module, x = joined(**{case: True}), random((1, 4, 16), seed=9)
    exe = sw.compile(module)
    assert "@fused_concat(" in exe.ir("fused")
    close(exe(x), module.run_reference(x), scaled=True)


@given(st.data())
def test_values_joined_at_random(data: st.DataObject) -> None:
    b = sw.Builder("main")
    values = [b.input("x", (1, 3, 16))]
    for step in range(data.draw(st.integers(2, 9), "steps")):
        ways = st.sampled_from(["product", "running", "join", "join"])
        match data.draw(ways, "way"):
            case "product":
                value = data.draw(st.sampled_from(values), "of")
                values.append(b.matmul(value, random((16, 16), seed=step)))
            case "running":
                value = data.draw(st.sampled_from(values), "of")
                values.append(b.cumulative(value, "max", axis=data.draw(st.integers(1, 2), "axis")))
            case _:
                parts = data.draw(
                    st.lists(st.sampled_from(values), min_size=1, max_size=3), "parts"
                )
                values.append(b.concat(parts, axis=1))
    for value in data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3), "results"):
        b.output(b.reduce(value, "sum", [1]) if data.draw(st.booleans(), "summed") else value)
    module, x = b.module(), random((1, 3, 16), seed=99)
    exe = sw.compile(module)
    close(exe(x), module.run_reference(x), 1e-4)

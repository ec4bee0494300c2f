"""Schedules find loops again by what the steps say has become of them, whatever they are called."""

from __future__ import annotations

import pytest

from stepwell.core.target import named
from stepwell.dialects.loop.handles import forwarding
from stepwell.dialects.loop.nests import loop_named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace import trace_of
from stepwell.passes.loop.scheduler.replay import replay
from stepwell.passes.loop.scheduler.schedule import Schedule
from stepwell.passes.loop.steps.fuse import fuse
from stepwell.passes.loop.steps.split import split

V3 = named("x86-64-v3")


@pytest.fixture
def schedule_of(kernel_of):
    def make(text: str) -> Schedule:
        kernel = kernel_of(text)
        kernel.detach()
        return Schedule(kernel, V3)

    return make


def around(kernel: KernelOp, inner: str, outer: str) -> bool:
    return loop_named("test", kernel, outer).is_ancestor(loop_named("test", kernel, inner))


@pytest.mark.parametrize("tail", ["peel", "split", "cases"])
def test_a_split_forwards_the_loops_of_the_body_to_each_part(kernels, schedule_of, tail) -> None:
    schedule = schedule_of(kernels.dense(None, 8, 6))
    parts = schedule.split("i", 3, tail)
    nests = parts.nests("j", "k")
    assert [row for row, _, _ in nests] == list(parts.inners)
    assert len(nests) == (3 if tail == "cases" else 2)
    assert len({name for nest in nests for name in nest}) == 3 * len(nests)
    for row, lane, reduction in nests:
        assert around(schedule.kernel, lane, row)
        assert around(schedule.kernel, reduction, lane)
    assert around(schedule.kernel, parts.inner, parts.outer)
    if tail == "cases":
        assert [schedule.extent(row) for row in parts.inners] == [3, 1, 2]


def test_a_masked_split_has_one_part(kernels, schedule_of) -> None:
    schedule = schedule_of(kernels.dense(None, 8, 6))
    assert schedule.split("i", 3, "mask").nests("k") == [("i1", "k")]


def test_a_split_without_whole_chunks_has_the_rest_only(kernels, schedule_of) -> None:
    schedule = schedule_of(kernels.dense(2, 8, 6))
    parts = schedule.split("i", 3, "split")
    assert (parts.outers, parts.nests("k")) == ([], [("i1t", "kt")])


def test_handles_do_not_depend_on_names(kernels, schedule_of) -> None:
    """Loops that have the names that parts would have: those get others."""
    text = kernels.dense(None, 8, 6).replace('"j"', '"i1"').replace('"k"', '"i1t1"')
    schedule = schedule_of(text)
    parts = schedule.split("i", 3, "cases")
    for row, lane, reduction in parts.nests("i1", "i1t1"):
        assert around(schedule.kernel, lane, row)
        assert around(schedule.kernel, reduction, lane)


def test_a_split_of_a_reduction(kernels, schedule_of) -> None:
    schedule = schedule_of(kernels.dense(4, 8, 7))
    parts = schedule.split("k", 3)
    assert around(schedule.kernel, parts.inner, parts.outer)
    assert [schedule.extent(name) for name in parts.inners] == [3, 1]


def test_borders_and_distributed_parts_come_in_order(kernels, schedule_of) -> None:
    schedule = schedule_of(kernels.dense(9, 8, 6))
    assert [schedule.extent(name) for name in schedule.split_border("i", 2, 1)] == [2, 6, 1]
    schedule = schedule_of(kernels.centred(4, 3, 3))
    first, second = schedule.distribute("i", "a")
    assert around(schedule.kernel, "a", first)
    assert not around(schedule.kernel, "a", second)


def test_what_is_rebuilt_is_seen_within_the_context_only(kernels, kernel_of) -> None:
    kernel = kernel_of(kernels.dense(4, 8, 6))
    with forwarding() as forwarded:
        kernel = fuse(kernel, "i", "j")
    split(kernel, "i_j", 4)
    assert forwarded == {"i": ["i_j"], "k": ["k"]}


def test_a_step_of_several_nests_vectorises_each_on_its_own(kernels, schedule_of) -> None:
    schedule = schedule_of(kernels.dense(None, 8, 6))
    nests = schedule.split("i", 3, "cases").nests("j")
    schedule.vectorize(*(name for nest in nests for name in nest))
    kinds = [str(op.results[0].type) for op in schedule.kernel.walk() if op.name == "math.fma"]
    assert kinds == ["vector<3x8xf32>", "vector<1x8xf32>", "vector<2x8xf32>"]


OLD = (
    "version(1); split(j, 16, tail=mask); reorder(j0, i, j1); pack(1, j0, k, j1); "
    "split(i, 6, tail=cases); vectorize(i1, j1, cases=5); unroll(kt1, 4); unroll(kt2, 2); "
    "prefetch(1, k, 8192, cases=5); tiles(j0)"
)
"""As the first version wrote it."""
CURRENT = (
    "split(j, 16, tail=mask); reorder(j0, i, j1); pack(1, j0, k, j1); split(i, 6, tail=cases); "
    "vectorize(i1, j1, i1t1, j1t1, i1t2, j1t2, i1t3, j1t3, i1t4, j1t4, i1t5, j1t5); "
    "unroll(kt1, 4); unroll(kt2, 2); tiles(j0)"
)
"""The same steps as they are written now, without the prefetch."""


def test_a_trace_of_the_first_version_replays(kernels, kernel_of) -> None:
    text = kernels.dense(None, 128, 30)
    new = replay(kernel_of(text), OLD)
    assert trace_of(new).count("prefetch(1, k") == 6
    again = replay(kernel_of(text), OLD.replace("prefetch(1, k, 8192, cases=5); ", ""))
    assert str(again) == str(replay(kernel_of(text), CURRENT))

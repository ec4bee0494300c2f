"""Any sequence of primitives leaves a kernel that verifies and means what it meant before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.loop.nests import ScheduleError, loop_names, loops_of
from stepwell.dialects.loop.ops import KernelOp
from stepwell.passes.loop.steps.drop_unit_loops import drop_unit_loops
from stepwell.passes.loop.steps.fuse import fuse
from stepwell.passes.loop.steps.hoist import hoist
from stepwell.passes.loop.steps.merge import merge
from stepwell.passes.loop.steps.reorder import reorder
from stepwell.passes.loop.steps.sink import sink
from stepwell.passes.loop.steps.split import TAILS, split
from stepwell.passes.loop.steps.split_border import split_border
from stepwell.passes.loop.steps.stage import stage
from stepwell.passes.loop.steps.tiles import tiles
from stepwell.passes.loop.steps.unroll import unroll
from stepwell.passes.loop.steps.vectorize import vectorize

QUICK = settings(deadline=None, max_examples=settings().max_examples * 15 // 100)
SIZES = st.sampled_from([None, 1, 3, 5])
MOST_LOOPS = 60
"""Copies of copies are not worth their time."""


def step(data: st.DataObject, kernel: KernelOp) -> KernelOp:
    """A primitive on loops of the kernel, whatever it makes of them."""
    names = sorted(loop_names(kernel))
    a, b = (data.draw(st.sampled_from(names)) for _ in range(2))
    number = data.draw(st.integers(1, 4))
    match data.draw(st.sampled_from(["split"] * 4 + ["split_border", "fuse", "stage", "others"])):
        case "split":
            return split(kernel, a, number, data.draw(st.sampled_from(TAILS)))
        case "split_border":
            return split_border(kernel, a, number - 1, number // 2)
        case "fuse":
            return fuse(kernel, a, b)
        case "stage":
            return stage(kernel, number - 1, a)
    others: list[Callable[[], KernelOp]] = [
        lambda: reorder(kernel, [b, a]),
        lambda: merge(kernel, a, b),
        lambda: sink(kernel, a),
        lambda: hoist(kernel, a),
        lambda: unroll(kernel, a, number),
        lambda: tiles(kernel, a),
        lambda: drop_unit_loops(kernel),
        lambda: vectorize(kernel, [a]),
    ]
    return data.draw(st.sampled_from(others))()


def nest(names: tuple[str, ...]) -> str:
    """Loops of these names in one another, all of an unknown size."""
    loops = "".join(f'loop.for "{name}" %{name} to %n {{\n' for name in names)
    place = f"(d0, d1, d2) -> (d0, d1, d2)({', '.join(f'%{name}' for name in names)})"
    kind = "memref<?x?x?xf32>"
    return f"""
loop.kernel @nest(%n: index, %x: {kind}) -> (%y: {kind}) {{
  {loops}
  %v = loop.load %x {place} : {kind}, f32
  loop.store %v, %y {place} : f32, {kind}
  {"}" * len(names)}
}}"""


NAMES = ("i", "i_", "i0", "i1", "it", "it1", "i1t", "i1t1", "i_0")
"""Names that parts of other loops would have."""


@settings(deadline=None, max_examples=settings().max_examples * 30 // 100)
@given(
    names=st.permutations(NAMES).map(lambda order: tuple(order[:3])),
    cuts=st.lists(
        st.tuples(st.integers(0, 9), st.integers(2, 3), st.sampled_from(TAILS)), max_size=4
    ),
)
@example(names=("i", "j", "k"), cuts=[(0, 3, "cases"), (2, 2, "cases")])
@example(names=("it", "i", "j"), cuts=[(0, 3, "cases")])
def test_loops_have_names_of_their_own(kernel_of, names, cuts) -> None:
    kernel = kernel_of(nest(names))
    for place, factor, tail in cuts:
        loops = [loop.loop_name.data for loop in loops_of(kernel)]
        if len(loops) > MOST_LOOPS:
            break
        name = sorted(loops)[place % len(loops)]
        with suppress(ScheduleError):
            kernel = split(kernel, name, factor, tail)
        after = [loop.loop_name.data for loop in loops_of(kernel)]
        assert len(set(after)) == len(after)
        try:
            kernel.verify()
        except VerifyException as error:
            # What is left of what is left is beyond the test of dependences.
            if "may depend on one another" not in str(error):
                raise
            break


def test_names_of_the_border_are_free(kernel_of) -> None:
    text = nest(("i", "ib", "ibb")).replace("to %n", "to 5")
    kernel = split_border(kernel_of(text), "i", 1, 1)
    kernel.verify()
    assert "ibbb" in loop_names(kernel)


@QUICK
@given(data=st.data(), n=SIZES)
@pytest.mark.parametrize("text", ["dense", "softmax", "matmul", "blurred"])
def test_any_sequence(kernels, normal, same_before_and_after, text, data, n) -> None:
    match text:
        case "dense":
            source, inputs = kernels.dense(n, 4, n), [(n or 7, n or 6), (4, n or 6), (4,)]
            inputs.append((n or 7, 4))
        case "softmax":
            source, inputs = kernels.softmax(4, n), [(4, n or 6)] * 2
        case "matmul":
            source = kernels.matmul(2, 3, n, 4)
            inputs = [(2, 3, 4), (4, n or 7), (2, 3, n or 7)]
        case _:
            source, inputs = kernels.blurred(n or 3, 4), [(n or 3, 6), (1,), (n or 3, 4)]

    def schedule(kernel: KernelOp) -> KernelOp:
        for _ in range(data.draw(st.integers(2, 6))):
            if not loop_names(kernel) or len(loop_names(kernel)) > MOST_LOOPS:
                break
            with suppress(ScheduleError):
                kernel = step(data, kernel)
            kernel.verify()
            names = [loop.loop_name.data for loop in loops_of(kernel)]
            assert len(names) == len(set(names))
        return kernel

    same_before_and_after(source, [normal(*shape) for shape in inputs], schedule)

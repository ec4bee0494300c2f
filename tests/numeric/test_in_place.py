"""Results that are written over operands: the same numbers, in less memory."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import stepwell as sw
from stepwell.conversions.graph_to_rt.slots import Lifetime, plan_arena
from stepwell.core.algebra.dims import Dim
from stepwell.core.registry import make_context
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.proofs.in_place import overwritable
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import close, floats


def weight(*shape: int) -> np.ndarray:
    return floats(*shape) / np.float32(8)


def residual(width: int, blocks: int) -> sw.Module:
    b = sw.Builder("main")
    h = b.relu(b.dense(b.input("x", ("n", width), "f32"), weight(width, width)))
    for _ in range(blocks):
        t = b.relu(b.dense(h, weight(width, width)))
        h = b.relu(b.dense(t, weight(width, width)) + h)
    b.output(b.softmax(h, axis=0), name="y")
    return b.module()


def kernel(text: str) -> KernelOp:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    (found,) = [op for op in module.ops if isinstance(op, KernelOp)]
    return found


@pytest.mark.unguarded("no slots are shared")
@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_residual_blocks_work_in_place(threads: int, all_tests: bool) -> None:
    module = residual(width=19, blocks=2)
    exe = sw.compile(module, threads=threads)
    assert "loop.in_place = [2" in exe.ir("kernels")
    # A block needs its input and what is between its two layers, and nothing else.
    assert re.search(r"arena of 2 slots for 5 buffers", exe.explain())
    for rows in (0, 13, 31, 200):
        x = floats(rows, 19)
        expected = module.run_reference(x)
        close(exe(x), expected, 2e-5, 1e-6)
        stages = ("scheduled", "buffers", "loops") if all_tests else ("buffers",)
        for stage in stages if rows == 13 else ():
            close(exe.run_at(stage, x), expected, 2e-5, 1e-6)


def test_what_may_not_share_does_not_share_in_llvm() -> None:
    llvm = Compilation.of(Request(residual(width=8, blocks=1), threads=1, opt_level=1)).text("llvm")
    heads = dict(re.findall(r"llvm\.func[^@\n]*@(fused_dense\w*)\(([^)]*)\)", llvm))
    plain, added = heads["fused_dense_relu"], heads["fused_dense_add_relu"]
    assert plain.count("llvm.noalias") == 3
    assert added.count("llvm.noalias") == 2


BODIES = {
    "same place": ("(%i, %j)", "(d0, d1) -> (d0, d1)", "(%i, %j)", [0]),
    "transposed": ("(%j, %i)", "(d0, d1) -> (d0, d1)", "(%i, %j)", []),
    "one row": ("(%i, %i)", "(d0, d1) -> (d0, d1)", "(%i, %j)", []),
    "written again": ("(%i, %i)", "(d0, d1) -> (d0, d1)", "(%i, %i)", []),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_output_goes_over_what_is_read_where_it_is_written(name: str) -> None:
    read, map, written, expected = BODIES[name]
    found = kernel(f"""
loop.kernel @k(%x: memref<4x4xf32>) -> (%y: memref<4x4xf32>) {{
  loop.for "i" %i to 4 {{
    loop.for "j" %j to 4 serial {{
      %v = loop.load %x {map}{read} : memref<4x4xf32>, f32
      loop.store %v, %y {map}{written} : f32, memref<4x4xf32>
    }}
  }}
}}""")
    assert overwritable(found, found.outputs[0]) == expected


def test_what_is_read_twice_is_kept() -> None:
    found = kernel("""
loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>, %z: memref<4xf32>) {
  loop.for "i" %i to 4 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
  loop.for "j" %j to 4 {
    %v = loop.load %x (d0) -> (d0)(%j) : memref<4xf32>, f32
    loop.store %v, %z (d0) -> (d0)(%j) : f32, memref<4xf32>
  }
}""")
    assert [overwritable(found, output) for output in found.outputs] == [[], []]


def test_what_another_store_needs_is_kept() -> None:
    found = kernel("""
loop.kernel @k(%x: memref<4xf32>, %z: memref<4xf32>) -> (%y0: memref<4xf32>, %y1: memref<4xf32>) {
  loop.for "i" %i to 4 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    %w = loop.load %z (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %v, %y0 (d0) -> (d0)(%i) : f32, memref<4xf32>
    loop.store %w, %y1 (d0) -> (d0)(%i) : f32, memref<4xf32>
  }
}""")
    assert [overwritable(found, output) for output in found.outputs] == [[], []]


@pytest.mark.parametrize("marked", ["[1]", "[-1]", "0", '["x"]', "[2]"])
def test_a_wrong_mark_is_refused(marked: str) -> None:
    output = f"%y: memref<4xf32> {{loop.in_place = {marked}}}"
    text = f"loop.kernel @k(%x: memref<4xf32>, %z: memref<8xf32>) -> ({output}) {{}}"
    with pytest.raises(VerifyException, match=r"wrong loop\.in_place of argument 2"):
        kernel(text)


@st.composite
def programs(draw: st.DrawFn) -> list[Lifetime]:
    """Buffers of a straight-line program, of a step one or more, some of them in place."""
    count = draw(st.integers(1, 12))
    first = sorted(draw(st.lists(st.integers(0, 6), min_size=count, max_size=count)))
    last = [draw(st.integers(step, 7)) for step in first]
    symbolic = [Dim.parse(text) for text in ("n", "8*n", "8*n+8", "n*m", "(n+1)//2")]
    kinds = st.sampled_from([Dim.of(8), Dim.of(64), *symbolic])
    sizes = [draw(kinds) for _ in range(count)]
    found: list[Lifetime] = []
    for n in range(count):
        same = [m for m in range(n) if sizes[m] == sizes[n] and first[m] < first[n]]
        over = tuple(draw(st.lists(st.sampled_from(same), unique=True))) if same else ()
        found.append(Lifetime(sizes[n], first[n], last[n], over))
    return found


@given(programs())
@settings(deadline=None)
def test_buffers_of_one_slot_never_live_together(buffers: list[Lifetime]) -> None:
    plan = plan_arena(buffers)
    for n, late in enumerate(buffers):
        slot = plan.slots[plan.slot_of[n]]
        for known in ({"n": 0, "m": 0}, {"n": 1, "m": 0}, {"n": 7, "m": 1}, {"n": 3, "m": 9}):
            assert slot.evaluate(known) >= late.size.evaluate(known)
        for m, early in enumerate(buffers[:n]):
            if plan.slot_of[m] == plan.slot_of[n] and early.last >= late.first:
                assert early.last == late.first
                assert early.first < late.first
                assert m in late.over


def test_symbolic_sizes_are_compared() -> None:
    sizes = [Dim.parse(text) for text in ("480*n", "320*n", "800*n", "200*n+64", "n*m", "640*n")]
    plan = plan_arena([Lifetime(size, n, n + 1) for n, size in enumerate(sizes)])
    assert plan.slots == (
        Dim.parse("800*n"),
        Dim.parse("320*n"),
        *map(Dim.parse, ("200*n+64", "n*m")),
    )
    assert plan.slot_of == (0, 1, 0, 2, 3, 0)

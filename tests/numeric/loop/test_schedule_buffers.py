"""Primitives about buffers and borders leave what a kernel computes as it was.

Each is checked on the interpreter, which checks every access, and as machine code.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.dialects.loop.nests import ScheduleError, loop_names
from stepwell.dialects.loop.ops import KernelOp, LocalOp
from stepwell.passes.loop.steps.compute_at import compute_at
from stepwell.passes.loop.steps.distribute import distribute
from stepwell.passes.loop.steps.fuse import fuse
from stepwell.passes.loop.steps.hoist import hoist
from stepwell.passes.loop.steps.pad import pad
from stepwell.passes.loop.steps.split import split
from stepwell.passes.loop.steps.split_border import split_border
from stepwell.passes.loop.steps.vectorize import vectorize

from ...harness import cases

SIZES = st.integers(1, 9)
QUICK = settings(max_examples=settings().max_examples * 20 // 100, deadline=None)


@QUICK
@given(m=st.integers(0, 9), n=SIZES, tiles=st.integers(1, 5))
def test_fuse(kernels, normal, same_compiled, m, n, tiles) -> None:
    inputs = [normal(2, m, 3), normal(3, n), normal(2, m, n)]

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = split(fuse(kernel, "h", "i"), "h_i", tiles, "mask") if m else kernel
        return fuse(split(kernel, "j", tiles, "peel"), "j0", "j1") if n >= tiles else kernel

    same_compiled(kernels.matmul(2, m, n, 3), inputs, schedule)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_fuse_of_an_unknown_outer_size(kernels, normal, same_compiled, rows) -> None:
    inputs = [normal(rows, 3), normal(6, 3), normal(6), normal(rows, 6)]
    text = kernels.dense(None, 6, 3).replace("%n = memref", "%unused = memref")
    same_compiled(text, inputs, lambda kernel: fuse(kernel, "i", "j"))


@QUICK
@given(rows=SIZES, columns=SIZES, width=st.integers(1, 4), factor=st.integers(1, 5))
@pytest.mark.parametrize("tail", ["peel", "mask", "split"])
def test_compute_at(kernels, normal, same_compiled, rows, columns, width, factor, tail) -> None:
    """The part of a chunk of columns: windows overlap, and the last chunk may be cut short."""

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = split(kernel, "j", factor, tail)
        if sum(name in loop_names(kernel) for name in ("j0", "j0t", "j1t")) > 1:
            with pytest.raises(ScheduleError, match=r"another loop.load uses the buffer"):
                compute_at(kernel, "a", "j0")
            return kernel
        kernel = compute_at(kernel, "a", "j0" if "j0" in loop_names(kernel) else "j1t")
        (local,) = (op for op in kernel.walk() if isinstance(op, LocalOp))
        assert local.result.type.get_shape()[0] <= min(factor, columns) + width - 1
        return kernel

    inputs = [normal(rows, columns + width - 1), normal(1), normal(rows, columns)]
    same_compiled(kernels.blurred(rows, columns, width), inputs, schedule)


@QUICK
@given(m=st.integers(0, 9), n=SIZES, factor=st.integers(1, 5), known=st.booleans())
@pytest.mark.parametrize("tail", cases(["peel", "mask"], ["peel"]))  # a mask if sizes are not known
@pytest.mark.parametrize("first", [True, False])
def test_distribute(kernels, normal, same_compiled, m, n, factor, known, tail, first) -> None:
    """Tiles of rows, whose rest is read before or after it is vectorised."""
    tail = tail if known else "mask"

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = kernel if first else vectorize(kernel, ["j"])
        kernel = split(kernel, "i", factor, tail)
        for rows, after in (("i1", "a"), ("i1t", "at")):
            if rows in loop_names(kernel):
                kernel = distribute(kernel, rows, after)
        locals = (op for op in kernel.walk() if isinstance(op, LocalOp))
        assert all(len(local.result.type.get_shape()) == 2 for local in locals)
        return kernel

    inputs = [normal(m, 3), normal(n, 3), normal(n), normal(m, n)]
    same_compiled(kernels.centred(m if known else None, n, 3), inputs, schedule)


@QUICK
@given(m=st.integers(0, 9), factor=st.integers(1, 5), chunk=st.integers(2, 4))
def test_cases_of_a_tile_that_is_cut_short(
    kernels, normal, same_compiled, m, factor, chunk
) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = distribute(split(kernel, "i", factor, "mask"), "i1", "a")
        return split(kernel, "i1a", chunk, "cases")

    inputs = [normal(m, 3), normal(4, 3), normal(4), normal(m, 4)]
    same_compiled(kernels.centred(None, 4, 3), inputs, schedule)


@QUICK
@given(columns=SIZES, width=st.integers(1, 4), multiple=st.sampled_from([4, 8]))
def test_pad_saves_the_mask(kernels, normal, same_compiled, columns, width, multiple) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        if (columns + width - 1) % multiple == 0:
            with pytest.raises(ScheduleError, match=r"are a multiple of . already"):
                pad(kernel, "a", multiple)
            return kernel
        return vectorize(split(pad(kernel, "a", multiple), "a", 16, "mask"), ["a1"])

    inputs = [normal(3, columns + width - 1), normal(1), normal(3, columns)]
    same_compiled(kernels.blurred(3, columns, width), inputs, schedule)


@QUICK
@given(
    rows=SIZES, columns=SIZES, low=st.integers(0, 3), high=st.integers(0, 3), cut=st.integers(0, 3)
)
def test_split_border(kernels, normal, same_compiled, rows, columns, low, high, cut) -> None:
    """Borders that are those of the window, shorter and longer ones."""

    def schedule(kernel: KernelOp) -> KernelOp:
        for loop, size in (("i", rows), ("j", columns)):
            if not low + cut or loop not in loop_names(kernel):
                continue
            if low + cut > size + low + high:
                with pytest.raises(ScheduleError, match="it is shorter than its borders"):
                    split_border(kernel, loop, low, cut)
                continue
            kernel = split_border(kernel, loop, low, cut)
        return kernel

    inputs = [normal(rows, columns), normal(rows + low + high, columns + low + high)]
    same_compiled(kernels.padded(rows, columns, low, high), inputs, schedule)


@pytest.mark.parametrize("number", [-2, -1, 0, 1, 2, 3])
def test_comparisons_in_the_parts_of_a_loop(normal, same_compiled, number) -> None:
    """All comparisons of -1, of 0 and 1, and of 2 with a number, and the smaller and larger one."""
    predicates = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
    bits = "\n".join(
        f"""%c{bit} = arith.cmpi {predicate}, %j, %n : index
    %b{bit} = arith.constant {2**bit}.0 : f32
    %s{bit} = arith.select %c{bit}, %b{bit}, %zero : f32
    loop.store %s{bit}, %y (d0) -> (d0, {bit})(%i) : f32, memref<4x12xf32>"""
        for bit, predicate in enumerate(predicates)
    )
    text = f"""
loop.kernel @compared(%x: memref<8xf32>) -> (%y: memref<4x12xf32>) {{
  %n = arith.constant {number} : index
  %first = arith.constant 0 : index
  %last = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1 : index
  loop.for "i" %i to 4 {{
    %j = arith.subi %i, %one : index
    {bits}
    %small = arith.minsi %j, %n : index
    %low = arith.maxsi %small, %first : index
    %v = loop.load %x (d0) -> (d0)(%low) : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0, 10)(%i) : f32, memref<4x12xf32>
    %large = arith.maxsi %j, %n : index
    %high = arith.minsi %large, %last : index
    %w = loop.load %x (d0) -> (d0 + 2)(%high) : memref<8xf32>, f32
    loop.store %w, %y (d0) -> (d0, 11)(%i) : f32, memref<4x12xf32>
  }}
}}"""
    same_compiled(text, [normal(8), normal(4, 12)], lambda kernel: split_border(kernel, "i", 1, 1))


def test_the_interior_runs_along_memory(kernels, normal, same_compiled) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        with pytest.raises(ScheduleError, match=r"an index of loop\.load is computed from it"):
            vectorize(kernel, ["j"])
        kernel = split_border(split_border(kernel, "i", 1, 2), "j", 1, 2)
        assert loop_names(kernel) == {"ib", "jb", "i", "jbb", "j", "jee", "ie", "je"}
        return vectorize(kernel, ["j"])

    inputs = [normal(5, 13), normal(8, 16)]
    after = same_compiled(kernels.padded(5, 13, 1, 2), inputs, schedule)
    assert "vector<13xf32>" in str(after)


@QUICK
@given(rows=st.integers(0, 4), columns=SIZES)
def test_hoist(kernels, normal, same_compiled, rows, columns) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        return hoist(kernel, "a")

    inputs = [normal(rows, columns + 2), normal(1), normal(rows, columns)]
    same_compiled(kernels.blurred(rows, columns), inputs, schedule)


def test_what_may_not_run_is_not_read_in_advance(kernel_of) -> None:
    text = """
loop.kernel @scale(%x: memref<?xf32>, %s: memref<1xf32>) -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  loop.for "i" %i to %n {
    %a = loop.load %s () -> (0)() : memref<1xf32>, f32
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
    %r = arith.mulf %v, %a : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}"""
    with pytest.raises(
        ScheduleError, match="the loop may not run, and hoisting would execute loop"
    ):
        hoist(kernel_of(text), "i")


def test_distribute_keeps_the_combiner_of_a_store(normal, same_compiled) -> None:
    text = """
loop.kernel @rows(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>) {
  %one = arith.constant 1.0 : f32
  loop.for "i" %i to 4 {
    %h = loop.local : memref<8xf32>
    loop.for "z" %z to 8 {
      loop.store %one, %h (d0) -> (d0)(%z) : f32, memref<8xf32>
    }
    loop.for "a" %a to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : memref<4x8xf32>, f32
      loop.store add %v, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
    }
    loop.for "j" %j to 8 {
      %s = loop.load %h (d0) -> (-d0 + 7)(%j) : memref<8xf32>, f32
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}"""
    inputs = [normal(4, 8), normal(4, 8)]
    after = same_compiled(text, inputs, lambda kernel: distribute(kernel, "i", "a"))
    assert "loop.store add" in str(after)


def test_compute_at_refuses_a_nest_that_reads_its_buffer(kernel_of) -> None:
    text = """
loop.kernel @squares(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  %h = loop.local : memref<8xf32>
  loop.for "a" %a to 8 serial {
    %v = loop.load %x (d0) -> (d0)(%a) : memref<8xf32>, f32
    loop.store %v, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
    %w = loop.load %h (d0) -> (d0)(%a) : memref<8xf32>, f32
  }
  loop.for "i" %i to 8 {
    %s = loop.load %h (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}"""
    refusal = r'loop "a" of @squares: loop.load uses the buffer that it fills'
    with pytest.raises(ScheduleError, match=refusal):
        compute_at(kernel_of(text), "a", "i")

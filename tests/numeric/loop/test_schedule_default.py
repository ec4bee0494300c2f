"""The default schedule leaves what a kernel computes as it was, on every target."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, VectorType

import stepwell as sw
from stepwell.core.ir.context import CompilerContext
from stepwell.core.target import Target, named
from stepwell.dialects.loop.ops import FoldOp, ForOp, KernelOp, LocalOp
from stepwell.dialects.loop.trace import trace_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.passes.loop.schedule import LoopSchedulePass, schedule_kernel
from stepwell.passes.loop.scheduler.knobs import Knobs
from stepwell.passes.loop.scheduler.register_tile import choose_tile, partial_sums

from ...harness import cases, close, floats

TARGETS = ("x86-64", "x86-64-v3", "x86-64-v4")


def schedule_for(target: str):
    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        return schedule_kernel(kernel, named(target))[0].kernel

    return schedule


@pytest.fixture(params=TARGETS)
def schedule(request):
    """The default schedule for a target."""
    return schedule_for(request.param)


def blocks(kernel: KernelOp) -> set[tuple[int, ...]]:
    """The shapes of the blocks of a kernel."""
    types = (result.type for op in kernel.walk() for result in op.results)
    return {kind.get_shape() for kind in types if isinstance(kind, VectorType)}


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 20, 9), (2, 7, 5), (13, 33, 4), (26, 10, 9), (3, 1, 6), (1, 1, 1), (4, 16, 1), (5, 3, 0)],
)
def test_dense(kernels, normal, same_before_and_after, schedule, m, n, k) -> None:
    inputs = [normal(m, k), normal(n, k), normal(n), normal(m, n)]
    same_before_and_after(kernels.dense(m, n, k), inputs, schedule)


WIDTHS = [(n, target) for n in (10, 35) for target in ("x86-64-v4", "x86-64-v3")]


@pytest.mark.parametrize("case", cases(WIDTHS, [(10, "x86-64-v3"), (35, "x86-64-v4")]))
def test_dense_of_any_batch(kernels, kernel_of, normal, same_before_and_after, case) -> None:
    n, target = case
    text = kernels.dense(None, n, 3)
    after = schedule_for(target)(kernel_of(text))
    assert max(len(shape) for shape in blocks(after)) == 2
    for m in (*range(12), 13, 16, 17, 18, 19, 24):
        inputs = [normal(m, 3), normal(n, 3), normal(n), normal(m, n)]
        same_before_and_after(text, inputs, lambda kernel: after)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 10, 4), (2, 3, 1), (7, 16, 4), (17, 17, 2), (67, 64, 1), (30, 2, 2)],
)
@pytest.mark.parametrize("known", [True, False])
def test_rows_that_are_read_again(kernels, normal, same_before_and_after, m, n, k, known) -> None:
    """Some rows are computed at a time, with a register tile; the last ones may be fewer."""

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        knobs = Knobs(tile_scale=0.001)
        return schedule_kernel(kernel, named("x86-64-v3"), knobs)[0].kernel

    inputs = [normal(m, k), normal(n, k), normal(n), normal(m, n)]
    after = same_before_and_after(kernels.centred(m if known else None, n, k), inputs, schedule)
    assert "distribute(" in trace_of(after)
    assert max(len(shape) for shape in blocks(after)) == 2


TUNED = [(rows, vectors, known) for rows, vectors in ((3, 1), (5, 2), (14, 8)) for known in (0, 1)]


@pytest.mark.parametrize("knobs", cases(TUNED, [(3, 1, 0), (5, 2, 1), (14, 8, 0)]))
def test_tuned_tiles_of_rows_that_are_read_again(kernels, normal, same_compiled, knobs) -> None:
    rows, vectors, known = knobs

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        knobs = Knobs(rows=rows, vectors=vectors, tile_scale=0.001)
        return schedule_kernel(kernel, named("x86-64-v3"), knobs)[0].kernel

    m, n = 67, 40
    inputs = [normal(m, 4), normal(n, 4), normal(n), normal(m, n)]
    after = same_compiled(kernels.centred(m if known else None, n, 4), inputs, schedule)
    assert "distribute(" in trace_of(after)
    assert (rows, 8 * vectors) in blocks(after)


def test_tiles_of_rows_are_work_for_a_thread(kernels, kernel_of) -> None:
    """Rows of much work are fewer at a time, down to a register tile; those of little fit in L1."""
    heights = []
    for k in (16, 128, 1024, 8192):
        kernel = kernel_of(kernels.centred(4096, 10, k))
        kernel.detach()
        after, reasons = schedule_kernel(kernel, named("x86-64-v4"))
        local = next(op for op in after.kernel.walk() if isinstance(op, LocalOp))
        heights.append(local.result.type.get_shape()[0])
        assert f"{heights[-1]} rows of 10 columns at a time stay in the cache" in reasons
        assert "tiles(i0" in trace_of(after.kernel)
    assert heights == [512, 64, 12, 12]


def test_large_weights_are_asked_for_whatever_the_batch(
    kernels, normal, same_before_and_after
) -> None:
    """They come from memory if the batch is small, which it may be."""
    small_caches = replace(named("x86-64-v4"), l2_bytes=1 << 9)

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        return schedule_kernel(kernel, small_caches)[0].kernel

    for m in (2, 11):
        inputs = [normal(m, 9), normal(128, 9), normal(128), normal(m, 128)]
        after = same_before_and_after(kernels.dense(None, 128, 9), inputs, schedule)
        assert trace_of(after).count("prefetch(1, k") == 11
        assert str(after).count("reduction") == 11


@pytest.mark.parametrize(
    ("machine", "n", "widths"),
    [
        ("x86-64-v3", 40, [24, 16]),
        ("x86-64-v3", 33, [24, 16]),
        ("x86-64-v3", 56, [16, 8]),
        ("x86-64-v3", 47, [16]),  # six vectors are three panels of two
        ("x86-64-v3", 200, [16]),  # one vector less is not worth another tile
        ("znver4", 40, [40]),  # a vector of half the width takes half the time
        ("znver4", 41, [48]),
        ("znver4", 100, [64, 36]),
        ("znver5", 40, [48]),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_panels_of_odd_widths(
    kernels, normal, same_before_and_after, machine, n, widths, known
) -> None:
    reasons: list[str] = []

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        made, found = schedule_kernel(kernel, named(machine))
        reasons.extend(found)
        return made.kernel

    inputs = [normal(19, 3), normal(n, 3), normal(n), normal(19, n)]
    same_before_and_after(kernels.dense(19 if known else None, n, 3), inputs, schedule)
    assert [int(width) for width in re.findall(r"x (\d+)", reasons[0])] == widths


@pytest.mark.parametrize("target", ["host", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("n", cases([20, 39, 40, 41], [40]))
def test_panels_of_odd_widths_in_batches(n: int, target: str) -> None:
    """Without masks the last panel has a tile of its own, in the loop over matrices too."""
    b = sw.Builder()
    b.output(b.matmul(b.input("x", (3, 19, 5)), b.input("y", (3, 5, n))))
    exe = sw.compile(b.module(), target=target, threads=1)
    x, y = floats(3, 19, 5), floats(3, 5, n)
    close(exe(x, y), x @ y, 1e-5, atol=1e-5)
    scheduled = exe.ir("scheduled")
    assert "valid(" not in scheduled or named(target).has_masks
    if target == "x86-64-v3":
        assert ("split_border" in scheduled) == (n != 20)  # two vectors and a half are one tile


@pytest.mark.parametrize(
    ("channels", "size", "window", "tiles"),
    [
        (32, 113, 3, ["l"]),
        (64, 113, 3, ["l"]),  # two blocks are too few tiles: rows of each of them
        (480, 29, 3, ["j"]),
        (96, 29, 3, []),  # takes no longer than threads need to begin
    ],
)
def test_threads_of_each_channel(channels: int, size: int, window: int, tiles: list[str]) -> None:
    b = sw.Builder()
    x = b.input("x", (1, channels // 32, size, size, 32))
    w = floats(channels, 1, window, window)
    b.output(b.blocked_conv(x, w, strides=[2, 2], block=32))
    scheduled = Compilation.of(Request(b.module(), "x86-64-v4", threads=2)).text("scheduled")
    assert re.findall(r"tiles\((\w+)\)", scheduled) == tiles


@pytest.mark.parametrize(
    ("channels", "size", "tiles"),
    [
        (128, 49, ["j0"]),  # eight blocks of an image
        (32, 97, ["l0"]),  # rows of the two blocks
        (32, 13, []),  # not worth it
    ],
)
def test_threads_of_the_windows_of_one_image(channels: int, size: int, tiles: list[str]) -> None:
    b = sw.Builder("main")
    x = b.input("x", (1, channels // 16, size, size, 16))
    b.output(b.pool(x, "max", [3, 3, 1]))
    exe = sw.compile(b.module(), target="x86-64-v3", threads=2)
    assert re.findall(r"tiles\((\w+)\)", exe.ir("scheduled")) == tiles
    image = floats(1, channels // 16, size, size, 16)
    np.testing.assert_array_equal(exe(image), b.module().run_reference(image))


@pytest.mark.parametrize(("n", "is_parallel"), [(128, False), (256, True)])
def test_threads_of_a_row_with_many_weights(kernels, kernel_of, n: int, is_parallel: bool) -> None:
    """More than the second-level cache keeps take longer to load than to multiply."""
    kernel = kernel_of(kernels.dense(1, n, 640))
    kernel.detach()
    schedule, _ = schedule_kernel(kernel, named("x86-64-v4"), threads=2)
    assert ("tiles(" in str(schedule)) == is_parallel


@pytest.mark.parametrize(
    ("rows", "n", "k", "threads", "inside"),
    [
        (None, 192, 9, 1, True),  # any number of rows: each is read once, and the panels are kept
        (None, 192, 9, 2, False),  # two threads may have nothing but panels to divide
        (None, 192, 1192, 1, False),  # the second-level cache does not keep the panels
        (40_000, 192, 9, 2, True),
        (20, 192, 9, 1, False),  # it keeps the rows
    ],
)
def test_which_operand_is_read_once(
    kernels, kernel_of, normal, same_before_and_after, rows, n, k, threads, inside
) -> None:
    target, traces = named("x86-64-v4"), list[str]()

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        made = schedule_kernel(kernel, target, threads=threads)[0].kernel
        traces.append(trace_of(made))
        return made

    text = kernels.dense(rows, n, k)
    if (rows or 0) * k < 1000 > k:
        m = 19 if rows is None else rows
        inputs = [normal(m, k), normal(n, k), normal(n), normal(m, n)]
        same_before_and_after(text, inputs, schedule)
    else:
        schedule(kernel_of(text))
    assert ("reorder(i, j0, j1)" in traces[0]) == inside
    assert ("reorder(j0, i, j1)" in traces[0]) != inside


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 19, 8), (0, 3, 2), (3, 0, 2), (2, 3, 0)])
def test_dense_of_any_size(kernels, normal, same_before_and_after, schedule, sizes) -> None:
    m, n, k = sizes
    inputs = [normal(m, k), normal(n, k), normal(n), normal(m, n)]
    same_before_and_after(kernels.dense(None, None, None), inputs, schedule)


SIZES = [(3, 20, 5), (1, 17, 4), (13, 5, 2), (0, 4, 4)]


@pytest.mark.parametrize("sizes", cases(SIZES, [(3, 20, 5), (0, 4, 4)]))
@pytest.mark.parametrize("known", [True, False])
def test_matmul(kernels, normal, same_before_and_after, schedule, sizes, known) -> None:
    m, n, k = sizes
    text = kernels.matmul(2, *(sizes if known else (None,) * 3))
    same_before_and_after(text, [normal(2, m, k), normal(k, n), normal(2, m, n)], schedule)


@pytest.mark.parametrize("kind", ["f64", "i32", "i64", "i8"])
def test_matmul_of_other_numbers(kernels, same_before_and_after, kind) -> None:
    dtype = {"f64": "f8", "i32": "i4", "i64": "i8", "i8": "i1"}[kind]
    rng = np.random.default_rng(5)
    inputs = [rng.integers(-9, 9, s).astype(dtype) for s in ((2, 7, 5), (5, 40), (2, 7, 40))]
    text = kernels.matmul(2, 7, 40, 5, kind)
    after = same_before_and_after(text, inputs, schedule_for("x86-64-v4"))
    lanes = 512 // (8 * np.dtype(dtype).itemsize)
    width = {shape[-1] for shape in blocks(after)} - {1}
    assert width, "is not vectorised"
    assert all(lanes % w == 0 or w % lanes == 0 for w in width)


@pytest.mark.parametrize(
    "sizes",
    cases([(4, 10), (3, 100), (1, 1), (2, 3), (2, 64), (3, 37)], [(1, 1), (2, 64), (3, 37)]),
)
def test_softmax(kernels, normal, same_before_and_after, schedule, sizes) -> None:
    inputs = [normal(*sizes), normal(*sizes)]
    same_before_and_after(kernels.softmax(*sizes), inputs, schedule)


@pytest.mark.parametrize(
    "sizes", cases([(0, 5), (3, 0), (3, 1), (4, 37), (2, 130)], [(0, 5), (3, 0), (3, 1), (4, 37)])
)
def test_softmax_of_any_size(kernels, normal, same_before_and_after, schedule, sizes) -> None:
    inputs = [normal(*sizes), normal(*sizes)]
    after = same_before_and_after(kernels.softmax(None, None), inputs, schedule)
    assert any(isinstance(op, FoldOp) for op in after.walk())


@pytest.mark.parametrize("features", cases([1, 2, 7, 16, 20, 33, 200], [1, 7, 16, 33]))
@pytest.mark.parametrize("known", [True, False])
def test_sparse_product(
    kernels, normal, csr, same_before_and_after, schedule, features, known
) -> None:
    inputs = [*csr([0, 3, 1, 0, 5, 6], 6), normal(6, features), normal(features)]
    text = kernels.spmm(features if known else None)
    after = same_before_and_after(text, [*inputs, normal(6, features)], schedule)
    entries = [op for op in after.walk() if isinstance(op, ForOp) and op.over_entries]
    if features > 1 and known:
        assert all(isinstance(op.results[0].type, VectorType) for op in entries)


@pytest.mark.parametrize("hidden", [7, 16])
def test_layer_with_a_staged_row(
    kernels, normal, csr, same_before_and_after, schedule, hidden
) -> None:
    inputs = [*csr([2, 0, 4, 1], 4), normal(4, 16), normal(16), normal(16, hidden)]
    text = kernels.spmm(16, hidden)
    after = same_before_and_after(text, [*inputs, normal(4, hidden)], schedule)
    assert any(isinstance(op, LocalOp) for op in after.walk())
    loops = [op for op in after.walk() if isinstance(op, ForOp)]
    sums = [op for op in loops if op.is_reduction and not op.over_entries]
    assert sums
    assert all(isinstance(op.results[0].type, VectorType) for op in sums)


def test_empty_graph(kernels, normal, csr, same_before_and_after, schedule) -> None:
    inputs = [*csr([], 1), normal(0, 7), normal(7), normal(0, 7)]
    same_before_and_after(kernels.spmm(7), inputs, schedule)


def test_column_sums_run_along_memory(same_before_and_after, normal) -> None:
    """The reduced dimension is the outer one: lanes are columns, nothing is folded."""
    text = """
loop.kernel @columns(%x: memref<9x35xf32>) -> (%y: memref<35xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 35 {
    %s = loop.for "k" %k to 9 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d1, d0)(%i, %k) : memref<9x35xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<35xf32>
  }
}"""
    after = same_before_and_after(text, [normal(9, 35), normal(35)], schedule_for("x86-64-v3"))
    assert blocks(after)
    assert not any(isinstance(op, FoldOp) for op in after.walk())


@pytest.mark.parametrize("sizes", [(1, 1), (3, 70), (5, 7), (2, 128), (0, 40), (4, 0)])
def test_totals_run_along_memory(same_before_and_after, normal, schedule, sizes) -> None:
    """A reduction over two axes that is in no loop: the inner one becomes lanes."""
    m, n = sizes
    text = f"""
loop.kernel @total(%x: memref<{m}x{n}xf32>) -> (%y: memref<f32>) {{
  %z = arith.constant 0.5 : f32
  %s = loop.for "i" %i to {m} reduction carry(%all = %z : f32 add) {{
    %r = loop.for "k" %k to {n} reduction carry(%acc = %all : f32 add) {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<{m}x{n}xf32>, f32
      %t = math.fma %v, %v, %acc : f32
      loop.yield %t : f32
    }}
    loop.yield %r : f32
  }}
  loop.store %s, %y () -> ()() : f32, memref<f32>
}}"""
    after = same_before_and_after(text, [normal(m, n), normal()], schedule)
    if m > 0:
        assert bool(blocks(after)) == (n >= 4)


@pytest.mark.parametrize("columns", [3, 40, None])
def test_sums_of_columns_between_loops(same_before_and_after, normal, columns) -> None:
    """Nothing inside of the loop over columns runs along memory: the columns are the lanes."""
    x, size = (
        ("memref<5x?xf32>", "%n") if columns is None else (f"memref<5x{columns}xf32>", columns)
    )
    text = f"""
loop.kernel @normalise(%x: {x}) -> (%y: {x}) {{
  %z = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c1 : {x}
  loop.for "i" %i to {size} {{
    %s = loop.for "k" %k to 5 reduction carry(%acc = %z : f32 add) {{
      %v = loop.load %x (d0, d1) -> (d1, d0)(%i, %k) : {x}, f32
      %t = math.fma %v, %v, %acc : f32
      loop.yield %t : f32
    }}
    loop.for "j" %j to 5 {{
      %v = loop.load %x (d0, d1) -> (d1, d0)(%i, %j) : {x}, f32
      %r = arith.divf %v, %s : f32
      loop.store %r, %y (d0, d1) -> (d1, d0)(%i, %j) : f32, {x}
    }}
  }}
}}"""
    count = 37 if columns is None else columns
    inputs = [normal(5, count), normal(5, count)]
    after = same_before_and_after(text, inputs, schedule_for("x86-64-v4"))
    assert {shape for shape in blocks(after) if shape != (1,)}


@pytest.mark.parametrize("sizes", [(1, 1), (5, 40), (7, 300), (64, 3)])
@pytest.mark.parametrize("border", [(0, 0), (1, 1), (3, 0), (0, 2)])
def test_padded_rows(kernels, normal, same_compiled, sizes, border) -> None:
    """Cut at the border, the interior runs along memory; border rows are one value."""
    around = sum(border)
    inputs = [normal(*sizes), normal(sizes[0] + around, sizes[1] + around)]
    text = kernels.padded(*sizes, *border)
    after = same_compiled(text, inputs, schedule_for("host"))
    if around and sizes[1] >= 40:
        assert "split_border(j, " in trace_of(after)
        assert any(len(shape) == 1 and shape[0] >= 16 for shape in blocks(after))


@pytest.mark.parametrize(
    "columns",
    [(3, 4), (40, 50), (33, 1, 64), (8,) * 16, pytest.param((8,) * 40, marks=pytest.mark.slow)],
)
def test_columns_beside_each_other(columns, all_tests) -> None:
    """A concatenation along memory: each part is copied by vectors, but not a great many."""
    b = sw.Builder("main")
    names = [b.input(f"x{n}", (5, size), "f32") for n, size in enumerate(columns)]
    b.output(b.exp(b.concat(names, axis=1)), name="y")
    compilation = Compilation.of(Request(b.module(), threads=1))
    assert compilation.text("scheduled").count("loop.for") < len(columns)
    if all_tests or len(columns) < 10:
        inputs = [floats(5, size) for size in columns]
        got = sw.compile(b.module(), threads=1)(*inputs)
        close(got, np.exp(np.concatenate(inputs, 1)), 1e-5, 0)


APART = {
    "every third": ((3, 200), "(d0, d1) -> (d0, d1 * 3 + 1)"),
    "backwards": ((3, 66), "(d0, d1) -> (d0, 65 - d1)"),
    "columns": ((66, 3), "(d0, d1) -> (d1, d0)"),
    "a row of rows": ((3, 6, 11), "(d0, d1) -> (d0, d1 floordiv 11, d1 mod 11)"),
    "one column": ((3, 66, 1), "(d0, d1) -> (d0, d1, 0)"),
}
"""Shapes of what is read, and where."""


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("columns", cases([1, 8, 17, 66], [1, 17]))
@pytest.mark.parametrize(("shape", "place"), APART.values(), ids=APART)
def test_elements_that_lie_apart(
    same_before_and_after, normal, schedule, shape, place, columns, known
) -> None:
    kind, row = "x".join(map(str, shape)), columns if known else "?"
    text = f"""
loop.kernel @other(%x: memref<{kind}xf32>, %w: memref<{row}xf32>) -> (%y: memref<3x{row}xf32>) {{
  %zero = arith.constant 0 : index
  %n = memref.dim %w, %zero : memref<{row}xf32>
  loop.for "i" %i to 3 {{
    loop.for "j" %j to {columns if known else "%n"} {{
      %u = loop.load %x {place}(%i, %j) : memref<{kind}xf32>, f32
      %b = loop.load %w (d0) -> (d0)(%j) : memref<{row}xf32>, f32
      %v = arith.addf %u, %b : f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x{row}xf32>
    }}
  }}
}}"""
    inputs = [normal(*shape), normal(columns), normal(3, columns)]
    after = same_before_and_after(text, inputs, schedule)
    assert blocks(after) or columns == 1


@pytest.mark.parametrize("size", [4, 9, 33])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2), (3, 3)])
def test_windows_that_jump(size, window, stride) -> None:
    """No lane reads outside of the buffers, which are checked while the loops are interpreted."""
    b = sw.Builder("main")
    x = b.input("x", (1, 2, size, size), "f32")
    b.output(b.pool(x, "max", [window, window], [stride, stride]), name="y")
    exe = sw.compile(b.module(), threads=1)
    image = np.random.default_rng(0).standard_normal((1, 2, size, size)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (window, window), (2, 3))
    expected = windows[:, :, ::stride, ::stride].max((4, 5))
    for got in (exe(image), exe.run_at("loops", image)):
        np.testing.assert_array_equal(got, expected)


LEFT_ALONE = {
    "an index is computed": """%u = loop.load %w (d0) -> (d0)(%j) : memref<8xi32>, i32
      %c = arith.index_cast %u : i32 to index
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %c) : memref<8x8xf32>, f32""",
    "a sum with a variable is a value": """%t = affine.apply affine_map<(d0) -> (d0 + 1)> (%j)
      %u = arith.index_cast %t : index to i32
      %f = arith.sitofp %u : i32 to f32
      %g = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<8x8xf32>, f32
      %v = arith.addf %f, %g : f32""",
}


@pytest.mark.parametrize("statements", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_not_understood_stays(same_before_and_after, normal, statements) -> None:
    text = f"""
loop.kernel @other(%x: memref<8x8xf32>, %w: memref<8xi32>) -> (%y: memref<8x8xf32>) {{
  loop.for "i" %i to 8 {{
    loop.for "j" %j to 8 {{
      {statements}
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<8x8xf32>
    }}
  }}
}}"""
    inputs = [normal(8, 8), np.arange(8, dtype=np.int32)[::-1].copy(), normal(8, 8)]
    after = same_before_and_after(text, inputs, schedule_for("x86-64-v4"))
    assert not blocks(after)


@pytest.mark.parametrize(("n", "tiled"), [(200_000, False), (400_000, True)])
def test_few_tiles_are_none(kernel_of, n, tiled) -> None:
    kernel = kernel_of(f"""
loop.kernel @double(%x: memref<{n}xf32>) -> (%y: memref<{n}xf32>) {{
  loop.for "i" %i to {n} {{
    %v = loop.load %x (d0) -> (d0)(%i) : memref<{n}xf32>, f32
    %w = arith.addf %v, %v : f32
    loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<{n}xf32>
  }}
}}""")
    assert ("tiles" in trace_of(schedule_for("x86-64-v4")(kernel))) is tiled


def test_the_pass_notes_its_decision(kernels, kernel_of) -> None:
    ctx = CompilerContext(target=named("x86-64-v4"))
    module = kernel_of(kernels.dense(24, 64, 8)).parent_op()
    assert isinstance(module, ModuleOp)
    LoopSchedulePass().apply(ctx, module)
    (decision,) = ctx.decisions
    assert decision.subject == "@dense"
    assert decision.why == "register tile of 12 x 32"
    assert decision.what == (
        "split(j, 32, tail=mask); reorder(i, j0, j1); pack(1, j0, k, j1); "
        "split(i, 12, tail=peel); vectorize(i1, j1)"
    )


MACHINES = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "znver5", "neoverse-n1", "apple-m1", "rv64gcv")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("rows", [None, 1, 2, 5, 13, 64, 900])
def test_register_tiles_follow_from_the_machine(machine, rows) -> None:
    target = named(machine)
    for columns, sums in itertools.product((None, 2, 7, 16, 48, 130, 1000), (1, 2, 4)):
        assert_tile_fits(target, rows, columns, sums)


def assert_tile_fits(target: Target, rows: int | None, columns: int | None, sums: int) -> None:
    """A register tile fits into the registers of a machine and keeps its units busy."""
    lanes = target.lanes(32)
    tile = choose_tile(target, lanes, rows, columns, sums=sums)
    in_a_row = tile.vectors * sums
    operands = tile.vectors + (1 if sums == 1 else tile.rows)
    assert tile.rows * in_a_row + operands <= target.vector_registers
    assert tile.rows <= target.general_registers - 4
    if (rows is None or rows >= 12) and target.vector_registers == 32 and target.in_flight <= 8:
        accumulators = tile.rows * in_a_row
        if rows is None:
            accumulators *= partial_sums(target, accumulators)
        assert accumulators >= target.in_flight * 3 // 2
    assert tile.rows <= tile.most
    operands = tile.vectors + (1 if sums == 1 else tile.most)
    assert tile.most * in_a_row + operands <= target.vector_registers
    if columns is not None and columns < lanes:
        assert tile.columns < 2 * columns * tile.vectors


def test_rows_a_way_of_the_cache_apart_need_ways() -> None:
    """Addresses a way apart share their lines: of rows that begin so no more stay than ways."""
    few = replace(named("x86-64-v4"), l1_bytes=16 << 10, l1_ways=4)
    assert choose_tile(few, 16, 900, 64).rows == 12
    assert choose_tile(few, 16, 900, 64, apart=4096).rows == 4
    assert choose_tile(few, 16, 900, 64, apart=4100).rows == 12
    assert choose_tile(named("znver5"), 16, 900, 64, apart=4096).rows == 12


@pytest.mark.parametrize(
    ("machine", "columns", "packed", "last"),
    [
        ("x86-64-v3", 47, True, 0),
        ("x86-64-v3", 47, False, 15),  # else masks take registers in all panels
        ("x86-64-v3", 48, False, 0),
        ("x86-64-v3", 13, False, 0),
        ("x86-64-v4", 47, False, 0),
    ],
)
def test_panels_that_are_not_padded(machine, columns, packed, last) -> None:
    target = named(machine)
    tile = choose_tile(target, target.lanes(32), 60, columns, odd=True, packed=packed)
    assert tile.last == last


@pytest.mark.parametrize(
    ("columns", "rows", "found"),
    [
        (28, 1, (1, 28, 0)),  # one nest with four accumulators
        (28, 60, (6, 16, 12)),
        (14, 60, (4, 14, 0)),  # vectors of 8, 4 and 2
        (47, 60, (6, 16, 15)),
        (196, 60, (6, 16, 4)),
    ],
)
def test_tiles_of_parts_of_vectors(columns, rows, found) -> None:
    """On a machine without masks what fills no vector is several narrower ones."""
    target = named("x86-64-v3")
    tile = choose_tile(target, 8, rows, columns, odd=True, packed=False)
    assert (tile.rows, tile.columns, tile.last) == found


@pytest.mark.parametrize("rows", [4, 24])
def test_threads_of_groups_with_a_last_panel(rows: int) -> None:
    """Threads take groups, or tiles of rows of both nests, but not one nest alone of a group."""
    b, groups = sw.Builder(), 8
    x = b.input("x", (1, groups * 96, 14, 14))
    b.output(b.conv(x, floats(groups * rows, 96, 1, 1), groups=groups))
    exe = sw.compile(b.module(), target="x86-64-v3", threads=2)
    assert re.findall(r"tiles\((\w+)\)", exe.ir("scheduled")) == ["j0"]
    image = floats(1, groups * 96, 14, 14)
    compared = sw.compile(b.module(), target="x86-64-v3", threads=1)(image)
    np.testing.assert_array_equal(exe(image), compared)


def test_few_rows_at_once_are_few_tiles() -> None:
    """With four sums six rows fit: 32 of them are rather six tiles than eight of four rows."""
    target = named("x86-64-v4")
    heights = [choose_tile(target, 16, rows, 512, sums=4).rows for rows in (32, 16, 9, 8, 6)]
    assert heights == [6, 6, 5, 4, 6]
    assert choose_tile(target, 16, 32, 512).rows == 8


@pytest.mark.parametrize(
    ("rows", "tail"),
    [
        (32, "split(i, 6, tail=even)"),
        (11, "split(i, 6, tail=peel)"),
        (12, "split(i, 6, tail=peel)"),
    ],
)
def test_a_small_last_tile_is_none(kernels, normal, same_before_and_after, rows, tail) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        return schedule_kernel(kernel, named("x86-64-v4"), Knobs(rows=6))[0].kernel

    inputs = [normal(rows, 5), normal(20, 5), normal(20), normal(rows, 20)]
    after = same_before_and_after(kernels.dense(rows, 20, 5), inputs, schedule)
    assert tail in trace_of(after)


@pytest.mark.parametrize(
    ("k", "l1_bytes", "hints"),
    [
        (64, 1024, True),
        (40, 1024, False),  # the hints would take a part of the time
        (64, 4096, False),  # it stays in the first-level cache
    ],
)
def test_residuals_are_prefetched(
    kernels, normal, same_before_and_after, k, l1_bytes, hints
) -> None:
    """A tile reads its part of a residual after a long reduction, but knows the place before."""

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel.detach()
        return schedule_kernel(kernel, replace(named("x86-64-v4"), l1_bytes=l1_bytes))[0].kernel

    kind, same = "memref<15x20xf32>", "(d0, d1) -> (d0, d1)(%i, %j)"
    text = kernels.dense(15, 20, k).replace(") -> (%y", f", %z: {kind}) -> (%y")
    read = f"%u = loop.load %z {same} : {kind}, f32\n %v = arith.addf %s, %u : f32"
    text = text.replace("%r = arith.maximumf %s", f"{read}\n %r = arith.maximumf %v")
    inputs = [normal(15, k), normal(20, k), normal(20), normal(15, 20), normal(15, 20)]
    after = same_before_and_after(text, inputs, schedule)
    assert ("prefetch(3, j0, 0); prefetch(3, j0t, 0)" in trace_of(after)) == hints


def test_a_longer_latency_needs_more_accumulators(kernels, kernel_of) -> None:
    """One row of a product: as many partial sums as keep the units busy."""
    accumulators = []
    for latency in (1, 4):
        target = replace(named("x86-64-v4"), fma_latency=latency)
        kernel = kernel_of(kernels.dense(1, 32, 64))
        kernel.detach()
        trace = str(schedule_kernel(kernel, target)[0])
        accumulators.append(trace)
    assert "unroll(k, 2)" in accumulators[0]
    assert "unroll(k, 4)" in accumulators[1]

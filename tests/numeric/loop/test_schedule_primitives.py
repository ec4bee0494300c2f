"""Each primitive leaves what a kernel computes as it was, whatever the sizes and factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.core.algebra.affine import value_of
from stepwell.dialects.loop.handles import forwarding
from stepwell.dialects.loop.loops import bound_of, enclosing
from stepwell.dialects.loop.nests import ScheduleError, loop_named, loop_names, loops_of
from stepwell.dialects.loop.ops import KernelOp, block_shape
from stepwell.passes.loop.steps.cascade import cascade
from stepwell.passes.loop.steps.drop_unit_loops import drop_unit_loops
from stepwell.passes.loop.steps.pack import pack
from stepwell.passes.loop.steps.prefetch import prefetch
from stepwell.passes.loop.steps.reorder import reorder
from stepwell.passes.loop.steps.split import split
from stepwell.passes.loop.steps.stage import stage
from stepwell.passes.loop.steps.stage_columns import stage_columns
from stepwell.passes.loop.steps.tiles import tiles
from stepwell.passes.loop.steps.unroll import unroll
from stepwell.passes.loop.steps.vectorize import vectorize

SIZES = st.integers(0, 7)
FACTORS = st.integers(1, 5)
TAILS = st.sampled_from(["peel", "mask", "split", "cases", "even"])
QUICK = settings(max_examples=settings().max_examples * 25 // 100, deadline=None)


@pytest.fixture(scope="session")
def operands(normal) -> Callable[[int, int, int], list[np.ndarray]]:
    def make(m: int, n: int, k: int) -> list[np.ndarray]:
        return [normal(m, k), normal(n, k), normal(n), normal(m, n)]

    return make


def sizes_in_type(known: bool, *sizes: int) -> tuple[int | None, ...]:
    return sizes if known else (None,) * len(sizes)


@QUICK
@given(known=st.booleans(), m=SIZES, n=SIZES, k=SIZES, factor=FACTORS, tail=TAILS)
@pytest.mark.parametrize("loop", ["i", "j"])
def test_split(
    kernels, operands, same_before_and_after, loop, known, m, n, k, factor, tail
) -> None:
    tail = "peel" if tail == "even" and not known else tail
    text = kernels.dense(*sizes_in_type(known, m, n, k))
    same_before_and_after(text, operands(m, n, k), lambda kernel: split(kernel, loop, factor, tail))


@QUICK
@given(known=st.booleans(), m=SIZES, n=SIZES, k=SIZES, factor=FACTORS, again=FACTORS)
def test_split_of_a_reduction(
    kernels, operands, same_before_and_after, known, m, n, k, factor, again
) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        with forwarding() as forwarded:
            kernel = split(kernel, "k", factor)
        for last in forwarded["k"][-1:]:
            kernel = split(kernel, last, again)
        return kernel

    text = kernels.dense(*sizes_in_type(known, m, n, k))
    same_before_and_after(text, operands(m, n, k), schedule)


@QUICK
@given(
    known=st.booleans(),
    sizes=st.tuples(SIZES, SIZES, SIZES),
    factor=FACTORS,
    again=FACTORS,
    blocks=st.booleans(),
)
def test_cascade(
    kernels, operands, same_before_and_after, known, sizes, factor, again, blocks
) -> None:
    """Chunks of scalars and of blocks, cut again and unrolled; the initial value counts once."""

    def schedule(kernel: KernelOp) -> KernelOp:
        if blocks:
            kernel = vectorize(split(kernel, "j", 4, "mask"), ["j1"])
        with forwarding() as forwarded:
            kernel = cascade(kernel, "k", factor)
        outer, *inner = forwarded["k"]
        if inner:
            kernel = cascade(unroll(kernel, inner[0], 2), inner[0], again + 1)
        return cascade(kernel, outer, again)

    text = kernels.dense(*sizes_in_type(known, *sizes))
    same_before_and_after(text, operands(*sizes), schedule)


@QUICK
@given(
    known=st.booleans(),
    sizes=st.tuples(SIZES, SIZES, SIZES),
    order=st.permutations(["h", "i0", "i1", "j"]),
)
def test_reorder(kernels, normal, same_before_and_after, known, sizes, order) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = split(kernel, "i", 3, "mask")
        if order.index("i1") < order.index("i0"):
            with pytest.raises(ScheduleError, match='its bound depends on loop "i0"'):
                reorder(kernel, order)
            return kernel
        return reorder(kernel, order)

    m, n, k = sizes
    text = kernels.matmul(2, m if known else None, n, k)
    # With a static size that 3 divides, the inner bound depends on nothing.
    if known and m % 3 == 0:
        m, text = m + 1, kernels.matmul(2, m + 1, n, k)
    same_before_and_after(text, [normal(2, m, k), normal(k, n), normal(2, m, n)], schedule)


@QUICK
@given(m=SIZES, n=SIZES, k=SIZES, factor=FACTORS)
def test_pack(kernels, operands, same_before_and_after, m, n, k, factor) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = split(kernel, "j", factor, "mask")
        return pack(kernel, 1, ["j0", "k", "j1"])

    same_before_and_after(kernels.dense(m, n, k), operands(m, n, k), schedule)


@QUICK
@given(
    known=st.booleans(),
    m=SIZES,
    n=SIZES,
    k=SIZES,
    rows=FACTORS,
    lanes=FACTORS,
    packed=st.booleans(),
    tail=TAILS,
    joined=st.integers(0, 2),
)
def test_register_tile(
    kernels, operands, same_before_and_after, known, m, n, k, rows, lanes, packed, tail, joined
) -> None:
    """Every way to cut rows and lanes, with and without packing: the tail may be masked."""
    tail = "peel" if tail == "even" and not known else tail

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = split(kernel, "j", lanes, "mask")
        if packed and known and n and k:
            kernel = pack(kernel, 1, ["j0", "k", "j1"])
        more = min(joined, rows - 1) if tail == "cases" else 0
        with forwarding() as forwarded:
            kernel = split(kernel, "i", rows, tail, rows + more if more else 0)
        copies = [(row_around(kernel, lane, forwarded["i"]), lane) for lane in forwarded["j1"]]
        # Where all at once are refused, one by one shows whether that was right.
        with suppress(ScheduleError):
            return drop_unit_loops(vectorize(kernel, [*chain(*copies)]))
        for axes in copies:
            kernel = _vectorized_or_refused(kernel, axes)
        return drop_unit_loops(kernel)

    def row_around(kernel: KernelOp, lane: str, rows: Sequence[str]) -> str:
        around = (loop.loop_name.data for loop in enclosing(loop_named("test", kernel, lane)))
        return next(name for name in around if name in rows)

    text = kernels.dense(*sizes_in_type(known, m, n, k))
    same_before_and_after(text, operands(m, n, k), schedule)


def test_cases_are_vectorized_as_they_are(kernels, operands, same_before_and_after) -> None:
    """One of the cases is no copy of the one before it."""

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = unroll(split(kernel, "i", 5, "cases"), "kt3", 2)
        nests = [("i1", "j"), *((f"i1t{n}", f"jt{n}") for n in range(1, 5))]
        return vectorize(kernel, [*chain(*nests)])

    text = kernels.dense(None, 7, 6)
    for m in (9, 8, 7, 6, 5):
        after = same_before_and_after(text, operands(m, 7, 6), schedule)
    sums = {loop.loop_name.data: loop for loop in loops_of(after) if loop.is_reduction}
    assert {name: block_shape(loop.results[0].type) for name, loop in sums.items()} == {
        "k": (5, 7),
        "kt1": (1, 7),
        "kt2": (2, 7),
        "kt3": (3, 7),
        "kt4": (4, 7),
    }
    assert [name for name, loop in sums.items() if loop.unroll is not None] == ["kt3"]


def _vectorized_or_refused(kernel: KernelOp, axes: Sequence[str]) -> KernelOp:
    """A tail of unknown size that was peeled, or a chunk of one masked lane, is no axis."""
    sizes = [bound_of(loop) for loop in loops_of(kernel) if loop.loop_name.data in axes]
    constant = [value_of(bound[0]) for bound in sizes]
    if all(n is not None and (n > 1 or len(b) == 1) for n, b in zip(constant, sizes, strict=True)):
        return vectorize(kernel, axes)
    with pytest.raises(ScheduleError, match=r"its size is not known|wrong number of lanes"):
        vectorize(kernel, axes)
    return kernel


@QUICK
@given(
    known=st.booleans(),
    m=SIZES,
    n=SIZES,
    k=SIZES,
    factor=st.integers(2, 5),
    lanes=st.sampled_from([1, 2, 3]),
    order=st.permutations([0, 1]),
)
def test_partial_accumulators(
    kernels, operands, same_before_and_after, known, m, n, k, factor, lanes, order
) -> None:
    """The inner half of a reduction and the lanes beside each other, in both orders."""

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = split(kernel, "k", factor)
        kernel = split(kernel, "j", lanes, "split")
        axes = [["k1", "j1"][position] for position in order]
        return vectorize(kernel, axes) if set(axes) <= loop_names(kernel) else kernel

    text = kernels.dense(*sizes_in_type(known, m, n, k))
    same_before_and_after(text, operands(m, n, k), schedule)


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i8"])
def test_every_way_to_join(same_before_and_after, combine, kind) -> None:
    """Neutral values and folds for all that accumulators can hold, negative numbers included."""
    float_ops = {"add": "addf", "mul": "mulf", "max": "maximumf", "min": "minimumf"}
    integer_ops = {"add": "addi", "mul": "muli", "max": "maxsi", "min": "minsi"}
    op = (float_ops if kind[0] == "f" else integer_ops)[combine]
    text = f"""
loop.kernel @join(%x: memref<3x11x{kind}>, %first: memref<3x{kind}>) -> (%y: memref<3x{kind}>) {{
  loop.for "i" %i to 3 {{
    %f = loop.load %first (d0) -> (d0)(%i) : memref<3x{kind}>, {kind}
    %s = loop.for "k" %k to 11 reduction carry(%acc = %f : {kind} {combine}) {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<3x11x{kind}>, {kind}
      %t = arith.{op} %acc, %v : {kind}
      loop.yield %t : {kind}
    }}
    loop.store %s, %y (d0) -> (d0)(%i) : {kind}, memref<3x{kind}>
  }}
}}"""
    dtype = {"f32": "f4", "f64": "f8", "i32": "i4", "i8": "i1"}[kind]
    rng = np.random.default_rng(3)
    values = [rng.integers(-9, -1, shape).astype(dtype) for shape in ((3, 11), 3, 3)]

    def schedule(kernel: KernelOp) -> KernelOp:
        return vectorize(split(kernel, "k", 4), ["i", "k1"])

    same_before_and_after(text, values, schedule)
    same_before_and_after(text, values, lambda k: vectorize(split(k, "k", 4), ["k1"]))


@pytest.mark.parametrize("lengths", [[], [0], [0, 3, 0, 1], [5, 4, 3, 2, 1, 0]])
@pytest.mark.parametrize("features", [1, 2, 5])
def test_entries(kernels, normal, csr, same_before_and_after, lengths, features) -> None:
    """Rows without entries, a matrix without rows."""

    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = split(kernel, "j", 2, "split")
        inner = [name for name in ("j1", "j1t") if name in loop_names(kernel)]
        for name in inner:
            kernel = vectorize(kernel, [name])
        return unroll(split(kernel, "i", 2, "mask"), "e" if "e" in loop_names(kernel) else "et", 4)

    inputs = [*csr(lengths, 6), normal(6, features), normal(features)]
    same_before_and_after(
        kernels.spmm(features), [*inputs, normal(len(lengths), features)], schedule
    )


def test_tiles_and_unroll_change_no_number(kernels, operands, same_before_and_after) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        return unroll(unroll(tiles(kernel, "i"), "j"), "k", 2)

    after = same_before_and_after(kernels.dense(3, 4, 5), operands(3, 4, 5), schedule)
    assert "tiles" in str(after)
    assert "to 4 unroll {" in str(after)
    assert "reduction unroll 2 carry" in str(after)


def test_prefetch_changes_no_number(kernels, operands, same_before_and_after) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        kernel = reorder(split(kernel, "j", 4, "mask"), ["j0", "i", "j1"])
        kernel = pack(kernel, 1, ["j0", "k", "j1"])
        kernel = prefetch(vectorize(kernel, ["j1"]), 1, "k", ahead=64)
        return tiles(split(kernel, "j0", 2, "mask"), "j00")

    after = same_before_and_after(kernels.dense(3, 10, 5), operands(3, 10, 5), schedule)
    assert str(after).count("loop.prefetch") == 1


@pytest.mark.parametrize("sizes", [(2, 7, 20, 5), (1, 3, 4, 1), (1, 2, 33, 2)])
def test_staged_panels_change_no_number(kernels, normal, same_before_and_after, sizes) -> None:
    b, m, n, k = sizes

    def schedule(kernel: KernelOp) -> KernelOp:
        loops = ["j0", "i", "j1"]
        kernel = reorder(split(kernel, "j", 16, "mask"), loops)
        kernel = split(kernel, "i", 3, "peel")
        for name in ("i1", "i1t"):
            if name in loop_names(kernel):
                kernel = vectorize(kernel, [name, "j1" if name == "i1" else "j1t"])
        return stage(kernel, 1, "j0")

    inputs = [normal(b, m, k), normal(k, n), normal(b, m, n)]
    after = same_before_and_after(kernels.matmul(b, m, n, k), inputs, schedule)
    assert str(after).count("loop.local") == 1


def test_a_refused_step_leaves_the_kernel(kernels, kernel_of) -> None:
    kernel = kernel_of(kernels.dense(None, 4, 5))
    before = str(kernel)
    with pytest.raises(ScheduleError, match='loop "i" of @dense: its size is not known'):
        vectorize(kernel, ["i", "j"])
    assert str(kernel) == before
    assert kernel.parent is not None


COLUMNS = """
loop.kernel @columns(%x: memref<{m}x{n}xf32>, %p: memref<{m}xi64> {{loop.bounds = ["{m}"]}})
    -> (%y: memref<{m}x{n}xf32>, %last: memref<{n}xf32>) {{
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to {n} {{
    loop.for "f" %f to {m} {{
      loop.store %z, %y (d0, d1) -> (d0, d1)(%f, %i) : f32, memref<{m}x{n}xf32>
    }}
    loop.store %z, %last (d0) -> (d0)(%i) : f32, memref<{n}xf32>
  }}
  loop.for "j" %j to {n} {{
    %s = loop.for "k" %k to {m} serial carry(%t = %z : f32) {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %j) : memref<{m}x{n}xf32>, f32
      %u = arith.addf %t, %v : f32
      %g = loop.load %p (d0) -> (d0)(%k) : memref<{m}xi64>, i64
      %q = arith.index_cast %g : i64 to index
      loop.store add %u, %y (d0, d1) -> (d0, d1)(%q, %j) : f32, memref<{m}x{n}xf32>
      loop.store %u, %last (d0) -> (d0)(%j) : f32, memref<{n}xf32>
      loop.yield %u : f32
    }}
  }}
}}
"""


@QUICK
@given(m=st.integers(1, 7), n=st.integers(2, 7), size=st.integers(1, 3))
def test_columns_change_places(normal, same_before_and_after, m, n, size) -> None:
    def schedule(kernel: KernelOp) -> KernelOp:
        with forwarding() as forwarded:
            kernel = stage_columns(kernel, "j", size)
        columns = [name for name in forwarded["j"] if name.startswith("j")]
        return vectorize(drop_unit_loops(kernel), columns)

    places = np.arange(m)[::-1] // 2
    results = [np.zeros((m, n), np.float32), np.zeros(n, np.float32)]
    same_before_and_after(COLUMNS.format(m=m, n=n), [normal(m, n), places, *results], schedule)

"""Loops that carry several values: serial ones, and reductions with a combiner for each value.

Each kernel runs as it is written and by its default schedule, in the reference and as machine
code, against NumPy. Tolerances: sums are in another order than NumPy's, of up to 2000 terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.utils.exceptions import PassFailedException

import stepwell as sw
from stepwell.backends.reference.machine import run_kernel
from stepwell.core.target import named
from stepwell.dialects.loop.loops import loops_in
from stepwell.dialects.loop.ops import FoldOp, KernelOp
from stepwell.passes.loop.schedule import schedule_kernel
from stepwell.passes.loop.steps.drop_unit_loops import drop_unit_loops
from stepwell.passes.loop.steps.reorder import reorder
from stepwell.passes.loop.steps.split import split
from stepwell.passes.loop.steps.tiles import tiles
from stepwell.passes.loop.steps.unroll import unroll
from stepwell.passes.loop.steps.vectorize import vectorize

from ...harness import cases
from ..test_control_flow import at_stages

SIZES = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e+30 : f32"""

PREFIX = f"""
loop.kernel @prefix(%x: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {{{SIZES}
  loop.for "i" %i to %m {{
    %all = loop.for "k" %k to %n serial carry(%acc = %zero : f32) {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x?xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<?x?xf32>
      loop.yield %t : f32
    }}
  }}
}}"""

COLUMNS = f"""
loop.kernel @columns(%x: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {{{SIZES}
  loop.for "j" %j to %n {{
    %last, %most = loop.for "k" %k to %m serial carry(%acc = %zero : f32, %top = %low : f32) {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %j) : memref<?x?xf32>, f32
      %t = arith.addf %acc, %v : f32
      %u = arith.maximumf %top, %t : f32
      loop.store %u, %y (d0, d1) -> (d0, d1)(%k, %j) : f32, memref<?x?xf32>
      loop.yield %t, %u : f32, f32
    }}
  }}
}}"""

RECURRENCE = f"""
loop.kernel @recurrence(%x: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {{{SIZES}
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %steps = arith.subi %m, %c1 : index
  loop.for "f" %f to min (d0, d1) -> (d0, d1 * 64)(%n, %m) {{
    %v = loop.load %x (d0) -> (0, d0)(%f) : memref<?x?xf32>, f32
    loop.store %v, %y (d0) -> (0, d0)(%f) : f32, memref<?x?xf32>
  }}
  %end = loop.for "t" %t to %steps serial carry(%decay = %one : f32) {{
    %next = arith.mulf %decay, %half : f32
    loop.for "j" %j to %n {{
      %p = loop.load %y (d0, d1) -> (d0, d1)(%t, %j) : memref<?x?xf32>, f32
      %v = loop.load %x (d0, d1) -> (d0 + 1, d1)(%t, %j) : memref<?x?xf32>, f32
      %s = math.fma %next, %p, %v : f32
      loop.store %s, %y (d0, d1) -> (d0 + 1, d1)(%t, %j) : f32, memref<?x?xf32>
    }}
    loop.yield %next : f32
  }}
}}"""

ONLINE = f"""
loop.kernel @softmax(%x: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {{{SIZES}
  loop.for "i" %i to %m {{
    %top, %sum = loop.for "k" %k to %n reduction
        carry(%mx = %low : f32 max, %acc = %zero : f32 custom) {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x?xf32>, f32
      %u = arith.maximumf %mx, %v : f32
      %a = arith.subf %mx, %u : f32
      %b = arith.subf %v, %u : f32
      %ea = math.exp %a : f32
      %eb = math.exp %b : f32
      %t = math.fma %acc, %ea, %eb : f32
      loop.yield %u, %t : f32, f32
    }}
    loop.for "j" %j to %n {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x?xf32>, f32
      %a = arith.subf %v, %top : f32
      %e = math.exp %a : f32
      %r = arith.divf %e, %sum : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x?xf32>
    }}
  }}
}}"""

MOMENTS = f"""
loop.kernel @moments(%x: memref<?x?xf32>) -> (%y: memref<?x3xf32>) {{{SIZES}
  %count = arith.index_cast %n : index to i32
  %length = arith.sitofp %count : i32 to f32
  loop.for "i" %i to %m {{
    %s, %q, %top = loop.for "k" %k to %n reduction
        carry(%a = %zero : f32 add, %b = %zero : f32 add, %mx = %low : f32 max) {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x?xf32>, f32
      %t = arith.addf %a, %v : f32
      %u = math.fma %v, %v, %b : f32
      %w = arith.maximumf %mx, %v : f32
      loop.yield %t, %u, %w : f32, f32, f32
    }}
    %mean = arith.divf %s, %length : f32
    %square = arith.divf %q, %length : f32
    %p = arith.mulf %mean, %mean : f32
    %variance = arith.subf %square, %p : f32
    loop.store %mean, %y (d0) -> (d0, 0)(%i) : f32, memref<?x3xf32>
    loop.store %variance, %y (d0) -> (d0, 1)(%i) : f32, memref<?x3xf32>
    loop.store %top, %y (d0) -> (d0, 2)(%i) : f32, memref<?x3xf32>
  }}
}}"""

ENTRIES = """
loop.kernel @entries(%ip: memref<?xi32>, %ix: memref<?xi32>, %v: memref<?xf32>)
    -> (%r: memref<?x2xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %rows = memref.dim %r, %c0 : memref<?x2xf32>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e+30 : f32
  loop.for "i" %i to %rows {
    %s, %m = loop.for "e" %p, %c of %ip, %ix row (d0) -> (d0)(%i) reduction
        carry(%a = %zero : f32 add, %b = %low : f32 max) : memref<?xi32>, memref<?xi32> {
      %w = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
      %t = arith.addf %a, %w : f32
      %u = arith.maximumf %b, %w : f32
      loop.yield %t, %u : f32, f32
    }
    loop.store %s, %r (d0) -> (d0, 0)(%i) : f32, memref<?x2xf32>
    loop.store %m, %r (d0) -> (d0, 1)(%i) : f32, memref<?x2xf32>
    loop.for "g" %q, %d of %ip, %ix row (d0) -> (d0)(%i) : memref<?xi32>, memref<?xi32> {
      %w = loop.load %v (d0) -> (d0)(%q) : memref<?xf32>, f32
      %t = arith.subf %w, %m : f32
      loop.store %t, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
    }
  }
}"""


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True, initial=-1e30))
    return e / e.sum(axis=1, keepdims=True)


def moments(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return np.stack([wide.mean(axis=1), wide.var(axis=1), wide.max(axis=1)], axis=1)


def recurrence(x: np.ndarray) -> np.ndarray:
    y = x.astype(np.float64)
    for t in range(1, len(x)):
        y[t] += 0.5**t * y[t - 1]
    return y


def running_most(x: np.ndarray) -> np.ndarray:
    return np.maximum.accumulate(np.cumsum(x, axis=0, dtype=np.float64), axis=0)


Meaning = Callable[[np.ndarray], np.ndarray]
CASES: dict[str, tuple[str, Meaning]] = {
    "prefix sums": (PREFIX, lambda x: np.cumsum(x, axis=1, dtype=np.float64)),
    "running maxima of sums": (COLUMNS, running_most),
    "a recurrence": (RECURRENCE, recurrence),
    "softmax in one pass": (ONLINE, softmax),
    "moments": (MOMENTS, moments),
}


SHAPES = [(1, 1), (2, 3), (3, 35), (5, 130), (17, 64)]


@pytest.fixture(scope="module")
def everywhere(kernel_of, compiled_kernel):
    """Runs a kernel in every way, and compares what it writes."""

    def run(text: str, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> KernelOp:
        scheduled = kernel_of(text)
        scheduled.detach()
        scheduled = schedule_kernel(scheduled, named("host"))[0].kernel
        scheduled.verify()
        for kernel in (kernel_of(text), scheduled):
            for way in (run_kernel, compiled_kernel):
                got = [np.full(array.shape, 77, np.float32) for array in expected]
                way(kernel, [*inputs, *got])
                for one, other in zip(got, expected, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
        return scheduled

    return run


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", cases(SHAPES, [(1, 1), (3, 35), (17, 64)]))
def test_against_numpy(everywhere, normal, name, shape) -> None:
    text, meaning = CASES[name]
    x = normal(*shape)
    everywhere(text, [x], [meaning(x)])


@pytest.mark.parametrize("name", CASES)
def test_of_real_size(kernel_of, compiled_kernel, normal, name) -> None:
    text, meaning = CASES[name]
    kernel = kernel_of(text)
    kernel.detach()
    kernel = schedule_kernel(kernel, named("host"))[0].kernel
    x = normal(300, 2000)
    expected = meaning(x)
    got = np.full(expected.shape, 77, np.float32)
    compiled_kernel(kernel, [x, got])
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


@settings(max_examples=settings().max_examples * 25 // 100, deadline=None)
@given(rows=st.integers(0, 6), columns=st.integers(1, 70), seed=st.integers(0, 9))
@pytest.mark.parametrize("name", ["prefix sums", "softmax in one pass", "moments"])
def test_any_size(kernel_of, compiled_kernel, name, rows, columns, seed) -> None:
    text, meaning = CASES[name]
    x = np.random.default_rng(seed).standard_normal((rows, columns), np.float32)
    expected = meaning(x)
    kernel = kernel_of(text)
    kernel.detach()
    for one in (kernel_of(text), schedule_kernel(kernel, named("host"))[0].kernel):
        got = np.full(expected.shape, 77, np.float32)
        compiled_kernel(one, [x, got])
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("lengths", [[], [0], [1], [0, 3, 0, 1], [9, 4, 13, 2, 1, 0]])
def test_entries(everywhere, normal, csr, lengths) -> None:
    (indptr, indices), v = csr(lengths, 20)[:2], normal(sum(lengths))
    parts = [v[start:end] for start, end in pairwise(indptr)]
    rows = np.array([(p.sum(), p.max(initial=-1e30)) for p in parts]).reshape(-1, 2)
    less = [p - p.max() for p in parts if len(p)]
    inputs = [indptr, indices, v]
    scheduled = everywhere(ENTRIES, inputs, [rows, np.concatenate([v[:0], *less])])
    for factor in (2, 4):
        kernel = unroll(scheduled.clone(), loop_of(scheduled, "e"), factor)
        got = [np.full((len(lengths), 2), 77, np.float32), np.full(len(v), 77, np.float32)]
        run_kernel(kernel, [*inputs, *got])
        np.testing.assert_allclose(got[0], rows, rtol=1e-4, atol=1e-4)


def loop_of(kernel: KernelOp, base: str) -> str:
    """The name of a loop that comes of the one of this name."""
    names = [loop.loop_name.data for loop in loops_in(kernel.body.block)]
    return next(name for name in names if name.startswith(base))


# Primitives.


def test_independent_values_have_partial_accumulators(kernels_moments, normal) -> None:
    after = kernels_moments(lambda k: vectorize(split(k, "k", 8), ["k1"]), normal(4, 35))
    folds = [op.combine.data for op in after.walk() if isinstance(op, FoldOp)]
    assert folds == ["add", "add", "max"]
    kernels_moments(lambda k: unroll(k, "k", 4), normal(4, 35))
    kernels_moments(lambda k: unroll(k, "k", 4), normal(4, 3))
    kernels_moments(lambda k: vectorize(split(k, "i", 4, "mask"), ["i1"]), normal(6, 5))

    def block(kernel: KernelOp) -> KernelOp:
        return vectorize(split(split(kernel, "i", 2), "k", 4), ["i1", "k1"])

    kernels_moments(block, normal(6, 9))


@pytest.fixture
def kernels_moments(same_before_and_after, compiled_kernel):
    """Schedules the kernel of moments, and runs it."""

    def run(schedule: Callable[[KernelOp], KernelOp], x: np.ndarray) -> KernelOp:
        out = np.zeros((len(x), 3), np.float32)
        after = same_before_and_after(MOMENTS, [x, out], schedule)
        compiled_kernel(after, [x, out])
        np.testing.assert_allclose(out, moments(x), rtol=1e-4, atol=1e-4)
        return after

    return run


BEHIND = """
loop.kernel @behind(%x: memref<?x?xf32>) -> (%y: memref<?x?xf32>) {SIZES
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to %m {
    %s = loop.for "k" %k to min (d0) -> (d0 - 3)(%n) reduction carry(%acc = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1 + 3)(%i, %k) : memref<?x?xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.for "j" %j to %n {
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x?xf32>
    }
  }
}""".replace("SIZES", SIZES)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7, 8, 12])
def test_a_bound_below_zero_is_no_iteration(
    same_before_and_after, compiled_kernel, normal, columns
) -> None:
    x, y = normal(2, columns), np.zeros((2, columns), np.float32)
    after = same_before_and_after(BEHIND, [x, y], lambda k: unroll(k, "k", 4))
    compiled_kernel(after, [x, y])
    expected = np.broadcast_to(x[:, 3:].sum(1, keepdims=True), y.shape)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_chunks_carry_on(same_before_and_after, normal) -> None:
    for text, loop in ((PREFIX, "k"), (COLUMNS, "k"), (ONLINE, "k"), (RECURRENCE, "t")):
        inputs = [normal(11, 7), normal(11, 7)]
        same_before_and_after(text, inputs, lambda k, loop=loop: split(k, loop, 3))


def test_unit_loops_hand_on_what_they_carry(same_before_and_after, normal) -> None:
    text = COLUMNS.replace('"k" %k to %m', '"k" %k to 1')
    after = same_before_and_after(text, [normal(1, 7), normal(1, 7)], drop_unit_loops)
    assert [loop.loop_name.data for loop in loops_in(after.body.block)] == ["j"]


CARRIES = "it carries values from one iteration to the next"
REFUSED = {
    "an axis of a serial loop": (PREFIX, lambda k: vectorize(k, ["k"]), "wrong kind"),
    "tiles of a serial loop": (PREFIX, lambda k: tiles(k, "k"), CARRIES),
    "the order of a serial loop": (PREFIX, lambda k: reorder(k, ["i", "k"]), CARRIES),
    "copies of a serial loop": (PREFIX, lambda k: unroll(k, "k"), "keep their order"),
    "masked chunks": (PREFIX, lambda k: split(k, "k", 2, "mask"), "has no masked tail"),
    "tiles in a serial loop": (RECURRENCE, lambda k: tiles(k, "j"), 'is inside of "t"'),
    "accumulators of a joint state": (ONLINE, lambda k: unroll(k, "k", 2), "cannot be combined"),
    "lanes of a joint state": (
        ONLINE,
        lambda k: vectorize(split(k, "k", 4), ["k1"]),
        "cannot be combined",
    ),
    "chunks of entries": (ENTRIES, lambda k: split(k, "g", 4), "rows differ in length"),
    "tiles of entries": (ENTRIES, lambda k: tiles(k, "g"), "rows differ in length"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(kernel_of, name) -> None:
    text, step, message = REFUSED[name]
    kernel = kernel_of(text)
    before = str(kernel)
    with pytest.raises(PassFailedException, match=message):
        step(kernel)
    assert str(kernel) == before or name.startswith("lanes")


# From text to results.

PROGRAM = """
func.func @main(%x: tensor<?x?xf32> {graph.name = "x", graph.dims = ["m", "n"]})
    -> tensor<?x?xf32> {
  %h = graph.exp %x : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = graph.call_dps @prefix(%h) dims [["m", "n"]] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = graph.call_dps @softmax(%s) dims [["m", "n"]] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = graph.neg %p : (tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("threads", cases([1, 2], [2]))
def test_a_program_of_such_kernels(normal, threads) -> None:
    module = sw.from_mlir(PROGRAM + PREFIX + ONLINE)
    exe = sw.compile(module, threads=threads)
    x = normal(40, 90)
    expected = -softmax(np.cumsum(np.exp(x), axis=1))
    np.testing.assert_allclose(exe(x), expected, rtol=1e-3, atol=1e-4)
    for run in at_stages(module, ("graph", "kernels", "scheduled", "loops"), threads).values():
        np.testing.assert_allclose(
            run(x[:3, :9]),
            -softmax(np.cumsum(np.exp(x[:3, :9]), axis=1)),
            rtol=1e-3,
            atol=1e-4,
        )


def test_loops_keep_their_order(kernel_of) -> None:
    kernel = kernel_of(PREFIX)
    kernel.detach()
    after = schedule_kernel(kernel, named("x86-64-v4"))[0].kernel
    assert {op.kind.data for op in loops_in(after.body.block) if op.carried} == {"serial"}


@sw.kernel
def moments_in_python(k, x, y):
    columns = x.shape[1]
    with k.loops(x.shape[0]) as i:
        zero = k.cast(0 * i, "f32")
        total, square, most = k.reduce_several(
            columns,
            ["add", "add", "max"],
            [zero, zero, zero - 1e30],
            lambda j, a, b, top: (a + x[i, j], b + x[i, j] * x[i, j], k.maximum(top, x[i, j])),
        )
        mean = total / k.cast(columns, "f32")
        y[i, 0] = mean
        y[i, 1] = square / k.cast(columns, "f32") - mean * mean
        y[i, 2] = most


@pytest.mark.parametrize("shape", [(1, 1), (5, 35), (3, 130)])
def test_several_values_from_python(normal, shape) -> None:
    b = sw.Builder("main")
    x = b.input("x", ("m", "n"), "f32")
    spec = sw.TensorSpec(("m", 3), "f32")
    b.output(b.call_kernel(moments_in_python, x, results=spec), name="y")
    exe = sw.compile(b.module())
    assert exe.ir("kernels").count(" reduction carry(") == 1
    given = normal(*shape)
    np.testing.assert_allclose(exe(given), moments(given), rtol=1e-4, atol=1e-4)


@sw.kernel
def too_few_in_python(k, x, y):
    with k.loops(x.shape[0]) as i:
        zero = k.cast(0 * i, "f32")
        y[i, 0], y[i, 1] = k.reduce_several(3, ["add", "max"], [zero, zero], lambda j, s, m: (s,))


@sw.kernel
def one_combiner_in_python(k, x, y):
    with k.loops(x.shape[0]) as i:
        zero = k.cast(0 * i, "f32")
        y[i, 0], y[i, 1] = k.reduce_several(3, ["add"], [zero, zero], lambda j, s, m: (s, m))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (too_few_in_python, "wrong results of a step, expected a tuple of 2"),
        (one_combiner_in_python, "wrong number of combiners, expected 2, got 1"),
    ],
)
def test_wrong_numbers_of_values_from_python(kernel, message) -> None:
    b = sw.Builder("main")
    x = b.input("x", ("m", 3), "f32")
    with pytest.raises(sw.StepwellError, match=message):
        b.call_kernel(kernel, x, results=sw.TensorSpec(("m", 2), "f32"))

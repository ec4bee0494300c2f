"""Stores that accumulate, against NumPy: in the reference, by the default schedule, compiled.

Tolerance: sums and products of at most 70 numbers near 1, in another order than NumPy's.
"""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from stepwell.backends.reference.machine import run_kernel
from stepwell.core.target import named
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.passes.loop.schedule import schedule_kernel
from stepwell.passes.loop.scheduler.replay import replay

from ...harness import cases

JOINS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8}


def scatter(combine: str, kind: str, loop: str = "serial") -> str:
    """y[at[k]] is accumulated over k, from 1."""
    one = "1.0" if kind.startswith("f") else "1"
    carry, last = "", ""
    if loop == "reduction":
        carry, last = "carry(%acc = %c0 : index max)", "loop.yield %acc : index"
    head = "%s = loop.for" if carry else "loop.for"
    return f"""
loop.kernel @scatter(%at: memref<?xi32>, %v: memref<?x{kind}>) -> (%y: memref<9x{kind}>) {{
  %c0 = arith.constant 0 : index
  %one = arith.constant {one} : {kind}
  %n = memref.dim %at, %c0 : memref<?xi32>
  loop.for "i" %i to 9 {{
    loop.store %one, %y (d0) -> (d0)(%i) : {kind}, memref<9x{kind}>
  }}
  {head} "k" %k to %n {loop} {carry} {{
    %p = loop.load %at (d0) -> (d0)(%k) : memref<?xi32>, i32
    %q = arith.index_cast %p : i32 to index
    %w = loop.load %v (d0) -> (d0)(%k) : memref<?x{kind}>, {kind}
    loop.store {combine} %w, %y (d0) -> (d0)(%q) : {kind}, memref<9x{kind}>
    {last}
  }}
}}"""


def columns(combine: str, size: int | None) -> str:
    """y[j] is accumulated over the rows of x, in a local buffer where its size is known."""
    n, bound = ("?", "%n") if size is None else (size, size)
    x, y = f"memref<?x{n}xf32>", f"memref<{n}xf32>"
    local = f"%h = loop.local : {y}" if size else ""
    h = "%h" if size else "%y"
    copy = f"""loop.for "l" %l to {bound} {{
    %u = loop.load %h (d0) -> (d0)(%l) : {y}, f32
    loop.store %u, %y (d0) -> (d0)(%l) : f32, {y}
  }}"""
    return f"""
loop.kernel @columns(%x: {x}) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %m = memref.dim %x, %c0 : {x}
  %n = memref.dim %x, %c1 : {x}
  {local}
  loop.for "z" %z to {bound} {{
    loop.store %one, {h} (d0) -> (d0)(%z) : f32, {y}
  }}
  loop.for "i" %i to %m serial {{
    loop.for "j" %j to {bound} {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : {x}, f32
      loop.store {combine} %v, {h} (d0) -> (d0)(%j) : f32, {y}
    }}
  }}
  {copy if size else ""}
}}"""


@pytest.mark.parametrize("loop", ["serial", "reduction"])
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("combine", JOINS)
def test_scatter(kernel_of, compiled_kernel, combine, kind, loop) -> None:
    rng, dtype = np.random.default_rng(3), DTYPES[kind]
    for count in (0, 1, 60):
        at = rng.integers(0, 7, count).astype(np.int32)
        v = rng.uniform(0.9, 1.1, count) if dtype(0.5) else rng.integers(-2, 3, count)
        v = v.astype(dtype)
        expected = np.ones(9, dtype)
        JOINS[combine].at(expected, at, v)
        for way in (run_kernel, compiled_kernel):
            got = np.full(9, 77, dtype)
            way(kernel_of(scatter(combine, kind, loop)), [at, v, got])
            np.testing.assert_allclose(got, expected, rtol=1e-4)


BLOCKS = [(combine, size) for combine in ("add", "max") for size in (None, 9, 16, 21)]


@pytest.mark.parametrize(
    "steps",
    [
        "",
        "split(j, 8, tail=mask); vectorize(j1)",
        "split(j, 4, tail=peel); vectorize(j1)",
        "split(j, 8, tail=split); vectorize(j1)",
        "split(z, 8, tail=mask); vectorize(z1)",
        "split(i, 4)",
    ],
)
@pytest.mark.parametrize("block", cases(BLOCKS, [*BLOCKS[:4], ("max", 21)]))
def test_blocks_and_masks(kernel_of, compiled_kernel, normal, block, steps) -> None:
    combine, size = block
    x = normal(7, size or 13)
    expected = JOINS[combine](1, JOINS[combine].reduce(x, axis=0))
    kernels = [kernel_of(columns(combine, size))]
    if steps:
        kernels = [replay(kernels[0], steps)]
    else:
        scheduled = kernel_of(columns(combine, size))
        scheduled.detach()
        kernels.append(schedule_kernel(scheduled, named("host"))[0].kernel)
    for kernel in kernels:
        kernel.verify()
        for way in (run_kernel, compiled_kernel):
            got = np.full_like(expected, 77)
            way(kernel, [x, got])
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "steps",
    ["", "split(j, 8, tail=mask); vectorize(j1)", "split(j, 4, tail=peel); vectorize(j1)"],
)
@pytest.mark.parametrize("size", [None, 13])
def test_maxnum_passes_over_nan(kernel_of, compiled_kernel, normal, size, steps) -> None:
    """On either side: in the buffer to begin with, and in what is stored."""
    x = normal(5, 13)
    x[1, ::2], x[:, 4], x[4, :3] = np.nan, np.nan, np.nan
    text = columns("maxnum", size).replace("constant 1.0", "constant 0x7FC00000")
    kernel = kernel_of(text)
    if steps:
        kernel = replay(kernel, steps)
    for way in (run_kernel, compiled_kernel):
        got = np.full(13, 77, np.float32)
        way(kernel, [x, got])
        np.testing.assert_array_equal(got, np.fmax.reduce(x, axis=0))


MANY = pytest.mark.unguarded("the interpreter has more buffers than a process has mappings")


@pytest.mark.parametrize("parts", [*cases([1, 2, 4], [4]), pytest.param(20, marks=MANY)])
@pytest.mark.parametrize("combine", cases(["add", "max"], ["add"]))
def test_parts_own_what_they_update(kernel_of, compiled_kernel, combine, parts) -> None:
    """Each place is updated in the same order as by one loop, so that sums have equal roundings."""
    rng, text = np.random.default_rng(3), scatter(combine, "f32")
    for chunk, count in ((1, 0), (1, 1), (1, 60), (25, 60), (100, 600)):
        at, v = rng.integers(0, 9, count).astype(np.int32), rng.normal(size=count)
        inputs, expected = [at, v.astype(np.float32)], np.full(9, 77, np.float32)
        compiled_kernel(kernel_of(text), [*inputs, expected])
        for way in (run_kernel, compiled_kernel):
            got = np.full(9, 77, np.float32)
            way(replay(kernel_of(text), f"own(k, {parts}, {chunk}); tiles(k0)"), [*inputs, got])
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("parts", cases([1, 2, 4, 20], [4, 20]))
@pytest.mark.parametrize(
    ("combine", "kind"), [("add", "i32"), ("mul", "i32"), ("max", "f32"), ("min", "f32")]
)
def test_copies_are_joined(kernel_of, compiled_kernel, combine, kind, parts) -> None:
    """Integers wrap around; a NaN stays, and a place without updates is what it was."""
    rng, text = np.random.default_rng(3), scatter(combine, kind)
    numpy = np.int32 if kind == "i32" else np.float32
    for chunk, count in ((1, 0), (1, 1), (1, 61), (25, 60)):
        at = rng.integers(0, 8, count).astype(np.int32)
        v = (rng.normal(size=count) * (1 << 24)).astype(numpy)
        if kind == "f32":
            v[7::20] = np.nan
        inputs, expected = [at, v], np.full(9, 77, numpy)
        compiled_kernel(kernel_of(text), [*inputs, expected])
        for way in (run_kernel, compiled_kernel):
            got = np.full(9, 77, numpy)
            trace = f"privatise(k, {parts}, {chunk}); tiles(k0)"
            way(replay(kernel_of(text), trace), [*inputs, got])
            np.testing.assert_array_equal(got, expected)


ONE_PLACE = """
loop.kernel @sum(%x: memref<32xf32>) -> (%y: memref<2xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.store %zero, %y () -> (0)() : f32, memref<2xf32>
  %s = loop.for "k" %k to 32 reduction carry(%acc = %zero : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<32xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.store add %zero, %y () -> (0)() : f32, memref<2xf32>
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (1)() : f32, memref<2xf32>
}"""


def test_lanes_do_not_accumulate_to_one_place(kernel_of) -> None:
    """Even a value that is the same in all iterations is accumulated once for each."""
    with pytest.raises(ScheduleError, match='loop "k1" of @sum: its iterations store to one place'):
        replay(kernel_of(ONE_PLACE), "split(k, 8); vectorize(k1)")


def test_other_accumulations_do_not_commute(kernel_of) -> None:
    """A sum of which the maximum is taken in between is another one in another order."""
    text = ONE_PLACE.replace(
        "    loop.yield",
        """
    loop.store max %v, %y () -> (0)() : f32, memref<2xf32>
    loop.yield""",
    )
    with pytest.raises(VerifyException, match='loop "k" may depend on one another'):
        kernel_of(text).verify()


def test_unrolled_to_one_place(kernel_of, compiled_kernel, normal) -> None:
    kernel = replay(kernel_of(ONE_PLACE.replace("add %zero, %y", "add %v, %y")), "unroll(k, 4)")
    x, got = normal(32), np.full(2, 77, np.float32)
    compiled_kernel(kernel, [x, got])
    np.testing.assert_allclose(got, [x.sum(), x.sum()], rtol=1e-4)

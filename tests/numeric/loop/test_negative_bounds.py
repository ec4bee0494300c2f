"""Bounds below 0 at run time mean no iterations, before and after every step of a schedule.

Arrays are parts of larger ones whose other elements are NaN: a read outside shows in the result, a
write outside beside it. Sums of at most 9 integers between -8 and 8 are exact.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.backends.reference.machine import run_kernel
from stepwell.core.target import named
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.passes.loop.schedule import schedule_kernel
from stepwell.passes.loop.scheduler.replay import replay

from ...harness import cases

SIZE = 9
BOUNDS: dict[str, Callable[[int, int], int]] = {
    "min (d0, d1) -> (d0)": lambda n, m: n,
    "min (d0, d1) -> (d0 - 1)": lambda n, m: n - 1,
    "min (d0, d1) -> (d0 - 5)": lambda n, m: n - 5,
    "min (d0, d1) -> (-d0 + 6)": lambda n, m: 6 - n,
    "min (d0, d1) -> (d0 - d1)": lambda n, m: n - m,
    "min (d0, d1) -> (d0 - 3, d1)": lambda n, m: min(n - 3, m),
    "min (d0, d1) -> (8, d0 - 5)": lambda n, m: n - 5,
    "min (d0, d1) -> (4, d0 - d1)": lambda n, m: min(4, n - m),
    "min (d0, d1) -> ((d0 - 7) floordiv 2)": lambda n, m: (n - 7) // 2,
    "min (d0, d1) -> ((d0 - 7) ceildiv 4)": lambda n, m: -((7 - n) // 4),
    "min (d0, d1) -> (d0 floordiv 2 - 2)": lambda n, m: n // 2 - 2,
    "min (d0, d1) -> (d0 * 2 - d1 - 10)": lambda n, m: 2 * n - m - 10,
    "min (d0, d1) -> (-3)": lambda n, m: -3,
    "min (d0, d1) -> (8)": lambda n, m: 8,
}
"""Bounds of at most `SIZE` for sizes from 0 to `SIZE`."""
STEPS = [
    *(f"split({i}, 4, tail={tail})" for i in "ij" for tail in ("peel", "mask", "split", "cases")),
    "split(k, 4, tail=peel)",
    *(f"split({i}, 4, tail=cases, cases=5)" for i in "ij"),
    *(f"split({i}, 5, tail=peel); split({i}1t, 2, tail=peel)" for i in "ijk"),
    *(f"split({i}, 2, tail=peel); split({i}0, 2, tail=peel)" for i in "ijk"),
    *(f"split({i}, 5, tail=cases, cases=6); split({i}0, 2, tail=peel)" for i in "ij"),
    *(f"split(j, 4, tail={tail}); vectorize(j1)" for tail in ("peel", "mask", "split", "cases")),
    "split(i, 4, tail=mask); split(i1, 2, tail=cases)",
    "split(k, 4, tail=peel); vectorize(k1)",
    "split(k, 4, tail=peel); unroll(k0, 2)",
    "split(i, 2, tail=mask); tiles(i0)",
    "split(j, 2, tail=peel); tiles(j0)",
    "split(i, 3, tail=peel); reorder(j, i1)",
    *(f"vectorize({i})" for i in "ij"),
    *(f"tiles({i})" for i in "ij"),
    *(f"split_border({i}, 1, 1)" for i in "ij"),
    *(f"unroll({i}, 8)" for i in "ijk"),
    "unroll(k, 3)",
    "fuse(i, j)",
    "reorder(j, i)",
    "sink(i)",
    "drop_unit_loops()",
    "stage(2, i)",
    "stage(2, j)",
    "stage(3, j)",
]
"""Steps, of which those that are refused for a kernel are left out."""


@dataclass(frozen=True)
class Nest:
    """For i, j: the sum of x[i, k] * w[k, j] over k, or x[i, j] * w[i, j] without a reduction."""

    bounds: tuple[str, str, str]
    is_sum: bool
    known: bool
    """Whether the sizes of x, w and y are."""

    @property
    def text(self) -> str:
        size, (i, j, k) = SIZE if self.known else "?", self.bounds
        x, z = f"memref<{size}x{size}xf32>", "memref<?xf32>"
        inner = "%i, %k", "%k, %j" if self.is_sum else "%i, %j"
        a, b = (
            f"loop.load %{n} (d0, d1) -> (d0, d1)({at if self.is_sum else '%i, %j'}) : {x}, f32"
            for n, at in zip("xw", inner, strict=True)
        )
        body = f"""
      %a = {a}
      %b = {b}
      %p = arith.mulf %a, %b : f32"""
        if self.is_sum:
            body = f"""
      %r = loop.for "k" %k to {k}(%n, %m) reduction carry(%acc = %zero : f32 add) {{{body}
        %t = arith.addf %acc, %p : f32
        loop.yield %t : f32
      }}"""
        return f"""
loop.kernel @nest(%d: {z}, %e: {z}, %x: {x}, %w: {x}) -> (%y: {x}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %d, %c0 : {z}
  %m = memref.dim %e, %c0 : {z}
  loop.for "i" %i to {i}(%n, %m) {{
    loop.for "j" %j to {j}(%n, %m) {{{body}
      loop.store {"%r" if self.is_sum else "%p"}, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {x}
    }}
  }}
}}"""

    def expected(self, n: int, m: int, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The result, with 77 where nothing is stored."""
        i, j, k = (max(0, BOUNDS[bound](n, m)) for bound in self.bounds)
        y = np.full((SIZE, SIZE), 77, np.float32)
        y[:i, :j] = x[:i, :k] @ w[:k, :j] if self.is_sum else x[:i, :j] * w[:i, :j]
        return y


def guarded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array as the middle of a larger one, and that."""
    around = np.full((3, *array.shape), np.nan, np.float32)
    around[1] = array
    return around[1], around


bounds = st.sampled_from(sorted(BOUNDS))
nests = st.builds(Nest, st.tuples(bounds, bounds, bounds), st.booleans(), st.booleans())
sizes = st.integers(0, SIZE)


@settings(max_examples=settings().max_examples * 25 // 100, deadline=None)
@given(nest=nests, n=sizes, m=sizes, steps=st.lists(st.sampled_from(STEPS), max_size=4))
@pytest.mark.parametrize("reference", [True, False], ids=["reference", "compiled"])
def test_a_bound_below_0_means_no_iterations(
    kernel_of, compiled_kernel, reference, nest, n, m, steps
) -> None:
    kernels = {"as written": kernel_of(nest.text)}
    for target in ("x86-64-v2", "x86-64-v3"):
        plain = kernel_of(nest.text)
        plain.detach()
        kernels[target] = schedule_kernel(plain, named(target))[0].kernel
    for step in steps:
        with contextlib.suppress(ScheduleError):
            kernels[step] = replay(kernel_of(nest.text), step)
    rng = np.random.default_rng(n)
    x, w = (rng.integers(-8, 9, (SIZE, SIZE)).astype(np.float32) for _ in range(2))
    expected = nest.expected(n, m, x, w)
    for step, kernel in kernels.items():
        kernel.verify()
        got, around = guarded(np.full_like(expected, 77))
        of_size = (np.zeros(size, np.float32) for size in (n, m))
        inputs = [*of_size, guarded(x)[0], guarded(w)[0]]
        (run_kernel if reference else compiled_kernel)(kernel, [*inputs, got])
        np.testing.assert_array_equal(got, expected, step)
        assert np.isnan(around[[0, 2]]).all(), step


@sw.kernel
def sums_from_5(k: Any, x: Any, y: Any) -> None:
    with k.loops(y.shape[0]) as i:
        y[i] = k.sum(x.shape[1] - 5, lambda j: x[i, j + 5])


@sw.kernel
def neighbours(k: Any, x: Any, y: Any) -> None:
    with k.loops(*x.shape) as (i, j):
        y[i, j] = 0.0
    with k.loops(x.shape[0]) as i, k.loops(x.shape[1] - 2) as j:
        y[i, j + 1] = x[i, j] + x[i, j + 2]


@pytest.mark.parametrize("level", cases(range(4), [0, 3]))
def test_kernels_of_python(level: int) -> None:
    b = sw.Builder()
    x = b.input("x", ("m", "n"), "f32")
    (sums,) = b.call_kernel(sums_from_5, x, results=[sw.TensorSpec(("m",))])
    (added,) = b.call_kernel(neighbours, x, results=[sw.TensorSpec(("m", "n"))])
    b.output(sums)
    b.output(added)
    exe = sw.compile(b.module(), threads=1, opt_level=level)
    for m, n in itertools.product((1, 4), range(9)):
        array = np.arange(m * n, dtype=np.float32).reshape(m, n)
        expected = np.zeros_like(array)
        expected[:, 1:-1] = array[:, :-2] + array[:, 2:]
        sums, added = exe(array)
        np.testing.assert_array_equal(sums, array[:, 5:].sum(axis=1), f"{m, n}")
        np.testing.assert_array_equal(added, expected, f"{m, n}")

"""Random nests: kinds of loops, and combiners of what they carry, against sums taken in Python.

Each nest runs as it is written, by its default schedule, and after steps that cut its reduction.
Tolerance: products and sums of at most 60 numbers near 1, in another order than Python's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.backends.reference.machine import run_kernel
from stepwell.core.target import named
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.passes.loop.schedule import schedule_kernel
from stepwell.passes.loop.scheduler.replay import replay

Join = Callable[[float, float], float]
FLOATS: dict[str, tuple[str, Join]] = {
    "add": ("arith.addf %acc, %e", lambda acc, e: acc + e),
    "mul": ("arith.mulf %e, %acc", lambda acc, e: acc * e),
    "max": ("arith.maximumf %acc, %e", max),
    "maxnum": ("arith.maxnumf %e, %acc", max),
    "min": ("arith.minimumf %e, %acc", min),
    "add ": ("arith.subf %acc, %e", lambda acc, e: acc - e),
    "add  ": ("math.fma %e, %e, %acc", lambda acc, e: acc + e * e),
    "custom": ("math.fma %acc, %half, %e", lambda acc, e: acc * 0.5 + e),
}
INTEGERS: dict[str, tuple[str, Join]] = {
    "add": ("arith.addi %acc, %e", lambda acc, e: acc + e),
    "mul": ("arith.muli %acc, %e", lambda acc, e: acc * e),
    "max": ("arith.maxsi %e, %acc", max),
    "maxnum": ("arith.maxsi %acc, %e", max),
    "min": ("arith.minsi %acc, %e", min),
}
STEPS = [
    "unroll(k, 3)",
    "split(k, 4, tail=peel); vectorize(k1)",
    "split(k, 8, tail=peel); unroll(k0, 2)",
    "split(i, 4, tail=mask); vectorize(i1)",
    "split(i, 2, tail=peel); tiles(i0)",
]


@dataclass(frozen=True)
class Nest:
    """`carried` of f32 or i32, accumulated over `columns`, and again over `inner` in each."""

    integers: bool
    carried: tuple[str, ...]
    rows: int
    columns: int
    outer: str
    inner: str

    @property
    def table(self) -> dict[str, tuple[str, Join]]:
        return INTEGERS if self.integers else FLOATS

    @property
    def text(self) -> str:
        kind, carried = "i32" if self.integers else "f32", self.carried
        x, y = f"memref<?x{self.columns}x{kind}>", f"memref<?x{len(carried)}x{kind}>"
        inside = "reduction" if self.inner == "reduction" else "serial"

        def carry(name: str, inits: list[str], combiners: bool) -> str:
            pairs = zip(inits, carried, strict=True)
            parts = (
                f"%{name}{n} = {init} : {kind} {c.strip() if combiners else ''}"
                for n, (init, c) in enumerate(pairs)
            )
            return f"carry({', '.join(parts)})"

        def results(name: str) -> str:
            return ", ".join(f"%{name}{n}" for n in range(len(carried)))

        def steps(accumulator: str, element: str) -> str:
            lines = (
                f"%t{accumulator}{n} = {self.table[c][0]} : {kind}".replace(
                    "%acc", f"%{accumulator}{n}"
                ).replace("%e", element)
                for n, c in enumerate(carried)
            )
            return "\n".join(lines)

        types = ", ".join([kind] * len(carried))
        body, last = steps("a", "%v"), "ta"
        if self.inner:
            inits = [f"%ta{n}" for n in range(len(carried))]
            body += f"""
      {results("b")} = loop.for "l" %l to 3 {inside} {carry("in", inits, inside == "reduction")} {{
        %w = loop.load %x (d0) -> (d0, 0)(%i) : {x}, {kind}
        {steps("in", "%w")}
        loop.yield {results("tin")} : {types}
      }}"""
            last = "b"
        stores = "\n".join(
            f"loop.store %s{n}, %y (d0) -> (d0, {n})(%i) : {kind}, {y}" for n in range(len(carried))
        )
        return f"""
loop.kernel @nest(%x: {x}) -> (%y: {y}) {{
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : {x}
  %start = arith.constant {"1" if self.integers else "1.0"} : {kind}
  %half = arith.constant 0.5 : f32
  loop.for "i" %i to %m {self.outer} {{
    {results("s")} = loop.for "k" %k to {self.columns} reduction
        {carry("a", ["%start"] * len(carried), True)} {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : {x}, {kind}
      {body}
      loop.yield {results(last)} : {types}
    }}
    {stores}
  }}
}}"""

    def numbers(self) -> np.ndarray:
        rng = np.random.default_rng(self.rows + self.columns)
        if self.integers:
            return rng.integers(-3, 4, (self.rows, self.columns)).astype(np.int32)
        return rng.uniform(0.9, 1.1, (self.rows, self.columns)).astype(np.float32)

    def expected(self, x: np.ndarray) -> np.ndarray:
        """What each row comes to, computed without wrapping, then stored."""
        found = np.zeros((self.rows, len(self.carried)))
        for row in range(self.rows):
            for n, name in enumerate(self.carried):
                join, total = self.table[name][1], 1
                for v in x[row].tolist():
                    total = join(total, v)
                    for _ in range(3 if self.inner else 0):
                        total = join(total, x[row, 0].item())
                found[row, n] = total if not self.integers else (total + 2**31) % 2**32 - 2**31
        return found.astype(x.dtype)


def nests() -> st.SearchStrategy[Nest]:
    def of(integers: bool) -> st.SearchStrategy[Nest]:
        names = st.sampled_from(sorted(INTEGERS if integers else FLOATS))
        return st.builds(
            Nest,
            st.just(integers),
            st.lists(names, min_size=1, max_size=3).map(tuple),
            st.integers(1, 9),
            st.integers(1, 20),
            st.sampled_from(["", "tiles", "serial"]),
            st.sampled_from(["", "serial", "reduction"]),
        )

    return st.booleans().flatmap(of)


@settings(max_examples=settings().max_examples * 20 // 100, deadline=None)
@given(nest=nests())
@pytest.mark.parametrize("reference", [True, False], ids=["reference", "compiled"])
def test_any_nest(kernel_of, compiled_kernel, reference, nest) -> None:
    kernels = [kernel_of(nest.text), kernel_of(nest.text)]
    kernels[1].detach()
    kernels[1] = schedule_kernel(kernels[1], named("host"))[0].kernel
    for steps in STEPS:
        # A custom reduction is not cut, and a serial loop is not distributed.
        with contextlib.suppress(ScheduleError):
            kernels.append(replay(kernel_of(nest.text), steps))
    x = nest.numbers()
    expected = nest.expected(x)
    for kernel in kernels:
        kernel.verify()
        got = np.full_like(expected, 77)
        (run_kernel if reference else compiled_kernel)(kernel, [x, got])
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)

"""Elements that are proved to be stored, up to a number that a kernel counts: random nests, run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell.backends.reference.machine import run_kernel
from stepwell.core.algebra.dims import Dim
from stepwell.core.ir.parsing import MlirParser
from stepwell.core.registry import make_context
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.proofs.counted import is_counted
from stepwell.dialects.loop.proofs.indices import Known

TEXT = """loop.kernel @k(%x: memref<?x?xi64>) -> (%y: memref<?x4xi64>, %n: memref<i64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %rows = memref.dim %x, %c0 : memref<?x?xi64>
  %columns = memref.dim %x, %c1 : memref<?x?xi64>
  %end = loop.for "r" %r to %rows serial carry(%first = {start} : i64) {{
    %last = loop.for "c" %c to %columns {kind} carry(%count = {inner} : i64{join}) {{
      %e = loop.load %x (d0, d1) -> (d0, d1)(%r, %c) : memref<?x?xi64>, i64
      %yes = arith.cmpi eq, %e, %i1 : i64
      %no = arith.cmpi ne, %e, %i1 : i64
      %once = arith.select {guard}, {times} : index
      %place = arith.index_cast {place} : i64 to index
      loop.for "g" %g to {guards} serial {{
        loop.for "j" %j to {width} {loop} {{
          loop.store %i1, %y (d0, d1) -> ({index})(%place, %j) : i64, memref<?x4xi64>
        }}
      }}
      %more = arith.addi %count, {step} : i64
      %next = arith.select {condition}, {ways} : i64
      loop.yield {after} : i64
    }}
    loop.yield {outer} : i64
  }}
  {store}
}}"""
STORE = "loop.store {}, %n () -> ()() : i64, memref<i64>"
RIGHT = {
    "start": "%i0",
    "inner": "%first",
    "guard": "%yes",
    "times": "%c1, %c0",
    "place": "%count",
    "guards": "%once",
    "width": "4",
    "loop": "",
    "index": "d0, d1",
    "step": "%i1",
    "condition": "%yes",
    "ways": "%more, %count",
    "after": "%next",
    "outer": "%last",
    "store": STORE.format("%end"),
    "kind": "serial",
    "join": "",
}
OTHERS = {
    "start": ["%i1"],
    "inner": ["%i0", "%i1"],
    "guard": ["%no"],
    "times": ["%c0, %c1", "%c1, %c1"],
    "place": ["%first", "%i0", "%e"],
    "guards": ["1", "%columns", "%rows", "0"],
    "width": ["3", "%columns"],
    "loop": ["serial"],
    "index": ["d0 + 1, d1", "d0, d1 floordiv 2", "d0, 3 - d1", "d0, d1 mod 4", "d0, 0"],
    "step": ["%i2", "%i0"],
    "condition": ["%no"],
    "ways": ["%count, %more", "%more, %more", "%count, %count", "%more, %first"],
    "after": ["%more", "%count"],
    "outer": ["%first", "%i0"],
    "store": [
        *(STORE.format(total) for total in ("%i0", "%i1")),
        STORE.format("%end").replace("store", "store add"),
        f'loop.for "o" %o to %columns serial {{ {STORE.format("%end")} }}',
    ],
}
COVERS: list[dict[str, str]] = [
    {},
    {"guards": "1"},
    {"index": "d0, 3 - d1"},
    {"guards": "1", "condition": "%no"},
    {"guards": "1", "ways": "%count, %more"},
    {"guards": "1", "after": "%more"},
    {"guards": "1", "ways": "%more, %more"},
    {"times": "%c1, %c1"},
    {"guard": "%no", "condition": "%no"},
    {"loop": "serial"},
    {"index": "d0, d1 mod 4"},
    {"ways": "%count, %count"},
    {"after": "%count"},
    {"outer": "%first"},
]


def is_proved(changes: dict[str, str]) -> bool:
    """Whether a kernel is proved to store all that it counts; then it does."""
    text = TEXT.format(**{**RIGHT, **changes})
    (kernel,) = MlirParser(make_context(), text, "text").parse_module().ops
    assert isinstance(kernel, KernelOp)
    (x,), (y, n) = kernel.inputs, kernel.outputs
    rows, columns = Dim.symbol("r"), Dim.symbol("c")
    known = Known({x: [rows, columns], y: [rows * columns, Dim.of(4)]})
    if not is_counted(known, y, n):
        return False
    rng = np.random.default_rng(3)
    for shape in [(0, 3), (1, 1), (3, 4), (2, 5), (4, 0)]:
        numbers = rng.integers(0, 2, shape)
        stored, count = np.full((numbers.size + 1, 4), -1), np.array(-1)
        run_kernel(kernel, [numbers, stored, count])
        assert (stored[: int(count)] == 1).all(), (text, numbers, stored, count)
    return True


@pytest.mark.parametrize("changes", COVERS, ids=str)
def test_counts_that_are_covered(changes: dict[str, str]) -> None:
    assert is_proved(changes)


ALONE = [{name: other} for name, others in OTHERS.items() for other in others]
ALONE.append({"kind": "reduction", "join": " add"})


@pytest.mark.parametrize("changes", [one for one in ALONE if one not in COVERS], ids=str)
def test_counts_that_are_not(changes: dict[str, str]) -> None:
    assert not is_proved(changes)


@settings(deadline=None)
@given(st.lists(st.sampled_from(ALONE), min_size=1, max_size=4))
def test_what_is_proved_is_stored(changes: list[dict[str, str]]) -> None:
    is_proved({name: other for one in changes for name, other in one.items()})

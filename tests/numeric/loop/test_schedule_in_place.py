"""Primitives keep to `loop.in_place`: what is written over an input is not read late.

The kernels are run with the output in the buffer of the input that it may overwrite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stepwell.backends.reference.machine import run_kernel
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.dialects.loop.ops import KernelOp
from stepwell.passes.loop.steps.compute_at import compute_at
from stepwell.passes.loop.steps.distribute import distribute
from stepwell.passes.loop.steps.hoist import hoist
from stepwell.passes.loop.steps.sink import sink
from stepwell.passes.loop.steps.stage import stage

X = "memref<4x8xf32>"
SIGNATURE = f"(%x: {X}, %o: {X}) -> (%y: {X} {{loop.in_place = [0 : i64]}})"

REVERSED = f"""
loop.kernel @reversed{SIGNATURE} {{
  loop.for "i" %i to 4 {{
    %h = loop.local : memref<8xf32>
    loop.for "a" %a to 8 {{
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : {X}, f32
      loop.store %v, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
    }}
    loop.for "j" %j to 8 {{
      %s = loop.load %h (d0) -> (-d0 + 7)(%j) : memref<8xf32>, f32
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {X}
    }}
  }}
}}"""

SPREAD = f"""
loop.kernel @spread{SIGNATURE} {{
  %one = arith.constant 1.0 : f32
  loop.for "i" %i to 4 {{
    %v = loop.load %x (d0) -> (d0, 0)(%i) : {X}, f32
    %w = arith.addf %v, %one : f32
    loop.for "j" %j to 8 {{
      loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {X}
    }}
  }}
}}"""

TWICE = f"""
loop.kernel @twice{SIGNATURE} {{
  loop.for "i" %i to 4 {{
    %v = loop.load %x (d0) -> (d0, 0)(%i) : {X}, f32
    loop.for "a" %a to 4 {{
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %a) : f32, {X}
    }}
    loop.for "b" %b to 4 {{
      loop.store %v, %y (d0, d1) -> (d0, d1 + 4)(%i, %b) : f32, {X}
    }}
  }}
}}"""

DOUBLED = f"""
loop.kernel @doubled{SIGNATURE} {{
  loop.for "i" %i to 4 {{
    loop.for "j" %j to 8 serial {{
      %v = loop.load %x (d0) -> (d0, 0)(%i) : {X}, f32
      %w = arith.addf %v, %v : f32
      loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {X}
    }}
  }}
}}"""

RUNNING = f"""
loop.kernel @running{SIGNATURE} {{
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to 4 {{
    loop.for "j" %j to 8 serial {{
      %s = loop.for "k" %k to 8 reduction carry(%acc = %zero : f32 add) {{
        %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : {X}, f32
        %t = arith.addf %acc, %v : f32
        loop.yield %t : f32
      }}
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, {X}
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("text", "step", "refusal"),
    [
        (REVERSED, lambda k: compute_at(k, "a", "j"), 'what "a" reads is written to after it'),
        (SPREAD, lambda k: sink(k, "i"), 'loop "j" writes to what is read before it'),
        (TWICE, lambda k: distribute(k, "i", "a"), "needs a value of loop.load"),
        (DOUBLED, lambda k: hoist(k, "j"), "it writes to a buffer that is read in it"),
        (RUNNING, lambda k: stage(k, 0, "i"), "writes to argument 0"),
    ],
    ids=["compute_at", "sink", "distribute", "hoist", "stage"],
)
def test_what_is_overwritten_is_not_read_later(
    kernel_of, text: str, step: Callable[[KernelOp], KernelOp], refusal: str
) -> None:
    with pytest.raises(ScheduleError, match=refusal):
        step(kernel_of(text))


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (REVERSED, lambda k: compute_at(k, "a", "j")),
        (REVERSED, lambda k: distribute(k, "i", "a")),
        (SPREAD, lambda k: sink(k, "i")),
        (TWICE, lambda k: distribute(k, "i", "a")),
        (DOUBLED, lambda k: hoist(k, "j")),
        (RUNNING, lambda k: stage(k, 1, "i")),
    ],
    ids=["compute_at", "distribute_buffer", "sink", "distribute", "hoist", "stage"],
)
def test_another_input_may_be_read_later(
    kernel_of, normal, text: str, step: Callable[[KernelOp], KernelOp]
) -> None:
    text = text.replace("loop.load %x", "loop.load %o")
    x, other = normal(4, 8), normal(4, 8)
    results: list[np.ndarray] = []
    for kernel in (kernel_of(text), step(kernel_of(text))):
        buffer = x.copy()
        run_kernel(kernel, [buffer, other, buffer])
        results.append(buffer)
    np.testing.assert_array_equal(*results)

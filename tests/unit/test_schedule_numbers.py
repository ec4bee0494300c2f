"""A number that no schedule needs is refused by the step that is given it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from stepwell.core.errors import CompileError
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context

TEXT = """
loop.kernel @k(%x: memref<?xf32>, %p: memref<?xi32>, %c: memref<?xi32>)
    -> (%y: memref<9xf32>, %z: memref<?xf32>, %w: memref<100000xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %z, %c0 : memref<?xf32>
  loop.for "i" %i to 9 {
    %l = loop.local : memref<9xf32>
    loop.for "a" %a to 9 {
      loop.store %zero, %l (d0) -> (d0)(%a) : f32, memref<9xf32>
    }
    %s = loop.for "k" %k to %n reduction carry(%acc = %zero : f32 add) {
      %v = loop.load %x (d0) -> (d0)(%k) : memref<?xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    %q = loop.load %l (d0) -> (d0)(%i) : memref<9xf32>, f32
    %r = arith.addf %s, %q : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<9xf32>
  }
  loop.for "r" %r to %n {
    %s = loop.for "e" %at, %column of %p, %c row (d0) -> (d0)(%r)
        reduction carry(%acc = %zero : f32 add) : memref<?xi32>, memref<?xi32> {
      %v = loop.load %x (d0) -> (d0)(%at) : memref<?xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %z (d0) -> (d0)(%r) : f32, memref<?xf32>
  }
  loop.for "m" %m to 100000 {
    loop.store %zero, %w (d0) -> (d0)(%m) : f32, memref<100000xf32>
  }
  loop.for "o" %o to 9 serial {
    loop.store %zero, %z (d0) -> (d0)(%o) : f32, memref<?xf32>
  }
}
"""

HUGE = 10**20


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            f"split{{loop=i factor={HUGE}}}",
            f'"i" of @k: wrong factor, .* most 2147483647, got {HUGE}',
        ),
        (f"split{{loop=i factor=-{HUGE}}}", f"wrong factor, expected at least 1, got -{HUGE}"),
        ("split{loop=r factor=5000 tail=cases}", "wrong factor, expected at most 4096, got 5000"),
        (f"split{{loop=r factor=4 tail=cases cases={HUGE}}}", "wrong number of cases"),
        (f"split-border{{loop=i before={HUGE}}}", "it is shorter than its borders"),
        (f"unroll{{loop=e factor={HUGE}}}", "wrong factor, expected at most 4096"),
        ("unroll{loop=m}", "wrong number of copies, expected at most 4096, got 100000"),
        ("vectorize{loops=m}", "wrong number of lanes, expected at most 65536, got 100000"),
        (f"pad{{loop=a multiple={HUGE}}}", "wrong multiple, expected at most 65536"),
        (f"prefetch{{argument=0 loop=k ahead={HUGE}}}", "wrong number of bytes ahead, .* at most"),
        ("prefetch-entries{argument=2 loop=e ahead=0}", "wrong number of entries ahead"),
        ("prefetch{argument=0 loop=k ahead=-1}", "wrong number of bytes ahead, .* at least 0"),
        (f"balance{{loop=r entries=e factor={HUGE}}}", "wrong factor, expected at most"),
        (f"balance{{loop=r entries=e weight={HUGE}}}", "wrong weight, expected 1 to 65536"),
        (f"own{{loop=o parts={HUGE}}}", "wrong number of parts, expected at most 2147483647"),
        (f"own{{loop=o chunk={HUGE}}}", "wrong chunk, expected at most 2147483647"),
    ],
)
def test_numbers_that_no_schedule_needs(step: str, message: str) -> None:
    ctx = make_context()
    module = Parser(ctx, TEXT).parse_module()
    assert isinstance(module, ModuleOp)
    before = str(module)
    with pytest.raises(CompileError, match=f"^loop-.*{message}"):
        run_passes(ctx, module, f"loop-{step}")
    assert str(module) == before

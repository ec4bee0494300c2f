"""Give a reduction several accumulators, or unroll a loop completely.

Before:

```mlir
loop.kernel @sum(%x: memref<100xf32>, %s: memref<1xf32>) -> (%y: memref<1xf32>) {
  %a = loop.load %s () -> (0)() : memref<1xf32>, f32
  %r = loop.for "k" %k to 100 reduction carry(%acc = %a : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<100xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %r, %y () -> (0)() : f32, memref<1xf32>
}
```

Options: `loop=k factor=4`

After:

```mlir
loop.kernel @sum(%x: memref<100xf32>, %s: memref<1xf32>) -> (%y: memref<1xf32>)
    attributes {loop.schedule = "unroll(k, 4)"} {
  %a = loop.load %s () -> (0)() : memref<1xf32>, f32
  %r = loop.for "k" %k to 100 reduction unroll 4 carry(%acc = %a : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<100xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %r, %y () -> (0)() : f32, memref<1xf32>
}
```

Requires: a reduction whose combiner is not `custom`, or an independent loop of constant size.
Leaves: the reduction with `unroll`, the loop with kind `unroll`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from ....core.pipelines.budgets import SUMS
from ....dialects.loop.attrs import LoopKind, LoopKindAttr
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import MOST_COPIES, Consumed, check_number, loop_named, refusal
from ....dialects.loop.ops import KernelOp
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-unroll"


@primitive(SUMS)
def unroll(kernel: Consumed, loop: str, factor: int | None = None) -> KernelOp:
    """Give a reduction `factor` accumulators, or unroll another loop completely.

        s = reduce k: s + x[k]  ->  s = (reduce k in steps of 4: s0 + x[k], s1 + x[k + 1], ...)

    The accumulators are combined after the loop, which reorders the sum. Only an attribute changes:
    the copies are made when the loop is lowered.

    Args:
        loop: the loop that is unrolled.
        factor: the number of accumulators of a reduction; another loop is unrolled completely.

    Raises:
        ScheduleError: for a reduction with the combiner `custom`, and for another loop whose size
            is unknown or not `factor`.
    """
    target = loop_named(STEP, kernel, loop)
    if not target.is_reduction:
        if target.kind.data.is_distributed:
            raise refusal(STEP, kernel, target, "its iterations are distributed over threads")
        if target.kind.data.keeps_order:
            raise refusal(STEP, kernel, target, "its iterations keep their order")
        size = extent_of(target)
        if size is None:
            raise refusal(STEP, kernel, target, "its size is not known", "a constant bound")
        if factor not in (None, size):
            raise refusal(STEP, kernel, target, "only all of it can be unrolled", size, factor)
        check_number(STEP, kernel, target, "number of copies", size, MOST_COPIES, least=0)
        target.kind = LoopKindAttr(LoopKind.UNROLL)
        return noted(kernel, "unroll", loop, size)
    if factor is None:
        raise refusal(STEP, kernel, target, "wrong factor", "at least 1", factor)
    check_number(STEP, kernel, target, "factor", factor, MOST_COPIES)
    if not target.is_joinable:
        fact = "its accumulators cannot be combined"
        raise refusal(
            STEP, kernel, target, fact, "add, mul, max or min", ", ".join(target.combines)
        )
    target.unroll = IntegerAttr(factor, i64) if factor > 1 else None
    return noted(kernel, "unroll", loop, factor)

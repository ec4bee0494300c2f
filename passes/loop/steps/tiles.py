"""Distribute the iterations of a loop over threads.

Before:

```mlir
loop.kernel @copy(%x: memref<100xf32>) -> (%y: memref<100xf32>) {
  loop.for "i" %i to 100 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<100xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<100xf32>
  }
}
```

Options: `loop=i`

After:

```mlir
loop.kernel @copy(%x: memref<100xf32>) -> (%y: memref<100xf32>)
    attributes {loop.schedule = "tiles(i)"} {
  loop.for "i" %i to 100 tiles {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<100xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<100xf32>
  }
}
```

Requires: a parallel loop that is in no reduction, and neither in nor around a loop of tiles.
Leaves: a loop of kind `tiles`, or `alternating_tiles`.
"""

from __future__ import annotations

from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind, LoopKindAttr
from ....dialects.loop.loops import enclosing, loops_in
from ....dialects.loop.nests import Consumed, ScheduleError, loop_named, plain_loop, refusal
from ....dialects.loop.ops import KernelOp
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-tiles"
ORDERS = {"any": LoopKind.TILES, "alternating": LoopKind.ALTERNATING_TILES}


@primitive(EXACT)
def tiles(kernel: Consumed, loop: str, order: str = "any") -> KernelOp:
    """Turn the iterations of a loop into tiles that threads execute.

        for i: body  ->  for i tiles: body

    With the order `alternating` each call of the kernel runs the tiles in the opposite order of the
    call before, and each thread those that it ran then. So a call begins with what the caches still
    hold of an operand that is larger than they are.

    Args:
        loop: the loop whose iterations become tiles.
        order: whether the order of tiles is alternating: `any` or `alternating`.

    Raises:
        ScheduleError: if the iterations are not independent, if the loop is inside of a
            reduction, or inside of or around another loop of tiles, or if there is no such order.
    """
    _check(kernel, loop)
    target = loop_named(STEP, kernel, loop)
    if order not in ORDERS:
        raise refusal(STEP, kernel, target, "unknown order", ", ".join(ORDERS), order)
    target.kind = LoopKindAttr(ORDERS[order])
    return noted(kernel, "tiles", loop, **({} if order == "any" else {"order": order}))


def may_be_tiles(kernel: KernelOp, loop: str) -> bool:
    """Whether `tiles` accepts a loop, or the outer one of the two that it is split into."""
    try:
        _check(kernel, loop)
    except ScheduleError:
        return False
    return True


def _check(kernel: KernelOp, loop: str) -> None:
    target = plain_loop(STEP, kernel, loop, [LoopKind.PARALLEL])
    for outer in enclosing(target):
        name = outer.loop_name.data
        if outer.results:
            raise refusal(STEP, kernel, target, f'is inside of "{name}", which carries values')
        if outer.kind.data.is_distributed:
            raise refusal(STEP, kernel, target, f'is inside of the tiles of "{name}"')
    for inner in loops_in(target.body.block):
        if inner.kind.data.is_distributed:
            fact = f'is around the tiles of "{inner.loop_name.data}"'
            raise refusal(STEP, kernel, target, fact)

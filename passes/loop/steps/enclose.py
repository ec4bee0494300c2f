"""Put the body of a kernel into a loop of one iteration.

Before:

```mlir
loop.kernel @sum(%x: memref<8xf32>) -> (%y: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 8 reduction carry(%a = %zero : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<8xf32>, f32
    %t = arith.addf %a, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> ()() : f32, memref<f32>
}
```

Options: `loop=one`

After:

```mlir
loop.kernel @sum(%x: memref<8xf32>) -> (%y: memref<f32>)
    attributes {loop.schedule = "enclose(one)"} {
  loop.for "one" %one to 1 {
    %zero = arith.constant 0.0 : f32
    %s = loop.for "k" %k to 8 reduction carry(%a = %zero : f32 add) {
      %v = loop.load %x (d0) -> (d0)(%k) : memref<8xf32>, f32
      %t = arith.addf %a, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y () -> ()() : f32, memref<f32>
  }
}
```

Requires: no loop of this name.
Leaves: the same statements in one loop.
"""

from __future__ import annotations

from xdsl.ir import Block, Region

from ....core.building.arithmetic import INDEX
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.nests import Consumed, loop_named, loop_names, refusal
from ....dialects.loop.ops import ForOp, KernelOp
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-enclose"


@primitive(EXACT)
def enclose(kernel: Consumed, loop: str = "one") -> KernelOp:
    """Put the body of a kernel into a loop of one iteration, which may be bound to a thread.

        body  ->  for one to 1: body

    Args:
        loop: the name of the loop.

    Raises:
        ScheduleError: if there is a loop of this name.
    """
    if loop in loop_names(kernel):
        raise refusal(STEP, kernel, loop_named(STEP, kernel, loop), "there is one of this name")
    block, body = kernel.body.block, list(kernel.body.block.ops)
    inside = Block(arg_types=[INDEX])
    inside.args[0].name_hint = loop
    for op in body:
        op.detach()
    inside.add_ops(body)
    around = ForOp(loop, 1, body=Region(inside))
    around.location = kernel.location
    block.add_op(around)
    return noted(kernel, "enclose", loop)

"""Make the iterations of a nest the threads of a device.

Before:

```mlir
loop.kernel @copy(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Options: `loops=i,j`

After:

```mlir
loop.kernel @copy(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>)
    attributes {loop.schedule = "bind(i, j)"} {
  loop.for "i" %i to 4 threads {
    loop.for "j" %j to 8 threads {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Requires: perfectly nested parallel loops, of which the first one is in no other loop.
Leaves: loops of kind `threads`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind, LoopKindAttr
from ....dialects.loop.loops import enclosing
from ....dialects.loop.nests import Consumed, only_loop, plain_loop, refusal
from ....dialects.loop.ops import KernelOp
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-bind"


@primitive(EXACT)
def bind(kernel: Consumed, loops: Sequence[str]) -> KernelOp:
    """Make each iteration of perfectly nested loops a thread of a device.

        for i: for j: body  ->  for i threads: for j threads: body

    Neighbours of the innermost loop are neighbours in a warp: along it, accesses should go to the
    next element.

    Args:
        loops: the loops, outermost first.

    Raises:
        ScheduleError: if the loops are not perfectly nested, if their iterations are not
            independent, or if the first one is in another loop.
    """
    nest = [plain_loop(STEP, kernel, name, [LoopKind.PARALLEL]) for name in loops]
    for outer, inner in pairwise(nest):
        if only_loop(outer.body.block) is not inner:
            fact = f'is not perfectly nested in "{outer.loop_name.data}"'
            raise refusal(STEP, kernel, inner, fact)
    for around in enclosing(nest[0]) if nest else ():
        raise refusal(STEP, kernel, nest[0], f'is inside of "{around.loop_name.data}"')
    for loop in nest:
        loop.kind = LoopKindAttr(LoopKind.THREADS)
    return noted(kernel, "bind", *loops)

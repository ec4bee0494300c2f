"""Make the iterations of a nest the threads of a device, or blocks of them.

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

Requires: perfectly nested parallel loops, of which the first one is in no other loop, or for
    `threads` in one of `blocks`.
Leaves: loops of kind `threads` or `blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ....core.errors import explain
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind, LoopKindAttr
from ....dialects.loop.loops import enclosing
from ....dialects.loop.nests import Consumed, ScheduleError, only_loop, plain_loop, refusal
from ....dialects.loop.ops import ForOp, KernelOp
from ....dialects.loop.proofs.levels import is_in_block
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-bind"
LEVELS = {"threads": LoopKind.THREADS, "blocks": LoopKind.BLOCKS}


@primitive(EXACT)
def bind(kernel: Consumed, loops: Sequence[str], *, level: str = "threads") -> KernelOp:
    """Make each iteration of perfectly nested loops a thread of a device, or a block of threads.

        for i: for j: body  ->  for i threads: for j threads: body
        for i: for j: body  ->  for i blocks: for j threads: body     (i at level "blocks", then j)

    Neighbours of the innermost loop are neighbours in a warp: along it, accesses should go to the
    next element.

    Args:
        loops: the loops, outermost first.
        level: what an iteration becomes: `threads` or `blocks`.

    Raises:
        ScheduleError: if the loops are not perfectly nested, if their iterations are not
            independent, if the first one is in another loop than one of blocks, or if there is no
            such level.
    """
    if level not in LEVELS:
        fact = explain(STEP, "unknown level", expected=", ".join(LEVELS), got=level)
        raise ScheduleError(fact)
    nest = [plain_loop(STEP, kernel, name, [LoopKind.PARALLEL]) for name in loops]
    for outer, inner in pairwise(nest):
        if only_loop(outer.body.block) is not inner:
            fact = f'is not perfectly nested in "{outer.loop_name.data}"'
            raise refusal(STEP, kernel, inner, fact)
    outside = list(enclosing(nest[0])) if nest else []
    if LEVELS[level] is LoopKind.THREADS and all(map(_is_of_block, outside)):
        outside = []
    for around in outside:
        raise refusal(STEP, kernel, nest[0], f'is inside of "{around.loop_name.data}"')
    for loop in nest:
        loop.kind = LoopKindAttr(LEVELS[level])
    return noted(kernel, "bind", *loops, **({} if level == "threads" else {"level": level}))


def _is_of_block(loop: ForOp) -> bool:
    """Whether a loop is one of blocks, or in one and outside of its threads."""
    kind = loop.kind.data
    return kind is LoopKind.BLOCKS or (not kind.is_distributed and is_in_block(loop))

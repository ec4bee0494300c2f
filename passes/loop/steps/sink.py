"""Move statements into the loop that follows them.

Before:

```mlir
loop.kernel @spread(%x: memref<4xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.for "j" %j to 8 {
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Options: `loop=i`

After:

```mlir
loop.kernel @spread(%x: memref<4xf32>) -> (%y: memref<4x8xf32>)
    attributes {loop.schedule = "sink(i)"} {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
    }
  }
}
```

Requires: a loop whose body ends with its only loop, preceded by statements that may be
repeated.
Leaves: the loop with only the inner one in its body.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation
from xdsl.traits import is_side_effect_free

from ....core.pipelines.budgets import EXACT
from ....dialects.loop.loops import enclosing
from ....dialects.loop.nests import Consumed, loop_named, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp
from ....dialects.loop.proofs.in_place import written_in
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-sink"


@primitive(EXACT)
def sink(kernel: Consumed, loop: str) -> KernelOp:
    """Make a loop perfectly nested: statements before the inner loop move into it.

        for i: s = a[i]; for j: y[i, j] = x[i, j] * s
        ->  for i: for j: s = a[i]; y[i, j] = x[i, j] * s

    Args:
        loop: the outer loop.

    Raises:
        ScheduleError: if the body does not end with its only loop, or if something before it has
            side effects or reads a buffer that the loop writes to.
    """
    outer = loop_named(STEP, kernel, loop)
    inner = outer.body.block.last_op
    if not outer.is_plain or not isinstance(inner, ForOp) or not inner.is_plain:
        raise refusal(STEP, kernel, outer, "its body does not end with a loop")
    written = written_in(kernel, inner)
    moved = [op for op in outer.body.block.ops if op is not inner]
    for op in moved:
        if op.regions or not (isinstance(op, LoadOp) or is_side_effect_free(op)):
            raise refusal(STEP, kernel, outer, f"{op.name} cannot be moved into a loop")
        if isinstance(op, LoadOp) and op.buffer in written:
            fact = f'loop "{inner.loop_name.data}" writes to what is read before it'
            raise refusal(STEP, kernel, outer, fact)
        if any(result in inner.bounds for result in op.results):
            fact = f'the bound of "{inner.loop_name.data}" is computed before it'
            raise refusal(STEP, kernel, outer, fact)
    return noted(_Sink(kernel, inner, moved).run(), "sink", loop)


class _Sink(Rebuild):
    def __init__(self, kernel: KernelOp, inner: ForOp, moved: list[Operation]) -> None:
        super().__init__(kernel, [*enclosing(inner)][:1])
        self.inner, self.moved = inner, moved
        self.sinking = False

    def visit(self, op: Operation) -> None:
        if op not in self.moved or self.sinking:
            super().visit(op)

    def visit_body(self, block: Block) -> None:
        if block is self.inner.body.block:
            self.sinking = True
            for statement in self.moved:
                self.visit(statement)
            self.sinking = False
        super().visit_body(block)

"""Hoist loop invariants out of a loop.

Before:

```mlir
loop.kernel @scale(%x: memref<8xf32>, %a: memref<1xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 {
    %s = loop.load %a () -> (0)() : memref<1xf32>, f32
    %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    %p = arith.mulf %v, %s : f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}
```

Options: `loop=i`

After:

```mlir
loop.kernel @scale(%x: memref<8xf32>, %a: memref<1xf32>) -> (%y: memref<8xf32>)
    attributes {loop.schedule = "hoist(i)"} {
  %s = loop.load %a () -> (0)() : memref<1xf32>, f32
  loop.for "i" %i to 8 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    %p = arith.mulf %v, %s : f32
    loop.store %p, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}
```

Requires: a loop with something in it that does not depend on it.
Leaves: the loop, after the hoisted operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ....core.building.scopes import TRAPPING
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import Consumed, loop_named, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp, YieldOp
from ....dialects.loop.proofs.in_place import written_in
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-hoist"


@primitive(EXACT)
def hoist(kernel: Consumed, loop: str) -> KernelOp:
    """Hoist loop invariants out of a loop.

        for i to 8: s = a[0]; y[i] = x[i] * s  ->  s = a[0]; for i to 8: y[i] = x[i] * s

    Loads and divisions move only if the loop is known to run, and a load only if the loop does not
    write to its buffer.

    Args:
        loop: the loop that they are hoisted out of.

    Raises:
        ScheduleError: if there is nothing to hoist, with the obstacle of the first candidate.
    """
    target = loop_named(STEP, kernel, loop)
    # The operations to hoist, and why the first other candidate cannot be.
    written = written_in(kernel, target)
    own: set[SSAValue] = set(target.body.block.args)
    moved: list[Operation] = []
    held: str | None = None
    for op in target.body.block.ops:
        if not op.regions and not any(operand in own for operand in op.operands):
            reason = _why_not_hoistable(target, op, written)
            if reason is None:
                moved.append(op)
                continue
            held = held or reason or None
        own.update(op.results)
        own.update(result for inner in op.walk() for result in inner.results)
    if not moved:
        fact = held or "nothing in its body is loop-invariant"
        raise refusal(STEP, kernel, target, fact)
    return noted(_Hoist(kernel, target, moved).run(), "hoist", loop)


def _why_not_hoistable(target: ForOp, op: Operation, written: set[SSAValue]) -> str | None:
    """Why an operation cannot be hoisted: None if it can, "" if it is no candidate."""
    if isinstance(op, StoreOp | LocalOp | YieldOp):
        return ""
    if isinstance(op, LoadOp):
        if op.buffer in written:
            return "it writes to a buffer that is read in it"
    elif not is_side_effect_free(op):
        return ""
    if isinstance(op, (LoadOp, *TRAPPING)) and not (extent_of(target) or 0):
        return f"the loop may not run, and hoisting would execute {op.name} anyway"
    return None


class _Hoist(Rebuild):
    def __init__(self, kernel: KernelOp, target: ForOp, moved: Sequence[Operation]) -> None:
        super().__init__(kernel, [target])
        self.target, self.moved = target, moved

    def visit(self, op: Operation) -> None:
        if op is self.target:
            for statement in self.moved:
                super().visit(statement)
        if op not in self.moved:
            super().visit(op)

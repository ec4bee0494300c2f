"""Pad the rows of a local buffer.

Before:

```mlir
loop.kernel @twice(%x: memref<7xf32>) -> (%y: memref<7xf32>) {
  %h = loop.local : memref<7xf32>
  loop.for "i" %i to 7 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<7xf32>, f32
    loop.store %v, %h (d0) -> (d0)(%i) : f32, memref<7xf32>
  }
  loop.for "j" %j to 7 {
    %v = loop.load %h (d0) -> (d0)(%j) : memref<7xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%j) : f32, memref<7xf32>
  } }
```

Options: `loop=i multiple=8`

After:

```mlir
loop.kernel @twice(%x: memref<7xf32>) -> (%y: memref<7xf32>)
    attributes {loop.schedule = "pad(i, 8)"} {
  %h = loop.local : memref<8xf32>
  loop.for "i" %i to 7 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<7xf32>, f32
    loop.store %v, %h (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
  loop.for "j" %j to 7 {
    %v_1 = loop.load %h (d0) -> (d0)(%j) : memref<8xf32>, f32
    loop.store %v_1, %y (d0) -> (d0)(%j) : f32, memref<7xf32>
  }
}
```

Requires: a loop that stores to one `loop.local`.
Leaves: the same loops, on a buffer with longer rows.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation

from ....core.ir.typed import resized
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.nests import MOST_LANES, Consumed, check_number, loop_named, refusal
from ....dialects.loop.ops import KernelOp, LocalOp, StoreOp
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-pad"


@primitive(EXACT, multiple=1)
def pad(kernel: Consumed, loop: str, multiple: int) -> KernelOp:
    """Round the row length of the local buffer that a loop fills up to a multiple of some elements.

        local h : 3x7; for i: for j to 7: h[i, j] = ...
        ->  local h : 3x8; for i: for j to 7: h[i, j] = ...

    The padding is never written, and no value read from it reaches a result. A vector of 8 lanes
    can read a row of 7 without a mask, and each row is aligned to vectors.

    Args:
        loop: the loop that fills the buffer.
        multiple: the length of a row becomes a multiple of this, in elements.

    Raises:
        ScheduleError: if the loop does not fill one local buffer, or its rows have such a length
        already.
    """
    target = loop_named(STEP, kernel, loop)
    check_number(STEP, kernel, target, "multiple", multiple, MOST_LANES)
    stores = [op for op in target.walk() if isinstance(op, StoreOp)]
    locals_ = {op.buffer.owner for op in stores if isinstance(op.buffer.owner, LocalOp)}
    if len(locals_) != 1:
        raise refusal(STEP, kernel, target, "local buffers that it fills", 1, len(locals_))
    (local,) = locals_
    assert isinstance(local, LocalOp)
    assert isinstance(local.result.type, MemRefType)
    if local.sizes:
        got = local.result.type
        raise refusal(STEP, kernel, target, "its buffer has symbolic sizes", "static ones", got)
    *rows, last = local.result.type.get_shape()
    if last % multiple == 0:
        fact = f"the rows of its buffer are a multiple of {multiple} already"
        raise refusal(STEP, kernel, target, fact, got=last)
    longer = resized(local.result.type, [*rows, last + -last % multiple])
    return noted(_Pad(kernel, local, longer).run(), "pad", loop, multiple)


class _Pad(Rebuild):
    def __init__(self, kernel: KernelOp, local: LocalOp, kind: MemRefType) -> None:
        super().__init__(kernel, [local])
        self.local, self.kind = local, kind

    def visit_other(self, op: Operation) -> None:
        if op is not self.local:
            super().visit_other(op)
            return
        self.bind(self.local.result, self.emit(LocalOp(self.kind), op).result)

"""Fuse two perfectly nested loops into one.

Before:

```mlir
loop.kernel @copy(%x: memref<3x8xf32>) -> (%y: memref<3x8xf32>) {
  loop.for "i" %i to 3 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<3x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x8xf32>
    }
  }
}
```

Options: `outer=i inner=j`

After:

```mlir
loop.kernel @copy(%x: memref<3x8xf32>) -> (%y: memref<3x8xf32>)
    attributes {loop.schedule = "fuse(i, j)"} {
  loop.for "i_j" %i_j to 24 {
    %v = loop.load %x (d0) -> (d0 floordiv 8, d0 mod 8)(%i_j) : memref<3x8xf32>, f32
    loop.store %v, %y (d0) -> (d0 floordiv 8, d0 mod 8)(%i_j) : f32, memref<3x8xf32>
  }
}
```

Requires: perfectly nested loops of these names, the inner one of constant size.
Leaves: one loop, along which accesses are contiguous where rows follow each other in memory.
"""

from __future__ import annotations

from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import normalized, quotient, remainder
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.handles import one_loop
from ....dialects.loop.loops import extent_of
from ....dialects.loop.names import free_name
from ....dialects.loop.nests import Consumed, loop_names, only_loop, plain_loop, refusal
from ....dialects.loop.ops import ForOp, KernelOp
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-fuse"


@primitive(EXACT, one_loop)
def fuse(kernel: Consumed, outer: str, inner: str) -> KernelOp:
    """Replace two perfectly nested loops by one, called `outer_inner`.

        for i to m: for j to n: body(i, j)
        ->  for i_j to m * n: body(i_j floordiv n, i_j mod n)

    Balances tiles among threads if neither loop has enough iterations, and lets vectors run across
    rows that follow each other in memory. The index of an outer loop that runs once is 0.

    Args:
        outer: the outer loop.
        inner: the inner loop, the whole body of the outer one.

    Raises:
        ScheduleError: if the loops are not perfectly nested, the size of the inner one is unknown,
            or one of them is neither parallel nor serial.
    """
    kinds = (LoopKind.PARALLEL, LoopKind.SERIAL)
    first, second = (plain_loop(STEP, kernel, name, kinds) for name in (outer, inner))
    if only_loop(first.body.block) is not second:
        raise refusal(STEP, kernel, second, f'is not perfectly nested in "{outer}"')
    size = extent_of(second)
    if size is None:
        raise refusal(STEP, kernel, second, "its size is not known", "a constant bound")
    if size < 1:
        raise refusal(STEP, kernel, second, "it never runs")
    return noted(_Fuse(kernel, first, second, size).run(), "fuse", outer, inner)


class _Fuse(Rebuild):
    def __init__(self, kernel: KernelOp, first: ForOp, second: ForOp, size: int) -> None:
        super().__init__(kernel, [first])
        self.first, self.second, self.size = first, second, size
        name = f"{first.loop_name.data}_{second.loop_name.data}"
        self.fused = free_name(name, loop_names(kernel))

    def visit_for(self, op: ForOp) -> None:
        if op is not self.first:
            super().visit_for(op)
            return
        bound = [normalized(expr * self.size) for expr in self.bound(op)]
        kinds = {op.kind.data, self.second.kind.data}
        kind = LoopKind.SERIAL if LoopKind.SERIAL in kinds else LoopKind.PARALLEL
        with self.loop(self.fused, bound, kind, op) as variable:
            row, column = quotient(variable, self.size), remainder(variable, self.size)
            if extent_of(op) == 1:
                row, column = AffineExpr.constant(0), variable
            self.bind(op.variable, row)
            self.bind(self.second.variable, column)
            self.visit_body(self.second.body.block)

"""Cut the rows of a sparse matrix into parts of about as many entries.

Before:

```mlir
loop.kernel @degrees(%ptr: memref<?xi32>, %col: memref<?xi32>) -> (%y: memref<99xf32>) {
  %one = arith.constant 1.0 : f32
  loop.for "i" %i to 99 {
    %s = loop.for "e" %p, %j of %ptr, %col row (d0) -> (d0)(%i)
        reduction carry(%acc = %one : f32 add) : memref<?xi32>, memref<?xi32> {
      %t = arith.addf %acc, %one : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<99xf32>
  }
}
```

Options: `loop=i entries=e factor=16 weight=4`

After:

```mlir
loop.kernel @degrees(%ptr: memref<?xi32>, %col: memref<?xi32>) -> (%y: memref<99xf32>)
    attributes {loop.schedule = "balance(i, e, 16, weight=4)"} {
  %one = arith.constant 1.0 : f32 loop.for "i0" %i0 to 7 {
    %n = arith.constant 99 : index %parts = arith.constant 7 : index
    %a = loop.partition_point %ptr rows %n part %i0 of %parts weight 4 : memref<?xi32>
    %c = arith.constant 1 : index %next = arith.addi %i0, %c : index
    %b = loop.partition_point %ptr rows %n part %next of %parts weight 4 : memref<?xi32>
    loop.for "i1" %i1 to min (d0, d1) -> (d0 * -1 + d1)(%a, %b) {
      %s = loop.for "e" %p, %j of %ptr, %col row (d0, d1) -> (d0 + d1)(%a, %i1)
          reduction carry(%acc = %one : f32 add) : memref<?xi32>, memref<?xi32> {
        %t = arith.addf %acc, %one : f32 loop.yield %t : f32 }
      loop.store %s, %y (d0, d1) -> (d0 + d1)(%a, %i1) : f32, memref<99xf32> } } }
```

Requires: a parallel loop over the rows of that reduction.
Leaves: loops named after it, with 0 and 1 appended.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from ....core.algebra.affine import minus, rounded_up_quotient
from ....core.pipelines.budgets import SUMS
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.handles import parts
from ....dialects.loop.loops import bound_of, enclosing
from ....dialects.loop.names import free_names
from ....dialects.loop.nests import (
    Consumed,
    check_number,
    loop_named,
    loop_names,
    plain_loop,
    refusal,
)
from ....dialects.loop.ops import ForOp, KernelOp, PartitionPointOp
from ....dialects.loop.ops_partition import MOST_WEIGHT
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-balance"


@primitive(SUMS, parts, factor=1)
def balance(kernel: Consumed, loop: str, entries: str, factor: int, weight: int = 1) -> KernelOp:
    """Cut the loop over the rows of a sparse matrix into parts of about the same cost.

        for i to n: body(i)
        ->  for i0 to n ceildiv f:
                a, b = partition_point(i0), partition_point(i0 + 1)
                for i1 to b - a: body(a + i1)

    There are as many parts as `split` with tail "mask" makes, of `factor` rows on average. The
    kernel computes how many rows each has: an entry of the reduction `entries` costs 1, a row
    `weight`. A row is never cut.

    Args:
        loop: the loop over rows that is cut.
        entries: the reduction over the entries that are counted.
        factor: the average number of rows of a part.
        weight: the cost of a row apart from its entries, in entries.

    Raises:
        ScheduleError: if the loop is not a parallel one over the rows that `entries` reads.
    """
    target = plain_loop(STEP, kernel, loop, [LoopKind.PARALLEL])
    reduction = loop_named(STEP, kernel, entries)
    check_number(STEP, kernel, target, "factor", factor)
    if not 1 <= weight <= MOST_WEIGHT:
        raise refusal(STEP, kernel, target, "wrong weight", f"1 to {MOST_WEIGHT}", weight)
    if len(bound_of(target)) > 1:
        raise refusal(STEP, kernel, target, "its bound is the smaller of several")
    if not reduction.over_entries or target not in enclosing(reduction):
        fact = f'"{entries}" is no loop over entries in it'
        raise refusal(STEP, kernel, target, fact)
    if not is_row_loop(target, reduction):
        raise refusal(STEP, kernel, target, f'does not go through the rows of "{entries}"')
    new = _Balance(kernel, target, reduction.matrix[0], factor, weight).run()
    return noted(new, "balance", loop, entries, factor, weight=weight)


def is_row_loop(loop: ForOp, entries: ForOp) -> bool:
    """Whether iteration i of a loop reads the entries of row i."""
    (row,) = entries.bound.data.results
    return isinstance(row, AffineDimExpr) and entries.bounds[row.position] is loop.variable


class _Balance(Rebuild):
    def __init__(
        self, kernel: KernelOp, target: ForOp, indptr: SSAValue, factor: int, weight: int
    ) -> None:
        super().__init__(kernel, [target])
        self.target, self.indptr = target, indptr
        self.factor, self.weight = factor, weight
        self.names = free_names(target.loop_name.data, ("0", "1"), loop_names(kernel))

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
            return
        (rows,) = self.bound(op)
        parts = rounded_up_quotient(rows, self.factor)
        outer, inner = self.names
        with self.loop(outer, [parts], LoopKind.PARALLEL, op) as i0:
            begin, end = (self.begin(rows, part, parts) for part in (i0, i0 + 1))
            count = [minus(end, begin)]
            with self.loop(inner, count, LoopKind.PARALLEL, op) as i1:
                self.bind(op.variable, begin + i1)
                self.visit_body(op.body.block)

    def begin(self, rows: AffineExpr, part: AffineExpr, parts: AffineExpr) -> AffineExpr:
        """The first row of a part."""
        n, t, count = (self.compute(expr) for expr in (rows, part, parts))
        op = PartitionPointOp(self.value(self.indptr), n, t, count, self.weight)
        return self.number(self.emit(op).result)

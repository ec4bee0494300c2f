"""Prefetch what entries of a sparse matrix read at their columns, some entries early.

Before:

```mlir
loop.kernel @sum(%p: memref<2xi32> {loop.indptr}, %j: memref<?xi32>, %x: memref<?xf32>) ->
    (%y: memref<1xf32>) {
  %z = arith.constant 0.0 : f32 %i = arith.constant 0 : index
  %s = loop.for "e" %q, %c of %p, %j row (d0) -> (d0)(%i) reduction
      carry(%acc = %z : f32 add) : memref<2xi32>, memref<?xi32> {
    %v = loop.load %x (d0) -> (d0)(%c) : memref<?xf32>, f32
    %t = arith.addf %acc, %v : f32 loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}
```

Options: `argument=2 loop=e ahead=8`

After:

```mlir
loop.kernel @sum(%p: memref<2xi32> {loop.indptr}, %j: memref<?xi32>, %x: memref<?xf32>) ->
    (%y: memref<1xf32>) attributes {loop.schedule = "prefetch_entries(2, e, 8)"} {
  %z = arith.constant 0.0 : f32 %i = arith.constant 0 : index
  %s = loop.for "e" %q, %c of %p, %j row (d0) -> (d0)(%i) reduction
      carry(%acc = %z : f32 add) : memref<2xi32>, memref<?xi32> {
    %0 = arith.constant 0 : index %1 = arith.constant 1 : index %8 = arith.constant 8 : index
    %size = memref.dim %j, %0 : memref<?xi32> %last = arith.subi %size, %1 : index
    %later = arith.addi %q, %8 : index %place = arith.minsi %later, %last : index
    %d = loop.load %j (d0) -> (d0)(%place) : memref<?xi32>, i32
    %e = arith.index_cast %d : i32 to index loop.prefetch %x (d0) -> (d0)(%e) : memref<?xf32>
    %v = loop.load %x (d0) -> (d0)(%c) : memref<?xf32>, f32 %t = arith.addf %acc, %v : f32
    loop.yield %t : f32 } loop.store %s, %y () -> (0)() : f32, memref<1xf32> }
```

Requires: a reduction over the entries of a row, vectorised already or never.
Leaves: `loop.prefetch` in it, and the loads of the columns that the hints need.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from ....core.building.arithmetic import INDEX, constant
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.nests import Consumed, check_number, loop_named, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp
from ....dialects.loop.trace import noted
from ...primitive import primitive
from .prefetch import MOST_HINTS, Hints, bits_of, lines_of

STEP = "loop-prefetch-entries"


@primitive(EXACT, ahead=8)
def prefetch_entries(kernel: Consumed, argument: int, loop: str, ahead: int) -> KernelOp:
    """Prefetch what later entries of a matrix read of an argument at their columns.

        for p, c over the entries of row i: x[c, :]
        ->  for p, c over the entries of row i: q = min(p + ahead, number of entries - 1)
                                                prefetch x[column of q, :]
                                                x[c, :]

    An entry ahead may belong to one of the next rows, which are visited soon.

    Args:
        argument: the number of the argument.
        loop: the loop over entries that reads it.
        ahead: how many entries the hints are early.

    Raises:
        ScheduleError: if the loop is not over entries, does not read the argument at their
            columns, or needs more than `MOST_HINTS`.
    """
    target = loop_named(STEP, kernel, loop)
    if not target.over_entries:
        raise refusal(STEP, kernel, target, "is not over the entries of a row")
    check_number(STEP, kernel, target, "number of entries ahead", ahead)
    loads, hints = _reads(kernel, target, argument), Hints(kernel)
    # The column of an entry `ahead`, at most of the last one.
    _, indices = target.matrix
    zero, one, apart = (constant(number, INDEX) for number in (0, 1, ahead))
    size = memref.DimOp(indices, zero)
    last, entry = arith.SubiOp(size, one), arith.AddiOp(target.variable, apart)
    place = arith.MinSIOp(entry, last)
    column = LoadOp(indices, AffineMap.identity(1), [place.result])
    later = [zero, one, apart, size, last, entry, place, column]
    later.append(arith.IndexCastOp(column.result, IndexType()))
    for op in later:
        op.location = target.location
    hints.bind(target.column, hints.number(later[-1].results[0]))
    hints.add(target, loads[0], hints.of_blocks(loads, 0))
    inside = target.body.block
    assert inside.first_op is not None
    inside.insert_ops_before(later, inside.first_op)
    return noted(kernel, "prefetch_entries", argument, loop, ahead)


def _reads(kernel: KernelOp, loop: ForOp, argument: int) -> list[LoadOp]:
    """The loads of a loop that read an argument at the columns of its entries."""
    if not 0 <= argument < len(kernel.inputs):
        expected = f"0 <= number < {len(kernel.inputs)}"
        raise refusal(STEP, kernel, loop, "no such input", expected, argument)
    loads = reads_of_columns(loop, kernel.inputs[argument])
    if not loads:
        raise refusal(STEP, kernel, loop, f"does not read argument {argument} at columns")
    if (count := sum(map(lines_of, loads))) > MOST_HINTS:
        raise refusal(STEP, kernel, loop, "too many hints", f"at most {MOST_HINTS}", count)
    return loads


def reads_of_columns(loop: ForOp, buffer: SSAValue) -> list[LoadOp]:
    """The loads of a buffer in a loop over entries whose place depends on their columns alone."""

    def is_at_column(load: LoadOp) -> bool:
        others = [index for index in load.indices if index is not loop.column]
        inside = (v is loop.variable or v.owner.parent is loop.body.block for v in others)
        return len(others) < len(load.indices) and not any(inside)

    if not isinstance(buffer.type, MemRefType) or not bits_of(buffer.type):
        return []
    loads = (op for op in loop.body.block.ops if isinstance(op, LoadOp) and op.buffer is buffer)
    return [load for load in loads if is_at_column(load)]

"""Make a loop over the entries of a row one over their number.

Before:

```mlir
loop.kernel @fill(%p: memref<2xi32>, %i: memref<?xi32>) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "e" %q, %c of %p, %i row () -> (0)() : memref<2xi32>, memref<?xi32> {
    loop.store %z, %y (d0) -> (d0)(%q) : f32, memref<?xf32>
  }
}
```

Options: `loop=e`

After:

```mlir
loop.kernel @fill(%p: memref<2xi32> {loop.indptr}, %i: memref<?xi32>) -> (%y: memref<?xf32>)
    attributes {loop.schedule = "count_entries(e)"} {
  %z = arith.constant 0.0 : f32
  %first = loop.load %p () -> (0)() : memref<2xi32>, i32
  %begin = arith.index_cast %first : i32 to index
  %last = loop.load %p () -> (1)() : memref<2xi32>, i32
  %end = arith.index_cast %last : i32 to index
  loop.for "e" %e to min (d0, d1) -> (d0 * -1 + d1)(%begin, %end) {
    loop.store %z, %y (d0, d1) -> (d0 + d1)(%begin, %e) : f32, memref<?xf32>
  }
}
```

Requires: a loop over the entries of a row.
Leaves: one over a bound, which can be divided as any other; the row pointers are marked as such.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import minus
from ....core.building.arithmetic import INDEX
from ....core.ir.typed import memref_type
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.arguments import INDPTR
from ....dialects.loop.handles import forward
from ....dialects.loop.nests import Consumed, loop_named, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, YieldOp
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-count-entries"


@primitive(EXACT)
def count_entries(kernel: Consumed, loop: str) -> KernelOp:
    """Make a loop over the entries of a row one over their number.

        s = reduce e in row r: s + v[e] * x[column of e]
        ->  b, n = indptr[r], indptr[r + 1] - indptr[r]
            s = reduce e to n: s + v[b + e] * x[indices[b + e]]

    So the threads of a block can share the entries of a row, and a row be cut into chunks.

    Args:
        loop: the loop.

    Raises:
        ScheduleError: if the loop is not over entries, or is a cascade.
    """
    target = loop_named(STEP, kernel, loop)
    if not target.over_entries:
        raise refusal(STEP, kernel, target, "is not over the entries of a row")
    if target.chunk is not None:
        raise refusal(STEP, kernel, target, "is a cascade")
    indptr = target.matrix[0]
    assert isinstance(indptr, BlockArgument)
    # What uses it as such is gone.
    attrs = [kernel.attrs_of(number) for number in range(len(kernel.body.block.args))]
    attrs[indptr.index] |= {INDPTR: UnitAttr()}
    kernel.arg_attrs = ArrayAttr(map(DictionaryAttr, attrs))
    return noted(_CountEntries(kernel, target).run(), "count_entries", loop)


class _CountEntries(Rebuild):
    def __init__(self, kernel: KernelOp, target: ForOp) -> None:
        super().__init__(kernel, [target])
        self.target = target

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
            return
        (row,), (indptr, indices) = self.bound(op), map(self.value, op.matrix)
        begin, end = (self.number(self.loaded(indptr, place)) for place in (row, row + 1))
        bound = [minus(end, begin)]
        new = ForOp(
            op.loop_name.data,
            *self.map(bound),
            op.kind.data,
            inits=self.inits(op),
            combines=op.combines,
            unroll=None if op.unroll is None else op.at_once,
        )
        with self.inside(new.body.block):
            new.variable.name_hint = op.loop_name.data
            entry = self.number(new.variable)
            self.opened(entry, bound)
            self.bind(op.variable, begin + entry)
            if op.column.uses:
                self.bind(op.column, self.loaded(indices, begin + entry))
            self.bind_all(op.carried, new.carried)
            self.visit_body(op.body.block)
            if op.results:
                self.emit(YieldOp(*self.yielded(op)), op)
        forward(op, new)
        self.bind_all(op.results, self.emit(new, op).results)

    def loaded(self, buffer: SSAValue, place: AffineExpr) -> SSAValue:
        """Load an integer as an index."""
        kind = memref_type(buffer).element_type
        load = self.emit(LoadOp(buffer, *self.map([place]), kind), self.target)
        return self.emit(arith.IndexCastOp(load.result, INDEX), self.target).results[0]

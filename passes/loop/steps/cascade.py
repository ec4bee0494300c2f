"""Accumulate chunks of a reduction on their own, and add up the chunks.

Before:

```mlir
loop.kernel @sum(%x: memref<1000xf32>) -> (%y: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 1000 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<1000xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32>
}
```

Options: `loop=k factor=250`

After:

```mlir
loop.kernel @sum(%x: memref<1000xf32>) -> (%y: memref<1xf32>)
    attributes {loop.schedule = "cascade(k, 250)"} {
  %z = arith.constant 0.0 : f32 %fresh = arith.constant 0.0 : f32
  %s = loop.for "k0" %k0 to 4 reduction carry(%acc = %z : f32 add) {
    %p = loop.for "k1" %k1 to 250 reduction carry(%part = %fresh : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0 * 250 + d1)(%k0, %k1) : memref<1000xf32>, f32
      %t = arith.addf %part, %v : f32
      loop.yield %t : f32 }
    %u = arith.addf %acc, %p : f32
    loop.yield %u : f32
  }
  loop.store %s, %y () -> (0)() : f32, memref<1xf32> }
```

Requires: a reduction, scalar or of blocks.
Leaves: loops named after it, with 0 and 1 appended; one over entries with `cascade`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import minus, remainder, rounded_up_quotient, value_of
from ....core.building.arithmetic import constant
from ....core.ir.typed import owned
from ....core.pipelines.budgets import SUMS
from ....dialects.loop.attrs import Combine
from ....dialects.loop.combiners import combining, neutral_value
from ....dialects.loop.names import free_names
from ....dialects.loop.nests import Consumed, check_number, loop_named, loop_names, refusal
from ....dialects.loop.ops import ForOp, KernelOp, element_type
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ....dialects.upstream.ops import BroadcastOp
from ...primitive import primitive

STEP = "loop-cascade"


@primitive(SUMS, factor=1)
def cascade(kernel: Consumed, loop: str, factor: int) -> KernelOp:
    """Accumulate chunks of `factor` iterations of a reduction on their own, and add up the chunks.

        s = reduce k to n: s + x[k]
        ->  s = reduce k0 to n ceildiv f:
                t = reduce k1 to min(f, n - f * k0), from 0: t + x[f * k0 + k1]
                s + t

    With a factor of 1 there is no inner loop: each iteration is a chunk, with the reductions in it.
    A loop over the entries of a row gets an attribute; its chunks are made when it is lowered.

    The rounding error of a sum grows like the square root of the number of terms that are added one
    after the other, of which there are f + n / f instead of n. (P. Blanchard, N. Higham and
    T. Mary, A Class of Fast and Accurate Summation Algorithms, 2020.)

    Args:
        loop: the reduction.
        factor: the iterations of a chunk.

    Raises:
        ScheduleError: if the loop is no reduction, or one with the combiner `custom`, for a factor
            of 1 if it is unrolled, and if it is over entries and a cascade already.
    """
    target = loop_named(STEP, kernel, loop)
    if not target.is_joinable:
        got = ", ".join(target.combines) or target.kind.data
        expected = "a reduction by add, mul, max or min"
        raise refusal(STEP, kernel, target, "its chunks cannot be combined", expected, got)
    check_number(STEP, kernel, target, "factor", factor)
    if factor == 1 and target.unroll is not None:
        raise refusal(STEP, kernel, target, "is unrolled", "a factor above 1", factor)
    if target.over_entries:
        if target.chunk is not None:
            raise refusal(STEP, kernel, target, "is a cascade already")
        target.cascade = IntegerAttr(factor, i64)
        return noted(kernel, "cascade", loop, factor)
    return noted(_Cascade(kernel, target, factor).run(), "cascade", loop, factor)


class _Cascade(Rebuild):
    def __init__(self, kernel: KernelOp, target: ForOp, factor: int) -> None:
        super().__init__(kernel, [target])
        self.target, self.factor = target, factor
        name = target.loop_name.data
        self.names = [name]
        if factor > 1:
            self.names = free_names(name, ("0", "1"), loop_names(kernel))

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
            return
        fresh = [self.neutral(*pair) for pair in zip(op.combines, op.inits, strict=True)]
        chunk = self.iteration if self.factor == 1 else self.chunk

        def body(outer: ForOp) -> Sequence[SSAValue]:
            parts = chunk(op, self.number(outer.variable), fresh)
            return self.joined(op, outer.carried, parts)

        bound = [rounded_up_quotient(b, self.factor) for b in self.bound(op)]
        results = self.loop_like(op, self.names[0], bound, self.inits(op), body)
        owned(results[0], ForOp).unroll = None
        self.bind_all(op.results, results)

    def iteration(
        self, op: ForOp, variable: AffineExpr, inits: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """One iteration that starts anew."""
        return self.step(op, variable, inits)

    def chunk(self, op: ForOp, number: AffineExpr, inits: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """A loop over the iterations of one chunk."""
        f, start = self.factor, number * self.factor
        rest = [minus(b, start) for b in self.bound(op) if value_of(remainder(b, f)) != 0]

        def body(inner: ForOp) -> Sequence[SSAValue]:
            return self.step(op, start + self.number(inner.variable), inner.carried)

        return self.loop_like(op, self.names[-1], [AffineExpr.constant(f), *rest], inits, body)

    def neutral(self, combine: Combine, init: SSAValue) -> SSAValue:
        """The value that a chunk starts from."""
        element = element_type(init.type)
        value = self.emit(constant(neutral_value(combine, element), element)).result
        if element == init.type:
            return value
        return self.emit(BroadcastOp.create(operands=[value], result_types=[init.type])).results[0]

    def joined(
        self, op: ForOp, totals: Sequence[SSAValue], parts: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """The totals after a chunk."""
        found: list[SSAValue] = []
        for combine, total, part in zip(op.combines, totals, parts, strict=True):
            joining = combining(combine, element_type(total.type))
            kind = total.type
            new = joining.create(operands=[total, part], result_types=[kind], properties={})
            found.append(self.emit(new, op).results[0])
        return found

"""Cut the first and last iterations off a loop.

Before:

```mlir
loop.kernel @shift(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %one = arith.constant 1 : index
  loop.for "i" %i to 8 {
    %j = arith.subi %i, %one : index
    %c = arith.cmpi sge, %j, %first : index
    %k = arith.maxsi %j, %first : index
    %v = loop.load %x (d0) -> (d0)(%k) : memref<8xf32>, f32
    %r = arith.select %c, %v, %zero : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
} }
```

Options: `loop=i before=1 after=0`

After:

```mlir
loop.kernel @shift(%x: memref<8xf32>) -> (%y: memref<8xf32>)
    attributes {loop.schedule = "split_border(i, 1, 0)"} {
  %zero = arith.constant 0.0 : f32
  loop.for "ib" %ib to 1 {
    loop.store %zero, %y () -> (0)() : f32, memref<8xf32>
  }
  loop.for "i" %i to 7 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0 + 1)(%i) : f32, memref<8xf32>
  }
}
```

Requires: a loop that is not a reduction, and never shorter than its borders.
Leaves: a loop for the interior under the old name; the names of loops of the first iterations
    end with b, those of the last ones with e.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ....core.algebra.affine import minus, normalized, polynomial, value_of, variable
from ....core.algebra.expressions import greatest, least
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.handles import all_loops
from ....dialects.loop.loops import extent_of
from ....dialects.loop.names import free_suffix
from ....dialects.loop.nests import Consumed, loop_names, plain_loop, refusal
from ....dialects.loop.ops import ForOp, KernelOp, YieldOp
from ....dialects.loop.proofs.indices import IndexValues
from ....dialects.loop.proofs.ranges import RangedRebuild
from ....dialects.loop.trace import noted
from ....dialects.upstream.ops import CmpiOp
from ...primitive import primitive
from .split import loops_of_body

STEP = "loop-split-border"

_EXTREMES = {"arith.minsi": least, "arith.maxsi": greatest}


@primitive(EXACT, all_loops)
def split_border(kernel: Consumed, loop: str, before: int, after: int) -> KernelOp:
    """Split off the first and the last iterations of a loop.

        for i to n: y[i] = 0 <= i - 1 < n - 2 ? x[i - 1] : 0
        ->  for ib to 1: y[0] = 0
            for i to n - 2: y[i + 1] = x[i]
            for ie to 1: y[n - 1] = 0

    Comparisons, minima and maxima of the index that have the same outcome in all iterations of a
    part are decided at compile time, and so are the selects that they control. In the interior a
    padded window becomes an ordinary one, with contiguous accesses.

    A symbolic size is at least that of the borders if it is theirs plus the size of a buffer.

    Args:
        loop: the loop that is cut.
        before: how many iterations are cut off at its beginning.
        after: how many at its end.

    Raises:
        ScheduleError: for a reduction, and for a loop that is shorter than its borders, or may be.
    """
    target = plain_loop(STEP, kernel, loop, (LoopKind.PARALLEL, LoopKind.SERIAL))
    if before < 0 or after < 0 or before + after < 1:
        raise refusal(STEP, kernel, target, "wrong border", "at least 1", f"{before}, {after}")
    size = extent_of(target)
    if size is None and not is_at_least(target, before + after):
        fact = "it may be shorter than its borders"
        raise refusal(STEP, kernel, target, fact, f"a bound of {before + after} or more")
    if size is not None and size < before + after:
        fact = "it is shorter than its borders"
        raise refusal(STEP, kernel, target, fact, f"at least {before + after}", size)
    new = _SplitBorder(kernel, target, before, after).run()
    return noted(new, "split_border", loop, before, after)


def is_at_least(loop: ForOp, count: int) -> bool:
    """Whether a loop has one bound, which is never below a number."""
    values = IndexValues()
    bounds = values.bounds_of(loop)
    return len(bounds) == 1 and values.is_negative(count - 1 - bounds[0])


class _SplitBorder(RangedRebuild):
    """Emits the parts of a loop."""

    def __init__(self, kernel: KernelOp, target: ForOp, before: int, after: int) -> None:
        super().__init__(kernel, [target])
        self.target, self.before, self.after = target, before, after
        self.taken = loop_names(kernel)
        self.decided: dict[SSAValue, bool] = {}

    def is_normalized_by(self, op: Operation) -> bool:
        # What is known of an index, and of comparisons, follows from what computes it.
        return not isinstance(op, ForOp | YieldOp)

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
            return
        copied = [loop.loop_name.data for loop in (op, *loops_of_body(op))]
        for suffix, start, count in self.parts():
            self.suffix = free_suffix(suffix, copied, self.taken) if suffix else ""
            with self.loop(self.name(op.loop_name.data), [count], op.kind.data, op) as variable:
                once = value_of(count) == 1
                self.bind(op.variable, start if once else normalized(variable + start))
                self.visit_body(op.body.block)
        self.suffix = ""

    def bound(self, loop: ForOp) -> list[AffineExpr]:
        """The bounds of an old loop, without those that are never the smallest."""
        found = super().bound(loop)
        for expr in [*found]:
            others = [polynomial(other) for other in found if other is not expr]
            if any(self.is_below_0(other - polynomial(expr) - 1) for other in others):
                found.remove(expr)
        return found

    def parts(self) -> Iterator[tuple[str, AffineExpr, AffineExpr]]:
        """The suffix of each part, its first iteration, and its number of iterations."""
        known, (bound, *_) = extent_of(self.target), self.bound(self.target)
        size = bound if known is None else AffineExpr.constant(known)
        first, last = AffineExpr.constant(self.before), AffineExpr.constant(self.after)
        inner, end = minus(size, first + last), minus(size, last)
        zero = AffineExpr.constant(0)
        parts = [("b", zero, first), ("", first, inner), ("e", end, last)]
        return (part for part in parts if value_of(part[2]) != 0)

    # Decided operations.

    def visit_other(self, op: Operation) -> None:
        new = self.folded(op)
        for result in op.results:  # what was decided in the part before
            self.decided.pop(result, None)
        if isinstance(new, bool):
            self.decided[op.results[0]] = new
            constant = arith.ConstantOp(IntegerAttr(int(new), i1))
            self.bind(op.results[0], self.emit(constant, op).result)
        elif new is not None:
            self.bind(op.results[0], new)
        else:
            super().visit_other(op)
            if isinstance(op, memref.DimOp):
                self.ranges.know(variable(self.expr(op.result)), 0, None)
            elif op.name in _EXTREMES and isinstance(op.results[0].type, IndexType):
                self.means(op.results[0], _EXTREMES[op.name](map(self.index, op.operands)))

    def folded(self, op: Operation) -> AffineExpr | SSAValue | bool | None:
        """The result of an operation in this part, None if unknown."""
        match op:
            case arith.AndIOp() | arith.OrIOp() if op.result.type == i1:
                return self.joined(op)
            case arith.SelectOp() if op.cond in self.decided:
                chosen = op.lhs if self.decided[op.cond] else op.rhs
                is_index = isinstance(chosen.type, IndexType)
                return self.expr(chosen) if is_index else self.value(chosen)
            case arith.CmpiOp() | CmpiOp() if isinstance(op.lhs.type, IndexType):
                return self.compared(op)
            case (
                arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.MinSIOp() | arith.MaxSIOp()
            ):
                return self.computed(op) if isinstance(op.result.type, IndexType) else None
        return None

    def joined(self, op: arith.AndIOp | arith.OrIOp) -> SSAValue | bool | None:
        """x and true == x, x and false == false; the same for or."""
        neutral = isinstance(op, arith.AndIOp)
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if one in self.decided:
                if self.decided[one] is not neutral:
                    return not neutral
                return self.decided[other] if other in self.decided else self.value(other)
        return None

    def computed(self, op: Operation) -> AffineExpr | None:
        """A sum, a difference, a product by a constant; a minimum or maximum equal to one side."""
        left, right = (self.expr(operand) for operand in op.operands)
        match op:
            case arith.AddiOp():
                return normalized(left + right)
            case arith.SubiOp():
                return minus(left, right)
            case arith.MuliOp():
                if isinstance(left, AffineConstantExpr):
                    left, right = right, left
                return normalized(left * right) if isinstance(right, AffineConstantExpr) else None
        apart = self.index(op.operands[0]) - self.index(op.operands[1])
        for smaller, larger, value in ((left, right, apart), (right, left, -apart)):
            if self.is_below_0(value - 1):
                return smaller if isinstance(op, arith.MinSIOp) else larger
        return None

    def compared(self, op: arith.CmpiOp | CmpiOp) -> bool | None:
        """The outcome of a comparison that is the same in all iterations."""
        predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        left, right = self.index(op.lhs), self.index(op.rhs)
        if predicate.startswith("u"):
            if not self.is_below_0(-right - 1):
                return None
            if self.is_below_0(left):  # as an unsigned number it is above any other
                return predicate in ("ugt", "uge")
            if not self.is_below_0(-left - 1):
                return None
        if predicate.endswith(("gt", "ge")):
            left, right = right, left
        apart, below = left - right, self.is_below_0
        if predicate in ("eq", "ne"):
            is_equal = below(apart - 1) and below(-apart - 1)
            decided = is_equal or below(apart) or below(-apart)
            return is_equal == (predicate == "eq") if decided else None
        strict = int(predicate.endswith("t"))
        if below(apart - 1 + strict):
            return True
        return False if below(-apart - strict) else None

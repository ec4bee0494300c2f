"""Merge two reductions, or two parallel loops, over the same range into one.

Before:

```mlir
loop.kernel @both(%x: memref<8xf32>) -> (%y: memref<2xf32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "k" %k to 8 reduction carry(%acc = %z : f32 add) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<8xf32>, f32
    %t = arith.addf %acc, %v : f32
    loop.yield %t : f32 }
  %m = loop.for "l" %l to 8 reduction carry(%top = %z : f32 max) {
    %v = loop.load %x (d0) -> (d0)(%l) : memref<8xf32>, f32
    %t = arith.maximumf %top, %v : f32
    loop.yield %t : f32 }
  loop.store %s, %y () -> (0)() : f32, memref<2xf32>
  loop.store %m, %y () -> (1)() : f32, memref<2xf32> }
```

Options: `first=k second=l`

After:

```mlir
loop.kernel @both(%x: memref<8xf32>) -> (%y: memref<2xf32>)
    attributes {loop.schedule = "merge(k, l)"} {
  %z = arith.constant 0.0 : f32
  %s, %m = loop.for "k" %k to 8 reduction carry(%acc = %z : f32 add, %top = %z : f32 max) {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<8xf32>, f32
    %t = arith.addf %acc, %v : f32
    %u = arith.maximumf %top, %v : f32
    loop.yield %t, %u : f32, f32 }
  loop.store %s, %y () -> (0)() : f32, memref<2xf32>
  loop.store %m, %y () -> (1)() : f32, memref<2xf32> }
```

Requires: two reductions in one body that do not depend on each other, or two parallel loops
    whose iterations depend only on the same ones of each other.
Leaves: one loop that carries the values of both.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ....core.building.creation import copied
from ....core.ir.typed import owned
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.handles import forward
from ....dialects.loop.nests import (
    Consumed,
    loop_named,
    loops_named,
    put_in_place,
    refusal,
)
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, YieldOp
from ....dialects.loop.proofs.in_place import read_in, written_in
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-merge"


@primitive(EXACT)
def merge(kernel: Consumed, first: str, second: str) -> KernelOp:
    """Run two reductions, or two parallel loops, over the same range as one loop.

        s = reduce k: s + x[k] * v[k]; t = reduce l: t + x[l] * w[l]
        ->  s, t = reduce k: s + x[k] * v[k], t + x[k] * w[k]

        for i: y[i] = x[i]; for j: y[j] += u[j]
        ->  for i: y[i] = x[i]; y[i] += u[i]

    The loop keeps the name of the first one. What both reductions read is read once. Statements
    between the two precede the loop if the second one needs them, and may follow a reduction
    otherwise. The range of reductions may be the stored entries of a row.

    Args:
        first: the loop that comes first, whose name stays.
        second: the other loop.

    Raises:
        ScheduleError: if they are neither reductions nor parallel, if a reduction is unrolled or
            has effects, or statements between parallel loops have; if the two are not in one body,
            the first one first, or differ in range; if the second one needs the first one, or what
            is written between the two; if an iteration of a parallel one needs more than its own
            of the first one.
    """
    one, other = (loop_named(STEP, kernel, name) for name in (first, second))
    parallel = all(op.is_plain and op.kind.data == LoopKind.PARALLEL for op in (one, other))
    if not parallel:
        one, other = (_reduction(kernel, name) for name in (first, second))
    between = _between(one, other)
    if between is None:
        expected = f'a later loop beside "{first}"'
        raise refusal(STEP, kernel, other, "is in another place", expected)
    if range_of(one) != range_of(other):
        raise refusal(STEP, kernel, other, f'has another range than "{first}"')
    if parallel:
        new = _merged_parallel(kernel, one, other, between)
    else:
        new = _Merge(kernel, one, other, _earlier(kernel, one, other, between)).run()
    return noted(new, "merge", first, second)


def _earlier(
    kernel: KernelOp, one: ForOp, other: ForOp, between: Sequence[Operation]
) -> Sequence[Operation]:
    """Those of the operations between two reductions that the second one needs.

    Raises:
        ScheduleError: if the reductions cannot be one.
    """
    first = one.loop_name.data
    for op in (one, other):
        if (inner := next(filter(_has_effects, op.walk()), None)) is not None:
            raise refusal(STEP, kernel, op, f"{inner.name} in it has effects")
    earlier, written = _needed_by(other, between), set[SSAValue]()
    for op in between:
        if op not in earlier:
            written |= written_in(kernel, op)
        elif any(map(_has_effects, op.walk())) or _needs(op, one.results):
            raise refusal(STEP, kernel, other, f'needs what follows "{first}"')
    if _needs(other, one.results):
        raise refusal(STEP, kernel, other, f'needs the result of "{first}"')
    if any(not written.isdisjoint(read_in(op)) for op in (other, *earlier)):
        raise refusal(STEP, kernel, other, f'reads what is written after "{first}"')
    return earlier


def _merged_parallel(
    kernel: KernelOp, one: ForOp, other: ForOp, between: Sequence[Operation]
) -> KernelOp:
    """The kernel with parallel loops that are one, between which nothing has to stay.

    Whether their iterations are independent is seen on a copy, which then takes its place.

    Raises:
        ScheduleError: if they are not.
    """
    names = [loop.loop_name.data for loop in (one, other)]
    written = written_in(kernel, one)
    for op in between:
        if any(map(_has_effects, op.walk())) or not written.isdisjoint(read_in(op)):
            fact = f'{op.name} in front of it has to come after "{names[0]}"'
            raise refusal(STEP, kernel, other, fact)
    copy = copied(kernel)
    new = _MergeParallel(copy, *loops_named(STEP, copy, names)).run()
    for found in new.dependences(names[:1]):
        fact = f'cannot be one with "{names[0]}": {found}'
        raise refusal(STEP, kernel, other, fact)
    return put_in_place(new, kernel)


def _reduction(kernel: KernelOp, name: str) -> ForOp:
    loop = loop_named(STEP, kernel, name)
    if not loop.is_reduction or loop.is_scheduled:
        expected = "a reduction that is not unrolled, and no cascade"
        raise refusal(STEP, kernel, loop, "cannot be merged", expected)
    return loop


def range_of(loop: ForOp) -> tuple[object, ...]:
    """The bound of a loop, or the row, and the matrix whose entries are there."""
    return loop.bound, *loop.bounds, loop.over_entries, *loop.matrix


def _between(one: ForOp, other: ForOp) -> list[Operation] | None:
    """The operations between two of one body; None if the second does not follow the first."""
    found, op = list[Operation](), one.next_op
    while op is not other:
        if op is None:
            return None
        found.append(op)
        op = op.next_op
    return found


def _has_effects(op: Operation) -> bool:
    return not isinstance(op, ForOp | LoadOp | YieldOp) and not is_side_effect_free(op)


def _needs(op: Operation, values: Sequence[SSAValue]) -> bool:
    return any(operand in values for inner in op.walk() for operand in inner.operands)


def _needed_by(loop: ForOp, ops: Sequence[Operation]) -> list[Operation]:
    """Those of the operations in front of a loop that it needs."""
    found, needed = list[Operation](), list[Operation]([loop])
    for op in reversed(ops):
        if any(_needs(user, op.results) for user in needed):
            found.insert(0, op)
            needed.append(op)
    return found


class _Merge(Rebuild):
    def __init__(
        self, kernel: KernelOp, first: ForOp, second: ForOp, earlier: Sequence[Operation]
    ) -> None:
        super().__init__(kernel, [first, second, *earlier])
        self.first, self.second, self.earlier = first, second, earlier
        self.is_merged = False
        self._loads: dict[object, SSAValue] = {}
        """The loads in the merged loop, by what they read."""

    def visit(self, op: Operation) -> None:
        if not self.is_merged or (op is not self.second and op not in self.earlier):
            super().visit(op)

    def visit_for(self, op: ForOp) -> None:
        if op is not self.first:
            super().visit_for(op)
            return
        for statement in self.earlier:
            self.visit(statement)
        self.is_merged = True
        self._emit_merged()

    def _emit_merged(self) -> None:
        first, second = self.first, self.second
        inits = [*self.inits(first), *self.inits(second)]
        count = len(first.results)

        def body(new: ForOp) -> Sequence[SSAValue]:
            variable = new.variable if new.over_entries else self.number(new.variable)
            if new.over_entries:
                self.bind(second.column, new.column)
            return [
                *self.step(first, variable, new.carried[:count]),
                *self.step(second, variable, new.carried[count:]),
            ]

        combines = [*first.combines, *second.combines]
        name, bound = self.name(first.loop_name.data), self.bound(first)
        results = self.loop_like(first, name, bound, inits, body, combines)
        forward(second, owned(results[0], ForOp))
        self.bind_all(first.results, results[:count])
        self.bind_all(second.results, results[count:])

    def visit_load(self, op: LoadOp) -> None:
        super().visit_load(op)
        if op.parent in (self.first.body.block, self.second.body.block):
            new = self.value(op.result)
            load = new.owner
            assert isinstance(load, LoadOp)
            key = (*load.operands, *load.properties.items(), *load.attributes.items())
            self.bind(op.result, self._loads.setdefault(key, new))


class _MergeParallel(Rebuild):
    def __init__(self, kernel: KernelOp, first: ForOp, second: ForOp) -> None:
        super().__init__(kernel, [first, second])
        self.first, self.second = first, second

    def visit_for(self, op: ForOp) -> None:
        if op is self.second:
            name, bound = self.name(self.first.loop_name.data), self.bound(op)
            with self.loop(name, bound, op.kind.data, op) as variable:
                for loop in (self.first, op):
                    self.bind(loop.variable, variable)
                    self.visit_body(loop.body.block)
            new = self.block.last_op
            assert isinstance(new, ForOp)
            forward(self.first, new)
        elif op is not self.first:
            super().visit_for(op)

"""Merge two reductions over the same range into one: `loop-merge`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ...core.budgets import EXACT
from ...dialects.loop.bounds import without_repeats
from ...dialects.loop.handles import forward
from ...dialects.loop.in_place import read_in, written_in
from ...dialects.loop.nests import Consumed, loop_named, refusal
from ...dialects.loop.ops import ForOp, KernelOp, LoadOp, YieldOp
from ...dialects.loop.rebuild import Rebuild
from ...dialects.loop.trace import noted
from ..primitive import PrimitivePass

STEP = "loop-merge"


def merge(kernel: Consumed, first: str, second: str) -> KernelOp:
    """Compute two reductions over the same range in one loop, which keeps the name of the first.

        s = reduce k: s + x[k] * v[k]; t = reduce l: t + x[l] * w[l]
        ->  s, t = reduce k: s + x[k] * v[k], t + x[k] * w[k]

    What both read is read once. Statements between the two precede the loop if the second
    reduction needs them, and follow it otherwise.

    Raises:
        ScheduleError: if one is not a reduction over a bound, is unrolled, or has effects; if they
            are not in one body, the first one first, or differ in range; if the second one needs
            the first one, or reads what is written between the two.
    """
    one, other = (_reduction(kernel, name) for name in (first, second))
    between = _between(one, other)
    if between is None:
        expected = f'a later loop beside "{first}"'
        raise refusal(STEP, kernel, other, "is in another place", expected)
    if one.bound != other.bound or list(one.bounds) != list(other.bounds):
        raise refusal(STEP, kernel, other, f'has another range than "{first}"')
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
    return noted(_Merge(kernel, one, other, earlier).run(), "merge", first, second)


def _reduction(kernel: KernelOp, name: str) -> ForOp:
    loop = loop_named(STEP, kernel, name)
    if not loop.is_reduction or loop.over_entries or loop.unroll is not None:
        expected = "a reduction over a bound that is not unrolled"
        raise refusal(STEP, kernel, loop, "cannot be merged", expected)
    return loop


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
        super().__init__(kernel)
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
        bound = self.bound(first)
        map, operands = self.map(without_repeats(bound))
        new = ForOp(
            self.name(first.loop_name.data),
            map,
            operands,
            first.kind.data,
            inits=[*self.inits(first), *self.inits(second)],
            combines=[*first.combines, *second.combines],
        )
        new.variable.name_hint = new.loop_name.data
        count = len(first.results)
        with self.inside(new.body.block):
            variable = self.number(new.variable)
            self.opened(variable, bound)
            last = [
                *self.step(first, variable, new.carried[:count]),
                *self.step(second, variable, new.carried[count:]),
            ]
            self.emit(YieldOp(*last))
        self.emit(new, first)
        for old, results in ((first, new.results[:count]), (second, new.results[count:])):
            forward(old, new)
            self.bind_all(old.results, results)

    def visit_load(self, op: LoadOp) -> None:
        super().visit_load(op)
        if op.parent in (self.first.body.block, self.second.body.block):
            new = self.value(op.result)
            load = new.owner
            assert isinstance(load, LoadOp)
            key = (*load.operands, *load.properties.items(), *load.attributes.items())
            self.bind(op.result, self._loads.setdefault(key, new))


@dataclass(frozen=True)
class LoopMergePass(PrimitivePass):
    """Merge two reductions over the same range into one.

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

    Requires: two reductions in one body that do not depend on each other.
    Leaves: one loop that carries the values of both.
    """

    name = "loop-merge"
    budget = EXACT
    primitive = staticmethod(merge)

    first: str = ""
    """The loop that comes first, whose name stays."""
    second: str = ""
    """The other loop."""

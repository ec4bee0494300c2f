"""Divide what a serial loop writes among parts, each of which runs all iterations.

Before:

```mlir
loop.kernel @f(%x: memref<8xindex>) -> (%y: memref<4xindex>) {
  loop.for "k" %k to 8 serial {
    %q = loop.load %x (d0) -> (d0)(%k) : memref<8xindex>, index
    loop.store %q, %y (d0) -> (d0)(%q) : index, memref<4xindex> } }
```

Options: `loop=k parts=2`

After:

```mlir
loop.kernel @f(%x: memref<8xindex>) -> (%y: memref<4xindex>) attributes {
  loop.schedule = "own(k, 2, 1)"} {  %s = arith.constant 2 : index  loop.for "k0" %a to 2 {
  %l = loop.local : memref<8xindex>
  loop.for "k1" %b to 1 serial {  %z = arith.constant 0 : index
  %m = loop.for "k2" %i to min (d0) -> (8, d0 * -8 + 8)(%b) serial carry(%c = %z : index) {
  %q = loop.load %x (d0, d1) -> (d0 * 8 + d1)(%b, %i) : memref<8xindex>, index
  %n = loop.owned %q part %a size %s loop.store %i, %l (d0) -> (d0)(%c) : index, memref<8xindex>
  %d = arith.addi %c, %n : index  loop.yield %d : index }  loop.for "k3" %e to %m serial {
  %i = loop.load %l (d0) -> (d0)(%e) : memref<8xindex>, index
  %q = loop.load %x (d0, d1) -> (d0 * 8 + d1)(%b, %i) : memref<8xindex>, index
  %n = loop.owned %q part %a size %s  loop.for "k4" %f to %n {
  loop.store %q, %y (d0) -> (d0)(%q) : index, memref<4xindex> } } } } }
```

Requires: a serial loop that carries nothing, in which all accesses to what it writes are at one
    index, computed at the beginning of an iteration.
Leaves: a loop over parts, which may be tiles for threads, around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.traits import is_side_effect_free

from ....core.algebra.affine import rounded_up_quotient
from ....core.building.arithmetic import INDEX
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.divided import Divided, divisible_loop
from ....dialects.loop.handles import Forwarded
from ....dialects.loop.loops import is_made_in
from ....dialects.loop.names import free_names
from ....dialects.loop.nests import Consumed, body_of, loop_names, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, OwnedOp, StoreOp, YieldOp
from ....dialects.loop.proofs.in_place import written_in
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-own"

BLOCK = 256
"""How many iterations a part looks at before it runs those with places of its own."""

Access = LoadOp | StoreOp


def _part_and_update(
    loops: Mapping[str, ForOp], forwarded: Forwarded, loop: str
) -> tuple[str, str]:
    """The loop over parts, and the one around an update."""
    update, *_, part = forwarded[loop]
    return part, update


@primitive(EXACT, _part_and_update, parts=2)
def own(kernel: Consumed, loop: str, parts: int, chunk: int = 1) -> KernelOp:
    """Divide the places that a serial loop writes to into parts, which are computed independently.

        for k to n serial: q = f(k); y[q] += u[k]
        ->  for k0 to min(parts, n ceildiv chunk): for k1 to n ceildiv 256 serial:
                m = 0; for k2 to min(256, n - 256 * k1) serial:
                    mine[m] = k2; m += owned(f(256 * k1 + k2), k0)
                for k3 to m serial: k = 256 * k1 + mine[k3]; q = f(k)
                    for k4 to owned(q, k0): y[q] += u[k]

    Each part computes all places, but updates only those that it owns, so that every place is
    updated in the same order as before: results are the same, whatever runs the parts. This is the
    owner-computes rule (Rogers and Pingali, "Process Decomposition Through Locality of Reference",
    1989). A part lists its iterations of a block first: whether a place is its own is random, and
    would be mispredicted as a branch. There are fewer parts for less than `parts * chunk`
    iterations.

    Args:
        loop: the serial loop.
        parts: the number of parts.
        chunk: there are no more parts than chunks of this many iterations.

    Raises:
        ScheduleError: if the loop is not serial, or not all accesses to what it writes are at one
            computed index.
    """
    target = divisible_loop(STEP, kernel, loop, parts, chunk)
    new = _Own(kernel, target, owned_by(kernel, target), parts, chunk).run()
    return noted(new, "own", loop, parts, chunk)


@dataclass(frozen=True)
class Owned:
    """The places that a loop writes to, one in each iteration."""

    access: Access
    """A store to them."""
    dimension: int
    """The dimension of it with the computed index."""
    before: set[Operation]
    """The operations of an iteration from which that is computed."""

    @property
    def place(self) -> SSAValue:
        """The computed index."""
        return self.access.indices[_position(self.access, self.dimension)]


def owned_by(kernel: KernelOp, loop: ForOp) -> Owned:
    """The places that a serial loop writes to.

    Raises:
        ScheduleError: if not all accesses to what it writes are at one computed index.
    """
    access, dimension = _common_place(kernel, loop)
    place = access.indices[_position(access, dimension)]
    return Owned(access, dimension, _needed(kernel, loop, place))


def _common_place(kernel: KernelOp, loop: ForOp) -> tuple[Access, int]:
    """A store and a dimension of it, whose index every access to what is written has as well."""
    buffers = written_in(kernel, loop)
    accesses = [
        op
        for op in loop.body.walk()
        if isinstance(op, Access) and op.buffer in buffers and not is_made_in(op.buffer, loop)
    ]
    first = next((op for op in accesses if isinstance(op, StoreOp)), None)
    if first is None:
        raise refusal(STEP, kernel, loop, "it writes nothing")
    for dimension, value in _places(first):
        if all((dimension, value) in _places(op) for op in accesses):
            return first, dimension
    expected = "accesses to what it writes at one computed index"
    raise refusal(STEP, kernel, loop, "it writes to several places", expected)


def _places(access: Access) -> Iterator[tuple[int, SSAValue]]:
    """The dimensions of an access whose index is an operation's result."""
    for dimension, expr in enumerate(access.map.data.results):
        if isinstance(expr, AffineDimExpr):
            value = access.indices[expr.position]
            if isinstance(value.owner, Operation):
                yield dimension, value


def _position(access: Access, dimension: int) -> int:
    expr = access.map.data.results[dimension]
    assert isinstance(expr, AffineDimExpr)
    return expr.position


def _needed(kernel: KernelOp, loop: ForOp, place: SSAValue) -> set[Operation]:
    """The operations of an iteration from which a place is computed."""
    body, written = body_of(loop), written_in(kernel, loop)
    found, waiting = set[Operation](), [place]
    while waiting:
        op = waiting.pop().owner
        if not isinstance(op, Operation) or not loop.is_ancestor(op) or op in found:
            continue
        reads = isinstance(op, LoadOp) and op.buffer not in written
        if op not in body or not (reads or is_side_effect_free(op)):
            raise refusal(STEP, kernel, loop, "a place is not computed where an iteration begins")
        found.add(op)
        waiting += op.operands
    if not found:
        raise refusal(STEP, kernel, loop, "all of its iterations write to one place")
    return found


class _Own(Divided):
    def __init__(
        self, kernel: KernelOp, target: ForOp, owned: Owned, parts: int, chunk: int
    ) -> None:
        super().__init__(kernel, target, parts, chunk)
        self.own = owned
        self.names = free_names(
            target.loop_name.data, ("0", "1", "2", "3", "4"), loop_names(kernel)
        )

    def divide(self, op: ForOp, count: AffineExpr) -> None:
        part, block, _, own, once = self.names
        parts = self.number_of_parts(count)
        size = self.compute(
            self.size_of_part(self.size_of(self.own.access.buffer, self.own.dimension), parts)
        )
        most = min(BLOCK, max(1, count.value)) if isinstance(count, AffineConstantExpr) else BLOCK
        with self.loop(part, [parts], LoopKind.PARALLEL, op) as k0:
            mine = self.emit(LocalOp(MemRefType(INDEX, [most]))).result
            with self.loop(block, [rounded_up_quotient(count, most)], LoopKind.SERIAL, op) as k1:
                found = self.listed(
                    k1 * most, [AffineExpr.constant(most), count - k1 * most], mine, k0, size
                )
                with self.loop(own, [found], LoopKind.SERIAL, op) as k3:
                    number = self.emit(LoadOp(mine, *self.map([k3]))).result
                    owned = self.owned(k1 * most + self.number(number), k0, size)
                    with self.loop(once, [self.number(owned)], LoopKind.PARALLEL, op):
                        self.visit_some([o for o in body_of(op) if o not in self.own.before])

    def listed(
        self,
        first: AffineExpr,
        bound: Sequence[AffineExpr],
        mine: SSAValue,
        part: AffineExpr,
        size: SSAValue,
    ) -> AffineExpr:
        """List the iterations of a block with places of a part; return how many there are."""
        none = self.compute(AffineExpr.constant(0))
        op = ForOp(self.names[2], *self.map(bound), LoopKind.SERIAL, inits=[none])
        op.variable.name_hint = self.names[2]
        with self.inside(op.body.block):
            owned = self.owned(first + self.number(op.variable), part, size)
            (count,) = op.carried
            self.emit(StoreOp(op.variable, mine, *self.map([self.number(count)])))
            self.emit(YieldOp(self.emit(arith.AddiOp(count, owned)).result))
        return self.number(self.emit(op, self.target).results[0])

    def owned(self, iteration: AffineExpr, part: AffineExpr, size: SSAValue) -> SSAValue:
        """Whether a part owns the place of an iteration, which is computed here."""
        self.bind(self.target.variable, iteration)
        self.visit_some([inner for inner in body_of(self.target) if inner in self.own.before])
        return self.emit(OwnedOp(self.value(self.own.place), self.compute(part), size)).result

    def visit_some(self, ops: Sequence[Operation]) -> None:
        """Visit some operations of an iteration."""
        for op in ops:
            self.visit(op)

"""Run the serial loop in each iteration of a loop on columns of local buffers.

Before:

```mlir
loop.kernel @copies(%x: memref<4xf32>) -> (%y: memref<4x9xf32>) {
  loop.for "i" %i to 4 {
    %z = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    %s = loop.for "k" %k to 9 serial carry(%t = %z : f32) {
      loop.store %t, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<4x9xf32>
      loop.yield %t : f32 } } }
```

Options: `loop=i size=9`

After:

```mlir
loop.kernel @copies(%x: memref<4xf32>) -> (%y: memref<4x9xf32>) attributes {
    loop.schedule = "stage_columns(i, 9)"} {
  %q = loop.local : memref<9x4xf32>  %c = loop.local : memref<4xf32>
  loop.for "i0" %i to 4 { %z = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    loop.store %z, %c (d0) -> (d0)(%i) : f32, memref<4xf32> }
  loop.for "k0" %n to 1 serial { loop.for "i" %i to 4 {
      %b = loop.load %c (d0) -> (d0)(%i) : memref<4xf32>, f32
      %s = loop.for "k1" %k to 9 serial carry(%t = %b : f32) { loop.store %t, %q (d0, d1) ->
        (d0, d1)(%k, %i) : f32, memref<9x4xf32>  loop.yield %t : f32 }  loop.store %s, %c (d0)
        -> (d0)(%i) : f32, memref<4xf32> }  loop.for "i1" %i to 4 { loop.for "k2" %k to 9 {
      %v = loop.load %q (d0, d1) -> (d0, d1)(%k, %i) : memref<9x4xf32>, f32  loop.store %v, %y
        (d0, d1, d2) -> (d0, d1 * 9 + d2)(%i, %n, %k) : f32, memref<4x9xf32> } } } }
```

Requires: a loop of known size over rows, whose body is a serial loop that carries numbers, and
    whose stores are contiguous along that.
Leaves: copies that `vectorize` makes squares, and a loop over rows that accesses columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import AnyFloat, IntegerType, MemRefType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import coefficient, minus, quotient, remainder, value_of
from ....core.ir.typed import memref_type
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.handles import all_loops
from ....dialects.loop.loops import bound_of, extent_of, is_made_in
from ....dialects.loop.names import free_names, free_suffix
from ....dialects.loop.nests import (
    MOST_LANES,
    Consumed,
    body_of,
    check_number,
    loop_names,
    plain_loop,
    refusal,
)
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp
from ....dialects.loop.proofs.in_place import written_in
from ....dialects.loop.proofs.indices import may_be_negative
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-stage-columns"

Access = LoadOp | StoreOp


@primitive(EXACT, all_loops, size=64)
def stage_columns(kernel: Consumed, loop: str, size: int) -> KernelOp:
    """Run the serial loop in each iteration of a loop on columns of local buffers.

        for i to 16: t = init; for k to n serial carry(t): t = f(t, x[i, k]); y[i, k] = t
        ->  for i0 to 16: c[i0] = init
            for k0 to n floordiv size serial:
                for i1 to 16: for k2 to size: p[k2, i1] = x[i1, size * k0 + k2]
                for i to 16: t = c[i]
                    for k1 to size serial carry(t): t = f(t, p[k1, i]); q[k1, i] = t
                    c[i] = t
                for i2 to 16: for k3 to size: y[i2, size * k0 + k3] = q[k3, i2]
            (and the same for the remaining n mod size)

    Then `i` may become an axis whose lanes are contiguous, and the copies squares that are
    transposed in registers: the elements of several rows are computed at once, in the same order.
    If nothing is contiguous along `k`, all accesses stay where they are, and what is carried is in
    a buffer only: with `size` 1, the two loops change places.

    Args:
        loop: the loop over rows.
        size: how many columns are staged at a time.

    Raises:
        ScheduleError: if the size of the loop is unknown; if its body is not a serial loop that
            carries numbers, after what its initial values need; if a store of that is not
            contiguous along it; or if it reads what it writes.
    """
    target = plain_loop(STEP, kernel, loop, [LoopKind.PARALLEL])
    check_number(STEP, kernel, target, "number of columns", size, MOST_LANES)
    new = _StageColumns(kernel, _found(kernel, target), size).run()
    return noted(new, "stage_columns", loop, size)


@dataclass(frozen=True)
class _StagedRows:
    target: ForOp
    """The loop over rows."""
    size: int
    """Its number of iterations."""
    steps: ForOp
    """The serial loop in it."""
    before: Sequence[Operation]
    """What the initial values of the serial loop are computed by."""
    staged: Sequence[Access]
    """The accesses that go along rows."""


def _found(kernel: KernelOp, target: ForOp) -> _StagedRows:
    """The parts of a loop over rows, if it has the right form."""
    size, before = extent_of(target), body_of(target)
    if size is None or len(bound_of(target)) > 1:
        raise refusal(STEP, kernel, target, "its size is not known", "a constant bound")
    steps = before.pop() if before else None
    if not isinstance(steps, ForOp) or steps.kind.data != LoopKind.SERIAL or not steps.results:
        expected = "a serial loop that carries values"
        raise refusal(STEP, kernel, target, "its body ends with something else", expected)
    if any(isinstance(op, StoreOp) or op.regions for op in before):
        raise refusal(STEP, kernel, target, "does more than one serial loop")
    _check_steps(kernel, target, steps)
    accesses = [op for op in steps.body.block.ops if isinstance(op, Access)]
    staged = [op for op in accesses if _is_along_rows(op, target, steps)]
    _check_memory(kernel, steps, accesses, staged)
    return _StagedRows(target, size, steps, before, staged)


def _check_steps(kernel: KernelOp, target: ForOp, steps: ForOp) -> None:
    """Check the serial loop: it begins nowhere else in another row, and carries numbers."""
    if any(op.regions for op in steps.body.block.ops):
        raise refusal(STEP, kernel, steps, "has loops or conditions in it")
    if len(bound_of(steps)) > 1 or may_be_negative(steps):
        raise refusal(STEP, kernel, steps, "its bound is not one number that is at least 0")
    if any(value is target.variable or is_made_in(value, target) for value in steps.bounds):
        raise refusal(STEP, kernel, steps, f'its bound depends on "{target.loop_name.data}"')
    inside = {operand for op in steps.body.block.ops for operand in op.operands}
    of_row = {v for v in inside if is_made_in(v, target) and not is_made_in(v, steps)}
    if of_row - {steps.variable}:
        raise refusal(STEP, kernel, steps, "needs what is computed before it in each row")
    for carried in steps.carried:
        if not _is_number(carried.type):
            raise refusal(STEP, kernel, steps, "wrong carried value", "numbers", carried.type)


def _is_number(type: Attribute) -> bool:
    return isinstance(type, AnyFloat | IntegerType) and type != i1


def _check_memory(
    kernel: KernelOp, steps: ForOp, accesses: Sequence[Access], staged: Sequence[Access]
) -> None:
    """Check that a chunk of columns may be read before it is written.

    Where nothing is staged, every access stays where it is.
    """
    if not staged:
        return
    written, stores = written_in(kernel, steps), [op for op in accesses if isinstance(op, StoreOp)]
    for op in staged:
        kind = memref_type(op.buffer).element_type
        if not _is_number(kind):
            raise refusal(STEP, kernel, steps, "wrong elements", "numbers", kind)
    for op in stores:
        if op not in staged or op.accumulates is not None:
            expected = "stores that are contiguous along it"
            raise refusal(STEP, kernel, steps, "updates other elements", expected)
    places = [(op.map, list(op.indices)) for op in stores]
    for op in accesses:
        if not isinstance(op, LoadOp) or op.buffer not in written:
            continue
        if op not in staged or any((op.map, list(op.indices)) != place for place in places):
            raise refusal(STEP, kernel, steps, "reads what it writes")


def _is_along_rows(op: Access, target: ForOp, steps: ForOp) -> bool:
    """Whether an access is in another row of a buffer for each row, and contiguous along it."""
    known = all(
        v in (target.variable, steps.variable) or not is_made_in(v, target) for v in op.indices
    )
    if not known or op.limits or target.variable not in op.indices:
        return False
    return abs(_direction(op, steps)) == 1


def _direction(op: Access, steps: ForOp) -> int:
    """How many elements of a row an access moves by in each step; 0 if it leaves its row."""
    dims = [AffineExpr.dimension(n) for n, o in enumerate(op.indices) if o is steps.variable]
    factors = [[coefficient(e, dim) for dim in dims] for e in op.map.data.results]
    if any(None in row for row in factors):
        return 0
    moves = [sum(n or 0 for n in row) for row in factors]
    sizes = list(memref_type(op.buffer).get_shape())
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()  # the next element is along the dimension before it
    return 0 if any(moves[: len(sizes) - 1] + moves[len(sizes) :]) else moves[len(sizes) - 1]


@dataclass(frozen=True)
class _Chunk:
    """Some columns."""

    count: AffineExpr
    first: AffineExpr


class _StageColumns(Rebuild):
    def __init__(self, kernel: KernelOp, rows: _StagedRows, size: int) -> None:
        super().__init__(kernel, [rows.target])
        self.rows, self.size = rows, size
        taken, numbers = loop_names(kernel), list(map(str, range(2 + len(rows.staged))))
        self.row_names = free_names(rows.target.loop_name.data, numbers[:-1], taken)
        self.step_names = free_names(rows.steps.loop_name.data, numbers, taken)
        copied = [rows.target.loop_name.data, *self.row_names, *self.step_names]
        self.end = free_suffix("t", copied, {*taken, *copied})
        self.buffers: dict[Operation, SSAValue] = {}
        """The columns of each access."""
        self.totals: list[SSAValue] = []
        """For each carried value a buffer with an element for each row."""
        self.places: dict[Operation, Sequence[AffineExpr]] = {}
        """While the serial loop is visited: where accesses find their columns."""

    def visit_for(self, op: ForOp) -> None:
        if op is self.rows.target:
            self.stage(op)
        else:
            super().visit_for(op)

    def stage(self, op: ForOp) -> None:
        """Emit what takes the place of the loop over rows."""
        rows, steps = self.rows, self.rows.steps
        for access in rows.staged:
            kind = MemRefType(memref_type(access.buffer).element_type, [self.size, rows.size])
            self.buffers[access] = self.emit(LocalOp(kind), access).result
        self.totals = [
            self.emit(LocalOp(MemRefType(init.type, [rows.size])), steps).result
            for init in steps.inits
        ]
        with self.each_row(self.row_names[0]) as row:
            for statement in rows.before:
                self.visit(statement)
            for init, total in zip(steps.inits, self.totals, strict=True):
                self.emit(StoreOp(self.value(init), total, *self.map([row])), steps)
        (length,) = self.bound(steps)
        whole, rest = quotient(length, self.size), remainder(length, self.size)
        if value_of(whole) != 0:
            with self.loop(self.step_names[0], [whole], LoopKind.SERIAL, op) as k0:
                self.chunk(_Chunk(AffineExpr.constant(self.size), k0 * self.size))
        if value_of(rest) != 0:
            self.suffix = self.end
            self.chunk(_Chunk(rest, whole * self.size))
            self.suffix = ""

    @contextmanager
    def each_row(self, name: str) -> Iterator[AffineExpr]:
        """Open a loop over the rows within the context."""
        target, bound = self.rows.target, [AffineExpr.constant(self.rows.size)]
        with self.loop(name, bound, LoopKind.PARALLEL, target) as row:
            self.bind(target.variable, row)
            yield row

    def chunk(self, chunk: _Chunk) -> None:
        """Copy the columns of a chunk, run the steps on them, and copy what they store."""
        names = zip(self.rows.staged, self.row_names[1:], self.step_names[2:], strict=True)
        copies = [(access, self.name(row), self.name(step)) for access, row, step in names]
        for access, row, step in copies:
            if isinstance(access, LoadOp):
                with self.each_place(access, row, step, chunk) as place:
                    super().visit_load(access)
                    map, operands = self.map(place)
                    value, buffer = self.value(access.result), self.buffers[access]
                    self.emit(StoreOp(value, buffer, map, operands), access)
        with self.each_row(self.name(self.rows.target.loop_name.data)) as row:
            self.run_steps(row, chunk)
        for access, row, step in copies:
            if isinstance(access, StoreOp):
                with self.each_place(access, row, step, chunk) as place:
                    map, operands = self.map(place)
                    staged = self.emit(LoadOp(self.buffers[access], map, operands), access)
                    exprs = self.composed(access.map.data, access.indices)
                    self.store_like(access, exprs, value=staged.result)

    @contextmanager
    def each_place(
        self, access: Access, row: str, step: str, chunk: _Chunk
    ) -> Iterator[list[AffineExpr]]:
        """Open loops over the elements of a chunk, in the order in which memory has them.

        Gives the place of each one in the buffer, while the serial loop is at its column.
        """
        with (
            self.each_row(row) as own,
            self.loop(step, [chunk.count], LoopKind.PARALLEL, access) as place,
        ):
            self.bind(self.rows.steps.variable, chunk.first + self.turned(access, place, chunk))
            yield [place, own]

    def turned(self, access: Access, place: AffineExpr, chunk: _Chunk) -> AffineExpr:
        """The column at a place in the buffer of an access, and the place of a column."""
        forwards = _direction(access, self.rows.steps) > 0
        return place if forwards else minus(chunk.count - 1, place)

    def run_steps(self, row: AffineExpr, chunk: _Chunk) -> None:
        """The steps of one row in a chunk."""
        steps, at = self.rows.steps, self.map([row])
        inits = [self.emit(LoadOp(total, *at), steps).result for total in self.totals]

        def body(new: ForOp) -> Sequence[SSAValue]:
            column = self.number(new.variable)
            self.places = {a: [self.turned(a, column, chunk), row] for a in self.rows.staged}
            last = self.step(steps, chunk.first + column, new.carried)
            self.places = {}
            return last

        last = self.loop_like(steps, self.name(self.step_names[1]), [chunk.count], inits, body)
        for total, value in zip(self.totals, last, strict=True):
            self.emit(StoreOp(value, total, *self.map([row])), steps)

    def visit_load(self, op: LoadOp) -> None:
        if op in self.places:
            self.load_like(op, self.places[op], buffer=self.buffers[op])
        else:
            super().visit_load(op)

    def visit_store(self, op: StoreOp) -> None:
        if op in self.places:
            self.store_like(op, self.places[op], buffer=self.buffers[op])
        else:
            super().visit_store(op)

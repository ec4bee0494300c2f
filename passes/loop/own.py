"""Divide what a serial loop writes among threads, each of which runs all iterations: `loop-own`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.traits import is_side_effect_free

from ...core.budgets import EXACT
from ...core.typed import memref_type
from ...dialects.loop.attrs import LoopKind
from ...dialects.loop.in_place import written_in
from ...dialects.loop.linear import rounded_up_quotient
from ...dialects.loop.loops import bound_of
from ...dialects.loop.names import free_names
from ...dialects.loop.nests import Consumed, body_of, check_number, loop_names, plain_loop, refusal
from ...dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, OwnedOp, StoreOp
from ...dialects.loop.rebuild import Rebuild
from ...dialects.loop.trace import noted
from ..primitive import PrimitivePass

STEP = "loop-own"

Access = LoadOp | StoreOp


def own(kernel: Consumed, loop: str, parts: int, chunk: int = 1) -> KernelOp:
    """Divide the places that a serial loop writes to into parts, which are computed independently.

        for k to n serial: q = f(k); y[q] += u[k]
        ->  for k0 to min(parts, n ceildiv chunk): for k1 to n serial: q = f(k1)
                for k2 to owned(q, k0): y[q] += u[k1]

    Each part runs all iterations, but updates only the places that it owns, so that every place is
    updated in the same order as before: results are the same, whatever runs the parts. This is the
    owner-computes rule (Rogers and Pingali, "Process Decomposition Through Locality of Reference",
    1989). There are fewer parts for less than `parts * chunk` iterations.

    Raises:
        ScheduleError: if the loop is not serial, or not all accesses to what it writes are at one
            computed index.
    """
    target = plain_loop(STEP, kernel, loop, [LoopKind.SERIAL])
    for name, value in (("number of parts", parts), ("chunk", chunk)):
        check_number(STEP, kernel, target, name, value)
    if len(bound_of(target)) > 1:
        raise refusal(STEP, kernel, target, "its bound is the smaller of several")
    access, dimension = _common_place(kernel, target)
    place = access.indices[_position(access, dimension)]
    before = _needed(kernel, target, place)
    new = _Own(kernel, target, access.buffer, dimension, place, before, parts, chunk).run()
    return noted(new, "own", loop, parts, chunk)


def _common_place(kernel: KernelOp, loop: ForOp) -> tuple[Access, int]:
    """A store and a dimension of it, whose index every access to what is written has as well."""
    buffers = written_in(kernel, loop)
    accesses = [
        op
        for op in loop.body.walk()
        if isinstance(op, Access) and op.buffer in buffers and not _is_inside(op.buffer, loop)
    ]
    first = next((op for op in accesses if isinstance(op, StoreOp)), None)
    if first is None:
        raise refusal(STEP, kernel, loop, "it writes nothing")
    for dimension, value in _places(first):
        if all((dimension, value) in _places(op) for op in accesses):
            return first, dimension
    expected = "accesses to what it writes at one computed index"
    raise refusal(STEP, kernel, loop, "it writes to several places", expected)


def _is_inside(buffer: SSAValue, loop: ForOp) -> bool:
    """Whether each iteration has its own buffer."""
    return isinstance(buffer.owner, LocalOp) and loop.is_ancestor(buffer.owner)


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


class _Own(Rebuild):
    def __init__(
        self,
        kernel: KernelOp,
        target: ForOp,
        buffer: SSAValue,
        dimension: int,
        place: SSAValue,
        before: set[Operation],
        parts: int,
        chunk: int,
    ) -> None:
        super().__init__(kernel, [target])
        self.target, self.buffer, self.dimension = target, buffer, dimension
        self.place, self.before = place, before
        self.parts, self.chunk = parts, chunk
        self.names = free_names(target.loop_name.data, ("0", "1", "2"), loop_names(kernel))

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
            return
        (count,) = self.bound(op)
        part, iteration, own = self.names
        parts = self.number_of_parts(count)
        size = self.compute(self.size(parts))
        with (
            self.loop(part, [parts], LoopKind.PARALLEL, op) as k0,
            self.loop(iteration, [count], LoopKind.SERIAL, op) as k1,
        ):
            self.bind(op.variable, k1)
            self.visit_some([inner for inner in body_of(op) if inner in self.before])
            owned = self.emit(OwnedOp(self.value(self.place), self.compute(k0), size))
            with self.loop(own, [self.number(owned.result)], LoopKind.PARALLEL, op):
                self.visit_some([inner for inner in body_of(op) if inner not in self.before])

    def visit_some(self, ops: Sequence[Operation]) -> None:
        """Visit some operations of an iteration."""
        for op in ops:
            self.visit(op)

    def number_of_parts(self, count: AffineExpr) -> AffineExpr:
        """The smaller of `parts` and the number of chunks."""
        chunks = rounded_up_quotient(count, self.chunk)
        if isinstance(chunks, AffineConstantExpr):
            return AffineExpr.constant(min(self.parts, chunks.value))
        return self.number(self.smallest([AffineExpr.constant(self.parts), chunks], self.target))

    def size(self, parts: AffineExpr) -> AffineExpr:
        """The places of a part: the extent of the dimension over the parts, rounded up."""
        extent = memref_type(self.buffer).get_shape()[self.dimension]
        if extent == DYNAMIC_INDEX:
            axis = self.compute(AffineExpr.constant(self.dimension))
            rows = self.number(self.emit(memref.DimOp(self.value(self.buffer), axis)).results[0])
        else:
            rows = AffineExpr.constant(extent)
        if isinstance(parts, AffineConstantExpr):
            return rounded_up_quotient(rows, max(1, parts.value))
        one = self.compute(AffineExpr.constant(1))
        divisor = self.emit(arith.MaxSIOp(self.compute(parts), one)).results[0]
        return self.number(self.emit(arith.CeilDivSIOp(self.compute(rows), divisor)).results[0])


@dataclass(frozen=True)
class LoopOwnPass(PrimitivePass):
    """Divide what a serial loop writes among parts, each of which runs all iterations.

    Before:

    ```mlir
    loop.kernel @count(%at: memref<900xi64>) -> (%y: memref<99xi64>) {
      %one = arith.constant 1 : i64
      loop.for "i" %i to 99 {
        loop.store %one, %y (d0) -> (d0)(%i) : i64, memref<99xi64>
      }
      loop.for "k" %k to 900 serial {
        %p = loop.load %at (d0) -> (d0)(%k) : memref<900xi64>, i64
        %q = arith.index_cast %p : i64 to index
        loop.store add %one, %y (d0) -> (d0)(%q) : i64, memref<99xi64> } }
    ```

    Options: `loop=k parts=2`

    After:

    ```mlir
    loop.kernel @count(%at: memref<900xi64>) -> (%y: memref<99xi64>)
        attributes {loop.schedule = "own(k, 2, 1)"} {
      %one = arith.constant 1 : i64
      loop.for "i" %i to 99 { loop.store %one, %y (d0) -> (d0)(%i) : i64, memref<99xi64> }
      %size = arith.constant 50 : index
      loop.for "k0" %k0 to 2 {
        loop.for "k1" %k1 to 900 serial {
          %p = loop.load %at (d0) -> (d0)(%k1) : memref<900xi64>, i64
          %q = arith.index_cast %p : i64 to index
          %n = loop.owned %q part %k0 size %size
          loop.for "k2" %k2 to min (d0) -> (d0)(%n) {
            loop.store add %one, %y (d0) -> (d0)(%q) : i64, memref<99xi64> } } } }
    ```

    Requires: a serial loop that carries nothing, in which all accesses to what it writes are at one
        index, computed at the beginning of an iteration.
    Leaves: a loop over parts, which may be tiles for threads, around it.
    """

    name = "loop-own"
    budget = EXACT
    primitive = staticmethod(own)

    loop: str = ""
    """The serial loop."""
    parts: int = 2
    """The number of parts."""
    chunk: int = 1
    """There are no more parts than chunks of this many iterations."""

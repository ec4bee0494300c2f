"""Divide a serial loop into parts that accumulate into copies of their own.

Before:

```mlir
loop.kernel @count(%x: memref<9xindex>) -> (%y: memref<4xi8>) {
  %one = arith.constant 1 : i8
  loop.for "i" %i to 4 { loop.store %one, %y (d0) -> (d0)(%i) : i8, memref<4xi8> }
  loop.for "k" %k to 9 serial {
    %q = loop.load %x (d0) -> (d0)(%k) : memref<9xindex>, index
    loop.store add %one, %y (d0) -> (d0)(%q) : i8, memref<4xi8> } }
```

Options: `loop=k parts=2`

After:

```mlir
loop.kernel @count(%x: memref<9xindex>) -> (%y: memref<4xi8>) attributes {
    loop.schedule = "privatise(k, 2, 1)"} {  %one = arith.constant 1 : i8
  loop.for "i" %i to 4 { loop.store %one, %y (d0) -> (d0)(%i) : i8, memref<4xi8> }
  %c = loop.local : memref<2x4xi8>  loop.for "k0" %a to 2 {
    loop.for "k3" %j to 4 {  %zero = arith.constant 0 : i8
      loop.store %zero, %c (d0, d1) -> (d0, d1)(%a, %j) : i8, memref<2x4xi8> }
    loop.for "k1" %b to min (d0) -> (5, d0 * -5 + 9)(%a) serial {
      %q = loop.load %x (d0, d1) -> (d0 * 5 + d1)(%a, %b) : memref<9xindex>, index
      loop.store add %one, %c (d0, d1) -> (d0, d1)(%a, %q) : i8, memref<2x4xi8> } }
  loop.for "k4" %j to 4 {  loop.for "k2" %a to 2 serial {
      %t = loop.load %c (d0, d1) -> (d0, d1)(%a, %j) : memref<2x4xi8>, i8
      loop.store add %t, %y (d0) -> (d0)(%j) : i8, memref<4xi8> } } }
```

Requires: a serial loop outside of others that carries nothing, and accumulates into one buffer:
    integers, or a maximum or minimum.
Leaves: a loop over parts, which may be tiles for threads, and one that joins their copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ....core.building.arithmetic import constant
from ....core.ir.typed import memref_type
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import Combine, LoopKind
from ....dialects.loop.combiners import neutral_value
from ....dialects.loop.divided import Divided, divisible_loop
from ....dialects.loop.handles import Forwarded
from ....dialects.loop.loops import enclosing
from ....dialects.loop.names import free_names
from ....dialects.loop.nests import MOST_COPIES, Consumed, check_number, loop_names, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp
from ....dialects.loop.proofs.in_place import written_in
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-privatise"

_INEXACT = (Combine.ADD, Combine.MUL, Combine.MAXNUM)
"""The combiners by which floats round, or a NaN goes where a copy has no element of a place."""


def _part_and_join(loops: Mapping[str, ForOp], forwarded: Forwarded, loop: str) -> tuple[str, str]:
    """The loop over parts, and the one that joins the copies."""
    outermost = (name for name in forwarded[loop] if isinstance(loops[name].parent_op(), KernelOp))
    part, *_, join = outermost
    return part, join


@primitive(EXACT, _part_and_join, parts=2)
def privatise(kernel: Consumed, loop: str, parts: int, chunk: int = 1) -> KernelOp:
    """Divide the iterations of a serial loop into parts that accumulate into copies of their own.

        for k to n serial: y[f(k)] += u[k]
        ->  for k0 to parts: { for k3 to size: c[k0, k3] = 0
                for k1 to n ceildiv parts serial: k = k0 * (n ceildiv parts) + k1
                    c[k0, f(k)] += u[k] }
            for k4 to size: for k2 to parts serial: y[k4] += c[k2, k4]

    Results are the same, because only what has no order is accumulated so: integers, maxima and
    minima. There are fewer parts for less than `parts * chunk` iterations.

    Args:
        loop: the serial loop.
        parts: the number of parts.
        chunk: there are no more parts than chunks of this many iterations.

    Raises:
        ScheduleError: if the loop is not serial or is inside of another one, or does anything but
            accumulate into one buffer, or sums or products of floats.
    """
    target = divisible_loop(STEP, kernel, loop, parts, chunk)
    check_number(STEP, kernel, target, "number of parts", parts, MOST_COPIES)
    if (around := next(enclosing(target), None)) is not None:
        raise refusal(STEP, kernel, target, f'is inside of "{around.loop_name.data}"')
    combine = _combiner(kernel, target)
    new = _Privatise(kernel, target, combine, parts, chunk).run()
    return noted(new, "privatise", loop, parts, chunk)


def _combiner(kernel: KernelOp, loop: ForOp) -> Combine:
    """How the only store of a loop accumulates, in any order."""
    buffers = written_in(kernel, loop)
    accesses = [op for op in loop.body.walk() if isinstance(op, LoadOp | StoreOp)]
    match [op for op in accesses if op.buffer in buffers]:
        case [StoreOp() as store] if (combine := store.accumulates) is not None:
            if isinstance(store.value.type, AnyFloat) and combine in _INEXACT:
                fact = f"accumulates floats by {combine}"
                expected = "integers, or a maximum or minimum"
                raise refusal(STEP, kernel, loop, fact, expected, store.value.type)
            return combine
        case found:
            expected = "one store that accumulates"
            raise refusal(STEP, kernel, loop, "does more", expected, f"{len(found)} accesses")


class _Privatise(Divided):
    def __init__(
        self, kernel: KernelOp, target: ForOp, combine: Combine, parts: int, chunk: int
    ) -> None:
        super().__init__(kernel, target, parts, chunk)
        (self.store,) = [
            op for op in target.body.walk() if isinstance(op, StoreOp) and op.accumulates
        ]
        self.kind = memref_type(self.store.buffer)
        self.combine = combine
        self.copy: tuple[SSAValue, AffineExpr] | None = None
        """While the body of the loop is visited: the copies, and the number of one."""

    def divide(self, op: ForOp, count: AffineExpr) -> None:
        dims = self.kind.get_num_dims()
        suffixes = list(map(str, range(3 + 2 * dims)))
        names = free_names(op.loop_name.data, suffixes, loop_names(self.kernel))
        sizes = [self.size_of(self.store.buffer, dim) for dim in range(dims)]
        symbolic = [self.compute(e) for e in sizes if not isinstance(e, AffineConstantExpr)]
        most = self.parts
        if isinstance(count, AffineConstantExpr):
            most = max(1, min(most, -(-count.value // self.chunk)))
        element, shape = self.kind.element_type, self.kind.get_shape()
        copies = self.emit(LocalOp(MemRefType(element, [most, *shape]), symbolic)).result
        parts = self.number_of_parts(count)
        each = self.size_of_part(count, parts)
        with self.loop(names[0], [parts], LoopKind.PARALLEL, op) as k0:
            with self.places(names[3 : 3 + dims], sizes) as place:
                neutral = self.emit(constant(neutral_value(self.combine, element), element)).result
                self.emit(StoreOp(neutral, copies, *self.map([k0, *place])))
            first = self.product(k0, each)
            bound = [each, count - first]
            with self.loop(names[1], bound, LoopKind.SERIAL, op) as k1:
                self.bind(op.variable, first + k1)
                self.copy = copies, k0
                self.visit_body(op.body.block)
                self.copy = None
        with (
            self.places(names[3 + dims :], sizes) as place,
            self.loop(names[2], [parts], LoopKind.SERIAL, op) as k2,
        ):
            total = self.emit(LoadOp(copies, *self.map([k2, *place]))).result
            result = self.value(self.store.buffer)
            self.emit(StoreOp(total, result, *self.map(place), combine=self.combine))

    @contextmanager
    def places(
        self, names: Sequence[str], sizes: Sequence[AffineExpr]
    ) -> Iterator[list[AffineExpr]]:
        """Open loops over all places of the buffer within the context."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(self.loop(name, [size], LoopKind.PARALLEL, self.target))
                for name, size in zip(names, sizes, strict=True)
            ]

    def product(self, number: AffineExpr, size: AffineExpr) -> AffineExpr:
        """Where a part begins."""
        if isinstance(size, AffineConstantExpr):
            return number * size.value
        values = self.compute(number), self.compute(size)
        return self.number(self.emit(arith.MuliOp(*values)).results[0])

    def visit_store(self, op: StoreOp) -> None:
        if op is not self.store or self.copy is None:
            super().visit_store(op)
            return
        copies, number = self.copy
        self.store_like(op, [number, *self.composed(op.map.data, op.indices)], buffer=copies)

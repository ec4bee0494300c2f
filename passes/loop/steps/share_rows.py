"""Run the body of a loop on the threads of a block: a row for each block.

Before:

```mlir
loop.kernel @parts(%x: memref<4x70xi8>) -> (%y: memref<4x70xi8>) {
  %z = arith.constant 0 : i8
  loop.for "i" %i to 4 {
    loop.for "j" %j to 70 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x70xi8>, i8
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : i8, memref<4x70xi8>
    }
  }
}
```

Options: `loop=i`

After:

```mlir
loop.kernel @parts(%x: memref<4x70xi8>) -> (%y: memref<4x70xi8>)
    attributes {loop.schedule = "share_rows(i, 32)"} {
  loop.for "i" %i to 4 blocks {
    loop.for "j" %j to 70 threads {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x70xi8>, i8
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : i8, memref<4x70xi8>
    }
  }
}
```

Requires: a parallel loop at the top or in others alone, with loops and scalars in its body.
Leaves: loops of blocks, with nests of threads in place of loops; a reduction is one of threads,
    each of which reduces a part, and one over the parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import minus, rounded_up_quotient
from ....core.building.arithmetic import constant
from ....core.dtypes import byte_size
from ....core.ir.typed import memref_type
from ....core.pipelines.budgets import SUMS
from ....dialects.loop.attrs import LoopKind, LoopKindAttr, Space, SpaceAttr
from ....dialects.loop.combiners import combining, neutral_value
from ....dialects.loop.loops import enclosing
from ....dialects.loop.names import free_names
from ....dialects.loop.nests import (
    Consumed,
    check_number,
    loop_names,
    only_loop,
    plain_loop,
    refusal,
)
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp
from ....dialects.loop.proofs.levels import SHARED_BYTES, SHUFFLED_BYTES, WARP
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-share-rows"
_MOST_THREADS = 1024


@primitive(SUMS, threads=32)
def share_rows(kernel: Consumed, loop: str, threads: int) -> KernelOp:
    """Run the body of a loop on the threads of a block, so that an iteration is a block.

        for i: { s = reduce k to n: s + x[i, k]; for j: y[i, j] = x[i, j] * s }
        ->  for i blocks: {
                for t to 32 threads: p[t] = reduce k to (n - t) ceildiv 32: p[t] + x[i, 32 * k + t]
                for t to 32 threads: q[t] = p[t] + p[(t + 16) mod 32]  (and 8, 4, 2, 1 further on)
                s = s + q[0]
                for j threads: y[i, j] = x[i, j] * s }

    Parallel loops, with those perfectly nested in them, become nests of threads. Local buffers are
    in shared memory, in rows of odd lengths, so that a column is in as many banks. Each thread
    computes the scalars. A reduction is one of each thread over every n-th iteration, n being
    `threads`, so that neighbours are of different threads. The threads of a warp join their partial
    results by shuffles, in a fixed order; those of several warps, and elements of other than 4 or 8
    bytes, are joined in shared memory.

    Args:
        loop: the loop; perfectly nested loops around it are loops of blocks as well.
        threads: the number of parts of a reduction.

    Raises:
        ScheduleError: if the loops around it have more in them, if a reduction in it cannot be
            divided, or if the body has a serial loop or a buffer of unknown size.
    """
    target = plain_loop(STEP, kernel, loop, [LoopKind.PARALLEL])
    check_number(STEP, kernel, target, "number of threads", threads, _MOST_THREADS)
    for around in enclosing(target):
        if only_loop(around.body.block) is None or around.kind.data is not LoopKind.PARALLEL:
            fact = f'"{around.loop_name.data}" around it is not parallel, or has more in it'
            raise refusal(STEP, kernel, target, fact)
    for op in target.body.block.ops:
        _check(kernel, target, op)
    if (wanted := _bytes(target, threads)) > SHARED_BYTES:
        fact = "its buffers are too large for shared memory"
        raise refusal(STEP, kernel, target, fact, f"at most {SHARED_BYTES} bytes", wanted)
    around = list(enclosing(target))
    kernel = _ShareRows(kernel, target, threads).run()
    for outer in around:
        outer.kind = LoopKindAttr(LoopKind.BLOCKS)
    return noted(kernel, "share_rows", loop, threads)


def _bytes(target: ForOp, threads: int) -> int:
    """The shared memory of a block: its buffers, and the parts of its reductions."""
    total = 0
    for op in target.body.block.ops:
        if isinstance(op, LocalOp):
            kind = _shared(op)
            total += math.prod(kind.get_shape()) * byte_size(kind.element_type)
        elif isinstance(op, ForOp):
            total += sum(threads * byte_size(init.type) for init in op.inits)
    return total


def _shared(op: LocalOp) -> MemRefType:
    """The type of a buffer in shared memory: rows are odd, so that columns are in all banks."""
    kind, space = memref_type(op.result), SpaceAttr(Space.SHARED)
    shape = list(kind.get_shape())
    if len(shape) > 1:
        shape[-1] |= 1
    return MemRefType(kind.element_type, shape, memory_space=space)


def _check(kernel: KernelOp, target: ForOp, op: Operation) -> None:
    if isinstance(op, LocalOp):
        if DYNAMIC_INDEX in memref_type(op.result).get_shape():
            raise refusal(STEP, kernel, target, "has a buffer of unknown size in it")
    elif isinstance(op, ForOp):
        divisible = op.is_joinable and not op.over_entries and op.at_once == 1
        divisible &= not any(isinstance(init.type, VectorType) for init in op.inits)
        if not divisible and not (op.is_plain and op.kind.data is LoopKind.PARALLEL):
            fact = f'"{op.loop_name.data}" in it is neither parallel nor a reduction of a bound'
            raise refusal(STEP, kernel, target, fact)


class _ShareRows(Rebuild):
    def __init__(self, kernel: KernelOp, target: ForOp, threads: int) -> None:
        super().__init__(kernel, [target])
        self.target, self.threads = target, threads
        self.taken = loop_names(kernel)

    def visit_for(self, op: ForOp) -> None:
        name = op.loop_name.data
        if op is self.target:
            with self.loop(name, self.bound(op), LoopKind.BLOCKS, op) as variable:
                self.bind(op.variable, variable)
                self.visit_body(op.body.block)
        elif op.parent_op() is not self.target:
            super().visit_for(op)
        elif op.is_plain:
            self.thread_nest(op)
        else:
            self.share_reduction(op)

    def thread_nest(self, op: ForOp) -> None:
        """Emit a loop of threads, and others that are perfectly nested in it."""
        with self.loop(op.loop_name.data, self.bound(op), LoopKind.THREADS, op) as variable:
            self.bind(op.variable, variable)
            inner = only_loop(op.body.block)
            if inner is None or not inner.is_plain or inner.kind.data is not LoopKind.PARALLEL:
                self.visit_body(op.body.block)
            else:
                self.thread_nest(inner)

    def share_reduction(self, op: ForOp) -> None:
        """Emit a reduction of each thread over a part, and what joins the parts.

        The threads of a warp join theirs by shuffles: after steps over 16, 8, 4, 2 and 1 threads,
        each has the result. What is left, of several warps or of elements that are not shuffled,
        all threads join in order.
        """
        shuffled = all(byte_size(init.type) in SHUFFLED_BYTES for init in op.inits)
        shuffled &= self.threads % WARP == 0
        warps = self.threads // WARP if shuffled else 1
        sizes = [WARP if shuffled else self.threads]
        sizes = [warps, *sizes] if warps > 1 else sizes
        space = Space.THREADS if shuffled else Space.SHARED
        parts = self.buffers(op, sizes, space)
        with self.nest(op, "t", sizes) as place:
            self.store(op, self.own_part(op, place), parts, place)
        for distance in (16, 8, 4, 2, 1) if shuffled else ():
            joined = self.buffers(op, sizes, space if distance > 1 or warps == 1 else Space.SHARED)
            with self.nest(op, f"t{distance}", sizes) as place:
                other = [*place[:-1], (place[-1] + distance) % WARP]
                found = self.loads(op, parts, place), self.loads(op, parts, other)
                self.store(op, self.joined(op, *found), joined, place)
            parts = joined
        first = [AffineExpr.constant(0)]
        if shuffled and warps == 1:
            values = self.joined(op, self.inits(op), self.loads(op, parts, first))
            self.bind_all(op.results, values)
            return

        def join(new: ForOp) -> Sequence[SSAValue]:
            place = [self.number(new.variable), *first][: len(sizes)]
            return self.joined(op, new.carried, self.loads(op, parts, place))

        over, count = self.new_name(op, "p"), [AffineExpr.constant(sizes[0])]
        self.bind_all(op.results, self.loop_like(op, over, count, self.inits(op), join))

    def own_part(self, op: ForOp, place: Sequence[AffineExpr]) -> Sequence[SSAValue]:
        """Emit a reduction over every n-th iteration, from the number of the thread on."""
        thread = place[0] if len(place) == 1 else place[0] * WARP + place[1]
        bound = [rounded_up_quotient(minus(size, thread), self.threads) for size in self.bound(op)]
        neutral = [
            self.emit(constant(neutral_value(combine, init.type), init.type), op).results[0]
            for combine, init in zip(op.combines, op.inits, strict=True)
        ]

        def step(new: ForOp) -> Sequence[SSAValue]:
            number = self.number(new.variable)
            return self.step(op, number * self.threads + thread, new.carried)

        return self.loop_like(op, op.loop_name.data, bound, neutral, step)

    def joined(
        self, op: ForOp, values: Sequence[SSAValue], others: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Combine partial results of a reduction."""
        made: list[SSAValue] = []
        for value, other, combine in zip(values, others, op.combines, strict=True):
            kind = combining(combine, value.type)
            new = kind.create(operands=[value, other], result_types=[value.type])
            made.append(self.emit(new, op).results[0])
        return made

    def buffers(self, op: ForOp, sizes: Sequence[int], space: Space) -> list[SSAValue]:
        """Emit a buffer for the partial results of each value that a reduction carries."""
        kinds = [MemRefType(init.type, sizes, memory_space=SpaceAttr(space)) for init in op.inits]
        return [self.emit(LocalOp(kind), op).result for kind in kinds]

    def loads(
        self, op: ForOp, parts: Sequence[SSAValue], place: Sequence[AffineExpr]
    ) -> list[SSAValue]:
        """Emit loads of partial results."""
        kinds = [init.type for init in op.inits]
        loads = [
            LoadOp(part, *self.map(place), kind) for part, kind in zip(parts, kinds, strict=True)
        ]
        return [self.emit(load, op).result for load in loads]

    def store(
        self,
        op: ForOp,
        values: Sequence[SSAValue],
        parts: Sequence[SSAValue],
        place: Sequence[AffineExpr],
    ) -> None:
        """Emit stores of partial results."""
        for value, part in zip(values, parts, strict=True):
            self.emit(StoreOp(value, part, *self.map(place)), op)

    @contextmanager
    def nest(self, op: ForOp, ending: str, sizes: Sequence[int]) -> Iterator[list[AffineExpr]]:
        """Open loops of threads within the context; yield their variables."""
        with ExitStack() as stack:
            place: list[AffineExpr] = []
            for size, more in zip(sizes, ["w", ""][-len(sizes) :], strict=True):
                name, bound = self.new_name(op, ending + more), [AffineExpr.constant(size)]
                place.append(stack.enter_context(self.loop(name, bound, LoopKind.THREADS, op)))
            yield place

    def new_name(self, op: ForOp, ending: str) -> str:
        """A free name for a loop that belongs to a reduction."""
        (name,) = free_names(op.loop_name.data, [ending], self.taken)
        self.taken.add(name)
        return name

    def visit_other(self, op: Operation) -> None:
        if not isinstance(op, LocalOp) or op.parent_op() is not self.target:
            super().visit_other(op)
            return
        self.bind(op.result, self.emit(LocalOp(_shared(op)), op).result)

    def visit_store(self, op: StoreOp) -> None:
        if op.parent_op() is not self.target:
            super().visit_store(op)
            return
        (name,) = free_names(self.target.loop_name.data, ["s"], self.taken)
        self.taken.add(name)
        with self.loop(name, [AffineExpr.constant(1)], LoopKind.THREADS, op):
            super().visit_store(op)

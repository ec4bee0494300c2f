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
from collections.abc import Sequence

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
from ....dialects.loop.proofs.levels import SHARED_BYTES
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
                s = reduce t to 32: s + p[t]
                for j threads: y[i, j] = x[i, j] * s }

    Parallel loops become nests of threads, local buffers are in shared memory, and each thread
    computes the scalars. A reduction is one of each thread over every n-th iteration, n being
    `threads`, so that neighbours are of different threads; and one over the partial results, in a
    fixed order.

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
            kind = memref_type(op.result)
            total += math.prod(kind.get_shape()) * byte_size(kind.element_type)
        elif isinstance(op, ForOp):
            total += sum(threads * byte_size(init.type) for init in op.inits)
    return total


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
            with self.loop(name, self.bound(op), LoopKind.THREADS, op) as variable:
                self.bind(op.variable, variable)
                self.visit_body(op.body.block)
        else:
            self.share_reduction(op)

    def share_reduction(self, op: ForOp) -> None:
        """Emit a reduction of each thread over a part, and one over the parts."""
        each, over = free_names(op.loop_name.data, ["t", "p"], self.taken)
        self.taken |= {each, over}
        shared, count = SpaceAttr(Space.SHARED), AffineExpr.constant(self.threads)
        kinds = [init.type for init in op.inits]
        parts = [
            self.emit(LocalOp(MemRefType(kind, [self.threads], memory_space=shared)), op).result
            for kind in kinds
        ]
        with self.loop(each, [count], LoopKind.THREADS, op) as thread:
            bound = [
                rounded_up_quotient(minus(size, thread), self.threads) for size in self.bound(op)
            ]
            neutral = [
                self.emit(constant(neutral_value(combine, kind), kind), op).results[0]
                for combine, kind in zip(op.combines, kinds, strict=True)
            ]

            def step(new: ForOp) -> Sequence[SSAValue]:
                number = self.number(new.variable)
                return self.step(op, number * self.threads + thread, new.carried)

            own = self.loop_like(op, op.loop_name.data, bound, neutral, step)
            for value, part in zip(own, parts, strict=True):
                self.emit(StoreOp(value, part, *self.map([thread])), op)

        def join(new: ForOp) -> Sequence[SSAValue]:
            place, joined = self.map([self.number(new.variable)]), list[SSAValue]()
            for part, carried, combine in zip(parts, new.carried, op.combines, strict=True):
                kind = carried.type
                value = self.emit(LoadOp(part, *place, kind), op).result
                made = combining(combine, kind).create(
                    operands=[carried, value], result_types=[kind]
                )
                joined.append(self.emit(made, op).results[0])
            return joined

        self.bind_all(op.results, self.loop_like(op, over, [count], self.inits(op), join))

    def visit_other(self, op: Operation) -> None:
        if not isinstance(op, LocalOp) or op.parent_op() is not self.target:
            super().visit_other(op)
            return
        kind = memref_type(op.result)
        space = SpaceAttr(Space.SHARED)
        shared = MemRefType(kind.element_type, kind.get_shape(), memory_space=space)
        self.bind(op.result, self.emit(LocalOp(shared), op).result)

    def visit_store(self, op: StoreOp) -> None:
        if op.parent_op() is not self.target:
            super().visit_store(op)
            return
        (name,) = free_names(self.target.loop_name.data, ["s"], self.taken)
        self.taken.add(name)
        with self.loop(name, [AffineExpr.constant(1)], LoopKind.THREADS, op):
            super().visit_store(op)

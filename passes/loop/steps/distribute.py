"""Cut the body of a loop after one of its nests, and run a loop over each of the two parts.

Before:

```mlir
loop.kernel @rows(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>) {
  loop.for "i" %i to 4 {
    %h = loop.local : memref<8xf32>
    loop.for "a" %a to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : memref<4x8xf32>, f32
      loop.store %v, %h (d0) -> (d0)(%a) : f32, memref<8xf32>
    }
    loop.for "j" %j to 8 {
      %s = loop.load %h (d0) -> (-d0 + 7)(%j) : memref<8xf32>, f32
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
} } }
```

Options: `loop=i after=a`

After:

```mlir
loop.kernel @rows(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>)
    attributes {loop.schedule = "distribute(i, a)"} {
  %h = loop.local : memref<4x8xf32>
  loop.for "ia" %i to 4 {
    loop.for "a" %a to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %a) : memref<4x8xf32>, f32
      loop.store %v, %h (d0, d1) -> (d0, d1)(%i, %a) : f32, memref<4x8xf32>
  } }
  loop.for "ib" %i to 4 {
    loop.for "j" %j to 8 {
      %s = loop.load %h (d0, d1) -> (d0, -d1 + 7)(%i, %j) : memref<4x8xf32>, f32
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32> } } }
```

Requires: a parallel loop, with a known limit of its iterations if both parts use a local
    buffer.
Leaves: two loops, one after the other, and local buffers for all of their iterations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.traits import is_side_effect_free

from ....core.ir.typed import memref_type, resized
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.handles import all_loops
from ....dialects.loop.loops import most_iterations
from ....dialects.loop.names import free_names
from ....dialects.loop.nests import (
    Consumed,
    loop_named,
    loop_names,
    plain_loop,
    refusal,
)
from ....dialects.loop.ops import (
    ForOp,
    KernelOp,
    LoadOp,
    LocalOp,
    StoreOp,
)
from ....dialects.loop.proofs.in_place import read_in, written_in
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-distribute"


@primitive(EXACT, all_loops)
def distribute(kernel: Consumed, loop: str, after: str) -> KernelOp:
    """Cut the body of a loop after one of its nests, and run a loop over each of the two parts.

        for i to 8: local h : n; for a to n: h[a] = f(i, a)
                    for j to n: y[i, j] = h[j] + 1
        ->  local h : 8 x n
            for ia to 8: for a to n: h[ia, a] = f(ia, a)
            for ib to 8: for j to n: y[ib, j] = h[ib, j] + 1

    The first part is the nest, the stores before it, and what these need. A local buffer that both
    parts use gets a dimension for the iterations. Scalars that both need are computed in both.

    Args:
        loop: the loop.
        after: the last nest of the first part.

    Raises:
        ScheduleError: if the loop is not parallel, if the nest is not in its body or is the last
            one there, if a buffer needs a limit of the iterations that is unknown, or if both parts
            need a value that cannot be recomputed.
    """
    target = plain_loop(STEP, kernel, loop, [LoopKind.PARALLEL])
    parts = _parts(kernel, target, loop_named(STEP, kernel, after))
    return noted(_Distribute(kernel, target, parts).run(), "distribute", loop, after)


@dataclass(frozen=True)
class _BodyParts:
    """The two parts of a body."""

    first: Sequence[Operation]
    second: Sequence[Operation]
    """The operations that both parts compute come first."""
    expanded: Collection[LocalOp]
    """The buffers that both use."""
    size: int
    """The largest number of iterations."""


def _parts(kernel: KernelOp, target: ForOp, after: ForOp) -> _BodyParts:
    """The parts of the body of a loop.

    Raises:
        ScheduleError: if it cannot be cut there.
    """
    name = after.loop_name.data
    ops = list(target.body.block.ops)
    if after not in ops:
        raise refusal(STEP, kernel, target, f'"{name}" is not one of the nests of its body')
    cut = ops.index(after) + 1
    if cut == len(ops):
        raise refusal(STEP, kernel, target, f'nothing comes after "{name}"')
    needed = _needed_by({after, *(op for op in ops[:cut] if written_in(kernel, op))})
    first = [op for op in ops[:cut] if op in needed]
    moved = [op for op in ops[:cut] if op not in needed]
    _check_moved(kernel, target, moved, first)
    shared = _needed_by({*moved, *ops[cut:]}).intersection(first)
    written = written_in(kernel, target)
    for op in shared:
        if not isinstance(op, LocalOp) and not _is_computable_again(op, written):
            fact = f'what comes after "{name}" needs a value of {op.name}'
            raise refusal(STEP, kernel, target, fact, "a scalar that can be computed again")
    expanded = [op for op in first if isinstance(op, LocalOp) and op in shared]
    if any(op.sizes for op in expanded):
        fact = "both parts use a local buffer of symbolic size"
        raise refusal(STEP, kernel, target, fact, "static sizes")
    size = most_iterations(target) if expanded else 0
    if size is None:
        raise refusal(STEP, kernel, target, "no limit of its iterations is known")
    first = [op for op in first if op not in expanded]
    second = [op for op in ops[:cut] if op in moved or (op in shared and op not in expanded)]
    return _BodyParts(first, [*second, *ops[cut:]], expanded, size)


def _needed_by(ops: set[Operation]) -> set[Operation]:
    """Operations of a block and all others of it whose results they use, directly or not."""
    block, found, waiting = next(iter(ops)).parent, set(ops), list(ops)
    while waiting:
        for inner in waiting.pop().walk():
            for owner in (operand.owner for operand in inner.operands):
                if isinstance(owner, Operation) and owner.parent is block and owner not in found:
                    found.add(owner)
                    waiting.append(owner)
    return found


def _check_moved(
    kernel: KernelOp, target: ForOp, moved: Sequence[Operation], first: Sequence[Operation]
) -> None:
    """Raise if an operation that moves to the second part reads what a later store of the first
    part writes.
    """
    for op in moved:
        read = read_in(op)
        for other in first:
            if op.is_before_in_block(other) and read & written_in(kernel, other):
                fact = f"{op.name} reads what is stored to before the second part"
                raise refusal(STEP, kernel, target, fact)


def _is_computable_again(op: Operation, written: Collection[SSAValue]) -> bool:
    if isinstance(op, LoadOp):
        return op.buffer not in written
    return not op.regions and is_side_effect_free(op)


class _Distribute(Rebuild):
    def __init__(self, kernel: KernelOp, target: ForOp, parts: _BodyParts) -> None:
        super().__init__(kernel, [target])
        self.target, self.parts = target, parts
        self.names = free_names(target.loop_name.data, ("a", "b"), loop_names(kernel))
        self.buffers = {local.result for local in parts.expanded}
        self.iteration = AffineExpr.constant(0)

    def visit_for(self, op: ForOp) -> None:
        if op is not self.target:
            super().visit_for(op)
            return
        for local in self.parts.expanded:
            kind = memref_type(local.result)
            new = resized(kind, [self.parts.size, *kind.get_shape()])
            self.bind(local.result, self.emit(LocalOp(new), local).result)
        for name, part in zip(self.names, (self.parts.first, self.parts.second), strict=True):
            with self.loop(name, self.bound(op), op.kind.data, op) as self.iteration:
                self.bind(op.variable, self.iteration)
                for inner in part:
                    self.visit(inner)

    def visit_load(self, op: LoadOp) -> None:
        if op.buffer not in self.buffers:
            super().visit_load(op)
            return
        self.load_like(op, self.place(op))

    def visit_store(self, op: StoreOp) -> None:
        if op.buffer not in self.buffers:
            super().visit_store(op)
            return
        self.store_like(op, self.place(op))

    def place(self, op: LoadOp | StoreOp) -> list[AffineExpr]:
        """The same place in the part of an iteration."""
        return [self.iteration, *self.composed(op.map.data, op.indices)]

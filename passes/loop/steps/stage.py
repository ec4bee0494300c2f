"""Copy what a loop reads repeatedly into a local buffer.

Before:

```mlir
loop.kernel @sum(%w: memref<9x99xf32>) -> (%y: memref<99xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "j" %j to 99 {
    %s = loop.for "k" %k to 9 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : memref<9x99xf32>, f32
      %t = arith.addf %acc, %v : f32 loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%j) : f32, memref<99xf32>
  }
}
```

Options: `argument=0 loop=j`

After:

```mlir
loop.kernel @sum(%w: memref<9x99xf32>) -> (%y: memref<99xf32>)
    attributes {loop.schedule = "stage(0, j)"} {
  %z = arith.constant 0.0 : f32
  loop.for "j" %j to 99 {
    %p = loop.local : memref<9xf32>
    loop.for "k_" %q to 9 {
      %c = loop.load %w (d0, d1) -> (d0, d1)(%q, %j) : memref<9x99xf32>, f32
      loop.store %c, %p (d0) -> (d0)(%q) : f32, memref<9xf32> }
    %s = loop.for "k" %k to 9 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %p (d0) -> (d0)(%k) : memref<9xf32>, f32
      %t = arith.addf %acc, %v : f32 loop.yield %t : f32 }
    loop.store %s, %y (d0) -> (d0)(%j) : f32, memref<99xf32> } }
```

Requires: an argument that the loop reads at each iteration of reductions of one known size,
    and nowhere else.
Leaves: a `loop.local`, a loop that fills it, and reads of it. Vectorise before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import affine
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import enclosing, extent_of, is_made_in
from ....dialects.loop.names import free_name
from ....dialects.loop.nests import Consumed, input_numbered, loop_names, plain_loop, refusal
from ....dialects.loop.ops import (
    ForOp,
    KernelOp,
    LoadOp,
    LocalOp,
    StoreOp,
    block_shape,
    element_type,
)
from ....dialects.loop.proofs.in_place import written_in
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-stage"


@primitive(EXACT)
def stage(kernel: Consumed, argument: int, loop: str) -> KernelOp:
    """Copy the part of an argument that one iteration of a loop reads repeatedly.

        for j: for i: reduce k: y[k, 32 * j : 32 * j + 32]
        ->  for j: local p; for k: p[k] = y[k, 32 * j : 32 * j + 32]
                   for i: reduce k: p[k]

    Rows that are a multiple of 4 KB apart compete for the same lines of a cache, and each is on
    another page; the copy is contiguous.

    Args:
        argument: the number of the argument.
        loop: the loop, which makes a copy in each iteration.

    Raises:
        ScheduleError: if the argument is not read along reductions of one size, is read along other
            loops inside of the loop as well, or may be written by the loop.
    """
    target = plain_loop(STEP, kernel, loop)
    buffer = input_numbered(STEP, kernel, argument)
    loads = [op for op in target.walk() if isinstance(op, LoadOp) and op.buffer is buffer]
    if not loads:
        raise refusal(STEP, kernel, target, f"does not read argument {argument}")
    if buffer in written_in(kernel, target):
        raise refusal(STEP, kernel, target, f"writes to argument {argument}")
    reads = [_read(kernel, target, load) for load in loads]
    if any(read.what() != reads[0].what() for read in reads):
        raise refusal(STEP, kernel, target, f"reads argument {argument} in several ways")
    return noted(_Stage(kernel, target, reads).run(), "stage", argument, loop)


@dataclass(frozen=True)
class _Read:
    load: LoadOp
    reduction: ForOp
    size: int

    def what(self) -> tuple[object, ...]:
        """A key that is equal for two loads that read the same elements."""
        variable, load = self.reduction.variable, self.load
        indices = [None if index is variable else index for index in load.indices]
        return self.size, load.map, load.result.type, tuple(indices), load.limited


def _read(kernel: KernelOp, target: ForOp, load: LoadOp) -> _Read:
    """A load along one reduction."""
    loops = list(enclosing(load))
    inside = loops[: loops.index(target)]
    followed = [loop for loop in inside if loop.body.block.args[0] in load.indices]
    loop = followed[0] if followed else target
    size = extent_of(loop)
    if len(followed) != 1 or not loop.is_reduction or size is None:
        names = ", ".join(f'"{loop.loop_name.data}"' for loop in followed) or "none"
        fact = "is read along other loops than one reduction of known size"
        raise refusal(STEP, kernel, target, f"an argument {fact}", got=names)
    others = [index for index in load.indices if index is not loop.variable]
    limits = [limit for limit in load.limits if not isinstance(limit.owner, affine.MinOp)]
    if any(is_made_in(value, target) for value in (*others, *limits)):
        fact = "an argument is read at an index that its body computes"
        raise refusal(STEP, kernel, target, fact)
    return _Read(load, loop, size)


class _Stage(Rebuild):
    def __init__(self, kernel: KernelOp, target: ForOp, reads: Sequence[_Read]) -> None:
        super().__init__(kernel, [target])
        self.target, self.first = target, reads[0]
        name = self.first.reduction.loop_name.data + "_"
        self.copying = free_name(name, loop_names(kernel))
        self.reads = {read.load: read for read in reads}
        self.shape = block_shape(reads[0].load.result.type)
        self.buffer: SSAValue | None = None

    def visit_body(self, block: Block) -> None:
        if block is self.target.body.block:
            self.copy()
        super().visit_body(block)

    def copy(self) -> None:
        """Emit the copy."""
        load, size = self.first.load, self.first.size
        lanes = [lanes for lanes in self.shape if lanes > 1]
        kind = MemRefType(element_type(load.result.type), [size, *lanes])
        self.buffer = self.emit(LocalOp(kind), load).result
        for limit in load.limits:
            if isinstance(limit.owner, affine.MinOp) and is_made_in(limit, self.target):
                self.visit(limit.owner)
        with self.loop(self.copying, [AffineExpr.constant(size)], LoopKind.PARALLEL, load) as row:
            self.bind(self.first.reduction.variable, row)
            super().visit_load(load)
            map, operands = self.map(self.place(row), len(self.shape))
            self.emit(StoreOp(self.value(load.result), self.buffer, map, operands), load)

    def place(self, row: AffineExpr) -> list[AffineExpr]:
        """The place of the copy of a row."""
        axes = [axis for axis, lanes in enumerate(self.shape) if lanes > 1]
        return [row, *map(AffineExpr.symbol, axes)]

    def visit_load(self, op: LoadOp) -> None:
        read = self.reads.get(op)
        if read is None:
            super().visit_load(op)
            return
        assert self.buffer is not None, "the loop around the load was visited"
        row = self.expr(read.reduction.variable)
        self.load_like(op, self.place(row), buffer=self.buffer, limits=())

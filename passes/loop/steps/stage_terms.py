"""Compute the scalars that a reduction over blocks combines in a loop before it.

Before:

```mlir
loop.kernel @product(%x: memref<9xf32>, %w: memref<9x4xf32>) -> (%y: memref<4xf32>) {
  %c = arith.constant 0.0 : f32 %z = vector.broadcast %c : f32 to vector<4xf32>
  %s = loop.for "k" %k to 9 reduction carry(%acc = %z : vector<4xf32> add) {
    %a = loop.load %x (d0) -> (d0)(%k) : memref<9xf32>, f32
    %m = arith.maximumf %a, %c : f32
    %b = loop.load %w (d0)[s0] -> (d0, s0)(%k) : memref<9x4xf32>, vector<4xf32>
    %v = vector.broadcast %m : f32 to vector<4xf32>
    %t = math.fma %v, %b, %acc : vector<4xf32>
    loop.yield %t : vector<4xf32> }
  loop.store %s, %y ()[s0] -> (s0)() : vector<4xf32>, memref<4xf32> }
```

Options: `loop=k`

After:

```mlir
loop.kernel @product(%x: memref<9xf32>, %w: memref<9x4xf32>) -> (%y: memref<4xf32>)
    attributes {loop.schedule = "stage_terms(k)"} {
  %c = arith.constant 0.0 : f32 %z = vector.broadcast %c : f32 to vector<4xf32>
  %l = loop.local : memref<9xf32>
  loop.for "k_" %q to 9 { %a = loop.load %x (d0) -> (d0)(%q) : memref<9xf32>, f32
    %m = arith.maximumf %a, %c : f32 loop.store %m, %l (d0) -> (d0)(%q) : f32, memref<9xf32> }
  %s = loop.for "k" %k to 9 reduction carry(%acc = %z : vector<4xf32> add) {
    %t = loop.load %l (d0) -> (d0)(%k) : memref<9xf32>, f32
    %b = loop.load %w (d0)[s0] -> (d0, s0)(%k) : memref<9x4xf32>, vector<4xf32>
    %v = vector.broadcast %t : f32 to vector<4xf32> %u = math.fma %v, %b, %acc : vector<4xf32>
    loop.yield %u : vector<4xf32>
  } loop.store %s, %y ()[s0] -> (s0)() : vector<4xf32>, memref<4xf32> }
```

Requires: a reduction of known size whose blocks combine scalars that it computes: vectorise
    other loops before.
Leaves: a `loop.local` for each, a loop that fills them, and reads of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, VectorType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.traits import is_side_effect_free

from ....core.pipelines.budgets import EXACT
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.handles import Forwarded
from ....dialects.loop.loops import extent_of
from ....dialects.loop.names import free_name
from ....dialects.loop.nests import Consumed, loop_named, loop_names, refusal
from ....dialects.loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp, YieldOp
from ....dialects.loop.rebuild import Rebuild
from ....dialects.loop.trace import noted
from ...primitive import primitive

STEP = "loop-stage-terms"


def _filling_loop(loops: Mapping[str, ForOp], forwarded: Forwarded, loop: str) -> str:
    """The loop that computes the terms."""
    filling = loops[loop].prev_op
    assert isinstance(filling, ForOp)
    return filling.loop_name.data


@primitive(EXACT, _filling_loop)
def stage_terms(kernel: Consumed, loop: str) -> KernelOp:
    """Compute the scalars that a reduction over blocks combines in a loop of their own before it.

        s = reduce k: s + max(x[c, k] + z[k], 0) * w[k, 0 : 32]
        ->  local t : n; for k_: t[k_] = max(x[c, k_] + z[k_], 0)
            s = reduce k: s + t[k] * w[k, 0 : 32]

    The iterations of the new loop do not depend on one another, so that vectors compute them; the
    reduction loads one scalar for each.

    Args:
        loop: the reduction.

    Raises:
        ScheduleError: if the loop is no reduction of known size, or has other loops in it, or if
            it computes no scalar for its blocks.
    """
    target = loop_named(STEP, kernel, loop)
    if not target.is_reduction or target.over_entries:
        raise refusal(STEP, kernel, target, "is no reduction over a bound")
    if (size := extent_of(target)) is None:
        raise refusal(STEP, kernel, target, "has an unknown size")
    if any(op.regions for op in target.body.block.ops):
        raise refusal(STEP, kernel, target, "has a loop in its body")
    scalars = _scalars(target)
    terms = [op.results[0] for op in scalars if _is_term(op, scalars)]
    if not terms:
        raise refusal(STEP, kernel, target, "computes no scalar for its blocks")
    return noted(_StageTerms(kernel, target, scalars, terms, size).run(), "stage_terms", loop)


def _scalars(loop: ForOp) -> list[Operation]:
    """The operations of a body that compute scalars, without what the loop carries."""
    found: list[Operation] = []
    outside = {*loop.carried}
    for op in loop.body.block.ops:
        pure = isinstance(op, LoadOp) or is_side_effect_free(op)
        block = any(isinstance(value.type, VectorType) for value in op.results)
        if isinstance(op, YieldOp) or not pure or block or not outside.isdisjoint(op.operands):
            outside.update(op.results)
        else:
            found.append(op)
    return found


def _is_term(op: Operation, scalars: Sequence[Operation]) -> bool:
    """Whether an operation computes a scalar, and does not only load it, for a block."""
    if isinstance(op, LoadOp) or len(op.results) != 1 or not op.operands:
        return False
    if isinstance(op.results[0].type, IndexType) or op.results[0].type == i1:
        return False
    return any(use.operation not in scalars for use in op.results[0].uses)


class _StageTerms(Rebuild):
    def __init__(
        self,
        kernel: KernelOp,
        target: ForOp,
        scalars: Sequence[Operation],
        terms: Sequence[SSAValue],
        size: int,
    ) -> None:
        super().__init__(kernel, [target])
        self.target, self.scalars, self.size = target, scalars, size
        self.computing = free_name(target.loop_name.data + "_", loop_names(kernel))
        self.terms = dict.fromkeys(terms)
        self.buffers: dict[SSAValue, SSAValue] = {}

    def visit_for(self, op: ForOp) -> None:
        if op is self.target:
            self.fill()
        super().visit_for(op)

    def fill(self) -> None:
        """Emit the loop that computes the terms."""
        first = self.scalars[0]
        buffers: dict[SSAValue, SSAValue] = {
            term: self.emit(LocalOp(MemRefType(term.type, [self.size])), first).result
            for term in self.terms
        }
        with self.loop(
            self.computing, [AffineExpr.constant(self.size)], LoopKind.PARALLEL, first
        ) as own:
            self.bind(self.target.variable, own)
            for op in self.scalars:
                self.visit(op)
            for term, buffer in buffers.items():
                map, operands = self.map([own])
                self.emit(StoreOp(self.value(term), buffer, map, operands), first)
        self.buffers = buffers

    def visit(self, op: Operation) -> None:
        buffer = self.buffers.get(op.results[0]) if op.results else None
        if buffer is None:
            super().visit(op)
            return
        map, operands = self.map([self.expr(self.target.variable)])
        self.bind(op.results[0], self.emit(LoadOp(buffer, map, operands), op).result)

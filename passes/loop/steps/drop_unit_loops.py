"""Remove loops that run at most once: `loop-drop-unit-loops`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ....core.ir.context import decide
from ....core.pipelines.budgets import EXACT
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import Consumed, loop_names, loops_of
from ....dialects.loop.ops import ForOp, KernelOp, YieldOp
from ....dialects.loop.substitution import Substitution
from ....dialects.loop.trace import noted
from ....dialects.loop.unused import erase_unused
from ....dialects.stages import reach_scheduled
from ...primitive import primitive


@primitive(None)
def drop_unit_loops(kernel: Consumed) -> KernelOp:
    """Replace a loop that runs once by its body, and drop one that never runs.

    for i to 1: body(i)  ->  body(0)

    Loops on a device stay: they are what runs their bodies there.
    """
    if not has_unit_loop(kernel):
        return kernel
    _drop(Substitution(kernel), kernel.body.block)
    erase_unused(kernel.body.block)
    return noted(kernel, "drop_unit_loops")


def has_unit_loop(kernel: KernelOp) -> bool:
    """Whether there is a loop that runs at most once, and may be dropped."""
    return any(_most_once(loop) is not None for loop in loops_of(kernel))


def _most_once(loop: ForOp) -> int | None:
    """How often a loop runs if it is to be dropped, None if it stays."""
    count = extent_of(loop)
    return count if count in (0, 1) and not loop.kind.data.is_on_device else None


def _drop(substitution: Substitution, block: Block) -> None:
    """Drop the loops in a block, outer ones first."""
    op = block.first_op
    while op is not None:
        if isinstance(op, ForOp) and (count := _most_once(op)) is not None:
            op = _inlined(substitution, op, count)
            continue
        for region in op.regions:
            _drop(substitution, region.block)
        op = op.next_op


def _inlined(substitution: Substitution, loop: ForOp, count: int) -> Operation | None:
    """Replace a loop by its only iteration, if any; return the operation now in its place."""
    block, body = loop.parent, list[Operation]()
    assert block is not None
    if count:
        substitution.replace(loop.variable, AffineExpr.constant(0))
        for inside, init in zip(loop.carried, loop.inits, strict=True):
            inside.replace_all_uses_with(init)
        body = [op for op in loop.body.block.ops if not isinstance(op, YieldOp)]
    last = loop.yielded if count else loop.inits
    for result, value in zip(loop.results, last, strict=True):
        result.replace_all_uses_with(value)
    for op in body:
        op.detach()
    block.insert_ops_before(body, loop)
    first = body[0] if body else loop.next_op
    loop.detach()
    loop.erase()
    return first


class LoopDropUnitLoopsPass(ModulePass):
    """Remove loops that run at most once.

    Before:

    ```mlir
    loop.kernel @copy(%x: memref<1x8xf32>) -> (%y: memref<1x8xf32>) {
      loop.for "i" %i to 1 {
        loop.for "j" %j to 8 {
          %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<1x8xf32>, f32
          loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<1x8xf32>
        }
      }
    }
    ```

    After:

    ```mlir
    loop.kernel @copy(%x: memref<1x8xf32>) -> (%y: memref<1x8xf32>)
        attributes {loop.schedule = "drop_unit_loops()"} {
      loop.for "j" %j to 8 {
        %v = loop.load %x (d0) -> (0, d0)(%j) : memref<1x8xf32>, f32
        loop.store %v, %y (d0) -> (0, d0)(%j) : f32, memref<1x8xf32>
      }
    }
    ```

    Requires: nothing.
    Leaves: loops whose size is unknown, or at least 2, and those on a device.
    """

    name = "loop-drop-unit-loops"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            before = len(loop_names(kernel))
            left = drop_unit_loops(kernel)
            if gone := before - len(loop_names(left)):
                decide(ctx, left, f"drop loops: {gone}", "they run once or never")
        reach_scheduled(op)

"""Take away loops that run once or never: `loop-drop-unit-loops`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.passes import ModulePass

from ...core.context import decide
from ...dialects.loop.nests import extent_of, loop_names, loops_of
from ...dialects.loop.ops import ForOp, KernelOp, ReduceOp
from ...dialects.loop.rebuild import Rebuild
from ...dialects.loop.trace import noted


def drop_unit_loops(kernel: KernelOp) -> KernelOp:
    """Replace a loop of one iteration by its body, and drop one that never runs.

    for i to 1: body(i)  ->  body(0)
    """
    if not has_unit_loop(kernel):
        return kernel
    return noted(_DropUnitLoops(kernel).run(), "drop_unit_loops")


def has_unit_loop(kernel: KernelOp) -> bool:
    """Whether there is a loop that runs at most once."""
    sizes = [extent_of(loop) for loop in loops_of(kernel)]
    return any(size is not None and size <= 1 for size in sizes)


def _iterations(bound: list[AffineExpr]) -> int | None:
    known = [e.value for e in bound if isinstance(e, AffineConstantExpr)]
    if known and min(known) <= 0:
        return 0
    return min(known) if len(known) == len(bound) else None


class _DropUnitLoops(Rebuild):
    def visit_for(self, op: ForOp) -> None:
        match _iterations(self.bound(op)):
            case 0:
                return
            case 1:
                self.bind(op.variable, AffineExpr.constant(0))
                self.visit_body(op.body.block)
            case _:
                super().visit_for(op)

    def visit_reduce(self, op: ReduceOp) -> None:
        init: SSAValue = self.value(op.init)
        match _iterations(self.bound(op)):
            case 0:
                self.bind(op.result, init)
            case 1:
                self.bind(op.result, self.step(op, AffineExpr.constant(0), init))
            case _:
                super().visit_reduce(op)


@dataclass(frozen=True)
class LoopDropUnitLoopsPass(ModulePass):
    """Take away loops that run once or never.

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
    Leaves: loops whose size is unknown, or at least 2.
    """

    name = "loop-drop-unit-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            before = len(loop_names(kernel))
            left = drop_unit_loops(kernel)
            if gone := before - len(loop_names(left)):
                decide(ctx, left, f"drop loops: {gone}", "they run once or never")

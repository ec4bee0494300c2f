"""Duplicate widening casts for each consumer, so that fused kernels read the narrow type."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.dtypes import dtype_of
from ...core.ir.context import decide
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.demands import read_operands
from ...dialects.graph.interfaces import FusionKind, GraphOp, element_type


def _takes(user: Operation, cast: graph.CastOp) -> bool:
    """Whether a cast can be computed inside the kernel of `user`."""
    if not isinstance(user, GraphOp) or user.fusion in (FusionKind.CONTRACTION, FusionKind.OPAQUE):
        return False
    return cast.result not in read_operands(user)


def _clone_into_users(ctx: Context, cast: graph.CastOp) -> None:
    """Give each user that can absorb it its own cast; the others share one."""
    users = list(dict.fromkeys(use.operation for use in cast.result.uses))[::-1]
    takers = [u for u in users if u.parent is cast.parent and _takes(u, cast)]
    if len(users) < 2 or not takers:
        return
    left = len(takers) < len(users)
    for user in takers if left else takers[1:]:
        copy = cast.clone()
        Rewriter.insert_op(copy, InsertPoint.before(user))
        cast.result.replace_uses_with_if(copy.result, lambda use, user=user: use.operation is user)
    what = f"cast in each of {len(takers)} users"
    decide(ctx, cast, what, "their kernels then read the narrower type")


@Exactness.EXACT
class GraphCanonicalizeCastPass(ModulePass):
    """Clone a widening cast that several operators use into each of them.

    Before:

    ```mlir
    func.func @main(%x: tensor<4xf16>) -> (tensor<4xf32>, tensor<4xf32>) {
      %w = graph.cast %x : (tensor<4xf16>) -> tensor<4xf32>
      %a = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
      %b = graph.tanh %w : (tensor<4xf32>) -> tensor<4xf32>
      func.return %a, %b : tensor<4xf32>, tensor<4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<4xf16>) -> (tensor<4xf32>, tensor<4xf32>) {
      %w = graph.cast %x : (tensor<4xf16>) -> tensor<4xf32>
      %a = graph.exp %w : (tensor<4xf32>) -> tensor<4xf32>
      %v = graph.cast %x : (tensor<4xf16>) -> tensor<4xf32>
      %b = graph.tanh %v : (tensor<4xf32>) -> tensor<4xf32>
      func.return %a, %b : tensor<4xf32>, tensor<4xf32>
    }
    ```

    A narrowing cast is not cloned: its users would then read the wider type. Users whose
    kernels cannot hold a cast (products, calls, indices) keep sharing one.

    Requires: nothing.
    Order: after `graph-cse`, which would merge the casts again.
    Leaves: all operators but the casts unchanged.
    """

    name = "graph-canonicalize-cast"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for cast in [c for c in op.walk() if isinstance(c, graph.CastOp)]:
            before, after = (dtype_of(element_type(v)).itemsize for v in (cast.x, cast.result))
            if after > before and allowed("clone", cast):
                _clone_into_users(ctx, cast)

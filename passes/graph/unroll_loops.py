"""Short loops of elementwise operators become their iterations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.ir.context import count, decide
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import FusionKind, GraphOp, ShapeFacts, unknown_sizes

_ONE_KERNEL = (FusionKind.ELEMENTWISE, FusionKind.BROADCAST)
"""The kinds of operators that several iterations compute without storing anything in between."""


def _iterations(op: graph.LoopOp) -> int:
    """The number of iterations; 0 if it is not known, or if there is more than carried values."""
    if op.condition is not None or op.bounds is not None or op.sliced or op.stacks:
        return 0
    size = op.iterations([], ShapeFacts(op, unknown_sizes()))
    return 0 if size is None else size.number or 0


def _is_one_kernel(op: graph.LoopOp) -> bool:
    """Whether all that an iteration computes is elementwise."""
    return all(
        isinstance(inner, graph.ConstantOp | graph.YieldOp)
        or (isinstance(inner, GraphOp) and inner.fusion in _ONE_KERNEL)
        for inner in op.body.block.ops
    )


def _unroll(op: graph.LoopOp, iterations: int) -> None:
    """Replace a loop by its iterations."""
    block, state, new = op.body.block, list[SSAValue](op.inits), list[Operation]()
    for number in range(iterations):
        literal = graph.ConstantOp.literal(np.array(number, np.int64))
        literal.location = op.location
        new.append(literal)
        copies = dict[SSAValue, SSAValue](zip(op.captured(block), op.captures, strict=True))
        copies |= {op.number: literal.result, **dict(zip(op.carried, state, strict=True))}
        new += [inner.clone(copies) for inner in block.ops if not isinstance(inner, graph.YieldOp)]
        state = [copies.get(value, value) for value in op.carried_on]
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], state)


@Exactness.EXACT
@dataclass(frozen=True)
class GraphUnrollLoopsPass(ModulePass):
    """Replace short loops of elementwise operators by their iterations, which become one kernel.

    Before:

    ```mlir
    func.func @main(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
      %y = graph.loop count "2" carries(%x : tensor<8xf32>) captures(%w : tensor<8xf32>)
          -> (tensor<8xf32>) {
      ^bb0(%i: tensor<i64>, %h: tensor<8xf32>, %v: tensor<8xf32>):
        %s = graph.mul %h, %v : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        graph.yield %s : tensor<8xf32>
      }
      func.return %y : tensor<8xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
      %0 = graph.constant dense<0> : tensor<i64>
      %s = graph.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %1 = graph.constant dense<1> : tensor<i64>
      %y = graph.mul %s, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      func.return %y : tensor<8xf32>
    }
    ```

    What is carried then stays in registers instead of being stored and loaded in each iteration.
    Other loops gain nothing: a product or a reduction is a kernel of its own in any case.

    Requires: nothing.
    Order: followed by `graph-dce`, which drops numbers of iterations that are not used.
    Leaves: loops of an unknown number of iterations, with a condition, slices or stacked results,
    and those with other operators.
    """

    name = "graph-unroll-loops"
    budget = EXACT

    max_ops: int = 64
    """The largest number of operators in all iterations."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [inner for inner in op.walk() if isinstance(inner, graph.LoopOp)]
        for loop in reversed(loops):
            iterations = _iterations(loop)
            size = iterations * len(list(loop.body.block.ops))
            if not 0 < size <= self.max_ops or not _is_one_kernel(loop):
                continue
            if allowed("unroll", loop):
                why = f"{iterations} iterations of elementwise operators are one kernel"
                decide(ctx, loop, "unroll the loop", why)
                count(ctx, "loops unrolled")
                _unroll(loop, iterations)

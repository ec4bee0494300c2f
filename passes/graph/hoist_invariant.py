"""What does not change in a loop is computed before it."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.algebra.dims import Dim, Shape, product
from ...core.ir.context import count, decide
from ...core.ir.typed import function_around
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.demands import read_operands
from ...dialects.graph.interfaces import FusionKind, GraphOp
from ...dialects.graph.ops.control.call import CallLikeOp
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.sparse_tensor import is_sparse

_FREE = (FusionKind.ELEMENTWISE, FusionKind.BROADCAST, FusionKind.INJECTIVE)
"""The kinds of operators that cost about as much as reading their results from memory."""


class _Hoisting:
    """Moves operators out of the body of one loop.

    Args:
        ctx: receives the decisions.
        op: the loop.
        shapes: those of the function around it.
    """

    def __init__(self, ctx: Context, op: graph.LoopOp, shapes: SymbolicShapes) -> None:
        self.ctx, self.op, self.shapes = ctx, op, shapes
        body = op.body.block
        self.outside: dict[SSAValue, SSAValue] = {}
        """Arguments of the region -> the values that they stand for."""
        self.outside |= zip(op.captured(body), op.captures, strict=True)
        self._known: dict[SSAValue, Shape] = {}

    def run(self) -> None:
        """Move what does not change, operands first."""
        for inner in list(self.op.body.block.ops):
            if isinstance(inner, GraphOp) and self._is_invariant(inner) and self._pays(inner):
                self._hoist(inner)

    def _is_invariant(self, inner: GraphOp) -> bool:
        """Whether an operator may run once before the loop, even if that has no iteration."""
        if isinstance(inner, graph.ConstantOp | CallLikeOp) or read_operands(inner):
            return False
        if any(is_sparse(result.type) for result in inner.results):
            return False
        captured = [operand in self.outside for operand in inner.operands]
        constant = [isinstance(operand.owner, graph.ConstantOp) for operand in inner.operands]
        return any(captured) and all(map(max, captured, constant))

    def _pays(self, inner: GraphOp) -> bool:
        """Whether reading the results costs no more than computing them."""
        if inner.fusion not in _FREE:
            return True
        read, made = (
            sum((product(self._shape(value)) for value in values), Dim.of(0))
            for values in (inner.operands, inner.results)
        )
        return all(factor >= 0 for _, factor in (read - made).terms)

    def _shape(self, value: SSAValue) -> Shape:
        return self._known[value] if value in self._known else self.shapes.shape(value)

    def _hoist(self, inner: GraphOp) -> None:
        if not allowed("hoist", inner):
            return
        decide(self.ctx, inner, f"compute {inner.name} before the loop", "it does not change in it")
        count(self.ctx, "operators hoisted")
        copies, new = dict(self.outside), list[Operation]()
        for operand in dict.fromkeys(inner.operands):
            if operand not in copies and isinstance(operand.owner, Operation):
                new.append(operand.owner.clone(copies))
        new.append(inner.clone(copies))
        Rewriter.insert_op(new, InsertPoint.before(self.op))
        results = new[-1].results
        arguments = self.op.capture(results)
        for old, result, argument in zip(inner.results, results, arguments, strict=True):
            argument.name_hint = old.name_hint
            self.outside[argument] = result
            self._known[argument] = self._shape(old)
        Rewriter.replace_op(inner, [], arguments)


@Exactness.EXACT
class GraphHoistInvariantPass(ModulePass):
    """Compute what does not change in a loop before it.

    Before:

    ```mlir
    func.func @main(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
      %y = graph.loop count "9" carries(%x : tensor<8xf32>) captures(%w : tensor<8xf32>)
          -> (tensor<8xf32>) {
      ^bb0(%i: tensor<i64>, %h: tensor<8xf32>, %v: tensor<8xf32>):
        %e = graph.exp %v : (tensor<8xf32>) -> tensor<8xf32>
        %s = graph.mul %h, %e : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        graph.yield %s : tensor<8xf32>
      }
      func.return %y : tensor<8xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
      %e = graph.exp %w : (tensor<8xf32>) -> tensor<8xf32>
      %y = graph.loop count "9" carries(%x : tensor<8xf32>)
          captures(%w, %e : tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>) {
      ^bb0(%i: tensor<i64>, %h: tensor<8xf32>, %v: tensor<8xf32>, %f: tensor<8xf32>):
        %s = graph.mul %h, %f : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        graph.yield %s : tensor<8xf32>
      }
      func.return %y : tensor<8xf32>
    }
    ```

    Inner loops come first, so that an operator may leave several of them. An operator stays if it
    only moves or combines elements and makes more of them than it reads, such as a broadcast: its
    result would have to be read from memory. So do calls, and operators whose indices are checked,
    which may fail where the loop has no iteration.

    Requires: nothing.
    Order: followed by `canonicalize`, which drops captures that are no longer used.
    Leaves: the same operators.
    """

    name = "graph-hoist-invariant"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = [inner for inner in op.walk() if isinstance(inner, graph.LoopOp)]
        for loop in reversed(loops):
            function = function_around(loop)
            if function is not None:
                _Hoisting(ctx, loop, SymbolicShapes(function)).run()

"""Products of slices with what does not change in a loop become one product before it."""

from __future__ import annotations

from collections.abc import Set

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.algebra.dims import Dim, Shape, product
from ...core.dtypes import byte_size
from ...core.ir.context import count, decide, target_of
from ...core.ir.typed import function_around, tensor_type
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, rank, set_result_types
from ...dialects.graph.rearranging import BatchInterface
from ...dialects.graph.sizes.shapes import SymbolicShapes
from .rules.permission import Permission

_MOST_ROWS = 8
"""Up to this many multiplications by an element in an iteration cost less than reading it."""
_PARTS_OF_CACHE = 4
"""Weights of up to this fraction (1/n) of the second-level cache are still in it in the next
iteration."""
_MOVES = 3
"""A product in memory is fetched, written and read again."""


class _Batching:
    """Moves products out of the body of one loop.

    Args:
        ctx: receives the decisions.
        op: the loop.
        shapes: those of the function around it.
    """

    def __init__(self, ctx: Context, op: graph.LoopOp, shapes: SymbolicShapes) -> None:
        self.ctx, self.op, self.shapes = ctx, op, shapes
        self.slices: dict[SSAValue, int] = {arg: number for number, arg in enumerate(op.slices)}
        """The arguments of the region that are slices, by number."""
        self.outside: dict[SSAValue, SSAValue] = {}
        """Arguments of the region -> the values that they stand for, or are slices of."""
        self.outside |= zip(op.slices, op.sliced, strict=True)
        self.outside |= zip(op.captured(op.body.block), op.captures, strict=True)

    def run(self, permission: Permission) -> None:
        """Move what can be one product."""
        for inner in list(self.op.body.block.ops):
            if not isinstance(inner, GraphOp) or not permission.allows(Exactness.OPEN, inner):
                continue
            numbers = {n for n, value in enumerate(inner.operands) if value in self.slices}
            if not isinstance(inner, BatchInterface) or not inner.may_batch(numbers):
                continue
            if self._is_known(inner) and self._pays(inner, numbers):
                self._batch(inner)

    def _is_known(self, inner: GraphOp) -> bool:
        """Whether all that it reads is known before the loop, slices of one value."""
        own = (value for value in inner.operands if value in self.slices)
        return len(set(own)) == 1 and all(
            value in self.outside or isinstance(value.owner, graph.ConstantOp)
            for value in inner.operands
        )

    def _pays(self, inner: GraphOp, numbers: Set[int]) -> bool:
        """Whether reading what does not change takes longer than multiplying by it.

        Weights that a cache keeps are read from there, unless the rows are few. Other weights are
        read from memory in each iteration. Before the loop they are read once, but the products
        are written to memory and read again.
        """
        same = [value for n, value in enumerate(inner.operands) if n not in numbers]
        elements = sum((product(self._shape(value)) for value in same), Dim.of(0))
        work = inner.flops(self.shapes)
        if work is None:
            return False
        if _is_positive(elements * (2 * _MOST_ROWS) - work):
            return True
        width = byte_size(tensor_type(inner.results[0]).element_type)
        kept = target_of(self.ctx).l2_bytes // (width * _PARTS_OF_CACHE)
        moved = product(self._shape(inner.results[0])) * _MOVES
        return _is_positive(elements - kept) and _is_positive(elements - moved)

    def _shape(self, value: SSAValue) -> Shape:
        return self.shapes.shape(value)

    def _batch(self, inner: GraphOp) -> None:
        if not allowed("batch", inner):
            return
        why = "its slices are known, and reading its weights costs more than a step"
        decide(self.ctx, inner, f"compute {inner.name} of all iterations before the loop", why)
        count(self.ctx, "products batched")
        (own,) = {value for value in inner.operands if value in self.slices}
        argument = self.op.slice(self._whole(inner, own), self.op.takes_backward(self.slices[own]))
        argument.name_hint = inner.results[0].name_hint
        Rewriter.replace_op(inner, [], [argument])

    def _whole(self, inner: GraphOp, own: SSAValue) -> SSAValue:
        """The product of all slices."""
        copies, new = dict(self.outside), list[Operation]()
        *rows, width = tensor_type(own).get_shape()
        # x[:, 0] @ w == (x @ w)[:, 0] for one row in each slice
        as_rows = bool(rows) and set(rows) == {1} and self._is_matrix(inner) and width > 0
        if as_rows:
            new.append(graph.ReshapeOp(copies[own], [-1, width]))
            copies[own] = new[-1].results[0]
        for operand in dict.fromkeys(inner.operands):
            if operand not in copies and isinstance(operand.owner, Operation):
                new.append(operand.owner.clone(copies))
        whole = inner.clone(copies)
        set_result_types(whole, whole.infer_types())
        new.append(whole)
        if as_rows:
            shape = tensor_type(inner.results[0]).get_shape()
            new.append(graph.ReshapeOp(whole, [-1, *shape]))
        for op in new:
            op.location = inner.location
        Rewriter.insert_op(new, InsertPoint.before(self.op))
        return new[-1].results[0]

    def _is_matrix(self, inner: GraphOp) -> bool:
        """Whether the factor that is not a slice is a matrix, and the result of known sizes."""
        sizes = tensor_type(inner.results[0]).get_shape()
        others = [value for value in inner.operands if value not in self.slices]
        return all(rank(value) <= 2 for value in others) and all(size > 0 for size in sizes)


def _is_positive(size: Dim) -> bool:
    """Whether a polynomial is positive, or 0, for all sizes, as far as its factors tell."""
    return all(factor > 0 for _, factor in size.terms)


@Exactness.OPEN
class GraphBatchSlicesPass(ModulePass):
    """Multiply all slices of a loop by what does not change in it, before the loop.

    Before:

    ```mlir
    func.func @main(%xs: tensor<9x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<9x2x4xf32> {
      %ys = graph.loop slices(%xs : tensor<9x2x4xf32>) captures(%w : tensor<4x4xf32>)
          -> (tensor<9x2x4xf32>) {
      ^bb0(%i: tensor<i64>, %x: tensor<2x4xf32>, %v: tensor<4x4xf32>):
        %p = graph.matmul %x, %v : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
        %y = graph.tanh %p : (tensor<2x4xf32>) -> tensor<2x4xf32>
        graph.yield %y : tensor<2x4xf32>
      }
      func.return %ys : tensor<9x2x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%xs: tensor<9x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<9x2x4xf32> {
      %ps = graph.matmul %xs, %w : (tensor<9x2x4xf32>, tensor<4x4xf32>) -> tensor<9x2x4xf32>
      %ys = graph.loop slices(%xs, %ps : tensor<9x2x4xf32>, tensor<9x2x4xf32>)
          captures(%w : tensor<4x4xf32>) -> (tensor<9x2x4xf32>) {
      ^bb0(%i: tensor<i64>, %x: tensor<2x4xf32>, %p: tensor<2x4xf32>, %v: tensor<4x4xf32>):
        %y = graph.tanh %p : (tensor<2x4xf32>) -> tensor<2x4xf32>
        graph.yield %y : tensor<2x4xf32>
      }
      func.return %ys : tensor<9x2x4xf32>
    }
    ```

    Applies to products that say so (`BatchInterface`) of few rows, whose weights would be read
    again in each iteration, and to those of more rows whose weights are larger than what a cache
    keeps. Slices of one row become the rows of a matrix. Other products are as fast in the loop,
    where they are in one kernel with what follows, or still in a cache when that reads them. A loop
    with a condition is left alone, as it may end before the last slice.

    Requires: nothing.
    Order: after `graph-hoist-invariant`, which hoists weights that are computed in the loop.
    Leaves: products of other values than slices.
    """

    name = "graph-batch-slices"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        permission = Permission(op)
        loops = [inner for inner in op.walk() if isinstance(inner, graph.LoopOp)]
        for loop in loops:
            function = function_around(loop)
            if function is not None and loop.sliced and loop.condition is None:
                _Batching(ctx, loop, SymbolicShapes(function)).run(permission)

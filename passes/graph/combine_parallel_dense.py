"""Combine products of one operand into a wider one, and slice its columns."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import element_type, rank
from ...dialects.graph.known import is_constant, sizes_of
from .rules.parallel import ProductKind, combine


def _key(op: Operation) -> tuple[object, ...] | None:
    """The key common to products that can be combined; None for other operations."""
    if isinstance(op, graph.DenseOp):
        constant = is_constant(op.w) and (op.bias is None or is_constant(op.bias))
    elif isinstance(op, graph.MatmulOp):
        constant = is_constant(op.b) and rank(op.b) == 2
    else:
        return None
    if not constant or sizes_of(op.result)[-1] <= 0:
        return None
    return type(op), op.operands[0], element_type(op.operands[1]), len(op.operands)


@Exactness.OPEN
@dataclass(frozen=True)
class GraphCombineParallelDensePass(ModulePass):
    """Combine products of one operand with constant weights into one wider product.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x9xf32>) -> tensor<?x1xf32> {
      %v = graph.constant dense<1.0> : tensor<1x9xf32>
      %w = graph.constant dense<2.0> : tensor<1x9xf32>
      %a = graph.dense %x, %v : (tensor<?x9xf32>, tensor<1x9xf32>) -> tensor<?x1xf32>
      %b = graph.dense %x, %w : (tensor<?x9xf32>, tensor<1x9xf32>) -> tensor<?x1xf32>
      %y = graph.mul %a, %b : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
      func.return %y : tensor<?x1xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x9xf32>) -> tensor<?x1xf32> {
      %v = graph.constant dense<1.0> : tensor<1x9xf32>
      %w = graph.constant dense<2.0> : tensor<1x9xf32>
      %c = graph.concat %v, %w axis = 0 : (tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<2x9xf32>
      %d = graph.dense %x, %c : (tensor<?x9xf32>, tensor<2x9xf32>) -> tensor<?x2xf32>
      %a = graph.slice %d starts = [0, 0] ends = [9223372036854775807, 1]
          steps = [1, 1] : (tensor<?x2xf32>) -> tensor<?x1xf32>
      %b = graph.slice %d starts = [0, 1] ends = [9223372036854775807, 2]
          steps = [1, 1] : (tensor<?x2xf32>) -> tensor<?x1xf32>
      %y = graph.mul %a, %b : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
      func.return %y : tensor<?x1xf32>
    }
    ```

    Applies to `dense`, and to `matmul` by a matrix. Elementwise operators that follow each of
    them in the same way are combined as well, with their constants per column. A slice is free if
    the kernel of its only reader can read it in place; other slices are copies. Products are not
    combined where copies move more elements than reading the operand once saves.

    Requires: nothing.
    Order: followed by `graph-fold-constant`, which concatenates the weights.
    Leaves: products that differ in kind or in having a bias, and those with computed weights.
    """

    name = "graph-combine-parallel-dense"
    budget = SUMS

    min_products: int = 2
    """The smallest number of products that are combined."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = ProductKind(
            _key,
            lambda value: -1,
            lambda op: (0, 0) if isinstance(op, graph.DenseOp) else (1,),
            "row",
        )
        combine(ctx, op, kind, self.min_products)

"""Convolutions of one operand become one wider convolution, of which each takes its channels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import element_type, rank
from ...dialects.graph.known import is_constant, sizes_of
from .rules.parallel import Kind, combine


def _key(op: Operation) -> tuple[object, ...] | None:
    """What convolutions that can be combined have in common; None if `op` is none of them."""
    if not isinstance(op, graph.ConvOp) or op.groups.value.data != 1:
        return None
    if not all(is_constant(operand) for operand in op.operands[1:]) or sizes_of(op.result)[1] < 1:
        return None
    return (op.x, element_type(op.w), len(op.operands), op.window, op.strides, op.dilations)


@dataclass(frozen=True)
class GraphCombineParallelConv2dPass(ModulePass):
    """Combine convolutions of one operand with constant filters into one with more filters.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x3x4xf32>) -> tensor<?x1x4xf32> {
      %v = graph.constant dense<1.0> : tensor<1x3x1xf32>
      %a = graph.conv %x, %v strides = [1] dilations = [1] groups = 1
          : (tensor<?x3x4xf32>, tensor<1x3x1xf32>) -> tensor<?x1x4xf32>
      %b = graph.conv %x, %v strides = [1] dilations = [1] groups = 1
          : (tensor<?x3x4xf32>, tensor<1x3x1xf32>) -> tensor<?x1x4xf32>
      %y = graph.mul %a, %b : (tensor<?x1x4xf32>, tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
      func.return %y : tensor<?x1x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x3x4xf32>) -> tensor<?x1x4xf32> {
      %v = graph.constant dense<1.0> : tensor<1x3x1xf32>
      %c = graph.concat %v, %v axis = 0: (tensor<1x3x1xf32>, tensor<1x3x1xf32>) -> tensor<2x3x1xf32>
      %d = graph.conv %x, %c strides = [1] dilations = [1] groups = 1
          : (tensor<?x3x4xf32>, tensor<2x3x1xf32>) -> tensor<?x2x4xf32>
      %a = graph.slice %d starts = [0, 0, 0] ends = [9223372036854775807, 1, 4] steps = [1, 1, 1]
          : (tensor<?x2x4xf32>) -> tensor<?x1x4xf32>
      %b = graph.slice %d starts = [0, 1, 0] ends = [9223372036854775807, 2, 4] steps = [1, 1, 1]
          : (tensor<?x2x4xf32>) -> tensor<?x1x4xf32>
      %y = graph.mul %a, %b : (tensor<?x1x4xf32>, tensor<?x1x4xf32>) -> tensor<?x1x4xf32>
      func.return %y : tensor<?x1x4xf32>
    }
    ```

    Elementwise operators that follow all of them in the same way are combined as well, with
    constants of their own channels. A slice that the kernel of its only reader can read in place
    costs nothing, and a pad is such a kernel; others are copies, and where copies move more than
    is saved by reading the operand once, convolutions stay apart. It holds for any number of
    dimensions under the window.

    Requires: `graph-fold-constant` after it, which puts the filters together.
    Leaves: convolutions with groups, with other windows, strides or dilations, with a bias and
        without one, and with filters that are no constants.
    """

    name = "graph-combine-parallel-conv2d"

    min_convolutions: int = 2
    """The smallest number of convolutions that are combined."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = Kind(_key, lambda value: 1 - rank(value), lambda conv: (0, 0), "image")
        combine(ctx, op, kind, self.min_convolutions)

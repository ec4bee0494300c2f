"""Combine convolutions of one operand into a wider one, and slice its channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...core.ir.context import target_of
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...core.target import Target, named
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.known import is_constant, sizes_of
from .rules.blocks import blocking_for, bodies, choose_layouts
from .rules.layouts import CHANNELS, Blocking
from .rules.parallel import ProductKind, combine


def _key(op: Operation) -> tuple[object, ...] | None:
    """The key common to convolutions that can be combined; None for other operations."""
    if not isinstance(op, graph.ConvOp) or op.groups.value.data != 1:
        return None
    if not all(is_constant(operand) for operand in op.operands[1:]) or sizes_of(op.result)[1] < 1:
        return None
    return (op.x, element_type(op.w), len(op.operands), op.window, op.strides, op.dilations)


class _BlockedConvolutions:
    """The convolutions of a module that `graph-alter-op-layout` would block if it ran now."""

    def __init__(self, module: ModuleOp, machine: Target) -> None:
        self.blocking: dict[Operation, Blocking] = {}
        for ops in bodies(module):
            blocking = blocking_for(ops, machine)
            self.blocking |= dict.fromkeys(choose_layouts(ops, blocking).convs, blocking)

    def obstacle(self, convs: Sequence[GraphOp], ends: Sequence[GraphOp]) -> str | None:
        """Why combining convolutions would lose their blocks; None if it would not."""
        known = [self.blocking[conv] for conv in convs if conv in self.blocking]
        channels = [sizes_of(conv.results[0])[CHANNELS] for conv in convs]
        if not known or known[0].same_block(channels) or _is_concatenated(ends):
            return None
        apart, wide = (
            ", ".join(str(known[0].block(n)) for n in sizes)
            for sizes in (channels, [sum(channels)])
        )
        return f"their channels are in blocks of {apart}, combined ones in blocks of {wide}"


def _is_concatenated(parts: Sequence[GraphOp]) -> bool:
    """Whether the only reader of values is their concatenation, in this order."""
    values = [part.results[0] for part in parts]
    readers = dict.fromkeys(use.operation for value in values for use in value.uses)
    reader = next(iter(readers), None)
    return (
        len(readers) == 1
        and isinstance(reader, graph.ConcatOp)
        and list(reader.inputs) == values
        and reader.axis_from_front == CHANNELS
    )


@Exactness.OPEN
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

    Elementwise operators that follow each of them in the same way are combined as well, with
    their constants per channel. A slice is free if the kernel of its only reader, such as a pad,
    can read it in place; other slices are copies. Convolutions are not combined where copies move
    more elements than reading the operand once saves, nor where slices would cut blocks of
    channels (see `graph-alter-op-layout`). Windows may have any number of dimensions.

    Requires: nothing.
    Order: before `graph-alter-op-layout` with `graph-fold-constant` between, which concatenates the
        filters: only convolutions with constant filters are blocked.
    Leaves: convolutions with groups, those that differ in window, strides, dilations or in having
        a bias, and those with computed filters.
    """

    name = "graph-combine-parallel-conv2d"
    budget = SUMS

    min_convolutions: int = 2
    """The smallest number of convolutions that are combined."""

    target: str | None = None
    """The name of the machine that determines the blocks; by default that of the compilation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = target_of(ctx) if self.target is None else named(self.target)
        obstacle = _BlockedConvolutions(op, machine).obstacle
        kind = ProductKind(
            _key, lambda v: CHANNELS - rank(v), lambda conv: (0, 0), "image", obstacle
        )
        combine(ctx, op, kind, self.min_convolutions)

"""Block the channels of images where convolutions gain more than the layout changes cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...core.ir.context import decide, target_of
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...core.target import Target, named
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import GraphOp, rank, tensor_type
from ...dialects.graph.known import insert_before, is_constant, sizes_of
from .rules.blocks import (
    Layouts,
    blocking_for,
    bodies,
    choose_layouts,
    computed_filters,
    elements,
)
from .rules.layouts import CHANNELS, Blocking
from .rules.permission import Permission

_NOT_BLOCKED = "channels are not blocked"
_ROWS_PER_COPY = 64
"""From this many rows on, transposing the weights of a product pays off."""


class BlockedRewriting:
    """Creates the blocked operators, and layout changes where blocked and plain values meet."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts, self.blocking = layouts, layouts.blocking
        self.inside: dict[tuple[SSAValue, int], SSAValue] = {}

    def run(self) -> None:
        replaced = [op for op in self.layouts.ops if op in self.layouts.working]
        for op in replaced:
            self._rewrite(cast(GraphOp, op))
        for op in reversed(replaced):
            Rewriter.erase_op(op)

    def _rewrite(self, op: GraphOp) -> None:
        laid_out = self.blocking.laid_out(op)
        of = max(rank(value) for value in laid_out)
        operands = [self._on_blocks(value, of, op) for value in laid_out]
        new = self.blocking.on_blocks(op, [*operands, *op.operands[len(operands) :]])
        result, old = insert_before(op, [new]), op.results[0]
        if old in self.layouts.blocked:
            self.inside[old, rank(old)] = result
        if old not in self.layouts.blocked or self.layouts.left(old):
            self._leave(op, result)

    def _on_blocks(self, value: SSAValue, of: int, user: GraphOp) -> SSAValue:
        """`value` laid out in blocks for an operator on values of rank `of`."""
        if (value, of) not in self.inside:
            new = self.blocking.into_blocks(value, of)
            self.inside[value, of] = insert_before(user, new) if new else value
        return self.inside[value, of]

    def _leave(self, op: GraphOp, result: SSAValue) -> None:
        """Restore the plain layout for the users of `op` that do not work on blocks."""
        old = op.results[0]
        back = insert_before(op, self.blocking.out_of_blocks(result, tensor_type(old)))
        for use in list(old.uses):
            if use.operation not in self.layouts.working:
                use.operation.operands[use.index] = back


def _choose(ctx: Context, ops: Sequence[Operation], blocking: Blocking) -> Layouts:
    """The operators for which blocks save more than the layout changes cost."""

    def note(convs: Sequence[graph.ConvOp], saved: float, spent: float) -> None:
        cost = f"about {saved:.0f} cycles saved, {spent:.0f} to change layouts"
        if saved <= spent:
            why = "layout changes would cost more"
            decide(ctx, convs, _NOT_BLOCKED, why, cost, kind="missed")
            return
        blocks = sorted({blocking.block(sizes_of(conv.result)[CHANNELS]) for conv in convs})
        what = f"channels in blocks of {' and '.join(map(str, blocks))}"
        decide(ctx, convs, what, "a vector then holds channels of one position", cost)

    layouts = choose_layouts(ops, blocking, note)
    for conv, saved in computed_filters(ops, blocking):
        why = "its filters are not constant, so they cannot be packed in advance"
        cost = f"blocks would save about {saved:.0f} cycles"
        decide(ctx, conv, _NOT_BLOCKED, why, cost, kind="missed")
    # Actions that are not allowed are left out; see `core.pipelines.actions`.
    parts = [part for part in layouts.parts() if not allowed("use blocks of channels", part[0])]
    back = {op for part in parts for op in part}
    return Layouts(ops, layouts.convs - back, blocking) if back else layouts


def _lay_out_weights(ctx: Context, op: graph.DenseOp) -> None:
    """Transpose the computed weights of a product of many rows, as its kernel reads them."""
    # dense(x, w) == matmul(x, transpose(w))
    rows = elements(op.result) // max(1, sizes_of(op.result)[-1])
    if is_constant(op.w) or rows < _ROWS_PER_COPY or rank(op.x) < 2:
        return
    weights = graph.TransposeOp(op.w, [1, 0])
    new: list[GraphOp] = [weights, graph.MatmulOp(op.x, weights)]
    if op.bias is not None:
        new.append(graph.AddOp(new[-1], op.bias))
    if new[-1].results[0].type != op.result.type or not allowed("lay out weights", op):
        for part in new:
            part.drop_all_references()  # it is in no block
        return
    for part in new:
        part.location = op.location
    decide(ctx, op, "transpose its weights at run time", f"{rows} rows read them")
    Rewriter.replace_op(op, new, new[-1].results)


@Exactness.OPEN
@dataclass(frozen=True)
class GraphAlterOpLayoutPass(ModulePass):
    """Block the channels of convolutions, and of operators between them, where that pays off.

    Before:

    ```mlir
    func.func @main(%x: tensor<1x2x64xf32>) -> tensor<1x4x31xf32> {
      %w = graph.constant dense<0.5> : tensor<4x2x3xf32>
      %y = graph.conv %x, %w strides = [2] dilations = [1] groups = 1
          : (tensor<1x2x64xf32>, tensor<4x2x3xf32>) -> tensor<1x4x31xf32>
      func.return %y : tensor<1x4x31xf32>
    }
    ```

    Options: `target=x86-64-v3`

    After:

    ```mlir
    func.func @main(%x: tensor<1x2x64xf32>) -> tensor<1x4x31xf32> {
      %w = graph.constant dense<0.5> : tensor<4x2x3xf32>
      %s = graph.reshape %x shape = [1, 1, 2, 64] : (tensor<1x2x64xf32>) -> tensor<1x1x2x64xf32>
      %b = graph.transpose %s permutation = [0, 1, 3, 2]
          : (tensor<1x1x2x64xf32>) -> tensor<1x1x64x2xf32>
      %c = graph.blocked_conv %b, %w strides = [2] dilations = [1] block = 4
          : (tensor<1x1x64x2xf32>, tensor<4x2x3xf32>) -> tensor<1x1x31x4xf32>
      %t = graph.transpose %c permutation = [0, 1, 3, 2]
          : (tensor<1x1x31x4xf32>) -> tensor<1x1x4x31xf32>
      %y = graph.reshape %t shape = [1, 4, 31] : (tensor<1x1x4x31xf32>) -> tensor<1x4x31xf32>
      func.return %y : tensor<1x4x31xf32>
    }
    ```

    A layout change is a reshape and a transpose, inserted only between a blocked value and an
    operator on plain ones, or the other way round, so no two cancel. Elementwise operators,
    pads, pools, sums over positions, gathers along them, slices and concatenations of whole blocks
    work on blocks. Convolutions that pass blocks to each other change together, or not at all if
    the layout changes around them cost more than they save. Filters keep their layout: constants
    are packed when their kernel is scheduled, and so are the weights of `dense`. Computed weights
    of a `dense` with many rows are transposed.

    Requires: nothing.
    Order: after `graph-fold-scale-axis`, which matches `graph.conv`; followed by
        `graph-fold-constant`, which lays out constants.
    Leaves: convolutions whose groups fill no vectors, with computed filters, those of integers
        and f16, and all those of a device, which has no vectors.
    """

    name = "graph-alter-op-layout"
    budget = SUMS

    target: str | None = None
    """The name of the machine to lay out for; by default that of the compilation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not Permission(op).allows(Exactness.OPEN, op):
            return
        machine: Target = target_of(ctx) if self.target is None else named(self.target)
        for ops in bodies(op):
            if machine.device is None:
                BlockedRewriting(_choose(ctx, ops, blocking_for(ops, machine))).run()
            for dense in [o for o in ops if isinstance(o, graph.DenseOp)]:
                _lay_out_weights(ctx, dense)

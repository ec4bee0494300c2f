"""Let operators between transpositions work on transposed operands, where that saves some."""

from __future__ import annotations

from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.ir.context import decide
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import ints
from ...dialects.graph.interfaces import GraphOp, rank, set_result_types, tensor_type
from ...dialects.graph.known import insert_before, reshape_target, sizes_of
from .rules.blocks import bodies
from .rules.permission import Permission
from .rules.transposed import Transposed, inverse, orders_of


class TransposeRewriting:
    """Replaces the operators that are chosen, and transposes where orders meet."""

    def __init__(self, choice: Transposed) -> None:
        self.choice = choice
        self.moved: dict[SSAValue, SSAValue] = {}

    def run(self) -> None:
        for op in self.choice.chosen:
            self._rewrite(op)
        sources = [value.owner for value in self.moved if self.choice.source(value) is not None]
        for op in reversed(self.choice.chosen):
            Rewriter.erase_op(op)
        for op in sources:
            if isinstance(op, graph.TransposeOp) and not op.result.uses:
                Rewriter.erase_op(op)

    def _rewrite(self, op: GraphOp) -> None:
        operands = [self._in_order(value, op) for value in op.operands]
        new, old = op.clone(), op.results[0]
        new.properties |= self.choice.properties(op) or {}
        new.operands = operands
        if not self.choice.is_transposed(old):
            old.replace_all_uses_with(insert_before(op, [new]))
            return
        kind = tensor_type(old)
        sizes = [kind.get_shape()[axis] for axis in self.choice.order]
        set_result_types(new, [TensorType(kind.element_type, sizes)])
        self.moved[old] = insert_before(op, [new])
        self._leave(old, op)

    def _leave(self, old: SSAValue, op: GraphOp) -> None:
        """Give the users of a result that are not chosen what they read."""
        back = inverse(self.choice.order)
        plain = graph.TransposeOp(self.moved[old], back, old.type)
        for use in list(old.uses):
            user = use.operation
            if isinstance(user, graph.TransposeOp):
                # transpose(transpose(x, a), b) == transpose(x, a after b)
                order = tuple(back[axis] for axis in ints(user.permutation))
                new = self.moved[old]
                if order != tuple(sorted(order)):
                    new = insert_before(user, [graph.TransposeOp(new, order, user.result.type)])
                user.result.replace_all_uses_with(new)
                Rewriter.erase_op(user)
            elif user not in self.choice.chosen:
                user.operands[use.index] = plain.result
        if plain.result.uses:
            insert_before(op, [plain])
        else:
            plain.erase()

    def _in_order(self, value: SSAValue, user: GraphOp) -> SSAValue:
        """An operand of an operator that is chosen, in the other order."""
        if value not in self.moved:
            source = self.choice.source(value)
            self.moved[value] = self._transposed(value, user) if source is None else source
        return self.moved[value]

    def _transposed(self, value: SSAValue, user: GraphOp) -> SSAValue:
        """The transposition of an operand, which may be there already, perhaps further down."""
        for op in [use.operation for use in value.uses]:
            if self.choice.is_target(op) and op.parent is user.parent:
                if user.is_before_in_block(op):
                    op.detach()
                    Rewriter.insert_op(op, InsertPoint.before(user))
                return op.results[0]
        ones, new = (1,) * (len(self.choice.order) - rank(value)), list[GraphOp]()
        if ones:
            target = reshape_target((*ones, *sizes_of(value)))
            assert target is not None
            new.append(graph.ReshapeOp(value, target))
        new.append(graph.TransposeOp(new[-1] if new else value, self.choice.order))
        return insert_before(user, new)


@Exactness.OPEN
class GraphCancelTransposesPass(ModulePass):
    """Compute on transposed operands what is between transposes, where fewer elements then move.

    Before:

    ```mlir
    func.func @main(%x: tensor<2x3x5xf32>, %b: tensor<3xf32>) -> tensor<2x3x5xf32> {
      %t = graph.transpose %x permutation = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
      %s = graph.add %t, %b : (tensor<2x5x3xf32>, tensor<3xf32>) -> tensor<2x5x3xf32>
      %r = graph.relu %s : (tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
      %y = graph.transpose %r permutation = [0, 2, 1] : (tensor<2x5x3xf32>) -> tensor<2x3x5xf32>
      func.return %y : tensor<2x3x5xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<2x3x5xf32>, %b: tensor<3xf32>) -> tensor<2x3x5xf32> {
      %c = graph.reshape %b shape = [1, 1, 3] : (tensor<3xf32>) -> tensor<1x1x3xf32>
      %d = graph.transpose %c permutation = [0, 2, 1] : (tensor<1x1x3xf32>) -> tensor<1x3x1xf32>
      %s = graph.add %x, %d : (tensor<2x3x5xf32>, tensor<1x3x1xf32>) -> tensor<2x3x5xf32>
      %y = graph.relu %s : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
      func.return %y : tensor<2x3x5xf32>
    }
    ```

    Models with channels last have transposes around each convolution, which is on channels first.
    What is between them may be any operators that compute elements one by one, and those that say
    how they work on permuted dimensions: pads, slices, concatenations, reductions, softmax. Which
    of them do so is a minimum cut, so that residual connections and uses elsewhere are weighed.

    Requires: nothing.
    Order: preceded by `graph-simplify`, which turns transposes of vectors into reshapes.
    Leaves: operators that compute windows or products of matrices, and layer norms, as they are.
    """

    name = "graph-cancel-transposes"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not Permission(op).allows(Exactness.OPEN, op):
            return
        for ops in bodies(op):
            if not any(isinstance(own, graph.TransposeOp) for own in ops):
                continue
            block = cast("Block", ops[0].parent)
            for order in orders_of(list(block.ops)):
                choice = Transposed(list(block.ops), order)
                if choice.saved <= 0 or not allowed("cancel transposes", choice.chosen[0]):
                    continue
                cost = f"{choice.saved} elements fewer are transposed"
                what = f"works on operands transposed by {list(order)}"
                decide(ctx, choice.chosen, what, "transposes before and after cancel", cost)
                TransposeRewriting(choice).run()

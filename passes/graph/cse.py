"""Operations that compute the same become one."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import Commutative, ConstantLike
from xdsl.transforms.common_subexpression_elimination import CSEDriver
from xdsl.transforms.dead_code_elimination import dce

from ...core.actions import allowed
from ...core.budgets import EXACT
from ...core.context import decide
from ...core.exactness import Exactness
from ...core.provenance import fuse


class _Driver(CSEDriver):
    """xDSL's elimination, which also handles commutative operations and reports what it does."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self.ctx = ctx

    # a + b == b + a
    def _simplify_operation(self, op: Operation) -> None:
        if op.has_trait(Commutative) and op not in self._known_ops:
            given = tuple(op.operands)
            op.operands = given[::-1]
            if op not in self._known_ops:
                op.operands = given
        super()._simplify_operation(op)

    def _replace_and_delete(self, op: Operation, existing: Operation) -> None:
        if not allowed("merge", op):
            return
        if not op.has_trait(ConstantLike):
            why = "it computes the same"
            decide(self.ctx, [existing, op], f"compute {op.name} once", why)
        existing.location = fuse([existing, op])
        super()._replace_and_delete(op, existing)


@Exactness.EXACT
@dataclass(frozen=True)
class GraphCsePass(ModulePass):
    """Merge operations that compute the same from the same operands.

    Before:

    ```mlir
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %a = graph.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %b = graph.add %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %z = graph.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %z : tensor<4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %a = graph.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %z = graph.mul %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.return %z : tensor<4xf32>
    }
    ```

    This is xDSL's `cse` (regions of one block are compared, too) for which the operands of a
    commutative operation may also come in the other order, and after which an operation goes
    by the names of all that it stands for. What is merged is decided by effects: an operation
    that may be random or keep a state, such as a call of a registered function, says so by
    its traits and stays.

    Requires: nothing.
    Leaves: no two operations without effects that are equal and one of which dominates the
        other, and none whose results nothing uses.
    """

    name = "graph-cse"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _Driver(ctx).simplify(op)
        # It erases dead operations in passing; their operands' producers come earlier.
        dce(op)

"""Common subexpression elimination."""

from __future__ import annotations

from collections import defaultdict

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import Commutative, ConstantLike
from xdsl.transforms.common_subexpression_elimination import CSEDriver
from xdsl.transforms.dead_code_elimination import dce

from ...core.ir.context import decide
from ...core.ir.provenance import fuse
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.pipelines.exactness import Exactness


class _Driver(CSEDriver):
    """xDSL's driver, extended to commutative operations, which records its decisions."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self.ctx = ctx
        self.constants: defaultdict[Operation, list[Operation]] = defaultdict(list)
        """The constants merged into each one: hundreds in some models, with a name each."""

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
        if op.has_trait(ConstantLike):
            self.constants[existing].append(op)
        else:
            why = "it computes the same value"
            decide(self.ctx, [existing, op], f"compute {op.name} once", why)
            existing.location = fuse([existing, op])
        super()._replace_and_delete(op, existing)


@Exactness.EXACT
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

    This is xDSL's `cse`, which also compares regions of one block, extended to commuted
    operands. The remaining operation carries the names of all that are merged into it. Only
    operations without effects are merged: one that may be random or stateful, such as a call
    of a registered function, declares so by its traits and stays.

    Requires: nothing.
    Order: preceded by `graph-open-composites`, as the bodies of several composites have parts in
        common.
    Leaves: no two equal operations without effects one of which dominates the other, and no
        operation without effects whose results are unused.
    """

    name = "graph-cse"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        driver = _Driver(ctx)
        driver.simplify(op)
        for constant, merged in driver.constants.items():
            constant.location = fuse([constant, *merged])
        # The driver erases dead operations as it visits them, which may leave producers dead.
        dce(op)

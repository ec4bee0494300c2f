"""Control flow: operations whose regions run once, not at all, or again and again.

A region sees nothing from outside but what its operation captures, so that passes need not ask
whether a value of another block may be used. The sizes in it are those of the function around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, StringAttr, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, traits_def, var_operand_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint
from xdsl.traits import (
    IsTerminator,
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from .....core.algebra.dims import Shape
from .....core.errors import explain
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.provenance import origin
from .....core.pipelines.exactness import EXACT, states
from ...attrs import ANY_TENSOR
from ...interfaces import ShapeFacts
from ..sources.constant import ConstantOp


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region with the values that it gives.

    graph.yield %a, %b : tensor<4xf32>, tensor<i64>

    In Python, where the region is a function of arrays:

    ```python
    return arguments
    ```

    In a program:

    ```mlir
    func.func @main(%x: tensor<4xf32>, %positive: tensor<i1>) -> tensor<4xf32> {
      %y = graph.if %positive captures(%x : tensor<4xf32>) -> (tensor<4xf32>) {
      ^bb0(%a: tensor<4xf32>):
        graph.yield %a : tensor<4xf32>
      } else {
      ^bb0(%a: tensor<4xf32>):
        %n = graph.neg %a : (tensor<4xf32>) -> tensor<4xf32>
        graph.yield %n : tensor<4xf32>
      }
      func.return %y : tensor<4xf32>
    }
    ```
    """

    name = "graph.yield"

    arguments = var_operand_def(ANY_TENSOR)

    assembly_format = "($arguments^ `:` type($arguments))? attr-dict"

    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, *values: SSAValue | Operation) -> None:
        super().__init__(operands=[values])

    def verify_(self) -> None:
        parent = self.parent_op()
        if not isinstance(parent, ControlFlowOp):
            fact, expected = "it ends no region", "graph.if or graph.loop around it"
            got = None if parent is None else parent.name
            raise VerifyException(explain(self.name, fact, expected=expected, got=got))


class ControlFlowOp(IRDLOperation, ABC):
    """An operation with regions, whose last arguments stand for what it captures."""

    if TYPE_CHECKING:
        captures: Sequence[SSAValue]
        sizes: ArrayAttr[StringAttr] | None

    @abstractmethod
    def argument_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        """The shapes of the arguments of each region, from those of the operands."""

    @abstractmethod
    def result_shapes(
        self, shapes: Sequence[Shape], yielded: Sequence[Sequence[Shape]], facts: ShapeFacts
    ) -> list[Shape]:
        """The shapes of the results.

        Args:
            shapes: those of the operands.
            yielded: those that each region yields.
            facts: reports sizes that must agree.
        """

    @property
    def stated_sizes(self) -> tuple[str, ...]:
        """The symbols of the sizes that it computes, from stage `kernels` on."""
        return () if self.sizes is None else tuple(name.data for name in self.sizes)

    def state_sizes(self, names: Sequence[str]) -> None:
        """State the symbols of the sizes that it computes: of `ShapeFacts.measured`, in order."""
        self.sizes = ArrayAttr(map(StringAttr, names)) if names else None

    @property
    def bodies(self) -> tuple[Block, ...]:
        """The block of each region."""
        return tuple(region.block for region in self.regions)

    def captured(self, body: Block) -> tuple[BlockArgument, ...]:
        """The arguments of a region that stand for the captures, in order."""
        return tuple(body.args[len(body.args) - len(self.captures) :])

    def set_captures(self, values: Sequence[SSAValue]) -> None:
        """Capture these values; the caller provides the arguments of regions for them."""
        others = len(self.operands) - len(self.captures)
        self.operands = [*self.operands[:others], *values]
        if (sizes := self.properties.get("operandSegmentSizes")) is not None:
            *counts, _ = cast("DenseArrayBase[IntegerType]", sizes).get_values()
            sizes = DenseArrayBase.from_list(i32, [*counts, len(values)])
            self.properties["operandSegmentSizes"] = sizes

    def fail(self, fact: str, expected: object = None, got: object = None) -> VerifyException:
        """The error that a fact about the operation is."""
        where = origin(self)
        return VerifyException(explain(self.name, fact, expected=expected, got=got, origin=where))

    def check_types(
        self, fact: str, expected: Sequence[Attribute], got: Sequence[Attribute]
    ) -> None:
        """Demand that types agree.

        Raises:
            VerifyException: if they do not.
        """
        if tuple(expected) != tuple(got):
            raise self.fail(fact, _listed(expected), _listed(got))

    def check_body(self, region: Region, arguments: Sequence[Attribute]) -> YieldOp:
        """The terminator of a region, after a check of its block and arguments.

        Raises:
            VerifyException: if it has other arguments, or does not end in `graph.yield`.
        """
        if len(region.blocks) != 1:
            raise self.fail("wrong number of blocks in a region", 1, len(region.blocks))
        last = region.block.last_op
        if not isinstance(last, YieldOp):
            raise self.fail("a region does not end", "graph.yield", last and last.name)
        got = [argument.type for argument in region.block.args]
        self.check_types("wrong arguments of a region", arguments, got)
        return last


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


def yielded(body: Block) -> tuple[SSAValue, ...]:
    """What the block of a region yields."""
    last = body.last_op
    assert isinstance(last, YieldOp), last
    return tuple(last.operands)


@states(EXACT, "if c captures(constant k) { use(a) } == if c { use(constant k) }, and so for loops")
class CaptureOfConstant(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ControlFlowOp, rewriter: PatternRewriter) -> None:
        for number, value in enumerate(op.captures):
            if not isinstance(value.owner, ConstantOp):
                continue
            for body in op.bodies:
                argument = op.captured(body)[number]
                if argument.uses:
                    inside = value.owner.clone()
                    rewriter.insert(inside, InsertPoint.at_start(body))
                    rewriter.replace_all_uses_with(argument, inside.result)


@states(
    EXACT,
    "if c captures(x, y, x) { use(a, d) } == if c captures(x) { use(a, a) }  for y unused",
)
class UnusedCapture(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ControlFlowOp, rewriter: PatternRewriter) -> None:
        kept: dict[SSAValue, int] = {}
        dropped: list[int] = []
        arguments = [op.captured(body) for body in op.bodies]
        for number, value in enumerate(op.captures):
            used = any(own[number].uses for own in arguments)
            if used and kept.setdefault(value, number) == number:
                continue
            dropped.append(number)
            for own in arguments if used else ():
                rewriter.replace_all_uses_with(own[number], own[kept[value]])
        if not dropped:
            return
        for own in arguments:
            for number in reversed(dropped):
                rewriter.erase_block_argument(own[number])
        op.set_captures(list(kept))
        rewriter.notify_op_modified(op)


def inlined(
    body: Block, op: Operation, values: Sequence[SSAValue], rewriter: PatternRewriter
) -> list[SSAValue]:
    """Put the operations of a region before the operation that it belongs to.

    Args:
        body: the block of the region.
        op: the operation.
        values: what replaces the arguments of the region.
        rewriter: makes the change.

    Returns:
        What the region yields.
    """
    last = body.last_op
    assert isinstance(last, YieldOp)
    rewriter.inline_block(body, InsertPoint.before(op), values)
    results = list(last.operands)
    rewriter.erase(last)
    return results

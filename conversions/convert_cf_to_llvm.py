"""Branches between blocks to LLVM branches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import cf, llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ..core.building.creation import created
from ..core.pipelines.budgets import EXACT
from .to_llvm.lowering import Lowering, LoweringTable, lower_module
from .to_llvm.types import numbers_attr

CF = LoweringTable()
"""How to lower each operation of `cf`; block arguments are converted separately."""


def _flat(low: Lowering, values: Sequence[SSAValue]) -> list[SSAValue]:
    return [part for value in values for part in low.parts(value)]


@CF.on(cf.BranchOp)
def lower_br(op: Operation, low: Lowering) -> None:
    operands = _flat(low, op.operands)
    low.perform(created(llvm.BrOp, operands, successors=op.successors))


@CF.on(cf.ConditionalBranchOp)
def lower_cond_br(branch: cf.ConditionalBranchOp, low: Lowering) -> None:
    low.perform(
        conditional_branch(
            low.value(branch.cond),
            branch.then_block,
            _flat(low, branch.then_arguments),
            branch.else_block,
            _flat(low, branch.else_arguments),
        )
    )


def conditional_branch(
    condition: SSAValue,
    then_block: Block,
    then_operands: Sequence[SSAValue],
    else_block: Block,
    else_operands: Sequence[SSAValue],
) -> llvm.CondBrOp:
    """`llvm.cond_br`, without the cost of its constructor."""
    sizes = [1, len(then_operands), len(else_operands)]
    return created(
        llvm.CondBrOp,
        [condition, *then_operands, *else_operands],
        properties={"operandSegmentSizes": numbers_attr(*sizes)},
        successors=[then_block, else_block],
    )


# switch(x, a, b) == if x == a ... else if x == b ... else default
@CF.on(cf.SwitchOp)
def lower_switch(switch: cf.SwitchOp, low: Lowering) -> None:
    flag = low.value(switch.flag)
    values = switch.case_values.get_values() if switch.case_values is not None else ()
    for value, target, operands in zip(
        values, switch.case_blocks, switch.case_operand, strict=True
    ):
        matches = low.compare("eq", flag, low.integer(int(value), flag.type))
        block = switch.parent
        assert block is not None
        following = block.split_before(switch)
        branch = conditional_branch(matches, target, _flat(low, operands), following, ())
        branch.location = switch.location
        block.add_op(branch)
    default = _flat(low, switch.default_operands)
    low.perform(llvm.BrOp.create(operands=default, successors=[switch.default_block]))


class ConvertCfToLlvmPass(ModulePass):
    """Lower branches to the LLVM dialect, and the arguments of the blocks they lead to.

    Before:
    ```mlir
    func.func @f(%c: i1, %a: i32, %b: i32) -> i32 {
      cf.cond_br %c, ^bb1(%a : i32), ^bb1(%b : i32)
    ^bb1(%x: i32):
      func.return %x : i32
    }
    ```
    After:
    ```mlir
    func.func @f(%c: i1, %a: i32, %b: i32) -> i32 {
      llvm.cond_br %c, ^bb1(%a : i32), ^bb1(%b : i32)
    ^bb1(%x: i32):
      func.return %x : i32
    }
    ```
    Requires: nothing.
    Leaves: no operation of `cf`, and no `index` or buffer as the argument of a block, but for
    the first of a function.
    """

    name = "convert-cf-to-llvm"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(ctx, op, CF, ["cf"])

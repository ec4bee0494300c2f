"""Operators that need no kernel: their results are in buffers that are there already."""

from __future__ import annotations

from xdsl.dialects import func

from .interfaces import GraphOp
from .ops.control.call import CallPackedOp
from .ops.control.regions import ControlFlowOp
from .ops.sources.constant import ConstantOp
from .rearranging import is_alias
from .sizes.shapes import SymbolicShapes


def is_view(op: GraphOp, shapes: SymbolicShapes) -> bool:
    """Whether what an operator gives to kernels is there already, as a part of a buffer.

    What a program returns, and what operators with regions use, has a buffer of its own.
    """
    block, values = op.parent, (*op.operands, *op.results)
    if not is_alias(op) or block is None or not isinstance(block.parent_op(), func.FuncOp):
        return False
    if any(isinstance(value.owner, ConstantOp) for value in op.operands):
        return False
    if shapes.is_computed(*(dim for value in values for dim in shapes.shape(value))):
        return False
    users = [use.operation for value in op.results for use in value.uses]
    return all(
        user.parent is block
        and isinstance(user, func.CallOp | GraphOp)
        and not isinstance(user, CallPackedOp | ControlFlowOp)
        for user in users
    )

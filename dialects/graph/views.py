"""Operators that need no kernel: their results are in buffers that are there already."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from ...core.dtypes import byte_size
from .interfaces import GraphOp, tensor_type
from .ops.control.call import CallPackedOp
from .ops.control.regions import ControlFlowOp
from .ops.moves.select import ConcatOp
from .ops.sources.constant import ConstantOp
from .rearranging import is_alias
from .sizes.shapes import SymbolicShapes

ALIGNMENT = 64
"""Buffers of kernels begin at multiples of this many bytes: a cache line, a vector."""


def is_view(op: GraphOp, shapes: SymbolicShapes) -> bool:
    """Whether what an operator gives to kernels is there already, as a part of a buffer.

    What a program returns, and what operators with regions use, has a buffer of its own.
    """
    block, values = op.parent, (*op.operands, *op.results)
    if is_join(op):
        return True
    if not is_alias(op) or block is None or not isinstance(block.parent_op(), func.FuncOp):
        return False
    if any(isinstance(value.owner, ConstantOp) for value in op.operands):
        return False
    if shapes.is_computed(*(dim for value in values for dim in shapes.shape(value))):
        return False
    return _stays_in(block, op.results)


def _stays_in(block: Block, values: Iterable[SSAValue]) -> bool:
    """Whether nothing but kernels and views in a block of a function read some values."""
    users = [use.operation for value in values for use in value.uses]
    return all(
        user.parent is block
        and isinstance(user, func.CallOp | GraphOp)
        and not isinstance(user, CallPackedOp | ControlFlowOp)
        for user in users
    )


def is_join(op: Operation) -> bool:
    """Whether an operator joins what kernels can compute in parts of the buffer of its result."""
    block = op.parent
    if not isinstance(op, ConcatOp) or block is None or (starts := byte_offsets(op)) is None:
        return False
    if not isinstance(block.parent_op(), func.FuncOp) or any(n % ALIGNMENT for n in starts):
        return False
    values = [*op.inputs, op.result]
    return (
        len(set(values)) == len(values)
        and _stays_in(block, values)
        and all(_has_own_buffer(x, op) for x in op.inputs)
    )


def byte_offsets(op: ConcatOp) -> list[int] | None:
    """`op.offsets` in bytes."""
    size, starts = byte_size(tensor_type(op.result).element_type), op.offsets
    return None if starts is None else [size * start for start in starts]


def _has_own_buffer(value: SSAValue, join: ConcatOp) -> bool:
    """Whether a kernel computes an operand of a join, or another join does, for this one alone."""
    owner = value.owner
    if not isinstance(owner, func.CallOp | GraphOp) or owner.parent is not join.parent:
        return False
    if is_alias(owner) or isinstance(owner, ConstantOp | CallPackedOp | ControlFlowOp):
        return False
    others = [use.operation for use in value.uses if isinstance(use.operation, ConcatOp)]
    return all(other is join or join.is_before_in_block(other) for other in others)

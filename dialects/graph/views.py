"""Operators that need no kernel: their results are in buffers that are there already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from ...core.dtypes import byte_size
from ..rt.abi import ALIGNMENT
from .interfaces import GraphOp, tensor_type
from .ops.control.call import CallPackedOp
from .ops.control.regions import ControlFlowOp
from .ops.sources.constant import ConstantOp
from .rearranging import AliasInterface, is_alias
from .sizes.shapes import SymbolicShapes


def is_view(op: GraphOp, shapes: SymbolicShapes) -> bool:
    """Whether what an operator gives to kernels is there already, as a part of a buffer.

    What a program returns, and what operators with regions use, has a buffer of its own.
    """
    block, values = op.parent, (*op.operands, *op.results)
    if joined_at(op) is not None:
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


def joined_at(op: Operation) -> list[int] | None:
    """Where in the buffer of its result, in bytes, kernels can compute each operand of an operator.

    None if it does not join what they compute there.
    """
    block = op.parent
    if not _joins(op) or block is None or not isinstance(block.parent_op(), func.FuncOp):
        return None
    item, values = byte_size(tensor_type(op.results[0]).element_type), [*op.operands, *op.results]
    places = [item * start for start in op.offsets or ()]
    is_join = (
        not any(place % ALIGNMENT for place in places)
        and len(set(values)) == len(values)
        and _stays_in(block, values)
        and all(_has_own_buffer(x, op) for x in op.operands)
    )
    return places if is_join else None


def _joins(op: Operation) -> TypeGuard[AliasInterface]:
    return isinstance(op, AliasInterface) and op.offsets is not None


def _has_own_buffer(value: SSAValue, join: Operation) -> bool:
    """Whether a kernel computes an operand of a join, or another join does, for this one alone."""
    owner = value.owner
    if not isinstance(owner, func.CallOp | GraphOp) or owner.parent is not join.parent:
        return False
    if is_alias(owner) or isinstance(owner, ConstantOp | CallPackedOp | ControlFlowOp):
        return False
    others = [use.operation for use in value.uses if _joins(use.operation)]
    return all(other is join or join.is_before_in_block(other) for other in others)

"""Which operations of a block are written where their result is used."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Operation
from xdsl.traits import is_side_effect_free

from ..dialects.loop.ops import ForOp, LoadOp, LocalOp, StoreOp
from ..dialects.upstream.ops_vector import BroadcastOp

DEEPEST = 4
"""The number of operations inside of each other that a line has at most."""


def inlined(block: Block) -> set[Operation]:
    """The operations of a block that are written as a part of another line.

    Constants are; and an operation whose only use is in this block, if it has no effects. A load
    is written later only if no store and no loop comes in between.
    """
    ops = list(block.ops)
    index = {op: number for number, op in enumerate(ops)}
    changes = [n for n, op in enumerate(ops) if isinstance(op, StoreOp | ForOp)]
    at: dict[Operation, int] = {}
    """The number of the operation on whose line another one is written."""
    for number in reversed(range(len(ops))):
        op = ops[number]
        users = [use.operation for use in op.results[0].uses] if len(op.results) == 1 else []
        user = users[0] if len(users) == 1 else None
        if user is not None and user in index and _may_be_inlined(op):
            line = at.get(user, index[user])
            if not isinstance(op, LoadOp) or not any(number < n < line for n in changes):
                at[op] = line
    found = {op for op in ops if is_constant(op)}
    depths: dict[Operation, int] = {}
    for op in ops:
        owners = [value.owner for value in op.operands]
        known = (depths.get(owner, 0) for owner in owners if isinstance(owner, Operation))
        depths[op] = 1 + max(known, default=0)
        if op in at and depths[op] <= DEEPEST:
            found.add(op)
        else:
            depths[op] = 0
    return found


def _may_be_inlined(op: Operation) -> bool:
    if isinstance(op, LoadOp):
        return True
    return not isinstance(op, LocalOp | ForOp) and is_side_effect_free(op)


def is_constant(op: Operation) -> bool:
    """Whether an operation is a number, or the same number in all lanes."""
    if isinstance(op, BroadcastOp):
        return isinstance(op.source.owner, arith.ConstantOp)
    return isinstance(op, arith.ConstantOp)

"""Counters: what a serial loop carries, and grows by 0 or 1 in each iteration."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Block, Operation, SSAValue

from ...upstream import ops as upstream
from ..attrs import LoopKind
from ..ops_loops import ForOp
from ..ops_owned import OwnedOp
from ..syntax import INDEX
from .bounds import integer_constant

CASTS = (arith.IndexCastOp, arith.ExtSIOp, upstream.IndexCastOp, upstream.ExtSIOp)
"""Casts that extend by the sign, as they are built and as they are read from text."""


def start_of_counter(value: SSAValue) -> SSAValue | None:
    """The first value of a counter, None for another value."""
    owner = value.owner
    loop = owner.parent_op() if isinstance(owner, Block) else None
    if not isinstance(loop, ForOp) or loop.kind.data != LoopKind.SERIAL:
        return None
    if value.type not in (INDEX, i64):
        # It may wrap around.
        return None
    for init, argument, after in zip(loop.inits, loop.carried, loop.yielded, strict=True):
        if argument is value:
            return init if _counts_on(after, value) else None
    return None


def _counts_on(value: SSAValue, counter: SSAValue) -> bool:
    """Whether a value is a counter, or one more."""
    match value.owner:
        case arith.SelectOp() as op:
            return _counts_on(op.lhs, counter) and _counts_on(op.rhs, counter)
        case arith.AddiOp(lhs=lhs, rhs=rhs):
            pairs = ((lhs, rhs), (rhs, lhs))
            return any(one is counter and _is_zero_or_one(other) for one, other in pairs)
        case _:
            return value is counter


def is_next(value: SSAValue, counter: SSAValue) -> bool:
    """Whether a value is one more than another one."""
    op = value.owner
    if not isinstance(op, arith.AddiOp):
        return False
    pairs = ((op.lhs, op.rhs), (op.rhs, op.lhs))
    return any(one is counter and integer_constant(other) == 1 for one, other in pairs)


def _is_zero_or_one(value: SSAValue) -> bool:
    match value.owner:
        case OwnedOp():
            return True
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return value.type != i1 and number.data in (0, 1)
        case arith.SelectOp() as op:
            return _is_zero_or_one(op.lhs) and _is_zero_or_one(op.rhs)
        case arith.ExtUIOp() | upstream.ExtUIOp() | upstream.IndexCastUIOp() as op:
            given = op.operands[0]
            return given.type == i1 or _is_zero_or_one(given)
        case Operation() as op if isinstance(op, CASTS):
            return _is_zero_or_one(op.operands[0])
        case _:
            return False

"""Counters: what a serial loop carries, and grows by 0 or 1 in each iteration."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from .attrs import LoopKind
from .ops_loops import ForOp


def start_of_counter(value: SSAValue) -> SSAValue | None:
    """The first value of a counter, None for another value."""
    owner = value.owner
    loop = owner.parent_op() if isinstance(owner, Block) else None
    if not isinstance(loop, ForOp) or loop.kind.data != LoopKind.SERIAL:
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
            return any(one is counter and _is_one(other) for one, other in ((lhs, rhs), (rhs, lhs)))
        case _:
            return value is counter


def _is_one(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, arith.ConstantOp) and (
        isinstance(op.value, IntegerAttr) and op.value.value.data == 1
    )

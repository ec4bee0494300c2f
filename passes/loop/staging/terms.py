"""Terms: what an inner reduction computes alike in all threads of a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import ConstantLike, is_side_effect_free

from ....dialects.loop.loops import is_made_in, most_iterations
from ....dialects.loop.ops import ForOp, LoadOp


@dataclass(frozen=True)
class Terms:
    """The values of an inner reduction that are the same in all threads.

    Attributes:
        inner: the reduction.
        most: the most iterations that it has.
        constants: those made in the threads that the terms are computed from.
        ops: the operations that compute the terms, in order.
        values: the results of these that threads use.
    """

    inner: ForOp
    most: int
    constants: Sequence[Operation]
    ops: Sequence[Operation]
    values: Sequence[SSAValue]


def terms_of(nest: Sequence[ForOp], target: ForOp, written: set[SSAValue]) -> Terms | None:
    """The terms of the only loop in a reduction; None without any."""
    loops = [op for op in target.body.block.ops if isinstance(op, ForOp)]
    if len(loops) != 1 or not loops[0].is_reduction or loops[0].over_entries:
        return None
    (inner,) = loops
    most, own = most_iterations(inner), {inner.variable}
    if most is None or any(is_made_in(value, target) for value in inner.bounds):
        return None
    ops: list[Operation] = []
    for op in inner.body.block.ops:
        pure = op.buffer not in written if isinstance(op, LoadOp) else is_side_effect_free(op)
        alike = (
            value in own or value is target.variable or not _differs(value, nest)
            for value in op.operands
        )
        if pure and not op.regions and own & {*op.operands} and all(alike):
            ops.append(op)
            own |= {*op.results}
    values: dict[SSAValue, None] = {}
    # An index is computed again of what it is computed from.
    left = [value for op in inner.body.block.ops if op not in ops for value in op.operands]
    while left:
        value = left.pop()
        if isinstance(owner := value.owner, Operation) and owner in ops:
            if isinstance(value.type, IndexType):
                left += owner.operands
            else:
                values[value] = None
    ordered = [value for op in ops for value in op.results if value in values]
    made = (value for op in ops for value in op.operands if is_made_in(value, nest[0]))
    owners = dict.fromkeys(value.owner for value in made)
    constants = [op for op in owners if isinstance(op, Operation) and op.has_trait(ConstantLike)]
    return Terms(inner, most, constants, ops, ordered) if ordered else None


def _differs(value: SSAValue, nest: Sequence[ForOp]) -> bool:
    """Whether a value may differ between threads."""
    if isinstance(value.owner, Operation) and value.owner.has_trait(ConstantLike):
        return False
    return is_made_in(value, nest[0]) or any(value is loop.variable for loop in nest)

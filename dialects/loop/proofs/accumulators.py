"""The check that a reduction accumulates each carried value by its combiner, and stores none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ..attrs import Combine
from ..combiners import accumulating_places
from ..loop_base import YieldOp
from ..ops_access import LoadOp, StoreOp
from ..ops_loops import ForOp
from ..ops_values import refuse

_KNOWN = ("arith", "math", "vector", "loop")
"""The dialects whose operations are checked; those of others may be combiners unknown here."""
_OGT = arith.CMPF_COMPARISON_OPERATIONS.index("ogt")


def check_combiners(loop: ForOp) -> None:
    """Refuse a reduction that does not accumulate a carried value by its combiner.

    The new value has to be the old one combined with values that depend on no carried value. Nested
    loops that carry the value as well may do a part of this. The iterations run in any order, and
    in several accumulators, so no store in the loop may depend on the value.

    Raises:
        VerifyException: naming the carried value.
    """
    affected = [_affected(loop, value) for value in loop.carried]
    for number, combine in enumerate(loop.combines):
        if combine == Combine.CUSTOM:
            continue
        if combine == Combine.MAXNUM and _has_nan(loop.inits[number]):
            fact = f"carried value {number} starts from NaN, which maxnum ignores"
            refuse(loop, fact, "a number", "nan")
        after = loop.yielded[number]
        if any(after in other for n, other in enumerate(affected) if n != number):
            fact = f"carried value {number} depends on another one"
            refuse(loop, fact, "the combiner custom", combine)
        for op in _others(loop, number, affected[number]):
            fact = f"carried value {number} is not accumulated by its combiner"
            expected = f"{combine} of it and a value that does not depend on it"
            refuse(loop, fact, expected, "another value" if op is None else op.name)
    for number, combine in enumerate(loop.combines):
        # A store has a value as an operand, or is in a loop whose range depends on it.
        uses = (use for value in affected[number] for use in value.uses)
        if combine != Combine.CUSTOM and any(_is_observer(u.operation, u.index) for u in uses):
            fact = f"a store in the loop depends on carried value {number}"
            expected = "a serial loop that carries it, such as k.carry"
            refuse(loop, fact, expected, f"a reduction by {combine}")


def _has_nan(value: SSAValue) -> bool:
    """Whether a value is a constant with a NaN in it."""
    attr = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    if isinstance(attr, FloatAttr):
        return math.isnan(attr.value.data)
    if not isinstance(attr, DenseIntOrFPElementsAttr):
        return False
    return any(math.isnan(number) for number in cast(tuple[float, ...], attr.get_values()))


def _others(loop: ForOp, number: int, affected: set[SSAValue]) -> Iterator[Operation | None]:
    """The operations on the way to a carried value that are not its combiner.

    None stands for a value that does not depend on the carried one.
    """
    combine = loop.combines[number]
    left = [(loop.yielded[number], loop.carried[number])]
    seen: set[tuple[SSAValue, SSAValue]] = set()
    while left:
        pair = left.pop()
        value, accumulator = pair
        if value is accumulator or pair in seen:
            continue
        seen.add(pair)
        if value not in affected or not isinstance(value, OpResult):
            yield None
        elif isinstance(op := value.op, ForOp):
            inside = op.yielded[value.index], op.carried[value.index]
            left += (inside, (op.inits[value.index], accumulator))
        elif parts := _accumulated(op, combine, affected):
            left += ((part, accumulator) for part in parts)
        elif op.dialect_name() in _KNOWN:
            yield op


def _accumulated(op: Operation, combine: Combine, affected: set[SSAValue]) -> Sequence[SSAValue]:
    """The operands that hold the accumulated value, if the operation combines it with others."""
    given = [place for place, operand in enumerate(op.operands) if operand in affected]
    if isinstance(op, arith.SelectOp):
        if given == [1, 2]:
            return op.operands[1:]
        return [op.rhs] if combine == Combine.MAXNUM and _is_larger(op, affected) else ()
    if len(given) == 1 and given[0] in accumulating_places(combine, op):
        return [op.operands[given[0]]]
    return ()


# a if a > b else b == maxnum(a, b) where b is not NaN
def _is_larger(op: arith.SelectOp, affected: set[SSAValue]) -> bool:
    """Whether a larger value replaces the accumulator."""
    above = op.cond.owner
    return (
        isinstance(above, arith.CmpfOp)
        and above.predicate.value.data == _OGT
        and (above.lhs, above.rhs) == (op.lhs, op.rhs)
        and op.lhs not in affected
    )


def _is_observer(op: Operation, place: int) -> bool:
    if not isinstance(op, ForOp):
        return isinstance(op, StoreOp)
    is_range = place < len(op.operands) - len(op.results)
    return is_range and any(isinstance(inner, StoreOp) for inner in op.body.walk())


def _affected(loop: ForOp, value: SSAValue) -> set[SSAValue]:
    """The values of an iteration that depend on a carried value of its loop.

    A load depends on everything that the loop stores to its buffer.
    """
    found: set[SSAValue] = set()
    left = [value]
    while left:
        value = left.pop()
        if value not in found:
            found.add(value)
            for use in value.uses:
                left += _changed(loop, use.operation, use.index)
    return found


def _changed(loop: ForOp, op: Operation, place: int) -> Sequence[SSAValue]:
    """The values that depend on an operand of an operation."""
    if isinstance(op, StoreOp):
        inside = (load for load in loop.body.walk() if isinstance(load, LoadOp))
        return [load.result for load in inside if load.buffer is op.buffer]
    around = op.parent_op() if isinstance(op, YieldOp) else op
    if not isinstance(around, ForOp):
        return op.results
    if around is loop:
        return ()
    number = place if around is not op else place - (len(op.operands) - len(op.results))
    if number < 0:
        return (*around.results, *around.body.block.args)
    return around.results[number], around.carried[number]

"""Between which numbers the floats of a program lie, NaN aside."""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr
from xdsl.ir import Operation, SSAValue

from .ops_vector import BroadcastOp

FloatRange: TypeAlias = tuple[float, float]
"""The smallest and the largest number, which may be infinite."""

AT_MOST = "stepwell.at_most"
"""The attribute of an operation on floats with a number that no result is above.

Who makes the operation states what does not follow from it alone, as that x - max(x) is not
above 0. A lane whose result is not used may be above it.
"""

_OGT = arith.CMPF_COMPARISON_OPERATIONS.index("ogt")
_DEPTH = 4
"""How many operations a range is followed through."""


def number_of(value: SSAValue) -> float | None:
    """The float in every lane of `value`, if known."""
    op = value.owner
    if isinstance(op, BroadcastOp):
        return number_of(op.source)
    if not isinstance(op, arith.ConstantOp):
        return None
    if isinstance(op.value, FloatAttr):
        return op.value.value.data
    if not isinstance(op.value, DenseIntOrFPElementsAttr) or not op.value.is_splat():
        return None
    number = next(iter(op.value.iter_values()))
    return number if isinstance(number, float) else None


def range_of(value: SSAValue, depth: int = _DEPTH) -> FloatRange:
    """A range that contains each number that `value` can be in any lane; it need not be tight."""
    if (number := number_of(value)) is not None:
        return (number, number) if number == number else (-inf, inf)
    op = value.owner
    if not depth or not isinstance(op, Operation):
        return -inf, inf
    low, high = _computed(op, depth - 1)
    stated = op.attributes.get(AT_MOST)
    return low, min(high, stated.value.data) if isinstance(stated, FloatAttr) else high


def _computed(op: Operation, depth: int) -> FloatRange:
    """The range of the result of an operation that follows from those of its operands."""
    if isinstance(op, BroadcastOp):
        return range_of(op.source, depth)
    if isinstance(op, arith.NegfOp):
        low, high = range_of(op.operand, depth)
        return -high, -low
    if isinstance(op, math.AbsFOp):
        return 0.0, max(map(abs, range_of(op.operand, depth)))
    if isinstance(op, arith.MinimumfOp | arith.MaximumfOp | arith.SubfOp):
        (a, b), (c, d) = range_of(op.lhs, depth), range_of(op.rhs, depth)
        if isinstance(op, arith.SubfOp):
            low = a - d if a > -inf and d < inf else -inf
            high = b - c if b < inf and c > -inf else inf
            return low, min(high, 0.0) if _is_not_above(op.lhs, op.rhs) else high
        choose = min if isinstance(op, arith.MinimumfOp) else max
        return choose(a, c), choose(b, d)
    return _selected(op, depth) if isinstance(op, arith.SelectOp) else (-inf, inf)


# min(x, y) <= x <= max(x, z)
def _is_not_above(small: SSAValue, large: SSAValue) -> bool:
    """Whether a value is, or is the smaller of, one that another is, or is the larger of."""
    below = small.owner.operands if isinstance(small.owner, arith.MinimumfOp) else ()
    above = large.owner.operands if isinstance(large.owner, arith.MaximumfOp) else ()
    return not {small, *below}.isdisjoint((large, *above))


def _selected(op: arith.SelectOp, depth: int) -> FloatRange:
    """The range of one of two values."""
    (a, b), (c, d) = range_of(op.lhs, depth), range_of(op.rhs, depth)
    condition = op.cond.owner
    # a if a > b else b: a NaN b is passed on, and a is none.
    if isinstance(condition, arith.CmpfOp) and number_of(op.lhs) is not None:
        is_larger = condition.predicate.value.data == _OGT
        if is_larger and (condition.lhs, condition.rhs) == (op.lhs, op.rhs):
            return max(a, c), max(b, d)
    return min(a, c), max(b, d)

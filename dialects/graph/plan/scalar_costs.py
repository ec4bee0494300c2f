"""What operations on scalars cost, in simple operations such as an addition."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from ...upstream.ops import RemfOp

_FAST_MATH = (math.FmaOp, math.AbsFOp, math.CopySignOp, math.FloorOp, math.CeilOp, math.TruncOp)
_SLOW_KINDS: frozenset[type[Operation]] = frozenset(
    (
        *(arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp),
        RemfOp,
        *(kind for kind in math.Math.operations if kind not in _FAST_MATH),
    )
)
"""Divisions, and functions such as `exp`."""
_SLOW = 8
"""What one of them costs."""


def cost_of(op: Operation) -> int:
    """What an operation costs: 1, or more where it is slow."""
    return _SLOW if type(op) in _SLOW_KINDS else 1

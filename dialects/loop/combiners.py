"""The combiners of carried values: the operations and the neutral value of each."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Operation

from ..bodies import accumulator_of
from .attrs import Combine
from .ops_instruction import InstructionOp

_OPERATIONS: dict[Combine, tuple[type[Operation], type[Operation]]] = {
    Combine.ADD: (arith.AddfOp, arith.AddiOp),
    Combine.MUL: (arith.MulfOp, arith.MuliOp),
    Combine.MAX: (arith.MaximumfOp, arith.MaxSIOp),
    Combine.MAXNUM: (arith.MaxnumfOp, arith.MaxSIOp),
    Combine.MIN: (arith.MinimumfOp, arith.MinSIOp),
}
"""For floats and for integers."""


UFUNC: dict[Combine, np.ufunc] = {
    Combine.ADD: np.add,
    Combine.MUL: np.multiply,
    Combine.MAX: np.maximum,
    Combine.MAXNUM: np.fmax,
    Combine.MIN: np.minimum,
}
"""On arrays."""


def combining(combine: Combine, element: Attribute) -> type[Operation]:
    """The operation that joins two partial results of an element type."""
    return _OPERATIONS[combine][not isinstance(element, AnyFloat)]


def neutral_value(combine: Combine, element: Attribute) -> float | int:
    """The number that leaves every number it is combined with unchanged.

    Under `maxnum` only NaN leaves NaN unchanged, but no reduction by `maxnum` carries NaN.
    """
    if combine in (Combine.ADD, Combine.MUL):
        return 0 if combine == Combine.ADD else 1
    is_max = combine in (Combine.MAX, Combine.MAXNUM)
    if isinstance(element, AnyFloat):
        return float("-inf") if is_max else float("inf")
    half = 1 << ((element.width.data if isinstance(element, IntegerType) else 64) - 1)
    return -half if is_max else half - 1


# a - b == a + (-b)
_PLACES: dict[Combine, dict[type[Operation], tuple[int, ...]]] = {
    combine: {of_floats: (0, 1), of_integers: (0, 1)}
    for combine, (of_floats, of_integers) in _OPERATIONS.items()
}
_PLACES[Combine.ADD] |= {math.FmaOp: (2,), arith.SubfOp: (0,), arith.SubiOp: (0,)}


def accumulating_places(combine: Combine, op: Operation) -> tuple[int, ...]:
    """The places of an operation that may take the accumulator, one of them at a time."""
    if isinstance(op, InstructionOp) and combine == Combine.ADD:
        place = accumulator_of(op.row)
        return () if place is None else (place,)
    return _PLACES[combine].get(type(op), ())

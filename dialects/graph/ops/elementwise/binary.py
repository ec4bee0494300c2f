"""Operators that work element by element on two operands, with NumPy broadcasting."""

from __future__ import annotations

from abc import ABC

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, result_def

from ...attrs import NUMERIC_TENSOR, TRUTH_TENSOR
from .bases import ElementwiseOp


class BinaryOp(ElementwiseOp, ABC):
    """An operator with two operands of one element type that are broadcast as in NumPy."""

    lhs = operand_def(NUMERIC_TENSOR)
    rhs = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        lhs: SSAValue | Operation,
        rhs: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[lhs, rhs], result_type=result_type)


class ComparisonOp(BinaryOp, ABC):
    """A comparison of two numbers; false if either is NaN."""

    result = result_def(TRUTH_TENSOR)

    def infer_element_types(self) -> list[Attribute]:
        return [i1]


def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`maximum` of IEEE 754-2019: NaN if one of them is, and 0.0 is larger than -0.0."""
    # For zeros of both signs NumPy returns either.
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`minimum` of IEEE 754-2019: NaN if one of them is, and -0.0 is smaller than 0.0."""
    return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))


def truncated_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The integer quotient rounded toward zero; 0 where the divisor is 0."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    with np.errstate(all="ignore"):
        quotient = a // divisor
        rounded_down = (a % divisor != 0) & ((a < 0) != (divisor < 0))
    return np.where(b == 0, np.zeros_like(quotient), quotient + rounded_down.astype(a.dtype))

"""Operators that work element by element on two operands, with NumPy broadcasting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, result_def

from ...core.dims import Shape
from ...core.typed import dense_array
from .attrs import NUMERIC_TENSOR, TRUTH_TENSOR
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    ShapeFacts,
    element_type,
    tensor_type,
    widened,
)

if TYPE_CHECKING:
    from .interfaces import Array


class BinaryOp(GraphOp, ABC):
    """An operator with two operands of one element type that are broadcast as in NumPy."""

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

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

    @abstractmethod
    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        """The function on two scalars."""

    @abstractmethod
    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The function on two arrays, in the type in which it is computed."""

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        left, right = element_type(self.lhs), element_type(self.rhs)
        if left != right:
            facts.fail("element types differ", left, right)
        return [facts.broadcast(shapes[0], shapes[1])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = (widened(dense_array(array)) for array in arrays)
        with np.errstate(all="ignore"):
            return self.stored(self.array(a, b))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        a = nest.at(self.lhs, broadcast_index(self.lhs, index))
        b = nest.at(self.rhs, broadcast_index(self.rhs, index))
        return self.scalar(nest, a, b)


class ComparisonOp(BinaryOp, ABC):
    """A comparison of two numbers; false if either is NaN."""

    result = result_def(TRUTH_TENSOR)

    def infer_element_types(self) -> list[Attribute]:
        return [i1]


def broadcast_index(value: SSAValue, index: Index) -> Index:
    """The index into an operand that is broadcast to a result with this index."""
    sizes = tensor_type(value).get_shape()
    own = index[len(index) - len(sizes) :]
    zero = AffineExpr.constant(0)
    return tuple(zero if n == 1 else i for n, i in zip(sizes, own, strict=True))


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

"""Operators that work element by element on two operands, with NumPy broadcasting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Commutative

from ...core.dims import Shape
from ...core.exactness import Exactness
from ...core.typed import dense_array
from . import scalars
from .attrs import NUMERIC_TENSOR, is_float, is_reordered
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    Precision,
    ShapeFacts,
    element_type,
    tensor_type,
    widened,
)
from .rewrites import forward, is_splat, replace_by

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


@irdl_op_definition
class AddOp(BinaryOp, HasCanonicalizationPatternsInterface):
    """a + b.

    %y = graph.add %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.add"
    KEEPS_NONNEGATIVE: ClassVar[bool] = True
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW
    traits = traits_def(Commutative())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (AddZero(),)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.add(nest, a, b)

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a + b


@irdl_op_definition
class SubOp(BinaryOp, HasCanonicalizationPatternsInterface):
    """a - b.

    %y = graph.sub %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.sub"
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (SubtractZero(),)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.sub(nest, a, b)

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a - b


@irdl_op_definition
class MulOp(BinaryOp, HasCanonicalizationPatternsInterface):
    """a * b.

    %y = graph.mul %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.mul"
    KEEPS_NONNEGATIVE: ClassVar[bool] = True
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW
    traits = traits_def(Commutative())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (MultiplyOne(),)

    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        is_square = self.lhs is self.rhs and is_float(element_type(self.lhs))
        return is_square or super().is_nonnegative(operands)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.mul(nest, a, b)

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * b


@irdl_op_definition
class DivOp(BinaryOp, HasCanonicalizationPatternsInterface):
    """a / b. Integers are truncated toward zero, as in C and ONNX; x / 0 is 0.

    %y = graph.div %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.div"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (DivideByOne(),)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.divide(nest, a, b, is_reordered(element_type(self.lhs)))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a / b if a.dtype.kind == "f" else truncated_quotient(a, b)


def truncated_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The integer quotient rounded toward zero; 0 where the divisor is 0."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    with np.errstate(all="ignore"):
        quotient = a // divisor
        rounded_down = (a % divisor != 0) & ((a < 0) != (divisor < 0))
    return np.where(b == 0, np.zeros_like(quotient), quotient + rounded_down.astype(a.dtype))


@irdl_op_definition
class MaxOp(BinaryOp, HasCanonicalizationPatternsInterface):
    """The larger of a and b; NaN if one of them is.

    %y = graph.max %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.max"
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW
    traits = traits_def(Commutative())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (MaxOfSame(),)

    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        return any(operands)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.extremum(nest, scalars.maximum, a, b, element_type(self.lhs))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return larger(a, b)


@irdl_op_definition
class MinOp(BinaryOp, HasCanonicalizationPatternsInterface):
    """The smaller of a and b; NaN if one of them is.

    %y = graph.min %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.min"
    KEEPS_NONNEGATIVE: ClassVar[bool] = True
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW
    traits = traits_def(Commutative())

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (MinOfSame(),)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.extremum(nest, scalars.minimum, a, b, element_type(self.lhs))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return smaller(a, b)


@irdl_op_definition
class PowOp(BinaryOp, HasCanonicalizationPatternsInterface):
    """a to the power of b.

    An integer to a negative power is truncated toward zero: 1 ** -n is 1, (-1) ** -n is
    1 or -1, and everything else is 0 (NumPy raises an error there).

    %y = graph.pow %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.pow"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (PowerOfOne(), PowerOfTwo())

    def jumps_with(self, operand: int) -> bool:
        # A negative base has a power only for whole exponents.
        return operand == 1 and is_float(element_type(self.rhs))

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.power(nest, a, b, is_reordered(element_type(self.lhs)))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind == "f":
            return np.power(a, b)
        inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 1, -1, 1), 0))
        return np.where(b < 0, inverse.astype(a.dtype), np.power(a, np.maximum(b, 0)))


@Exactness.EXACT
class AddZero(RewritePattern):
    # x + -0.0 == x, and x + 0 == x for integers; 0.0 would turn -0.0 into 0.0
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        zero = -0.0 if is_float(element_type(op.lhs)) else 0
        if is_splat(op.rhs, zero):
            forward(op, op.lhs, rewriter)
        elif is_splat(op.lhs, zero):
            forward(op, op.rhs, rewriter)


@Exactness.EXACT
class SubtractZero(RewritePattern):
    # x - 0.0 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SubOp, rewriter: PatternRewriter) -> None:
        if is_splat(op.rhs, 0.0):
            forward(op, op.lhs, rewriter)


@Exactness.EXACT
class MultiplyOne(RewritePattern):
    # x * 1 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulOp, rewriter: PatternRewriter) -> None:
        if is_splat(op.rhs, 1):
            forward(op, op.lhs, rewriter)
        elif is_splat(op.lhs, 1):
            forward(op, op.rhs, rewriter)


@Exactness.EXACT
class DivideByOne(RewritePattern):
    # x / 1 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DivOp, rewriter: PatternRewriter) -> None:
        if is_splat(op.rhs, 1):
            forward(op, op.lhs, rewriter)


@Exactness.EXACT
class MaxOfSame(RewritePattern):
    # max(x, x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MaxOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs:
            forward(op, op.lhs, rewriter)


@Exactness.EXACT
class MinOfSame(RewritePattern):
    # min(x, x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MinOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs:
            forward(op, op.lhs, rewriter)


@Exactness.EXACT
class PowerOfOne(RewritePattern):
    # x ** 1 == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PowOp, rewriter: PatternRewriter) -> None:
        if is_splat(op.rhs, 1):
            forward(op, op.lhs, rewriter)


@Exactness.EXACT
class PowerOfTwo(RewritePattern):
    # x ** 2 == x * x, which is the correctly rounded power
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PowOp, rewriter: PatternRewriter) -> None:
        if is_splat(op.rhs, 2):
            replace_by(op, MulOp(op.lhs, op.lhs), (op,), rewriter)

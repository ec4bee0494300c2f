"""Signs and whole numbers: `abs`, `sign`, `ceil`, `floor`, `round` and `fmod`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.exactness import Exactness
from ..upstream.ops import RemfOp
from . import scalars
from .attrs import FLOAT_TENSOR, is_float, is_unsigned
from .interfaces import Nest, Precision, element_type
from .ops_binary import BinaryOp
from .ops_elementwise import FloatUnaryOp, NegOp, NumericUnaryOp
from .rewrites import forward, replace_by


@irdl_op_definition
class AbsOp(NumericUnaryOp, HasCanonicalizationPatternsInterface):
    """The absolute value; the smallest integer, whose negation overflows, is unchanged.

    %y = graph.abs %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.abs"
    HOMOGENEOUS: ClassVar[bool] = True
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (AbsOfNoSign(),)

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        if is_float(x.type):
            return nest.insert(math.AbsFOp(x))
        if is_unsigned(element_type(self.x)):
            return x
        return scalars.maximum(nest, x, scalars.negative(nest, x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x)


@irdl_op_definition
class SignOp(NumericUnaryOp):
    """1 for positive x, -1 for negative x, 0 for 0 of either sign; NaN stays NaN.

    %y = graph.sign %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.sign"
    DISCONTINUOUS: ClassVar[bool] = True

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        zero = scalars.zero(nest, x.type)
        if is_unsigned(element_type(self.x)):
            return scalars.select(
                nest, scalars.equal(nest, x, zero), zero, nest.constant(1, x.type)
            )
        one, minus_one = (scalars.number(nest, n, x.type) for n in (1, -1))
        # -0.0 + 0.0 is 0.0
        neither = scalars.add(nest, x, zero)
        rest = scalars.select(nest, scalars.less(nest, x, zero), minus_one, neither)
        return scalars.select(nest, scalars.less(nest, zero, x), one, rest)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.sign(x)


@irdl_op_definition
class CeilOp(FloatUnaryOp):
    """The smallest whole number that is not below x.

    %y = graph.ceil %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.ceil"
    DISCONTINUOUS: ClassVar[bool] = True

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.CeilOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.ceil(x)


@irdl_op_definition
class FloorOp(FloatUnaryOp):
    """The largest whole number that is not above x.

    %y = graph.floor %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.floor"
    DISCONTINUOUS: ClassVar[bool] = True

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.FloorOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.floor(x)


@irdl_op_definition
class RoundOp(FloatUnaryOp):
    """The nearest whole number, ties to even.

    %y = graph.round %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.round"
    DISCONTINUOUS: ClassVar[bool] = True

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.RoundEvenOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.round(x)


@irdl_op_definition
class FmodOp(BinaryOp):
    """The remainder of a / b rounded toward zero, without a rounding; it has the sign of a.

    It is a for an infinite b, and NaN for an infinite a and for b = 0.

    %y = graph.fmod %a, %b : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.fmod"
    DISCONTINUOUS: ClassVar[bool] = True

    lhs = operand_def(FLOAT_TENSOR)
    rhs = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    def scalar(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        return nest.insert(RemfOp(a, b))

    def array(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.fmod(a, b)


@Exactness.EXACT
class AbsOfNoSign(RewritePattern):
    # abs(-x) == abs(x), and abs(abs(x)) == abs(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AbsOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if isinstance(inner, NegOp):
            replace_by(op, AbsOp(inner.x), (inner, op), rewriter)
        elif isinstance(inner, AbsOp):
            forward(op, op.x, rewriter)

"""Operators that work element by element on one operand."""

from __future__ import annotations

import math as scalar_math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.dims import Shape
from ...core.exactness import Exactness
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR, NUMERIC_TENSOR, Approximation, ApproximationAttr
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    Precision,
    ShapeFacts,
    element_type,
    widened,
)
from .ops_binary import larger
from .rewrites import forward
from .wide import Wide

if TYPE_CHECKING:
    from .interfaces import Array


class UnaryOp(GraphOp, ABC):
    """An operator with one operand `x` and a result of the same type."""

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[x], result_type=result_type)

    @abstractmethod
    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        """The function on one scalar."""

    @abstractmethod
    def array(self, x: np.ndarray) -> np.ndarray:
        """The function on an array, in the type in which it is computed."""

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        # Overflow and invalid operations have the values of IEEE 754, and no warning.
        with np.errstate(all="ignore"):
            return self.stored(self.array(widened(dense_array(arrays[0]))))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        return self.scalar(nest, nest.at(self.operands[0], index))


class NumericUnaryOp(UnaryOp, ABC):
    """A unary operator on floats and integers."""

    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"


class FloatUnaryOp(UnaryOp, ABC):
    """A unary operator on floats."""

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class NegOp(NumericUnaryOp, HasCanonicalizationPatternsInterface):
    """-x.

    %y = graph.neg %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.neg"
    HOMOGENEOUS: ClassVar[bool] = True
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (NegateTwice(),)

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return scalars.negative(nest, x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return -x


@irdl_op_definition
class ExpOp(FloatUnaryOp):
    """e to the power of x.

    %y = graph.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.exp"
    NEVER_NEGATIVE: ClassVar[bool] = True

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.ExpOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.exp(x)


@irdl_op_definition
class LogOp(FloatUnaryOp):
    """The natural logarithm; NaN for negative x, -inf for 0.

    %y = graph.log %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.log"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.LogOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.log(x)


@irdl_op_definition
class SqrtOp(FloatUnaryOp):
    """The square root; NaN for negative x.

    %y = graph.sqrt %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.sqrt"
    NEVER_NEGATIVE: ClassVar[bool] = True

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.SqrtOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(x)


@irdl_op_definition
class RsqrtOp(FloatUnaryOp):
    """One over the square root; inf for 0.

    %y = graph.rsqrt %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.rsqrt"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.RsqrtOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return x.dtype.type(1) / np.sqrt(x)


@irdl_op_definition
class TanhOp(FloatUnaryOp):
    """The hyperbolic tangent.

    %y = graph.tanh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.tanh"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return Wide(nest).tanh(x) if x.type == f64 else nest.insert(math.TanhOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x)


@irdl_op_definition
class SinOp(FloatUnaryOp):
    """The sine of an angle in radians.

    %y = graph.sin %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.sin"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.SinOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.sin(x)


@irdl_op_definition
class CosOp(FloatUnaryOp):
    """The cosine of an angle in radians.

    %y = graph.cos %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.cos"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.CosOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.cos(x)


@irdl_op_definition
class ErfOp(FloatUnaryOp):
    """The error function.

    %y = graph.erf %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.erf"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.ErfOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        from scipy.special import erf

        return erf(x)


@irdl_op_definition
class SigmoidOp(FloatUnaryOp):
    """1 / (1 + exp(-x)).

    %y = graph.sigmoid %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.sigmoid"
    NEVER_NEGATIVE: ClassVar[bool] = True

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        one = nest.constant(1.0, x.type)
        e = nest.insert(math.ExpOp(scalars.negative(nest, x)))
        return scalars.divide(nest, one, scalars.add(nest, one, e))

    def array(self, x: np.ndarray) -> np.ndarray:
        one = x.dtype.type(1)
        return one / (one + np.exp(-x))


@irdl_op_definition
class ReluOp(NumericUnaryOp, HasCanonicalizationPatternsInterface):
    """The larger of x and 0; NaN stays NaN.

    %y = graph.relu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.relu"
    HOMOGENEOUS: ClassVar[bool] = True
    NEVER_NEGATIVE: ClassVar[bool] = True
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (ReluTwice(),)

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        zero = scalars.zero(nest, x.type)
        return scalars.extremum(nest, scalars.maximum, x, zero, element_type(self.x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return larger(x, x.dtype.type(0))


@irdl_op_definition
class LeakyReluOp(FloatUnaryOp):
    """x, and alpha * x for negative x.

    %y = graph.leaky_relu %x alpha = 1.0e-02 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.leaky_relu"
    HOMOGENEOUS: ClassVar[bool] = True
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW

    alpha = prop_def(FloatAttr.constr(f64))

    assembly_format = "$x `alpha` `=` $alpha attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        x: SSAValue | Operation,
        alpha: float = 0.01,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {"alpha": FloatAttr(alpha, f64)}
        GraphOp.__init__(self, operands=[x], properties=properties, result_type=result_type)

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        alpha = nest.constant(self.alpha.value.data, x.type)
        negative = scalars.less(nest, x, scalars.zero(nest, x.type))
        return scalars.select(nest, negative, scalars.mul(nest, alpha, x), x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, x.dtype.type(self.alpha.value.data) * x, x)


@irdl_op_definition
class GeluOp(FloatUnaryOp):
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016).

    `none` is x / 2 * (1 + erf(x / sqrt(2))), `tanh` is
    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).

    %y = graph.gelu %x approximate = none : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.gelu"

    approximate = prop_def(ApproximationAttr)

    assembly_format = (
        "$x `approximate` `=` $approximate attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        approximate: str = "none",
        result_type: Attribute | None = None,
    ) -> None:
        formula = ApproximationAttr(Approximation(approximate))
        properties: dict[str, Attribute | None] = {"approximate": formula}
        GraphOp.__init__(self, operands=[x], properties=properties, result_type=result_type)

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        half = nest.constant(0.5, x.type)
        if self.approximate.data == Approximation.TANH:
            one, cubic = nest.constant(1.0, x.type), nest.constant(_GELU_CUBIC, x.type)
            square = scalars.mul(nest, x, x)
            inner = scalars.mul(nest, x, scalars.fma(nest, square, cubic, one))
            inner = scalars.mul(nest, inner, nest.constant(_GELU_SCALE, x.type))
            cdf = nest.insert(math.TanhOp(inner))
        else:
            scale = nest.constant(scalar_math.sqrt(0.5), x.type)
            # 1 + erf hides what is lost in the last places of erf.
            approximate = arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
            cdf = nest.insert(math.ErfOp(scalars.mul(nest, x, scale), approximate))
        half_x = scalars.mul(nest, half, x)
        return scalars.fma(nest, half_x, cdf, half_x)

    def array(self, x: np.ndarray) -> np.ndarray:
        from scipy.special import erfc

        real = x.dtype.type
        if self.approximate.data == Approximation.TANH:
            tanh = np.tanh(real(_GELU_SCALE) * x * (real(1) + real(_GELU_CUBIC) * x * x))
            return real(0.5) * x * (real(1) + tanh)
        # 1 + erf(x) is erfc(-x), without the cancellation.
        return real(0.5) * x * erfc(x * real(-scalar_math.sqrt(0.5)))


_GELU_SCALE = scalar_math.sqrt(2.0 / scalar_math.pi)
_GELU_CUBIC = 0.044715


@Exactness.EXACT
class NegateTwice(RewritePattern):
    # -(-x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NegOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, NegOp):
            forward(op, inner.x, rewriter)


@Exactness.EXACT
class ReluTwice(RewritePattern):
    # relu(relu(x)) == relu(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReluOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.x.owner, ReluOp):
            forward(op, op.x, rewriter)

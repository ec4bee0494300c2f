"""Activations: composite operators, each with its body."""

from __future__ import annotations

import math as scalar_math
from typing import ClassVar

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def

from . import scalars
from .attrs import NUMERIC_TENSOR, Approximation, ApproximationAttr
from .composite import CompositeOp, composite
from .interfaces import Nest
from .kinds import Precision
from .op_builder import OpBuilder, V
from .ops_elementwise import FloatUnaryOp
from .traits import HalfPrecision, Homogeneous

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


@composite()
class SiluOp(CompositeOp, FloatUnaryOp):
    """x * sigmoid(x), also called swish (Elfwing et al., 2017).

    %y = graph.silu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.silu"

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.mul(x, b.sigmoid(x))


@composite()
class SoftplusOp(CompositeOp, FloatUnaryOp):
    """log(1 + exp(x)).

    %y = graph.softplus %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.softplus"

    def body(self, b: OpBuilder[V], x: V) -> V:
        # log(1 + exp(x)) == max(x, 0) + log(1 + exp(-|x|)), where exp cannot overflow
        positive, negative = b.relu(x), b.min(x, 0)
        closeness = b.exp(b.sub(negative, positive))
        return b.add(positive, b.log1p(closeness))


@composite()
class LogSigmoidOp(CompositeOp, FloatUnaryOp):
    """log(sigmoid(x)).

    %y = graph.log_sigmoid %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.log_sigmoid"

    def body(self, b: OpBuilder[V], x: V) -> V:
        # log(sigmoid(x)) == -softplus(-x)
        return b.neg(b.softplus(b.neg(x)))


@composite()
class MishOp(CompositeOp, FloatUnaryOp):
    """x * tanh(softplus(x)) (Misra, 2019).

    %y = graph.mish %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.mish"

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.mul(x, b.tanh(b.softplus(x)))


@composite()
class SoftsignOp(CompositeOp, FloatUnaryOp):
    """x / (1 + |x|).

    %y = graph.softsign %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.softsign"

    def body(self, b: OpBuilder[V], x: V) -> V:
        magnitude = b.abs(x)
        return b.div(x, b.add(magnitude, 1))


@composite(alpha=1.0)
class EluOp(CompositeOp, FloatUnaryOp):
    """x, and alpha * (exp(x) - 1) for negative x (Clevert et al., 2015).

    %y = graph.elu %x alpha = 1.0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.elu"

    alpha = prop_def(FloatAttr.constr(f64))

    def body(self, b: OpBuilder[V], x: V) -> V:
        # elu(x, a) == max(x, 0) + a * (exp(min(x, 0)) - 1)
        positive, negative = b.relu(x), b.min(x, 0)
        return b.add(positive, b.mul(b.expm1(negative), self.alpha.value.data))


@composite(alpha=SELU_ALPHA, gamma=SELU_GAMMA)
class SeluOp(CompositeOp, FloatUnaryOp):
    """gamma * elu(x, alpha), whose results stay standardised (Klambauer et al., 2017).

    %y = graph.selu %x alpha = 1.67 gamma = 1.05 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.selu"

    alpha = prop_def(FloatAttr.constr(f64))
    gamma = prop_def(FloatAttr.constr(f64))

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.mul(b.elu(x, self.alpha.value.data), self.gamma.value.data)


@composite(alpha=1.0)
class CeluOp(CompositeOp, FloatUnaryOp):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0) (Barron, 2017).

    %y = graph.celu %x alpha = 1.0 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.celu"

    alpha = prop_def(FloatAttr.constr(f64))

    def body(self, b: OpBuilder[V], x: V) -> V:
        alpha = self.alpha.value.data
        curve = b.mul(b.expm1(b.div(x, alpha)), alpha)
        below = b.min(curve, 0)
        return b.add(b.relu(x), below)


@composite(alpha=1 / 6, beta=0.5)
class HardSigmoidOp(CompositeOp, FloatUnaryOp):
    """min(max(alpha * x + beta, 0), 1).

    %y = graph.hard_sigmoid %x alpha = 0.2 beta = 0.5 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.hard_sigmoid"

    alpha = prop_def(FloatAttr.constr(f64))
    beta = prop_def(FloatAttr.constr(f64))

    def body(self, b: OpBuilder[V], x: V) -> V:
        line = b.add(b.mul(x, self.alpha.value.data), self.beta.value.data)
        return b.clip(line, minimum=0.0, maximum=1.0)


@composite()
class HardSwishOp(CompositeOp, FloatUnaryOp):
    """x * min(max(x / 6 + 1/2, 0), 1) (Howard et al., 2019).

    %y = graph.hard_swish %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.hard_swish"

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.mul(x, b.hard_sigmoid(x, 1 / 6, 0.5))


@composite()
class PreluOp(CompositeOp):
    """x, and slope * x for negative x (He et al., 2015); the two are broadcast as in NumPy.

    %y = graph.prelu %x, %slope : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.prelu"

    x = operand_def(NUMERIC_TENSOR)
    slope = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    def body(self, b: OpBuilder[V], x: V, slope: V) -> V:
        # prelu(x, s) == max(x, 0) + s * min(x, 0)
        positive, negative = b.relu(x), b.min(x, 0)
        return b.add(positive, b.mul(slope, negative))


@composite(alpha=0.01)
class LeakyReluOp(CompositeOp, FloatUnaryOp):
    """x, and alpha * x for negative x.

    %y = graph.leaky_relu %x alpha = 1.0e-02 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.leaky_relu"
    STAYS_CLOSED: ClassVar[bool] = True
    traits = traits_def(Homogeneous(), HalfPrecision(Precision.FOLLOW))

    alpha = prop_def(FloatAttr.constr(f64))

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.where(b.less(x, 0), b.mul(self.alpha.value.data, x), x)


@composite(approximate="none")
class GeluOp(CompositeOp, FloatUnaryOp):
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016).

    `none` is x / 2 * (1 + erf(x / sqrt(2))), `tanh` is
    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).

    %y = graph.gelu %x approximate = none : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.gelu"
    STAYS_CLOSED: ClassVar[bool] = True

    approximate = prop_def(ApproximationAttr)

    def body(self, b: OpBuilder[V], x: V) -> V:
        if self._is_exact:
            cdf = b.erf(b.mul(x, _ROOT_HALF))
        else:
            inner = b.mul(x, b.fma(b.mul(x, x), 0.044715, 1.0))
            cdf = b.tanh(b.mul(inner, scalar_math.sqrt(2.0 / scalar_math.pi)))
        half = b.mul(0.5, x)
        return b.fma(half, cdf, half)

    @property
    def _is_exact(self) -> bool:
        return self.approximate.data == Approximation.NONE

    def scalar(self, nest: Nest, *operands: SSAValue) -> SSAValue:
        if not self._is_exact:
            return super().scalar(nest, *operands)
        # 1 + erf hides what is lost in the last places of erf.
        (x,), approximate = operands, arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
        scaled = scalars.mul(nest, x, nest.constant(_ROOT_HALF, x.type))
        cdf = nest.insert(math.ErfOp(scaled, approximate))
        half = scalars.mul(nest, nest.constant(0.5, x.type), x)
        return scalars.fma(nest, half, cdf, half)

    def array(self, *operands: np.ndarray) -> np.ndarray:
        if not self._is_exact:
            return super().array(*operands)
        from scipy.special import erfc

        # 1 + erf(x) is erfc(-x), without the cancellation.
        (x,), real = operands, operands[0].dtype.type
        return real(0.5) * x * erfc(x * real(-_ROOT_HALF))


_ROOT_HALF = scalar_math.sqrt(0.5)

ACTIVATIONS = (
    CeluOp,
    EluOp,
    GeluOp,
    HardSigmoidOp,
    HardSwishOp,
    LeakyReluOp,
    LogSigmoidOp,
    MishOp,
    PreluOp,
    SeluOp,
    SiluOp,
    SoftplusOp,
    SoftsignOp,
)
"""The operators of this file."""

__all__ = [made.__name__ for made in ACTIVATIONS]  # pyright: ignore[reportUnsupportedDunderAll]

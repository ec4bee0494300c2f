"""Activations, and dropout: composite operators, each with its body."""

from __future__ import annotations

import math as scalar_math
from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Shape
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ...attrs import FLOAT_TENSOR, NUMERIC_TENSOR, Approximation, ApproximationAttr
from ...composite import CompositeOp, composite
from ...interfaces import Indices, Nest, ShapeFacts, widened
from ...kinds import Precision
from ...nests import scalars
from ...op_builder import OpBuilder, V
from ...rules import rule
from ...traits import HalfPrecision, Homogeneous, KeepsNonnegative

if TYPE_CHECKING:
    from ...interfaces import Array

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


class ActivationOp(CompositeOp, ABC):
    """A composite with one operand of floats."""

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)


@composite()
class SiluOp(ActivationOp):
    """x * sigmoid(x), also called swish (Elfwing et al., 2017).

    %y = graph.silu %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.silu"

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.mul(x, b.sigmoid(x))


@composite()
class SoftplusOp(ActivationOp):
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
class LogSigmoidOp(ActivationOp):
    """log(sigmoid(x)).

    %y = graph.log_sigmoid %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.log_sigmoid"

    def body(self, b: OpBuilder[V], x: V) -> V:
        # log(sigmoid(x)) == -softplus(-x)
        return b.neg(b.softplus(b.neg(x)))


@composite()
class MishOp(ActivationOp):
    """x * tanh(softplus(x)) (Misra, 2019).

    %y = graph.mish %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.mish"

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.mul(x, b.tanh(b.softplus(x)))


@composite()
class SoftsignOp(ActivationOp):
    """x / (1 + |x|).

    %y = graph.softsign %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.softsign"

    def body(self, b: OpBuilder[V], x: V) -> V:
        magnitude = b.abs(x)
        return b.div(x, b.add(magnitude, 1))


@composite(alpha=1.0)
class EluOp(ActivationOp):
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
class SeluOp(ActivationOp):
    """gamma * elu(x, alpha), whose results stay standardised (Klambauer et al., 2017).

    %y = graph.selu %x alpha = 1.67 gamma = 1.05 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.selu"

    alpha = prop_def(FloatAttr.constr(f64))
    gamma = prop_def(FloatAttr.constr(f64))

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.mul(b.elu(x, self.alpha.value.data), self.gamma.value.data)


@composite(alpha=1.0)
class CeluOp(ActivationOp):
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
class HardSigmoidOp(ActivationOp):
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
class HardSwishOp(ActivationOp):
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
class LeakyReluOp(ActivationOp):
    """x, and alpha * x for negative x.

    %y = graph.leaky_relu %x alpha = 1.0e-02 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.leaky_relu"
    traits = traits_def(Homogeneous(), HalfPrecision(Precision.FOLLOW))

    alpha = prop_def(FloatAttr.constr(f64))

    def opens(self, late: bool) -> bool:
        return False

    def body(self, b: OpBuilder[V], x: V) -> V:
        return b.where(b.less(x, 0), b.mul(self.alpha.value.data, x), x)


@composite(approximate="none")
class GeluOp(ActivationOp):
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016).

    `none` is x / 2 * (1 + erf(x / sqrt(2))), `tanh` is
    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).

    %y = graph.gelu %x approximate = none : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.gelu"

    approximate = prop_def(ApproximationAttr)

    def opens(self, late: bool) -> bool:
        return False

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

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        if not self._is_exact:
            return super().value_at(nest, index)
        # 1 + erf hides what is lost in the last places of erf.
        x, approximate = nest.at(self.x, index), arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
        scaled = scalars.mul(nest, x, nest.constant(_ROOT_HALF, x.type))
        cdf = nest.insert(math.ErfOp(scaled, approximate))
        half = scalars.mul(nest, nest.constant(0.5, x.type), x)
        return scalars.fma(nest, half, cdf, half)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        if not self._is_exact:
            return super().reference(*arrays)
        from scipy.special import erfc

        # 1 + erf(x) is erfc(-x), without the cancellation.
        x = widened(dense_array(arrays[0]))
        real = x.dtype.type
        with np.errstate(all="ignore"):
            return self.stored(real(0.5) * x * erfc(x * real(-_ROOT_HALF)))


@composite(ratio=0.5)
class DropoutOp(ActivationOp, HasCanonicalizationPatternsInterface):
    """Dropout at inference: the identity. `ratio` is kept for readers of the model.

    %y = graph.dropout %x ratio = 5.0e-01 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.dropout"
    traits = traits_def(KeepsNonnegative(), HalfPrecision(Precision.FOLLOW))

    ratio = prop_def(FloatAttr.constr(f64))

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (dropout_at_inference,)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        ratio = self.ratio.value.data
        if not 0 <= ratio <= 1:
            facts.fail("ratio out of range", "0 <= ratio <= 1", ratio)
        return [shapes[0]]

    def body(self, b: OpBuilder[V], x: V) -> V:
        return x


@rule("dropout(x) == x", EXACT)
def dropout_at_inference() -> None: ...


_ROOT_HALF = scalar_math.sqrt(0.5)

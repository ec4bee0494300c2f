"""Operators that work element by element: their bases, and those with properties."""

from __future__ import annotations

import functools
import math as scalar_math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def

from ...core.dims import Shape
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR, NUMERIC_TENSOR, Approximation, ApproximationAttr
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
from .kinds import Precision
from .traits import HalfPrecision, Homogeneous

if TYPE_CHECKING:
    from .interfaces import Array


class ElementwiseOp(GraphOp, ABC):
    """A function of scalars: operands of one element type that are broadcast as in NumPy."""

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    # To type checkers these signatures are like any other.
    @abstractmethod
    def scalar(self, *args: Any, **kwargs: Any) -> SSAValue:
        """The function on scalars: ``scalar(nest, a, b)`` of two."""

    @abstractmethod
    def array(self, *args: Any, **kwargs: Any) -> np.ndarray:
        """The function on arrays, in the type in which it is computed: ``array(a, b)`` of two."""

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        first, *others = map(element_type, self.operands)
        for other in others:
            if other != first:
                facts.fail("element types differ", first, other)
        return [functools.reduce(facts.broadcast, shapes)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        operands = [widened(dense_array(array)) for array in arrays]
        # Overflow and invalid operations have the values of IEEE 754, and no warning.
        with np.errstate(all="ignore"):
            return self.stored(self.array(*operands))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        operands = (nest.at(value, broadcast_index(value, index)) for value in self.operands)
        return self.scalar(nest, *operands)


def broadcast_index(value: SSAValue, index: Index) -> Index:
    """The index into an operand that is broadcast to a result with this index."""
    sizes = tensor_type(value).get_shape()
    own = index[len(index) - len(sizes) :]
    zero = AffineExpr.constant(0)
    return tuple(zero if n == 1 else i for n, i in zip(sizes, own, strict=True))


class UnaryOp(ElementwiseOp, ABC):
    """An operator with one operand `x` and a result of the same type, by default any number."""

    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None:
        super().__init__(operands=[x], result_type=result_type)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        return self.scalar(nest, nest.at(self.x, index))


class FloatUnaryOp(UnaryOp, ABC):
    """A unary operator on floats."""

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)


@irdl_op_definition
class LeakyReluOp(FloatUnaryOp):
    """x, and alpha * x for negative x.

    %y = graph.leaky_relu %x alpha = 1.0e-02 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.leaky_relu"
    traits = traits_def(Homogeneous(), HalfPrecision(Precision.FOLLOW))

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

"""Hyperbolic functions, and inverses of trigonometric and hyperbolic ones.

Most are computed in f64 and rounded once. In f32 that is within 0.51 ulp of the exact value, in f64
within 1 ulp. Inverses of trigonometric functions are functions of `math` in f32.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition

from . import scalars, wide_inverse
from .interfaces import Nest
from .ops_elementwise import FloatUnaryOp
from .wide import Wide


class WideUnaryOp(FloatUnaryOp):
    """A function that is computed in f64."""

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        wide = scalars.convert(nest, x, x.type, f64)
        return scalars.convert(nest, self.wide(Wide(nest), wide), f64, x.type)

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        """The function of a value of f64."""
        raise NotImplementedError


class ArcOp(WideUnaryOp):
    """A function that is one of `math` in f32 and computed from others in f64."""

    IN_F32: ClassVar[type[Operation]]

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        if x.type == f64:
            return super().scalar(nest, x)
        return nest.insert(self.IN_F32.create(operands=[x], result_types=[x.type]))


@irdl_op_definition
class AtanOp(ArcOp):
    """The angle between -pi/2 and pi/2 whose tangent is x.

    %y = graph.atan %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.atan"
    IN_F32: ClassVar[type[Operation]] = math.AtanOp

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return wide_inverse.atan(f, x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arctan(x)


@irdl_op_definition
class AsinOp(ArcOp):
    """The angle between -pi/2 and pi/2 whose sine is x; NaN outside of [-1, 1].

    %y = graph.asin %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.asin"
    IN_F32: ClassVar[type[Operation]] = math.AsinOp

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return wide_inverse.asin(f, x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arcsin(x)


@irdl_op_definition
class AcosOp(ArcOp):
    """The angle between 0 and pi whose cosine is x; NaN outside of [-1, 1].

    %y = graph.acos %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.acos"
    IN_F32: ClassVar[type[Operation]] = math.AcosOp

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return wide_inverse.acos(f, x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arccos(x)


@irdl_op_definition
class SinhOp(WideUnaryOp):
    """The hyperbolic sine, (exp(x) - exp(-x)) / 2.

    %y = graph.sinh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.sinh"

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return f.sinh(x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.sinh(x)


@irdl_op_definition
class CoshOp(WideUnaryOp):
    """The hyperbolic cosine, (exp(x) + exp(-x)) / 2.

    %y = graph.cosh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.cosh"
    NEVER_NEGATIVE: ClassVar[bool] = True

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return f.cosh(x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.cosh(x)


@irdl_op_definition
class AsinhOp(WideUnaryOp):
    """The number whose hyperbolic sine is x.

    %y = graph.asinh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.asinh"

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return wide_inverse.asinh(f, x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arcsinh(x)


@irdl_op_definition
class AcoshOp(WideUnaryOp):
    """The number of 0 or more whose hyperbolic cosine is x; NaN below 1.

    %y = graph.acosh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.acosh"

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return wide_inverse.acosh(f, x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arccosh(x)


@irdl_op_definition
class AtanhOp(WideUnaryOp):
    """The number whose hyperbolic tangent is x; NaN outside of [-1, 1].

    %y = graph.atanh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.atanh"

    def wide(self, f: Wide, x: SSAValue) -> SSAValue:
        return f.atanh(x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arctanh(x)

"""Functions that lose digits, or time, where they are composed of several operators."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import math
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition

from .interfaces import Nest
from .ops_elementwise import FloatUnaryOp


@irdl_op_definition
class Expm1Op(FloatUnaryOp):
    """exp(x) - 1, precise near 0.

    %y = graph.expm1 %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.expm1"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.ExpM1Op(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.expm1(x)


@irdl_op_definition
class Log1pOp(FloatUnaryOp):
    """log(1 + x), precise near 0; NaN below -1, -inf for -1.

    %y = graph.log1p %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.log1p"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.Log1pOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.log1p(x)


@irdl_op_definition
class TanOp(FloatUnaryOp):
    """The tangent of an angle in radians.

    %y = graph.tan %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.tan"

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        return nest.insert(math.TanOp(x))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.tan(x)

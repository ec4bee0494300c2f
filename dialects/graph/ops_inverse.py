"""Hyperbolic functions, and inverses of trigonometric and hyperbolic ones.

They are computed in f64 and rounded once. In f32 that is within 0.51 ulp of the exact value, in f64
within 4 ulp. The rational approximation of atan is that of Cephes (Moshier, 1989).
"""

from __future__ import annotations

import math as numbers
from typing import ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition

from . import scalars
from .interfaces import Nest
from .ops_elementwise import FloatUnaryOp

_ATAN_P = (
    *(-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1),
    *(-1.228866684490136173410e2, -6.485021904942025371773e1),
)
_ATAN_Q = (
    *(1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2),
    *(4.853903996359136964868e2, 1.945506571482613964425e2),
)
_ATAN_LARGE, _ATAN_SMALL = 1 + numbers.sqrt(2), 0.66
_SINH = tuple(1 / numbers.factorial(n) for n in range(19, 0, -2))
"""The series of sinh(x) / x in x * x, for |x| <= 1."""
_HUGE = 1e9
"""Above it x * x + 1 and x * x are one number, and x * x might overflow."""


class _Numbers:
    """Arithmetic with values of f64."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest

    def number(self, value: float) -> SSAValue:
        return self.nest.constant(value, f64)

    def add(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        return scalars.add(self.nest, a, self._value(b))

    def sub(self, a: SSAValue | float, b: SSAValue | float) -> SSAValue:
        return scalars.sub(self.nest, self._value(a), self._value(b))

    def mul(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        return scalars.mul(self.nest, a, self._value(b))

    def divide(self, a: SSAValue | float, b: SSAValue) -> SSAValue:
        return scalars.divide(self.nest, self._value(a), b)

    def sqrt(self, x: SSAValue) -> SSAValue:
        return self.nest.insert(math.SqrtOp(x))

    def exp(self, x: SSAValue) -> SSAValue:
        return self.nest.insert(math.ExpOp(x))

    def log(self, x: SSAValue) -> SSAValue:
        return self.nest.insert(math.LogOp(x))

    def absolute(self, x: SSAValue) -> SSAValue:
        return self.nest.insert(math.AbsFOp(x))

    def above(self, x: SSAValue, limit: float) -> SSAValue:
        return scalars.less(self.nest, self.number(limit), x)

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.select(self.nest, condition, a, b)

    def polynomial(self, x: SSAValue, coefficients: tuple[float, ...]) -> SSAValue:
        """The polynomial with these coefficients, the highest power first."""
        total = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            total = scalars.fma(self.nest, total, x, self.number(coefficient))
        return total

    def with_sign(self, y: SSAValue, x: SSAValue) -> SSAValue:
        """y >= 0 with the sign of x; a zero of x is the result."""
        zero = self.number(0.0)
        below = scalars.less(self.nest, x, zero)
        signed = self.select(below, scalars.negative(self.nest, y), y)
        return self.select(scalars.equal(self.nest, x, zero), x, signed)

    def log1p(self, x: SSAValue) -> SSAValue:
        # log(1 + x) == x * log(u) / (u - 1) with u = 1 + x rounded, and x where u is 1 (Goldberg)
        u = self.add(x, 1.0)
        rest = self.sub(u, 1.0)
        tiny = scalars.equal(self.nest, rest, self.number(0.0))
        logarithm = self.log(u)
        scaled = self.divide(self.mul(x, logarithm), rest)
        return self.select(tiny, x, self.select(self.above(x, _HUGE), logarithm, scaled))

    def atan(self, x: SSAValue) -> SSAValue:
        # atan(x) == pi/2 - atan(1/x) == pi/4 + atan((x - 1) / (x + 1))  for x > 0
        size = self.absolute(x)
        large, middle = self.above(size, _ATAN_LARGE), self.above(size, _ATAN_SMALL)
        turned = self.divide(self.sub(size, 1.0), self.add(size, 1.0))
        t = self.select(middle, turned, size)
        t = self.select(large, self.divide(-1.0, size), t)
        square = self.mul(t, t)
        ratio = self.divide(self.polynomial(square, _ATAN_P), self.polynomial(square, _ATAN_Q))
        y = scalars.fma(self.nest, self.mul(t, square), ratio, t)
        start = self.select(middle, self.number(numbers.pi / 4), self.number(0.0))
        start = self.select(large, self.number(numbers.pi / 2), start)
        return self.with_sign(self.add(start, y), x)

    def _value(self, value: SSAValue | float) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.number(value)


class WideUnaryOp(FloatUnaryOp):
    """A function that is computed in f64."""

    def scalar(self, nest: Nest, x: SSAValue) -> SSAValue:
        wide = scalars.convert(nest, x, x.type, f64)
        return scalars.convert(nest, self.wide(_Numbers(nest), wide), f64, x.type)

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        """The function of a value of f64."""
        raise NotImplementedError


@irdl_op_definition
class AtanOp(WideUnaryOp):
    """The angle between -pi/2 and pi/2 whose tangent is x.

    %y = graph.atan %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.atan"

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        return f.atan(x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arctan(x)


@irdl_op_definition
class AsinOp(WideUnaryOp):
    """The angle between -pi/2 and pi/2 whose sine is x; NaN outside of [-1, 1].

    %y = graph.asin %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.asin"

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        # asin(x) == atan(x / sqrt((1 - x) (1 + x)))
        cosine = f.sqrt(f.mul(f.sub(1.0, x), f.add(x, 1.0)))
        return f.atan(f.divide(x, cosine))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arcsin(x)


@irdl_op_definition
class AcosOp(WideUnaryOp):
    """The angle between 0 and pi whose cosine is x; NaN outside of [-1, 1].

    %y = graph.acos %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.acos"

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        # acos(x) == 2 atan(sqrt((1 - x) / (1 + x)))
        half = f.atan(f.sqrt(f.divide(f.sub(1.0, x), f.add(x, 1.0))))
        return f.add(half, half)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arccos(x)


@irdl_op_definition
class SinhOp(WideUnaryOp):
    """The hyperbolic sine, (exp(x) - exp(-x)) / 2.

    %y = graph.sinh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.sinh"

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        # The exponential of half of x does not overflow before the result does.
        size = f.absolute(x)
        root = f.exp(f.mul(size, 0.5))
        large = f.sub(f.mul(f.mul(root, 0.5), root), f.divide(0.5, f.mul(root, root)))
        series = f.mul(x, f.polynomial(f.mul(x, x), _SINH))
        return f.select(f.above(size, 1.0), f.with_sign(large, x), series)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.sinh(x)


@irdl_op_definition
class CoshOp(WideUnaryOp):
    """The hyperbolic cosine, (exp(x) + exp(-x)) / 2.

    %y = graph.cosh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.cosh"
    NEVER_NEGATIVE: ClassVar[bool] = True

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        root = f.exp(f.mul(f.absolute(x), 0.5))
        return f.add(f.mul(f.mul(root, 0.5), root), f.divide(0.5, f.mul(root, root)))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.cosh(x)


@irdl_op_definition
class AsinhOp(WideUnaryOp):
    """The number whose hyperbolic sine is x.

    %y = graph.asinh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.asinh"

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        # asinh(x) == log(1 + x + x^2 / (1 + sqrt(x^2 + 1))) == log(2) + log(x) for a huge x
        size = f.absolute(x)
        square = f.mul(size, size)
        rest = f.divide(square, f.add(f.sqrt(f.add(square, 1.0)), 1.0))
        huge = f.add(f.log(size), numbers.log(2))
        y = f.select(f.above(size, _HUGE), huge, f.log1p(f.add(size, rest)))
        return f.with_sign(y, x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arcsinh(x)


@irdl_op_definition
class AcoshOp(WideUnaryOp):
    """The number of 0 or more whose hyperbolic cosine is x; NaN below 1.

    %y = graph.acosh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.acosh"

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        # acosh(x) == log(1 + t + sqrt(t) sqrt(t + 2)) with t = x - 1;  log(2) + log(x) if huge
        t = f.sub(x, 1.0)
        root = f.mul(f.sqrt(t), f.sqrt(f.add(t, 2.0)))
        huge = f.add(f.log(x), numbers.log(2))
        return f.select(f.above(x, _HUGE), huge, f.log1p(f.add(t, root)))

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arccosh(x)


@irdl_op_definition
class AtanhOp(WideUnaryOp):
    """The number whose hyperbolic tangent is x; NaN outside of [-1, 1].

    %y = graph.atanh %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.atanh"

    def wide(self, f: _Numbers, x: SSAValue) -> SSAValue:
        # atanh(x) == log(1 + 2 x / (1 - x)) / 2
        size = f.absolute(x)
        ratio = f.divide(f.add(size, size), f.sub(1.0, size))
        return f.with_sign(f.mul(f.log1p(ratio), 0.5), x)

    def array(self, x: np.ndarray) -> np.ndarray:
        return np.arctanh(x)

"""Inverse trigonometric functions for f32 as arithmetic: formulas, coefficients, errors.

The errors are the largest over every f32, the coefficients are fitted as those of `polynomials.py`.
Each result is an angle of a few parts, `turns` + `factor` times an arc, and is rounded at last.
"""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import SSAValue

from .arithmetic import Arithmetic

_Pair = tuple[float, float]
# Multiples of pi to f32, and the rests.
_NONE = 0.0, 0.0
_QUARTER = 1.5707963705062866, -4.371139000186241e-08
_HALF = 3.1415927410125732, -8.742278000372482e-08

_ASIN = (
    0.16666752099990845,
    0.0749531015753746,
    0.045469023287296295,
    0.024185476824641228,
    0.04215705394744873,
)
"""(asin(s) - s) / s^3 in s^2 for |s| <= 1/2, relative error of asin(s) 2^-27.6."""

_ATAN = (
    -0.33333298563957214,
    0.1999853551387787,
    -0.14264124631881714,
    0.10951636731624603,
    -0.08401975780725479,
    0.0579339936375618,
    -0.03115559183061123,
    0.010903194546699524,
    -0.0017911676550284028,
)
"""(atan(t) - t) / t^3 in t^2 for |t| <= 1, relative error of atan(t) 2^-28.5."""


def asin(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The angle between -pi/2 and pi/2 whose sine is x, to 1.17 ulp.

    Above 1/2 it is pi/2 - 2 asin(sqrt((1 - |x|) / 2)).
    """
    large, s, z = _half_of_arc(e, x)
    factor = e.select(large, e.constant(-2.0), e.constant(1.0))
    turns = _chosen(e, large, _QUARTER, _NONE)
    return e.copysign(_angle(e, turns, factor, s, z, e.polynomial(z, _ASIN)), x)


def acos(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The angle between 0 and pi whose cosine is x, to 1.14 ulp.

    It is pi/2 - asin(x) up to 1/2, then 2 asin(sqrt((1 - x) / 2)), and pi minus that of -x.
    """
    large, s, z = _half_of_arc(e, x)
    sign = e.copysign(e.constant(1.0), x)
    factor = e.mul(sign, e.select(large, e.constant(2.0), e.constant(-1.0)))
    ends = _chosen(e, e.compare("olt", x, e.constant(0.0)), _HALF, _NONE)
    turns = tuple(
        e.select(large, end, e.constant(part)) for end, part in zip(ends, _QUARTER, strict=True)
    )
    return _angle(e, turns, factor, s, z, e.polynomial(z, _ASIN))


def atan(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The angle between -pi/2 and pi/2 whose tangent is x, to 1.20 ulp.

    Above 1 it is pi/2 - atan(1 / |x|).
    """
    size = e.unary(math.AbsFOp, x)
    large = e.compare("ogt", size, e.constant(1.0))
    t = e.select(large, e.div(e.constant(1.0), size), size)
    z = e.mul(t, t)
    factor = e.select(large, e.constant(-1.0), e.constant(1.0))
    turns = _chosen(e, large, _QUARTER, _NONE)
    return e.copysign(_angle(e, turns, factor, t, z, e.polynomial(z, _ATAN)), x)


def _half_of_arc(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Whether |x| > 1/2, a sine s <= 1/2, and s^2; 2 asin(s) == acos(|x|) where |x| > 1/2."""
    size = e.unary(math.AbsFOp, x)
    large = e.compare("ogt", size, e.constant(0.5))
    halved = e.fma(size, e.constant(-0.5), e.constant(0.5))
    z = e.select(large, halved, e.mul(size, size))
    return large, e.select(large, e.unary(math.SqrtOp, z), size), z


def _chosen(e: Arithmetic, condition: SSAValue, a: _Pair, b: _Pair) -> tuple[SSAValue, SSAValue]:
    """The parts of a where the condition holds, else those of b."""
    high, low = (
        e.select(condition, e.constant(one), e.constant(other))
        for one, other in zip(a, b, strict=True)
    )
    return high, low


def _angle(
    e: Arithmetic,
    turns: tuple[SSAValue, ...],
    factor: SSAValue,
    s: SSAValue,
    z: SSAValue,
    series: SSAValue,
) -> SSAValue:
    """turns + factor (s + s z series)."""
    high = e.fma(factor, s, turns[0])
    lost = e.fma(factor, s, e.sub(turns[0], high))
    cubic = e.mul(factor, e.mul(s, z))
    return e.add(high, e.fma(cubic, series, e.add(lost, turns[1])))

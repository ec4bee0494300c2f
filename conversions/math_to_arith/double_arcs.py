"""Inverse trigonometric functions for f64 as arithmetic: formulas, coefficients, errors.

A value is a number and what it lacks, such as a root and the remainder of the root, and is rounded
at the end: the errors are below 1 ulp. The polynomials are interpolated at the nodes of Chebyshev.
"""

from __future__ import annotations

import math as numbers

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from .arithmetic import Arithmetic
from .doubles import Pair, quick_two_sum, quotient, two_product

_ASIN = (
    0.16666666666666669,
    0.07499999999998433,
    0.04464285714635543,
    0.030381944138531247,
    0.02237217294214989,
    0.017352392720869973,
    0.013971212973552933,
    0.011479177415184906,
    0.01032281435018578,
    0.005457506718640358,
    0.01740087944269402,
    -0.014851887071247204,
    0.028757851367421566,
)
"""(asin(s) - s) / s^3 in s * s, for |s| <= 1/2; relative error of asin(s) 2^-57."""
_ATAN = (
    0.19999999999999998,
    -0.14285714285710158,
    0.11111111110145373,
    -0.0909090900255344,
    0.07692303532330036,
    -0.06666551888649878,
    0.05880365789170543,
    -0.052408370717630486,
    0.04597974114837148,
    -0.03573718570398967,
    0.017549180630233974,
)
"""(atan(r) - r + r^3 / 3) / r^5 in r * r, for |r| <= sqrt(2) - 1; relative error 2^-59."""
_PI, _PI_LOW = numbers.pi, 1.2246467991473532e-16
_THIRD, _THIRD_LOW = -1 / 3, -1.850371707708594e-17
_TINY, _LARGE = 1e-300, 1e300


def asin(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The angle between -pi/2 and pi/2 whose sine is x."""
    large, s, rest = _half_of_arc(e, x)
    minus_two = e.constant(-2.0)
    high, low = quick_two_sum(e, e.constant(_PI / 2), e.mul(s, minus_two))
    complement = e.add(high, e.add(low, e.fma(rest, minus_two, e.constant(_PI_LOW / 2))))
    return e.copysign(e.select(large, complement, e.add(s, rest)), x)


def acos(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The angle between 0 and pi whose cosine is x.

    It is pi/2 - asin(x) up to 1/2, then 2 asin(sqrt((1 - x) / 2)), and pi minus that of -x.
    """
    large, s, rest = _half_of_arc(e, x)
    zero, one = e.constant(0.0), e.constant(1.0)
    negative = e.compare("olt", x, zero)
    sign = e.select(negative, one, e.constant(-1.0))
    turns = e.select(large, e.select(negative, one, zero), e.constant(0.5))
    factor = e.select(large, e.mul(sign, e.constant(-2.0)), sign)
    high, low = quick_two_sum(e, e.mul(turns, e.constant(_PI)), e.mul(factor, s))
    return e.add(high, e.add(low, e.fma(factor, rest, e.mul(turns, e.constant(_PI_LOW)))))


def _half_of_arc(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Whether |x| > 1/2, and an arc as a number and a smaller one.

    The arc is asin(|x|), and asin(sqrt((1 - |x|) / 2)) == acos(|x|) / 2 where |x| > 1/2.
    """
    size = e.unary(math.AbsFOp, x)
    large = e.compare("ogt", size, e.constant(0.5))
    halved = e.mul(e.sub(e.constant(1.0), size), e.constant(0.5))
    z = e.select(large, halved, e.mul(size, size))
    root = e.unary(math.SqrtOp, z)
    s = e.select(large, root, size)
    lost = e.fma(e.unary(arith.NegfOp, root), root, z)
    remainder = e.div(lost, e.fma(root, e.constant(2.0), e.constant(_TINY)))
    rest = e.select(large, remainder, e.constant(0.0))
    return large, s, e.fma(e.mul(s, z), e.polynomial(z, _ASIN), rest)


def atan(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The angle between -pi/2 and pi/2 whose tangent is x.

    For x > 0 it is pi/4 + atan((x - 1) / (x + 1)) == pi/2 + atan(-1 / x).
    """
    zero, one = e.constant(0.0), e.constant(1.0)
    size = e.minimum(e.unary(math.AbsFOp, x), e.constant(_LARGE))
    middle = e.compare("ogt", size, e.constant(numbers.sqrt(2) - 1))
    large = e.compare("ogt", size, e.constant(numbers.sqrt(2) + 1))
    less, more = e.sub(size, one), e.add(size, one)
    lost = e.sub(size, e.add(less, one)), e.sub(size, e.sub(more, one))
    above = e.select(middle, less, size), e.select(middle, lost[0], zero)
    below = e.select(middle, more, one), e.select(middle, lost[1], zero)
    above = e.select(large, e.constant(-1.0), above[0]), e.select(large, zero, above[1])
    below = e.select(large, size, below[0]), e.select(large, zero, below[1])
    turns = e.select(large, e.constant(0.5), e.select(middle, e.constant(0.25), zero))
    arc, rest = _small_arc(e, quotient(e, above, below))
    high, low = quick_two_sum(e, e.mul(turns, e.constant(_PI)), arc)
    return e.copysign(e.add(high, e.add(low, e.fma(turns, e.constant(_PI_LOW), rest))), x)


def _small_arc(e: Arithmetic, tangent: Pair) -> Pair:
    """atan(r) for |r| <= sqrt(2) - 1."""
    (r, rest), third = tangent, e.constant(_THIRD)
    z, lost = two_product(e, r, r)
    cubic, of_cubic = two_product(e, z, third)
    low = e.fma(z, e.constant(_THIRD_LOW), e.fma(lost, third, of_cubic))
    series = e.fma(e.mul(z, z), e.polynomial(z, _ATAN), low)
    factor, low = quick_two_sum(e, cubic, series)
    product, lost = two_product(e, r, factor)
    high, more = quick_two_sum(e, r, product)
    # atan'(r) == 1 / (1 + r^2), nearly 1 - r^2
    slope = e.fma(e.unary(arith.NegfOp, rest), z, rest)
    return high, e.add(more, e.add(e.fma(r, low, lost), slope))

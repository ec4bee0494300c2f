"""Inverses of trigonometric and hyperbolic functions in f64, rounded at the end.

A value is a number and what it lacks, such as a root and the remainder of the root. The polynomials
are interpolated at the nodes of Chebyshev.
"""

from __future__ import annotations

import math as numbers

from xdsl.ir import SSAValue

from . import scalars
from .wide import Pair, Wide

_ASIN = (
    *(0.028757851367421566, -0.014851887071247204, 0.01740087944269402, 0.005457506718640358),
    *(0.01032281435018578, 0.011479177415184906, 0.013971212973552933, 0.017352392720869973),
    *(0.02237217294214989, 0.030381944138531247, 0.04464285714635543, 0.07499999999998433),
    0.16666666666666669,
)
"""(asin(s) - s) / s^3 in s * s, for |s| <= 1/2; relative error of asin(s) 2^-57."""
_ATAN = (
    *(0.017549180630233974, -0.03573718570398967, 0.04597974114837148, -0.052408370717630486),
    *(0.05880365789170543, -0.06666551888649878, 0.07692303532330036, -0.0909090900255344),
    *(0.11111111110145373, -0.14285714285710158, 0.19999999999999998),
)
"""(atan(r) - r + r^3 / 3) / r^5 in r * r, for |r| <= sqrt(2) - 1; relative error 2^-59."""
_PI, _PI_LOW = numbers.pi, 1.2246467991473532e-16
_THIRD_LOW = -1.850371707708594e-17
"""-1/3 without the number of f64 next to it."""
_TINY, _LARGE = 1e-300, 1e300
_HUGE = 2.0**60
"""From here on asinh and acosh are the logarithm of 2 x."""
_LOG_8 = numbers.log(8)


def asin(f: Wide, x: SSAValue) -> SSAValue:
    """The angle between -pi/2 and pi/2 whose sine is x."""
    large, s, rest = _half_of_arc(f, x)
    high, low = f.sum(_PI / 2, f.mul(s, -2.0))
    complement = f.add(high, f.add(low, f.fma(rest, -2.0, _PI_LOW / 2)))
    return f.with_sign(f.select(large, complement, f.add(s, rest)), x)


def acos(f: Wide, x: SSAValue) -> SSAValue:
    """The angle between 0 and pi whose cosine is x."""
    # acos(x) == pi/2 - asin(x);  == 2 asin(sqrt((1 - x) / 2)), and pi minus that of -x
    large, s, rest = _half_of_arc(f, x)
    negative = scalars.less(f.nest, x, f.number(0.0))
    sign = f.select(negative, f.number(1.0), f.number(-1.0))
    ends = f.select(negative, f.number(1.0), f.number(0.0))
    turns = f.select(large, ends, f.number(0.5))
    factor = f.select(large, f.mul(sign, -2.0), sign)
    high, low = f.sum(f.mul(turns, _PI), f.mul(factor, s))
    return f.add(high, f.add(low, f.fma(factor, rest, f.mul(turns, _PI_LOW))))


def _half_of_arc(f: Wide, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Whether |x| > 1/2, and an arc as a number and a smaller one.

    The arc is asin(|x|), and asin(sqrt((1 - |x|) / 2)) == acos(|x|) / 2 where |x| > 1/2.
    """
    size = f.absolute(x)
    large = f.above(size, 0.5)
    z = f.select(large, f.mul(f.sub(1.0, size), 0.5), f.mul(size, size))
    root = f.sqrt(z)
    s = f.select(large, root, size)
    remainder = f.divide(f.fma(f.negative(root), root, z), f.fma(root, 2.0, _TINY))
    lost = f.select(large, remainder, f.number(0.0))
    return large, s, f.fma(f.mul(s, z), f.polynomial(z, _ASIN), lost)


def atan(f: Wide, x: SSAValue) -> SSAValue:
    """The angle between -pi/2 and pi/2 whose tangent is x."""
    # atan(x) == pi/4 + atan((x - 1) / (x + 1)) == pi/2 + atan(-1 / x)  for x > 0
    size = scalars.minimum(f.nest, f.absolute(x), f.number(_LARGE))
    middle, large = f.above(size, numbers.sqrt(2) - 1), f.above(size, numbers.sqrt(2) + 1)
    less, more, zero = f.sub(size, 1.0), f.add(size, 1.0), f.number(0.0)
    lost = f.sub(size, f.add(less, 1.0)), f.sub(size, f.sub(more, 1.0))
    above = f.select(middle, less, size), f.select(middle, lost[0], zero)
    below = f.select(middle, more, f.number(1.0)), f.select(middle, lost[1], zero)
    above = f.select(large, f.number(-1.0), above[0]), f.select(large, zero, above[1])
    below = f.select(large, size, below[0]), f.select(large, zero, below[1])
    turns = f.select(middle, f.number(0.25), zero)
    turns = f.select(large, f.number(0.5), turns)
    arc, rest = _small_arc(f, _quotient(f, above, below))
    high, low = f.sum(f.mul(turns, _PI), arc)
    return f.with_sign(f.add(high, f.add(low, f.fma(turns, _PI_LOW, rest))), x)


def _quotient(f: Wide, a: Pair, b: Pair) -> Pair:
    """a / b."""
    inverse = f.divide(1.0, b[0])
    quotient = f.mul(a[0], inverse)
    minus = f.negative(quotient)
    rest = f.fma(minus, b[1], f.add(f.fma(minus, b[0], a[0]), a[1]))
    return quotient, f.mul(rest, inverse)


def _small_arc(f: Wide, tangent: Pair) -> Pair:
    """atan(r) for |r| <= sqrt(2) - 1."""
    r, rest = tangent
    z = f.mul(r, r)
    lost = f.fma(r, r, f.negative(z))
    cubic = f.mul(z, -1 / 3)
    low = f.fma(z, _THIRD_LOW, f.fma(lost, -1 / 3, f.fma(z, -1 / 3, f.negative(cubic))))
    factor, low = f.sum(cubic, f.fma(f.mul(z, z), f.polynomial(z, _ATAN), low))
    product = f.mul(r, factor)
    more = f.fma(r, low, f.fma(r, factor, f.negative(product)))
    high, low = f.sum(r, product)
    # atan'(r) == 1 / (1 + r^2), nearly 1 - r^2
    return high, f.add(low, f.add(more, f.fma(f.negative(rest), z, rest)))


def asinh(f: Wide, x: SSAValue) -> SSAValue:
    """The number whose hyperbolic sine is x."""
    # asinh(x) == log(1 + x + x^2 / (1 + sqrt(x^2 + 1)))
    size = f.absolute(x)
    huge = f.above(size, _HUGE)
    bounded = f.select(huge, f.number(1.0), size)
    root = f.sqrt(f.fma(bounded, bounded, 1.0))
    rest = f.divide(f.mul(bounded, bounded), f.add(root, 1.0))
    return f.with_sign(_logarithm(f, size, huge, f.sum(bounded, rest)), x)


def acosh(f: Wide, x: SSAValue) -> SSAValue:
    """The number of 0 or more whose hyperbolic cosine is x."""
    # acosh(x) == log(1 + t + sqrt(t (t + 2)))  with t = x - 1
    huge = f.above(x, _HUGE)
    bounded = f.select(huge, f.number(1.0), x)
    t, u = f.sum(bounded, f.number(-1.0)), f.sum(bounded, f.number(1.0))
    square = f.mul(t[0], u[0])
    rest = f.fma(t[0], u[1], f.fma(t[1], u[0], f.fma(t[0], u[0], f.negative(square))))
    root = f.sqrt(square)
    remainder = f.add(f.fma(f.negative(root), root, square), rest)
    rest = f.add(f.divide(remainder, f.fma(root, 2.0, _TINY)), t[1])
    high, low = f.sum(root, t[0])
    y = _logarithm(f, x, huge, (high, f.add(low, rest)))
    return f.select(scalars.less(f.nest, x, f.number(1.0)), f.number(numbers.nan), y)


def _logarithm(f: Wide, size: SSAValue, huge: SSAValue, usual: Pair) -> SSAValue:
    """log(1 + usual), or log(2 size) where that is huge."""
    high = f.select(huge, f.mul(size, 0.25), usual[0])
    low = f.select(huge, f.number(0.0), usual[1])
    y = f.log1p_of_pair((high, low))
    y = f.add(y, f.select(huge, f.number(_LOG_8), f.number(0.0)))
    return f.select(scalars.less(f.nest, size, f.number(numbers.inf)), y, size)

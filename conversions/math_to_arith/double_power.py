"""x^y for f64: the logarithm and its product with y are pairs of numbers."""

from __future__ import annotations

import math as scalar_math

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from .arithmetic import Arithmetic
from .doubles import (
    LN2_HIGH,
    LN2_LOW,
    Pair,
    exp_of_pair,
    quick_two_sum,
    split,
    two_product,
)
from .power import special

_ROOT_OF_HALF = 0x3FE6A09E667F3BCD
_LOG = (
    0.2857142857143315,
    0.22222222220017068,
    0.1818181860470599,
    0.15384572957283096,
    0.1333576064706938,
    0.11685095197915038,
    0.11910510193884266,
)
"""((log((1 + s) / (1 - s)) / s - 2) / z - 2/3) / z - 2/5, over z, for z = s^2 <= 0.0295.

The relative error of the logarithm is 2^-72.
"""
# 2/3 and 2/5 to f64, and the rests.
_TWO_THIRDS, _TWO_FIFTHS = (2 / 3, 3.700743415417188e-17), (2 / 5, -2.220446049250313e-17)
_MOST = 2.0**64
"""An exponent of this size makes inf or 0 of every number but 1."""


def power(e: Arithmetic, x: SSAValue, y: SSAValue) -> SSAValue:
    """x^y to 0.60 ulp, or 0.79 where it is denormal: e^(y log |x|)."""
    magnitude = e.unary(math.AbsFOp, x)
    high, low = _log(e, magnitude)
    exponent = e.clamp(y, e.constant(-_MOST), e.constant(_MOST))
    product, lost = two_product(e, exponent, high)
    product, lost = quick_two_sum(e, product, e.fma(exponent, low, lost))
    # The result of 1000 is inf, whatever is lost.
    product = e.clamp(product, e.constant(-1000.0), e.constant(1000.0))
    lost = e.clamp(lost, e.constant(-1.0), e.constant(1.0))
    result = exp_of_pair(e, product, lost)
    # The powers of 0, infinity and NaN.
    zero, inf = e.constant(0.0), e.constant(scalar_math.inf)
    positive = e.compare("ogt", y, zero)
    of_zero, of_inf = e.select(positive, zero, inf), e.select(positive, inf, zero)
    result = e.select(e.compare("oeq", magnitude, zero), of_zero, result)
    result = e.select(e.compare("oeq", magnitude, inf), of_inf, result)
    result = e.select(e.compare("uno", magnitude, y), e.constant(scalar_math.nan), result)
    return special(e, x, y, result)


def _log(e: Arithmetic, x: SSAValue) -> Pair:
    """log(x) for x > 0, to some 66 bits.

    x = 2^k (1 + f), and with s = f / (2 + f) log(1 + f) == s (2 + z (2/3 + z (2/5 + z R(z)))) with
    z = s^2.
    """
    k, f = split(e, x, _ROOT_OF_HALF)
    two, rest = quick_two_sum(e, e.constant(2.0), f)
    inverse = e.div(e.constant(1.0), two)
    s = e.mul(f, inverse)
    minus_s = e.unary(arith.NegfOp, s)
    s = s, e.mul(e.fma(minus_s, rest, e.fma(minus_s, two, f)), inverse)
    z, of_square = two_product(e, s[0], s[0])
    z = z, e.fma(e.add(s[0], s[0]), s[1], of_square)
    series = quick_two_sum(e, e.constant(_TWO_FIFTHS[0]), e.mul(z[0], e.polynomial(z[0], _LOG)))
    series = series[0], e.add(series[1], e.constant(_TWO_FIFTHS[1]))
    high, low = _product_of_pairs(e, z, series)
    series = quick_two_sum(e, e.constant(_TWO_THIRDS[0]), high)
    series = series[0], e.add(series[1], e.add(low, e.constant(_TWO_THIRDS[1])))
    series = _product_of_pairs(e, z, series)
    two, rest = quick_two_sum(e, e.constant(2.0), series[0])
    high, low = _product_of_pairs(e, s, (two, e.add(rest, series[1])))
    high, rest = quick_two_sum(e, e.mul(k, e.constant(LN2_HIGH)), high)
    return high, e.add(rest, e.fma(k, e.constant(LN2_LOW), low))


def _product_of_pairs(e: Arithmetic, a: Pair, b: Pair) -> Pair:
    """a * b to some 100 bits."""
    high, low = two_product(e, a[0], b[0])
    return high, e.fma(a[0], b[1], e.fma(a[1], b[0], low))

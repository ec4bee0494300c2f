"""Hyperbolic functions and their inverses, in f64.

Each is rounded at the end, after sums of pairs: a number and a smaller one, whose sum is precise to
some 60 bits. The errors are below 1 ulp. For f32 they are computed in f64 and rounded once.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from ...dialects.upstream import ops as upstream
from .arithmetic import Arithmetic
from .doubles import (
    EXPONENT,
    LN2_HIGH,
    LN2_LOW,
    ONE,
    TWO_THIRDS,
    Pair,
    quick_two_sum,
    reduced,
    two_product,
)

_SINH = tuple(1 / numbers.factorial(n) for n in range(3, 20, 2))
"""The series of (sinh(x) - x) / x^3 in x * x, for |x| <= 1."""
_COSH = tuple(1 / numbers.factorial(n) for n in range(4, 21, 2))
"""The series of (cosh(x) - 1 - x^2 / 2) / x^4 in x * x, for |x| <= 1."""
_TANH = (
    -0.3333333333333333,
    0.13333333333329825,
    -0.05396825396361009,
    0.021869488297234514,
    -0.008863229270067843,
    0.0035920334653723926,
    -0.001454959384380466,
    0.0005849653729022644,
    -0.00022107222975864633,
    5.946956589774769e-05,
)
"""(tanh(x) - x) / x^3 in x * x, for |x| <= 1/2; relative error of tanh(x) 2^-55.8."""
_EXP = tuple(1 / numbers.factorial(n) for n in range(3, 15))
"""The series of (exp(r) - 1 - r - r^2 / 2) / r^3, for |r| <= ln(2) / 2."""
_LOG = (
    0.6666666666666666,
    0.40000000000008085,
    0.2857142856721186,
    0.2222222305900626,
    0.18181736791297387,
    0.1538890111368957,
    0.13209054081797564,
    0.13614047041090588,
)
"""R(z) / z for 0 <= z <= 0.04, relative error 2^-55."""
_TINY = 1e-300
"""Added to a divisor that may be 0."""
_HUGE = 2.0**60
"""From here on asinh and acosh are the logarithm of 2 x."""
_LOG_8 = numbers.log(8)


def rounded_once(
    compute: Callable[[Arithmetic, SSAValue], SSAValue],
) -> Callable[[Arithmetic, SSAValue], SSAValue]:
    """A function of f32 that is computed in f64: to 0.51 ulp."""

    def expand(e: Arithmetic, x: SSAValue) -> SSAValue:
        wide = e.cast(upstream.ExtFOp, x, e.f64)
        return e.cast(upstream.TruncFOp, compute(e.in_f64(), wide), e.type)

    return expand


def sinh(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The hyperbolic sine: a series up to 1."""
    size, square = e.unary(math.AbsFOp, x), e.mul(x, x)
    series = e.fma(e.mul(x, square), e.polynomial(square, _SINH), x)
    large = e.copysign(_half_of_sum(e, size, -1.0), x)
    return e.select(e.compare("ogt", size, e.constant(1.0)), large, series)


def cosh(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The hyperbolic cosine: a series up to 1."""
    size = e.unary(math.AbsFOp, x)
    square, lost = two_product(e, x, x)
    half, lost = e.mul(square, e.constant(0.5)), e.mul(lost, e.constant(0.5))
    high, low = quick_two_sum(e, e.constant(1.0), half)
    quartic = e.mul(e.mul(square, square), e.polynomial(square, _COSH))
    series = e.add(high, e.add(e.add(low, lost), quartic))
    return e.select(e.compare("ogt", size, e.constant(1.0)), _half_of_sum(e, size, 1.0), series)


def tanh(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The hyperbolic tangent: a series up to 1/2, then 1 - 2 / (exp(2 x) + 1)."""
    size = e.minimum(e.unary(math.AbsFOp, x), e.constant(20.0))
    square = e.mul(size, size)
    series = e.fma(e.mul(size, square), e.polynomial(square, _TANH), size)
    pair, p = _exponential(e, e.add(size, size))
    (high, low), p = quick_two_sum(e, *pair), e.mul(p, e.constant(4.0))
    below, rest = quick_two_sum(e, e.mul(high, p), e.constant(1.0))
    quotient = e.div(e.constant(2.0), below)
    minus = e.unary(arith.NegfOp, quotient)
    lost = e.fma(minus, below, e.constant(2.0))
    lost = e.fma(minus, e.fma(low, p, rest), lost)
    total, more = quick_two_sum(e, e.constant(1.0), minus)
    less = e.mul(e.mul(quotient, e.constant(0.5)), lost)
    large = e.add(total, e.sub(more, less))
    return e.copysign(e.select(e.compare("ogt", size, e.constant(0.5)), large, series), x)


def asinh(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The number whose hyperbolic sine is x: log(1 + x + x^2 / (1 + sqrt(x^2 + 1)))."""
    size = e.unary(math.AbsFOp, x)
    huge = e.compare("ogt", size, e.constant(_HUGE))
    bounded = e.select(huge, e.constant(1.0), size)
    root = e.unary(math.SqrtOp, e.fma(bounded, bounded, e.constant(1.0)))
    rest = e.div(e.mul(bounded, bounded), e.add(root, e.constant(1.0)))
    return e.copysign(_logarithm(e, size, huge, quick_two_sum(e, bounded, rest)), x)


def acosh(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The number of 0 or more whose hyperbolic cosine is x; NaN below 1.

    It is log(1 + t + sqrt(t (t + 2))) with t = x - 1.
    """
    one = e.constant(1.0)
    huge = e.compare("ogt", x, e.constant(_HUGE))
    bounded = e.select(huge, one, x)
    t, u = quick_two_sum(e, bounded, e.constant(-1.0)), quick_two_sum(e, bounded, one)
    square, lost = two_product(e, t[0], u[0])
    rest = e.fma(t[0], u[1], e.fma(t[1], u[0], lost))
    root = e.unary(math.SqrtOp, square)
    remainder = e.add(e.fma(e.unary(arith.NegfOp, root), root, square), rest)
    twice = e.fma(root, e.constant(2.0), e.constant(_TINY))
    high, low = quick_two_sum(e, root, t[0])
    y = _logarithm(e, x, huge, (high, e.add(low, e.add(e.div(remainder, twice), t[1]))))
    return e.select(e.compare("olt", x, one), e.constant(numbers.nan), y)


def atanh(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The number whose hyperbolic tangent is x, log(1 + 2 x / (1 - x)) / 2; NaN beyond 1."""
    one, size = e.constant(1.0), e.unary(math.AbsFOp, x)
    twice, below = e.add(size, size), e.sub(one, size)
    lost = e.sub(e.sub(one, below), size)
    ratio = e.div(twice, below)
    minus = e.unary(arith.NegfOp, ratio)
    rest = e.fma(minus, lost, e.fma(minus, below, twice))
    y = e.mul(_log1p(e, (ratio, e.div(rest, below))), e.constant(0.5))
    y = e.select(e.compare("olt", size, one), y, ratio)
    return e.copysign(e.select(e.compare("ogt", size, one), e.constant(numbers.nan), y), x)


def _exponential(e: Arithmetic, x: SSAValue) -> tuple[Pair, SSAValue]:
    """exp(x) as a pair times 4 p, and p, which is a power of 2, for 1 <= x <= 710.5."""
    r, rest, _, rounded = reduced(e, x)
    square, lost = two_product(e, r, r)
    half, lost = e.mul(square, e.constant(0.5)), e.mul(lost, e.constant(0.5))
    one, low = quick_two_sum(e, e.constant(1.0), r)
    high, more = quick_two_sum(e, one, half)
    cubic = e.mul(e.mul(square, r), e.polynomial(r, _EXP))
    low = e.add(e.add(low, more), e.add(e.fma(rest, one, lost), cubic))
    # The low bits of `rounded` are the n of 2^n and twice the bias.
    bits = e.wrapping(arith.AddiOp, e.bitcast(rounded, e.i64), e.wide_bits(-1023 - 2))
    return (high, low), e.bitcast(e.wrapping(arith.ShLIOp, bits, e.wide_bits(52)), e.f64)


def _half_of_sum(e: Arithmetic, x: SSAValue, sign: float) -> SSAValue:
    """(exp(x) + sign exp(-x)) / 2 for x >= 1."""
    (high, low), p = _exponential(e, e.minimum(x, e.constant(710.5)))
    inverse = e.div(e.constant(sign / 16), e.mul(e.mul(p, p), e.add(high, low)))
    total, more = quick_two_sum(e, high, inverse)
    scaled = e.mul(e.add(total, e.add(more, low)), p)
    return e.add(scaled, scaled)


def _log1p(e: Arithmetic, x: Pair) -> SSAValue:
    """log(1 + x) for x >= 0."""
    unit = e.constant(1.0)
    one = e.add(x[0], unit)
    of_x, of_unit = e.sub(unit, e.sub(one, x[0])), e.sub(x[0], e.sub(one, unit))
    lost = e.select(e.compare("ogt", x[0], unit), of_x, of_unit)
    k = e.wrapping(arith.SubiOp, e.bitcast(one, e.i64), e.wide_bits(TWO_THIRDS))
    k = e.integer(arith.AndIOp, k, e.wide_bits(EXPONENT))
    scale = e.bitcast(e.wrapping(arith.SubiOp, e.wide_bits(ONE), k), e.f64)
    m = e.mul(one, scale)
    rest = e.div(e.mul(e.add(lost, x[1]), scale), m)
    n = e.cast(upstream.SIToFPOp, e.integer(arith.ShRSIOp, k, e.wide_bits(52)), e.f64)
    return _log_of_parts(e, n, e.sub(m, unit), rest)


def _log_of_parts(e: Arithmetic, n: SSAValue, f: SSAValue, rest: SSAValue) -> SSAValue:
    """n log(2) + log(1 + f) + rest for |f| <= 1/3, as in `doubles.log`."""
    square, lost = two_product(e, f, f)
    half, lost = e.mul(square, e.constant(0.5)), e.mul(lost, e.constant(0.5))
    s = e.div(f, e.add(f, e.constant(2.0)))
    z = e.mul(s, s)
    series = e.mul(s, e.fma(z, e.polynomial(z, _LOG), half))
    high, low = quick_two_sum(e, f, e.unary(arith.NegfOp, half))
    low = e.add(e.add(low, e.sub(series, lost)), e.fma(n, e.constant(LN2_LOW), rest))
    total, more = quick_two_sum(e, e.mul(n, e.constant(LN2_HIGH)), high)
    near, away = e.add(high, low), e.add(total, e.add(more, low))
    return e.select(e.compare("oeq", n, e.constant(0.0)), near, away)


def _logarithm(e: Arithmetic, size: SSAValue, huge: SSAValue, usual: Pair) -> SSAValue:
    """log(1 + usual), or log(2 size) where that is huge."""
    zero = e.constant(0.0)
    high = e.select(huge, e.mul(size, e.constant(0.25)), usual[0])
    y = _log1p(e, (high, e.select(huge, zero, usual[1])))
    y = e.add(y, e.select(huge, e.constant(_LOG_8), zero))
    return e.select(e.compare("olt", size, e.constant(numbers.inf)), y, size)

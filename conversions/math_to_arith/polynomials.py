"""The functions of `math` for f32 as arithmetic: formulas, coefficients, errors.

Each function emits operations through an `Arithmetic` and returns the value. The errors that are
stated are the largest over every f32, against f64, of machine code for x86-64 with FMA;
`STEPWELL_EXHAUSTIVE=1 pytest tests/numeric/test_math_functions.py` measures them again. An ulp is
the distance of f32 numbers at the exact result, 2^-149 for a denormal one. Nothing is flushed:
denormal arguments and results are like any others. A NaN argument gives NaN. Infinities, zeros and
their signs, poles and overflow are as in the C library: the logarithm of a negative number is NaN,
that of a zero is -inf.

The techniques are those of Cephes, of W. J. Cody and W. Waite (Software Manual for the
Elementary Functions) and of N. Juffa's published single-precision functions: reduce the range
with a fused multiply-add, evaluate a polynomial, scale by bits. The coefficients are minimax in
relative error: least squares with Lawson's weights on a Chebyshev grid, rounded to f32 one after
the other, with the rest fitted again after each.
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from ...dialects.upstream import ops as upstream
from .arithmetic import Arithmetic

# Algebraic functions, of any float type


def one(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^0, NaN^0 included."""
    return e.constant(1.0)


def identity(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^1."""
    return x


def square(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^2, rounded correctly."""
    return e.mul(x, x)


def cube(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^3 to 1.29 ulp."""
    return e.mul(e.mul(x, x), x)


def fourth(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^4 to 1.91 ulp."""
    return square(e, square(e, x))


def reciprocal(e: Arithmetic, x: SSAValue) -> SSAValue:
    """1 / x, rounded correctly."""
    return e.div(e.constant(1.0), x)


def rsqrt(e: Arithmetic, x: SSAValue) -> SSAValue:
    """1 / sqrt(x) to 0.51 ulp, or 1.49 for x < 2^-100; rsqrt(-0.0) is -inf.

    With s = sqrt(x) and y = 1 / s, both rounded, 1 - s y and x - s^2 are computed without an error,
    and 1 / sqrt(x) == y + y (1 - s y - (x - s^2) y^2 / 2) to twice as many digits.
    """
    root = e.unary(math.SqrtOp, x)
    y = reciprocal(e, root)
    if not e.can_fuse:
        return y
    minus_root = e.unary(arith.NegfOp, root)
    of_root, of_quotient = e.fma(minus_root, root, x), e.fma(minus_root, y, e.constant(1.0))
    half = e.mul(y, e.constant(-0.5))
    corrected = e.fma(y, e.fma(e.mul(of_root, y), half, of_quotient), y)
    return e.select(e.compare("oeq", corrected, corrected), corrected, y)


def root(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^0.5, rounded correctly. It differs from sqrt: it is 0 at -0 and inf at -inf."""
    infinite = e.compare("oeq", x, e.constant(-scalar_math.inf))
    positive_zero = e.add(x, e.constant(0.0))
    return e.select(infinite, e.constant(scalar_math.inf), e.unary(math.SqrtOp, positive_zero))


def three_quarters(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^0.75 to 0.51 ulp, or 1.61 for x < 2^-100; to 2.30 ulp without a fused multiply-add.

    With s = sqrt(x) and t = sqrt(s), both rounded, x - s^2 and s - t^2 are computed without an
    error, and x^0.75 == s t + (s - t^2) t / 2 + (x - s^2) 3/4 / t to twice as many digits.
    """
    half = root(e, x)
    quarter = e.unary(math.SqrtOp, half)
    product = e.mul(half, quarter)
    if not e.can_fuse:
        return product
    of_half = e.fma(e.unary(arith.NegfOp, half), half, x)
    of_quarter = e.fma(e.unary(arith.NegfOp, quarter), quarter, half)
    lost = e.fma(half, quarter, e.unary(arith.NegfOp, product))
    lost = e.fma(e.mul(of_quarter, quarter), e.constant(0.5), lost)
    lost = e.fma(e.div(of_half, quarter), e.constant(0.75), lost)
    corrected = e.add(product, lost)
    return e.select(e.compare("oeq", corrected, corrected), corrected, product)


def reciprocal_root(e: Arithmetic, x: SSAValue) -> SSAValue:
    """x^-0.5 to 1.50 ulp."""
    return reciprocal(e, root(e, x))


# Exponentials

_LN2 = scalar_math.log(2.0)
_LOG2_E = 1 / _LN2
# ln 2 in two parts, the first of 15 bits: n times it is exact.
_LN2_HIGH = 0.693145751953125
_LN2_LOW = _LN2 - _LN2_HIGH
# Adding this to |t| < 2^22 rounds t to an integer n, and puts n + 127 in the low bits.
_ROUND = 1.5 * 2**23 + 127
# The same with n + 2 * 127: each half of 2^n has an exponent of its own.
_ROUND_HALVES = _ROUND + 127
# Added to the n of a denormal result it makes the exponent of a normal number.
_RAISED = 24
_EXPONENT = -0x800000  # sign and exponent of an f32

_EXP = (
    1.0,
    1.0,
    0.4999999403953552,
    0.1666652113199234,
    0.04166825860738754,
    0.00836866907775402,
    0.0013821362517774105,
)
"""exp(r) for |r| <= ln(2) / 2, relative error 2^-28.2."""

_EXP2 = (
    1.0,
    0.6931471824645996,
    0.24022647738456726,
    0.05550359934568405,
    0.009618505835533142,
    0.0013390807434916496,
    0.00015326468565035611,
)
"""2^r for |r| <= 1/2, relative error 2^-28.3."""

_EXPM1 = (
    1.0,
    0.4999999701976776,
    0.1666654646396637,
    0.04166743531823158,
    0.00836627185344696,
    0.0013870694674551487,
)
"""(exp(r) - 1) / r for |r| <= ln(2) / 2, relative error 2^-26.1."""


def _two_to(e: Arithmetic, rounded: SSAValue) -> SSAValue:
    """2^n of `rounded`, which is n + _ROUND."""
    shifted = e.wrapping(arith.ShLIOp, e.bitcast(rounded, e.i32), e.bits(23))
    return e.bitcast(shifted, e.f32)


def _times_two_to(e: Arithmetic, p: SSAValue, n: SSAValue, rounded: SSAValue) -> SSAValue:
    """p 2^n, where `rounded` is n + _ROUND_HALVES; |n| < 254.

    Where it is no instruction, 2^n = 2^floor(n / 2) 2^ceil(n / 2): the two reach denormals and
    inf without a case, and only the second product is rounded.
    """
    if e.can_scale:
        return e.scale(p, n)
    bits = e.bitcast(rounded, e.i32)
    floor = e.wrapping(arith.ShLIOp, bits, e.bits(22))
    floor = e.integer(arith.AndIOp, floor, e.bits(_EXPONENT))
    ceil = e.wrapping(arith.SubiOp, e.wrapping(arith.ShLIOp, bits, e.bits(23)), floor)
    return e.mul(e.mul(p, e.bitcast(floor, e.f32)), e.bitcast(ceil, e.f32))


def exp(e: Arithmetic, x: SSAValue) -> SSAValue:
    """e^x to 0.90 ulp: x = n ln 2 + r, e^x = e^r 2^n."""
    x = e.clamp(x, e.constant(-104.0), e.constant(89.0))
    n, r, rounded = _reduced(e, x, _ROUND_HALVES)
    return _times_two_to(e, e.polynomial(r, _EXP), n, rounded)


# p 2^n == (p 2^-24) 2^(n + 24)  where n <= 103, and only the product is rounded
def exp_of_small(e: Arithmetic, x: SSAValue) -> SSAValue:
    """e^x for x <= 64, with the bits of `exp`: the coefficients of p contain the 2^-24."""
    n, r, rounded = _reduced(e, e.maximum(x, e.constant(-104.0)), _ROUND + _RAISED)
    if e.can_scale:
        return e.scale(e.polynomial(r, _EXP), n)
    lowered = [c * 2.0**-_RAISED for c in _EXP]
    return e.mul(e.polynomial(r, lowered), _two_to(e, rounded))


def _reduced(e: Arithmetic, x: SSAValue, round_: float) -> tuple[SSAValue, SSAValue, SSAValue]:
    """x = n ln 2 + r: n, r, and n + `round_`."""
    rounded = e.fma(x, e.constant(_LOG2_E), e.constant(round_))
    n = e.sub(rounded, e.constant(round_))
    r = e.fma(n, e.constant(-_LN2_HIGH), x)
    return n, e.fma(n, e.constant(-_LN2_LOW), r), rounded


def exp2(e: Arithmetic, x: SSAValue) -> SSAValue:
    """2^x to 0.88 ulp: x = n + r as in `exp`."""
    x = e.clamp(x, e.constant(-152.0), e.constant(129.0))
    rounded = e.add(x, e.constant(_ROUND_HALVES))
    n = e.sub(rounded, e.constant(_ROUND_HALVES))
    return _times_two_to(e, e.polynomial(e.sub(x, n), _EXP2), n, rounded)


def expm1(e: Arithmetic, x: SSAValue) -> SSAValue:
    """e^x - 1 to 2.02 ulp.

    x = n ln 2 + r, and with s = 2^(n - 1): e^x - 1 = 2 (s (e^r - 1) + (s - 1/2)). Half of
    it is computed since 2^n overflows before the result does.
    """
    clamped = e.clamp(x, e.constant(-20.0), e.constant(89.0))
    round_ = e.constant(_ROUND - 1)
    rounded = e.fma(clamped, e.constant(_LOG2_E), round_)
    n = e.sub(rounded, round_)
    r = e.fma(n, e.constant(-_LN2_HIGH), clamped)
    r = e.fma(n, e.constant(-_LN2_LOW), r)
    scale = _two_to(e, rounded)
    p = e.mul(r, e.polynomial(r, _EXPM1))
    half = e.fma(scale, p, e.sub(scale, e.constant(0.5)))
    return e.copysign(e.add(half, half), x)


# Logarithms

_TWO_THIRDS = 0x3F2AAAAB
_SMALLEST_NORMAL = 2.0**-126

_LOG = (
    -0.4999993741512298,
    0.33333200216293335,
    -0.250077486038208,
    0.20011071860790253,
    -0.1641702950000763,
    0.13997168838977814,
    -0.1538359820842743,
    0.14020393788814545,
)
"""(log(1 + f) - f) / f^2 for |f| <= 1/3; relative error of log(1 + f) 2^-25.2."""


def _log_of_one_plus(e: Arithmetic, f: SSAValue) -> SSAValue:
    """log(1 + f) for |f| <= 1/3."""
    return e.fma(e.polynomial(f, _LOG), e.mul(f, f), f)


def _split(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """x > 0 as 2^(k / 2^23) (1 + f) with |f| <= 1/3: (k, f), both f32."""
    small = e.compare("olt", x, e.constant(_SMALLEST_NORMAL))
    x = e.select(small, e.mul(x, e.constant(2.0**23)), x)
    bits = e.bitcast(x, e.i32)
    k = e.wrapping(arith.SubiOp, bits, e.bits(_TWO_THIRDS))
    k = e.integer(arith.AndIOp, k, e.bits(_EXPONENT))
    mantissa = e.bitcast(e.wrapping(arith.SubiOp, bits, k), e.f32)
    scaled = e.select(small, e.bits(23 << 23), e.bits(0))
    k = e.wrapping(arith.SubiOp, k, scaled)
    f = e.sub(mantissa, e.constant(1.0))
    return e.cast(upstream.SIToFPOp, k, e.f32), f


def log_special(e: Arithmetic, x: SSAValue, result: SSAValue, pole: float) -> SSAValue:
    """`result` where x is in (pole, inf), else -inf, inf or NaN."""
    finite = e.compare("olt", x, e.constant(scalar_math.inf))
    result = e.select(finite, result, x)
    at_pole = e.compare("oeq", x, e.constant(pole))
    outside = e.select(at_pole, e.constant(-scalar_math.inf), e.constant(scalar_math.nan))
    inside = e.compare("ugt", x, e.constant(pole))
    return e.select(inside, result, outside)


def log(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Natural logarithm to 1.07 ulp."""
    k, f = _split(e, x)
    result = e.fma(k, e.constant(_LN2 * 2.0**-23), _log_of_one_plus(e, f))
    return log_special(e, x, result, 0.0)


def log2(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Logarithm to base 2 to 2.10 ulp; exact at powers of 2."""
    k, f = _split(e, x)
    k = e.mul(k, e.constant(2.0**-23))
    result = e.fma(_log_of_one_plus(e, f), e.constant(_LOG2_E), k)
    return log_special(e, x, result, 0.0)


def log1p(e: Arithmetic, x: SSAValue) -> SSAValue:
    """log(1 + x) to 1.82 ulp: as `log`, but 1 + f = 2^-k (1 + x) is not rounded on the way.

    f = 2^-k x + (2^-k - 1), where 2^-k x is a subtraction from the exponent of x: k is not
    zero for |x| > 1/4 only.
    """
    shifted = e.add(x, e.constant(1.0))
    k = e.wrapping(arith.SubiOp, e.bitcast(shifted, e.i32), e.bits(_TWO_THIRDS))
    k = e.integer(arith.AndIOp, k, e.bits(_EXPONENT))
    f = e.bitcast(e.wrapping(arith.SubiOp, e.bitcast(x, e.i32), k), e.f32)
    four = e.bitcast(e.wrapping(arith.SubiOp, e.bits(0x40800000), k), e.f32)
    f = e.add(f, e.fma(four, e.constant(0.25), e.constant(-1.0)))
    k = e.cast(upstream.SIToFPOp, k, e.f32)
    result = e.fma(k, e.constant(_LN2 * 2.0**-23), _log_of_one_plus(e, f))
    return e.copysign(log_special(e, x, result, -1.0), x)


# Sigmoids

_TANH = (
    2.0,
    1.9999998807907104,
    1.3333237171173096,
    0.6666789650917053,
    0.26772069931030273,
    0.08877243846654892,
)
"""(exp(2 r) - 1) / r for |r| <= ln(2) / 4, relative error 2^-26.1."""

_ERF_NEAR_0 = (
    0.12837916612625122,
    -0.37612590193748474,
    0.11282864958047867,
    -0.026807287707924843,
    0.0050577037036418915,
    -0.0006348518654704094,
)
"""erf(t) / t - 1 in t^2 for 0 <= t <= 0.85; relative error of erf(t) 2^-27.1."""

_ERF_BEYOND = (
    -1.6282225847244263,
    -0.9166354537010193,
    -0.1527465432882309,
    0.03382010757923126,
    -0.005031087435781956,
    0.00040929217357188463,
    -1.0438026947667822e-05,
)
"""log2(1 - erf(t)) / t for 0.83 <= t <= 3.93; relative error of erf(t) 2^-29.4."""

_ERF = (
    -1.6279070377349854,
    -0.9184446930885315,
    -0.14832158386707306,
    0.027852287515997887,
    -0.00026525818975642323,
    -0.0018280455842614174,
    0.0005573094822466373,
    -5.9748112107627094e-05,
)
"""log2(1 - erf(t)) / t for 0 <= t <= 3.93; relative error of erf(t) 2^-24.7."""

_EXP2M1 = (
    0.6931471824645996,
    0.24022649228572845,
    0.05550367385149002,
    0.0096183056011796,
    0.001338742091320455,
    0.00015384577272925526,
)
"""(2^r - 1) / r for |r| <= 1/2, relative error 2^-26.2."""


def tanh(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Hyperbolic tangent to 3.33 ulp; 1 from 9.02 on, never more.

    With t = |x| = n ln(2) / 2 + r and m = e^2t - 1 as in `expm1`, tanh(t) = m / (m + 2). The
    quotient cannot exceed 1. A rational function of x would be shorter and does: where the
    result is almost 1, errors of numerator and denominator count in full.
    """
    t = e.minimum(e.unary(math.AbsFOp, x), e.constant(10.0))
    rounded = e.fma(t, e.constant(2 * _LOG2_E), e.constant(_ROUND))
    n = e.sub(rounded, e.constant(_ROUND))
    r = e.fma(n, e.constant(-_LN2 / 2), t)
    scale = _two_to(e, rounded)
    p = e.mul(r, e.polynomial(r, _TANH))
    m = e.fma(scale, p, e.sub(scale, e.constant(1.0)))
    return e.copysign(e.div(m, e.add(m, e.constant(2.0))), x)


_NEGATED = _ROUND + 256
"""With the sign bit: `_two_to` gives -2^n."""


def erf(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Error function to 0.87 ulp; 1 from 3.93 on, never more.

    Below 0.83 it is t plus a small multiple of t = |x|, rounded once. Beyond, erf(t) = 1 - 2^w with
    a polynomial w = log2(1 - erf(t)) = n + r. Its first term is large: n is taken from it before
    the others are added, so that r is not that of a rounded w.
    """
    t = e.minimum(e.unary(math.AbsFOp, x), e.constant(3.93))
    square = e.mul(t, t)
    near = e.fma(e.polynomial(square, _ERF_NEAR_0), t, t)
    rounded, r = exponent_beyond(e, t, square, _ERF_BEYOND, _NEGATED)
    beyond = one_minus_two_to(e, _two_to(e, rounded), r, _EXP2M1)
    return e.copysign(e.select(e.compare("olt", t, e.constant(0.83)), near, beyond), x)


def exponent_beyond(
    e: Arithmetic, t: SSAValue, square: SSAValue, coefficients: Sequence[float], shift: float
) -> tuple[SSAValue, SSAValue]:
    """w = n + r of `erf`, a polynomial without a constant term, as n + shift and r."""
    first, *others = coefficients
    rest = e.polynomial(t, others)
    rounded = e.add(e.fma(square, rest, e.mul(e.constant(first), t)), e.constant(shift))
    minus_n = e.sub(e.constant(shift), rounded)
    return rounded, e.fma(square, rest, e.fma(t, e.constant(first), minus_n))


def quick_erf(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Error function to 3.10 ulp; 1 from 3.93 on, never more.

    It is `erf` with the formula of what is beyond 0.83 everywhere: w has no constant term.
    """
    t = e.minimum(e.unary(math.AbsFOp, x), e.constant(3.93))
    w = e.mul(t, e.polynomial(t, _ERF))
    rounded = e.add(w, e.constant(_NEGATED))
    r = e.sub(w, e.sub(rounded, e.constant(_NEGATED)))
    return e.copysign(one_minus_two_to(e, _two_to(e, rounded), r, _EXP2M1), x)


def one_minus_two_to(
    e: Arithmetic, scale: SSAValue, r: SSAValue, coefficients: Sequence[float]
) -> SSAValue:
    """1 - 2^(n + r), where `scale` is -2^n; never above 1, and precise at 0.

    `coefficients` are those of (2^r - 1) / r.
    """
    p = e.mul(r, e.polynomial(r, coefficients))
    return e.fma(scale, p, e.add(scale, e.constant(1.0)))

"""The functions of `math` for f64 as arithmetic: formulas, coefficients, errors.

They are like those of `polynomials.py` for f32. The errors that are stated are the largest over
10^7 numbers and more for each: of all sizes, and near the bounds of formulas, against extended
precision; `STEPWELL_EXHAUSTIVE=1 pytest tests/numeric/test_math_functions.py` measures them again.
Denormal numbers, infinities, zeros and NaN are as there.

The logarithm is that of FDLIBM (Sun Microsystems, 1993). The coefficients are fitted in relative
error by least squares at the nodes of Chebyshev, rounded to f64 one after the other, with the rest
fitted again after each.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from .arithmetic import Arithmetic
from .polynomials import exponent_beyond, log_special, one_minus_two_to

Pair = tuple[SSAValue, SSAValue]
"""A number, and a smaller one that it lacks."""

# Sums and products without an error


def two_sum(e: Arithmetic, a: SSAValue, b: SSAValue) -> Pair:
    """a + b, rounded, and what that lacks (Knuth)."""
    total = e.add(a, b)
    of_b = e.sub(total, a)
    return total, e.add(e.sub(a, e.sub(total, of_b)), e.sub(b, of_b))


def quick_two_sum(e: Arithmetic, a: SSAValue, b: SSAValue) -> Pair:
    """The same where a is 0 or |a| >= |b| (Dekker)."""
    total = e.add(a, b)
    return total, e.sub(b, e.sub(total, a))


def two_product(e: Arithmetic, a: SSAValue, b: SSAValue) -> Pair:
    """a * b, rounded, and what that lacks, on a target with fma."""
    product = e.mul(a, b)
    return product, e.fma(a, b, e.unary(arith.NegfOp, product))


def quotient(e: Arithmetic, a: Pair, b: Pair) -> Pair:
    """a / b, on a target with fma."""
    inverse = e.div(e.constant(1.0), b[0])
    first = e.mul(a[0], inverse)
    minus = e.unary(arith.NegfOp, first)
    rest = e.fma(minus, b[1], e.add(e.fma(minus, b[0], a[0]), a[1]))
    return first, e.mul(rest, inverse)


# Exponentials

_LOG2_E, _LOG2_E_REST = 1.4426950408889634, 2.0355273740931033e-17
# ln 2 in two parts, the first of 32 bits: n times it is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# The same to f64, and the rest.
_LN2, _LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
# Adding this to |t| < 2^51 rounds t to an integer n, and puts n + 1023 in the low bits.
_ROUND = 1.5 * 2.0**52 + 1023
# The same with n + 2 * 1023: each half of 2^n has an exponent of its own.
_ROUND_HALVES = _ROUND + 1023
EXPONENT = -1 << 52  # sign and exponent

_EXP = (
    0.5,
    0.16666666666666685,
    0.041666666666666526,
    0.008333333333315995,
    0.0013888888888968006,
    0.00019841269898513518,
    2.4801587155248963e-05,
    2.7557233039832656e-06,
    2.755741770284334e-07,
    2.511259393317407e-08,
    2.0871063566459838e-09,
)
"""(exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, relative error of exp(r) 2^-63."""


def _times_two_to(e: Arithmetic, p: SSAValue, rounded: SSAValue) -> SSAValue:
    """p 2^n, where `rounded` is n + _ROUND_HALVES; |n| < 2046.

    2^n = 2^floor(n / 2) 2^ceil(n / 2): the two reach denormals and inf without a case, and only the
    second product is rounded.
    """
    bits = e.bitcast(rounded, e.i64)
    floor = e.wrapping(arith.ShLIOp, bits, e.wide_bits(51))
    floor = e.integer(arith.AndIOp, floor, e.wide_bits(EXPONENT))
    ceil = e.wrapping(arith.SubiOp, e.wrapping(arith.ShLIOp, bits, e.wide_bits(52)), floor)
    return e.mul(e.mul(p, e.bitcast(floor, e.f64)), e.bitcast(ceil, e.f64))


def _plus_one(e: Arithmetic, one: SSAValue, r: SSAValue, lost: SSAValue) -> SSAValue:
    """one + (e^(r + lost) - 1) for |r| <= ln(2) / 2, where `one` is 0 or at least |r|."""
    total, more = quick_two_sum(e, one, r)
    return e.add(total, e.fma(e.mul(r, r), e.polynomial(r, _EXP), e.add(more, lost)))


def _plus_one_precisely(e: Arithmetic, one: SSAValue, r: SSAValue, lost: SSAValue) -> SSAValue:
    """The same, of which r^2 / 2 is not rounded."""
    square = e.mul(r, r)
    half = e.mul(square, e.constant(0.5))
    cubic = e.mul(e.mul(square, r), e.polynomial(r, _EXP[1:]))
    lost = e.fma(e.fma(r, r, e.unary(arith.NegfOp, square)), e.constant(0.5), lost)
    total, first = quick_two_sum(e, one, r)
    total, second = quick_two_sum(e, total, half)
    return e.add(total, e.add(e.add(first, second), e.add(lost, cubic)))


def reduced(
    e: Arithmetic, x: SSAValue, low: SSAValue | None = None
) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
    """x + low as n ln 2 + r + lost: r, lost, n, and n + _ROUND_HALVES."""
    rounded = e.fma(x, e.constant(_LOG2_E), e.constant(_ROUND_HALVES))
    n = e.sub(rounded, e.constant(_ROUND_HALVES))
    high, less = e.fma(n, e.constant(-LN2_HIGH), x), e.mul(n, e.constant(LN2_LOW))
    less = less if low is None else e.sub(less, low)
    r = e.sub(high, less)
    return r, e.sub(e.sub(high, r), less), n, rounded


def exp(e: Arithmetic, x: SSAValue) -> SSAValue:
    """e^x to 0.65 ulp, or 0.79 where it is denormal: as in f32, but r and 1 + r are pairs."""
    x = e.clamp(x, e.constant(-746.0), e.constant(710.0))
    r, lost, _, rounded = reduced(e, x)
    return _times_two_to(e, _plus_one(e, e.constant(1.0), r, lost), rounded)


def exp_of_pair(e: Arithmetic, x: SSAValue, low: SSAValue) -> SSAValue:
    """e^(x + low) to 0.60 ulp, where `low` is at most the last place of x and |x| <= 1000."""
    r, lost, _, rounded = reduced(e, x, low)
    return _times_two_to(e, _plus_one_precisely(e, e.constant(1.0), r, lost), rounded)


def exp2(e: Arithmetic, x: SSAValue) -> SSAValue:
    """2^x to 0.68 ulp, or 0.79 where it is denormal: x = n + t, 2^x = e^(t ln 2) 2^n."""
    x = e.clamp(x, e.constant(-1076.0), e.constant(1025.0))
    rounded = e.add(x, e.constant(_ROUND_HALVES))
    t = e.sub(x, e.sub(rounded, e.constant(_ROUND_HALVES)))
    r = e.mul(t, e.constant(_LN2))
    lost = e.fma(t, e.constant(_LN2), e.unary(arith.NegfOp, r))
    lost = e.fma(t, e.constant(_LN2_REST), lost)
    return _times_two_to(e, _plus_one(e, e.constant(1.0), r, lost), rounded)


def expm1(e: Arithmetic, x: SSAValue) -> SSAValue:
    """e^x - 1 to 0.80 ulp: with x = n ln 2 + r it is 2^n ((1 - 2^-n) + (e^r - 1))."""
    clamped = e.clamp(x, e.constant(-40.0), e.constant(710.0))
    r, lost, n, rounded = reduced(e, clamped)
    # Beyond 2^-60 it does not count.
    bits = e.sub(e.constant(_ROUND), e.minimum(n, e.constant(60.0)))
    inverse = e.bitcast(e.wrapping(arith.ShLIOp, e.bitcast(bits, e.i64), e.wide_bits(52)), e.f64)
    one = e.sub(e.constant(1.0), inverse)
    lost = e.add(lost, e.sub(e.sub(e.constant(1.0), one), inverse))
    total = _plus_one_precisely(e, one, r, lost)
    return e.copysign(_times_two_to(e, total, rounded), x)


# Logarithms

TWO_THIRDS = 0x3FE5555555555555
_SMALLEST_NORMAL = 2.0**-1022
_INTEGER = 0x433 << 52  # 2^52: its last bit is worth 1
_BIAS = 2.0**52 + 1023
ONE, _FOUR = 1023 << 52, 1025 << 52
_MANTISSA = (1 << 52) - 1

_LOG = (
    0.666666666666666,
    0.4000000000005667,
    0.2857142855582956,
    0.22222224296516227,
    0.18181665859844565,
    0.15391112895803089,
    0.1317357638500592,
    0.138432390054763,
)
"""(log((1 + s) / (1 - s)) / s - 2) / z in z = s^2 <= 0.04, relative error of it all 2^-62."""


def _biased(e: Arithmetic, x: SSAValue, least: int = TWO_THIRDS) -> SSAValue:
    """The bits of x / least, as if mantissas were subtracted: k + 1023 is its exponent."""
    return e.wrapping(arith.AddiOp, e.bitcast(x, e.i64), e.wide_bits(ONE - least))


def _exponent(e: Arithmetic, biased: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    """k as a number."""
    k = e.integer(arith.ShRUIOp, biased, e.wide_bits(52))
    k = e.bitcast(e.integer(arith.OrIOp, k, e.wide_bits(_INTEGER)), e.f64)
    return e.sub(k, e.constant(_BIAS) if bias is None else bias)


def split(e: Arithmetic, x: SSAValue, least: int = TWO_THIRDS) -> tuple[SSAValue, SSAValue]:
    """x > 0 as 2^k (1 + f), where 1 + f is at least the number of the bits `least`: (k, f).

    By default |f| <= 1/3.
    """
    small = e.compare("olt", x, e.constant(_SMALLEST_NORMAL))
    biased = _biased(e, e.select(small, e.mul(x, e.constant(2.0**54)), x), least)
    k = _exponent(e, biased, e.select(small, e.constant(_BIAS + 54), e.constant(_BIAS)))
    mantissa = e.integer(arith.AndIOp, biased, e.wide_bits(_MANTISSA))
    mantissa = e.wrapping(arith.AddiOp, mantissa, e.wide_bits(least))
    return k, e.sub(e.bitcast(mantissa, e.f64), e.constant(1.0))


def _quotient(e: Arithmetic, f: SSAValue) -> SSAValue:
    """s = f / (2 + f)."""
    return e.div(f, e.add(f, e.constant(2.0)))


def _log_of_one_plus(
    e: Arithmetic, f: SSAValue, s: SSAValue, low: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """f^2 / 2, and what makes log(1 + f) + low of f - f^2 / 2.

    With s = f / (2 + f), log(1 + f) == f - f^2 / 2 + s (f^2 / 2 + R(s^2)).
    """
    z = e.mul(s, s)
    half = e.mul(e.mul(f, f), e.constant(0.5))
    return half, e.fma(s, e.fma(z, e.polynomial(z, _LOG), half), low)


def _with_exponent(
    e: Arithmetic, k: SSAValue, f: SSAValue, s: SSAValue, low: SSAValue | None = None
) -> SSAValue:
    """k ln 2 + log(1 + f) + low."""
    less = e.mul(k, e.constant(LN2_LOW))
    half, rest = _log_of_one_plus(e, f, s, less if low is None else e.add(less, low))
    return e.fma(k, e.constant(LN2_HIGH), e.sub(f, e.sub(half, rest)))


def log(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Natural logarithm to 0.83 ulp."""
    k, f = split(e, x)
    return log_special(e, x, _with_exponent(e, k, f, _quotient(e, f)), 0.0)


def log2(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Logarithm to base 2 to 0.77 ulp; exact at powers of 2."""
    k, f = split(e, x)
    half, rest = _log_of_one_plus(e, f, _quotient(e, f), e.constant(0.0))
    high, lost = quick_two_sum(e, f, e.unary(arith.NegfOp, half))
    low = e.add(lost, rest)
    product = e.mul(high, e.constant(_LOG2_E))
    lost = e.fma(high, e.constant(_LOG2_E), e.unary(arith.NegfOp, product))
    low = e.fma(low, e.constant(_LOG2_E), e.fma(high, e.constant(_LOG2_E_REST), lost))
    total, lost = quick_two_sum(e, k, product)
    return log_special(e, x, e.add(total, e.add(lost, low)), 0.0)


def log1p(e: Arithmetic, x: SSAValue) -> SSAValue:
    """log(1 + x) to 0.85 ulp: as in f32, but f is a pair.

    f = 2^-k x + (2^-k - 1); 1 / (1 + f) is nearly (1 - s)^2.
    """
    biased = _biased(e, e.add(x, e.constant(1.0)))
    k = _exponent(e, biased)
    shift = e.integer(arith.AndIOp, biased, e.wide_bits(EXPONENT))
    shift = e.wrapping(arith.SubiOp, shift, e.wide_bits(ONE))
    scaled = e.bitcast(e.wrapping(arith.SubiOp, e.bitcast(x, e.i64), shift), e.f64)
    four = e.bitcast(e.wrapping(arith.SubiOp, e.wide_bits(_FOUR), shift), e.f64)
    one = e.fma(four, e.constant(0.25), e.constant(-1.0))
    f, lost = two_sum(e, scaled, one)
    s = _quotient(e, f)
    slope = e.sub(e.constant(1.0), s)
    result = _with_exponent(e, k, f, s, e.mul(lost, e.mul(slope, slope)))
    return e.copysign(log_special(e, x, result, -1.0), x)


# The error function

_ERF_NEAR_0 = (
    0.12837916709551256,
    -0.37612638903183215,
    0.11283791670926016,
    -0.026866170639014714,
    0.005223977559529554,
    -0.0008548322872887206,
    0.00012055169597673418,
    -1.492150298484305e-05,
    1.639402912349175e-06,
    -1.5662874918234815e-07,
    1.0578066005200134e-08,
)
"""erf(t) / t - 1 in t^2 for 0 <= t <= 0.86; relative error of erf(t) 2^-55.8."""

_ERF_BEYOND = (
    -1.627907071253848,
    -0.9184476685561255,
    -0.14827250126162658,
    0.027607148870953495,
    0.00027520506536159243,
    -0.002397591501333241,
    0.000780219724426826,
    4.338447660392643e-05,
    -0.0001662906253876894,
    9.629582001359645e-05,
    -3.6040002876345985e-05,
    1.0069298338059018e-05,
    -2.1815802091306854e-06,
    3.681365415840996e-07,
    -4.7684887878453813e-08,
    4.58893000508929e-09,
    -3.092361116461878e-10,
    1.3019253733773981e-11,
    -2.575539150030424e-13,
)
"""log2(1 - erf(t)) / t for 0.84 <= t <= 5.95; relative error of erf(t) 2^-59."""

_EXP2M1 = (
    0.6931471805599453,
    0.24022650695910072,
    0.055504108664822936,
    0.009618129107628048,
    0.001333355814616435,
    0.00015403530394056094,
    1.5252734036958702e-05,
    1.321548631296782e-06,
    1.017798553771145e-07,
    7.055064304073222e-09,
    4.4655591984198765e-10,
    2.5516443294979067e-11,
)
"""(2^r - 1) / r for |r| <= 1/2, relative error of 2^r - 1 2^-59."""

# With the sign bit: its bits shifted by 52 are those of -2^n.
_NEGATED = 1.5 * 2.0**52 + 1023 + 2048
_LAST = 5.93
"""From here on the error function is 1."""


def erf(e: Arithmetic, x: SSAValue) -> SSAValue:
    """Error function to 0.90 ulp; 1 from 5.93 on, never more: as in f32."""
    t = e.minimum(e.unary(math.AbsFOp, x), e.constant(_LAST))
    square = e.mul(t, t)
    near = e.fma(e.polynomial(square, _ERF_NEAR_0), t, t)
    rounded, r = exponent_beyond(e, t, square, _ERF_BEYOND, _NEGATED)
    bits = e.wrapping(arith.ShLIOp, e.bitcast(rounded, e.i64), e.wide_bits(52))
    beyond = one_minus_two_to(e, e.bitcast(bits, e.f64), r, _EXP2M1)
    return e.copysign(e.select(e.compare("olt", t, e.constant(0.85)), near, beyond), x)

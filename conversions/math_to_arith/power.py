"""x^y for f32, which is computed in f64; the error is the largest over 10^9 pairs."""

from __future__ import annotations

import math as scalar_math

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from ...dialects.upstream import ops as upstream
from .arithmetic import Arithmetic

_LOG2_F64 = (
    1.4426950407474992,
    -0.7213475196227155,
    0.4808984377963159,
    -0.36067396903556914,
    0.2885295903311289,
    -0.24043414202617755,
    0.2064542309372542,
    -0.18079617492075098,
    0.15432625614288698,
    -0.13754997310240316,
    0.17607937717679686,
    -0.16581476829925307,
)
"""log2(1 + f) / f for |f| <= 1/3, relative error 2^-33.2."""

_ONE_F64 = 1023 << 52
_TWO_THIRDS_F64 = 0x3FE5555555555555
_MANTISSA_F64 = (1 << 52) - 1
_INTEGER_F64 = 0x433 << 52  # 2^52: its last bit is worth 1


def _log2_f64(e: Arithmetic, magnitude: SSAValue) -> SSAValue:
    """log2 of an f32 >= 0 in f64, where no f32 is denormal; -inf at 0, inf at inf."""
    wide = e.cast(upstream.ExtFOp, magnitude, e.f64)
    offset = e.wide_bits(_ONE_F64 - _TWO_THIRDS_F64)
    biased = e.wrapping(arith.AddiOp, e.bitcast(wide, e.i64), offset)
    k = e.integer(arith.ShRUIOp, biased, e.wide_bits(52))
    k = e.bitcast(e.integer(arith.OrIOp, k, e.wide_bits(_INTEGER_F64)), e.f64)
    k = e.sub(k, e.double(2.0**52 + 1023))
    mantissa = e.integer(arith.AndIOp, biased, e.wide_bits(_MANTISSA_F64))
    mantissa = e.wrapping(arith.AddiOp, mantissa, e.wide_bits(_TWO_THIRDS_F64))
    f = e.sub(e.bitcast(mantissa, e.f64), e.double(1.0))
    result = e.fma(f, e.polynomial(f, _LOG2_F64, e.f64), k)
    # Too small to count unless it is inf or NaN.
    result = e.fma(wide, e.double(2.0**-1000), result)
    zero = e.compare("oeq", wide, e.double(0.0))
    return e.select(zero, e.double(-scalar_math.inf), result)


_EXP2_F64 = (
    1.0,
    0.6931472028559711,
    0.2402264791349905,
    0.0555033246969354,
    0.009618437366412496,
    0.0013398874866727222,
    0.00015353360631841542,
)
"""2^r for |r| <= 1/2, relative error 2^-28.9."""


_LARGEST = 3.4028234663852886e38


def _exp2_f64(e: Arithmetic, z: SSAValue) -> SSAValue:
    """2^z as f32: z = n + r, and n is added to the exponent of 2^r, which is rounded at last."""
    z = e.clamp(z, e.double(-152.0), e.double(129.0))
    round_ = e.double(1.5 * 2.0**52)
    rounded = e.add(z, round_)
    p = e.polynomial(e.sub(z, e.sub(rounded, round_)), _EXP2_F64, e.f64)
    n = e.wrapping(arith.ShLIOp, e.bitcast(rounded, e.i64), e.wide_bits(52))
    p = e.bitcast(e.wrapping(arith.AddiOp, e.bitcast(p, e.i64), n), e.f64)
    return e.cast(upstream.TruncFOp, p, e.f32)


def power(e: Arithmetic, x: SSAValue, y: SSAValue) -> SSAValue:
    """x^y to 0.75 ulp: 2^(y log2 |x|), the product in f64."""
    # A finite y keeps 1^inf = 1.
    exponent = e.clamp(y, e.constant(-_LARGEST), e.constant(_LARGEST))
    exponent = e.cast(upstream.ExtFOp, exponent, e.f64)
    magnitude = e.unary(math.AbsFOp, x)
    result = _exp2_f64(e, e.mul(exponent, _log2_f64(e, magnitude)))
    return special(e, x, y, result)


def special(e: Arithmetic, x: SSAValue, y: SSAValue, result: SSAValue) -> SSAValue:
    """x^y, where `result` is |x|^y; special cases as IEEE 754 `pow`."""
    rounded = e.unary(math.RoundEvenOp, y)
    whole = e.compare("oeq", rounded, y)
    half = e.mul(y, e.constant(0.5))
    odd = e.compare("une", e.unary(math.RoundEvenOp, half), half)
    odd = e.integer(arith.AndIOp, odd, whole)
    result = e.copysign(result, e.select(odd, x, e.constant(1.0)))
    negative = e.compare("olt", x, e.constant(0.0))
    finite = e.compare("olt", e.unary(math.AbsFOp, x), e.constant(scalar_math.inf))
    inexact = e.compare("une", rounded, y)
    invalid = e.integer(arith.AndIOp, e.integer(arith.AndIOp, negative, finite), inexact)
    result = e.select(invalid, e.constant(scalar_math.nan), result)
    unit = e.compare("oeq", x, e.constant(1.0))
    none = e.compare("oeq", y, e.constant(0.0))
    return e.select(e.integer(arith.OrIOp, unit, none), e.constant(1.0), result)

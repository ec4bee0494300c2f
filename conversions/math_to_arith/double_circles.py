"""Sine, cosine and tangent of f64 for devices, which have no C library: formulas, errors.

As in f32, an angle is n quarters of a circle and a rest up to pi/4. The rest is a number and what
that lacks, to 2^-64 of itself where it is smallest: some 2^-62, next to a multiple of pi/2. Below
2^20 it follows from four parts of pi/2, beyond from 192 bits of 2/pi. Polynomials are fitted as in
`doubles.py`.
"""

from __future__ import annotations

import math as scalar_math
from itertools import pairwise

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ...dialects.upstream import ops as upstream
from .arithmetic import Arithmetic
from .circles import LARGE, QUARTERS, ROUND, TWO_OVER_PI, is_odd, negated, signed
from .doubles import Pair, quick_two_sum, quotient, two_product, two_sum

# pi/2 in four parts, the first three of 33 bits: n times each is exact.
_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
_QUARTER, _QUARTER_LOW = scalar_math.pi / 2, 6.123233995736766e-17

_FRONT = 34
"""Zeros before the point, so that the first bit for 2^20 is the first one of all."""
_COUNT = 19
_BITS = TWO_OVER_PI >> (1216 - (64 * _COUNT - _FRONT))
_WORDS = [_BITS >> (64 * n) & (1 << 64) - 1 for n in reversed(range(_COUNT))]
"""2/pi in words of 64 bits."""
_LEAST = 1075 - 32
"""The biased exponent of 2^20, of whose product with 2/pi the first word is the first one."""

_SIN = (
    -0.16666666666666666,
    0.008333333333333099,
    -0.00019841269841054567,
    2.7557319127887946e-06,
    -2.505208561205162e-08,
    1.605620442794025e-10,
    -7.482749790849845e-13,
)
"""(sin(r) / r - 1) / r^2 in r^2 for |r| <= pi/4, relative error of sin(r) 2^-62."""
_COS = (
    0.04166666666666659,
    -0.0013888888888872349,
    2.4801587288469634e-05,
    -2.755731408151118e-07,
    2.0875688855954087e-09,
    -1.1357969339243456e-11,
)
"""(cos(r) - 1 + r^2 / 2) / r^4 in r^2, relative error of cos(r) 2^-63."""


def sin(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The sine to 0.80 ulp; that of a zero is the zero."""
    sine, cosine, quarters = _of_angle(e, x)
    found = e.select(is_odd(e, quarters), e.add(*cosine), e.add(*sine))
    return signed(e, negated(e, found, quarters), x)


def cos(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The cosine to 0.80 ulp."""
    sine, cosine, quarters = _of_angle(e, x)
    found = e.select(is_odd(e, quarters), e.add(*sine), e.add(*cosine))
    return negated(e, found, e.wrapping(arith.AddiOp, quarters, e.wide_bits(1)))


def tan(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The tangent to 0.90 ulp; that of a zero is the zero."""
    sine, cosine, quarters = _of_angle(e, x)
    odd = is_odd(e, quarters)
    over = [e.select(odd, a, b) for a, b in zip(cosine, sine, strict=True)]
    under = [e.select(odd, e.unary(arith.NegfOp, a), b) for a, b in zip(sine, cosine, strict=True)]
    high, low = quotient(e, (over[0], over[1]), (under[0], under[1]))
    return signed(e, e.add(high, low), x)


def _of_angle(e: Arithmetic, x: SSAValue) -> tuple[Pair, Pair, SSAValue]:
    """|x| = n pi/2 + r: the sine and the cosine of r, and an integer that is n mod 4.

    They are NaN where x is an infinity or NaN.
    """
    size = e.unary(math.AbsFOp, x)
    is_near = e.compare("olt", size, e.constant(LARGE))
    both = zip(_near(e, size), _far(e, size), strict=True)
    r, low, quarters = (e.select(is_near, near, far) for near, far in both)
    r = e.add(r, e.sub(size, size))
    square = e.mul(r, r)
    half = e.mul(square, e.constant(0.5))
    one = e.constant(1.0)
    # sin(r + low) == sin(r) + low cos(r), nearly, and cos(r) == 1 - r^2 / 2
    cubic = e.mul(e.mul(square, r), e.polynomial(square, _SIN))
    sine = quick_two_sum(e, r, e.add(cubic, e.sub(low, e.mul(low, half))))
    # cos(r + low) == cos(r) - low sin(r)
    most, lost = quick_two_sum(e, one, e.unary(arith.NegfOp, half))
    lost = e.sub(lost, e.mul(e.fma(r, r, e.unary(arith.NegfOp, square)), e.constant(0.5)))
    rest = e.fma(e.mul(square, square), e.polynomial(square, _COS), e.sub(lost, e.mul(r, low)))
    return sine, quick_two_sum(e, most, rest), quarters


def _near(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The rest, as a pair, and the number of quarters for x below 2^20."""
    rounded = e.fma(x, e.constant(QUARTERS), e.constant(ROUND))
    minus = e.sub(e.constant(ROUND), rounded)
    first, second, third, fourth = (e.constant(part) for part in _PARTS)
    rest = e.fma(minus, first, x)
    rest, less = two_sum(e, rest, e.mul(minus, second))
    rest, least = two_sum(e, rest, e.mul(minus, third))
    low = e.fma(minus, fourth, e.add(less, least))
    return *quick_two_sum(e, rest, low), e.bitcast(rounded, e.i64)


# x == m 2^k:  x 2/pi mod 4 == (m times the bits of 2/pi from the (k - 1)-th on) mod 4
def _far(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The rest, as a pair, and the number of quarters for x from 2^20 on.

    A product has two bits of n and 126 of the rest.
    """
    bits = e.bitcast(x, e.i64)
    fraction = e.integer(arith.AndIOp, bits, e.wide_bits((1 << 52) - 1))
    m = e.integer(arith.OrIOp, fraction, e.wide_bits(1 << 52))
    first = e.integer(arith.ShRUIOp, bits, e.wide_bits(52))
    first = e.wrapping(arith.SubiOp, first, e.wide_bits(_LEAST))
    words = _words(e, first)
    high, carried = _product(e, m, words[1])
    most = e.wrapping(arith.AddiOp, e.wrapping(arith.MuliOp, m, words[0]), high)
    added = _product(e, m, words[2])[0]
    least = e.wrapping(arith.AddiOp, carried, added)
    most = e.wrapping(arith.AddiOp, most, _carry(e, carried, added, least))
    rounding = e.wrapping(arith.AddiOp, most, e.wide_bits(1 << 61))
    quarters = e.integer(arith.ShRUIOp, rounding, e.wide_bits(62))
    whole = e.wrapping(arith.ShLIOp, quarters, e.wide_bits(62))
    most = e.wrapping(arith.SubiOp, most, whole)
    parts = [_upper(e, most, arith.ShRSIOp), _lower(e, most), _upper(e, least), _lower(e, least)]
    # Each is a multiple of what all after it are below.
    parts = [
        e.mul(e.cast(upstream.SIToFPOp, part, e.f64), e.constant(2.0**power))
        for part, power in zip(parts, (-30, -62, -94, -126), strict=True)
    ]
    rest, less = quick_two_sum(e, parts[0], parts[1])
    rest, least = quick_two_sum(e, rest, parts[2])
    low = e.add(less, e.add(least, parts[3]))
    product, lost = two_product(e, rest, e.constant(_QUARTER))
    low = e.fma(low, e.constant(_QUARTER), e.fma(rest, e.constant(_QUARTER_LOW), lost))
    return *quick_two_sum(e, product, low), quarters


def _words(e: Arithmetic, first: SSAValue) -> list[SSAValue]:
    """Three words of 2/pi from a bit on, which is below 1024.

    The bits of the number of the first word choose among its candidates, one after the other.
    """
    words = [e.wide_bits(word - (word >> 63 << 64)) for word in _WORDS]
    for bit in (9, 8, 7, 6):
        step = 1 << (bit - 6)
        beyond = is_odd(e, e.integer(arith.ShRUIOp, first, e.wide_bits(bit)))
        words = [e.select(beyond, words[n + step], words[n]) for n in range(step + 3)]
    shift = e.integer(arith.AndIOp, first, e.wide_bits(63))
    # By 64 less the shift, which may be 0.
    back = e.integer(arith.XOrIOp, shift, e.wide_bits(63))

    def shifted(high: SSAValue, low: SSAValue) -> SSAValue:
        low = e.integer(arith.ShRUIOp, e.integer(arith.ShRUIOp, low, e.wide_bits(1)), back)
        return e.integer(arith.OrIOp, e.wrapping(arith.ShLIOp, high, shift), low)

    return [shifted(high, low) for high, low in pairwise(words)]


def _upper(e: Arithmetic, x: SSAValue, shift: type[Operation] = arith.ShRUIOp) -> SSAValue:
    """The upper half of a word."""
    return e.integer(shift, x, e.wide_bits(32))


def _lower(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The lower half of a word."""
    return e.integer(arith.AndIOp, x, e.wide_bits((1 << 32) - 1))


def _product(e: Arithmetic, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """a * b for a below 2^53: the upper word, and the lower one."""
    upper, lower = (_upper(e, a), _upper(e, b)), (_lower(e, a), _lower(e, b))
    least = e.wrapping(arith.MuliOp, lower[0], lower[1])
    middle = e.wrapping(arith.MuliOp, lower[0], upper[1])
    other = e.wrapping(arith.MuliOp, upper[0], lower[1])
    carried = e.wrapping(arith.AddiOp, _upper(e, least), _lower(e, middle))
    carried = e.wrapping(arith.AddiOp, carried, other)
    high = e.wrapping(arith.MuliOp, upper[0], upper[1])
    high = e.wrapping(arith.AddiOp, high, _upper(e, middle))
    high = e.wrapping(arith.AddiOp, high, _upper(e, carried))
    return high, e.wrapping(arith.MuliOp, a, b)


def _carry(e: Arithmetic, a: SSAValue, b: SSAValue, total: SSAValue) -> SSAValue:
    """1 where a + b is 2^64 and more, and `total` 2^64 less; else 0."""
    both, either = e.integer(arith.AndIOp, a, b), e.integer(arith.OrIOp, a, b)
    lost = e.integer(arith.AndIOp, either, e.integer(arith.XOrIOp, total, e.wide_bits(-1)))
    return e.integer(arith.ShRUIOp, e.integer(arith.OrIOp, both, lost), e.wide_bits(63))

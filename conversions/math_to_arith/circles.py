"""Sine, cosine and tangent of f32, computed in f64 and rounded once, to 0.51 ulp.

An angle is n quarters of a circle and a rest up to pi/4. Below 2^20 the rest follows from two parts
of pi/2. Beyond, the C library takes over. A device has none: there, the bits of 2/pi that decide
are multiplied by the significand in integers (M. Payne and R. Hanek, Radian Reduction for
Trigonometric Functions, 1983).
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ...dialects.upstream import ops as upstream
from .arithmetic import Arithmetic

Expansion: TypeAlias = Callable[[Arithmetic, SSAValue], SSAValue]
Reduction: TypeAlias = Callable[[Arithmetic, SSAValue], tuple[SSAValue, SSAValue]]
"""The rest and the number of quarters of an angle of 0 or more."""
Function: TypeAlias = Callable[[Arithmetic, SSAValue, Reduction], SSAValue]

QUARTERS = 2 / scalar_math.pi
# pi/2 in two parts, the first of 33 bits: n times it is exact.
_QUARTER, _QUARTER_REST = 1.5707963267341256, 6.077100506506192e-11
ROUND = 1.5 * 2.0**52
"""Adding this to a number below 2^51 rounds it to an integer, whose last bits are its own."""
LARGE = 2.0**20

TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561"
    "B7246E3A424DD2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484"
    "E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B"
    "3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)
"""2/pi, the 1216 bits after the point."""
_BITS = TWO_OVER_PI >> (1216 - 224)
_WORDS = [_BITS >> (32 * n) & 0xFFFFFFFF for n in reversed(range(8))]
"""The same in words, after one before the point."""

_SIN = tuple((-1) ** n / scalar_math.factorial(2 * n + 1) for n in range(7))
"""sin(r) / r in r^2; for |r| <= pi/4, relative error 2^-45."""
_COS = tuple((-1) ** n / scalar_math.factorial(2 * n) for n in range(8))
"""cos(r) in r^2, relative error 2^-49."""


def sin(e: Arithmetic, x: SSAValue, reduced: Reduction) -> SSAValue:
    """The sine; that of a zero is the zero."""
    sine, cosine, quarters = _of_angle(e, x, reduced)
    found = e.select(is_odd(e, quarters), cosine, sine)
    return _rounded(e, negated(e, found, quarters), x)


def cos(e: Arithmetic, x: SSAValue, reduced: Reduction) -> SSAValue:
    """The cosine."""
    sine, cosine, quarters = _of_angle(e, x, reduced)
    found = e.select(is_odd(e, quarters), sine, cosine)
    ahead = e.wrapping(arith.AddiOp, quarters, e.wide_bits(1))
    return _rounded(e, negated(e, found, ahead))


def tan(e: Arithmetic, x: SSAValue, reduced: Reduction) -> SSAValue:
    """The tangent; that of a zero is the zero."""
    sine, cosine, quarters = _of_angle(e, x, reduced)
    odd, d = is_odd(e, quarters), e.in_f64()
    over = e.select(odd, cosine, sine)
    under = e.select(odd, e.unary(arith.NegfOp, sine), cosine)
    return _rounded(e, d.div(over, under), x)


def _of_angle(
    e: Arithmetic, x: SSAValue, reduced: Reduction
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """|x| = n pi/2 + r: the sine and the cosine of r in f64, and an integer that is n mod 4."""
    d = e.in_f64()
    rest, quarters = reduced(e, e.unary(math.AbsFOp, x))
    square = d.mul(rest, rest)
    sine = d.mul(rest, d.polynomial(square, _SIN))
    return sine, d.polynomial(square, _COS), quarters


def of_any(function: Function) -> Expansion:
    """A function of all angles. It is NaN for an infinity or NaN."""
    return lambda e, x: function(e, x, _any)


def by_library(function: Function, kind: type[Operation]) -> Expansion:
    """A function that leaves angles that are not near, and NaN, to the C library, in f64.

    It is called for vectors that have one; the results of other lanes are the same as without.
    """

    def expand(e: Arithmetic, x: SSAValue) -> SSAValue:
        found = function(e, x, _near)
        is_near = _is_near(e, e.unary(math.AbsFOp, x))

        def otherwise() -> SSAValue:
            called = e.unary(kind, e.cast(upstream.ExtFOp, x, e.f64))
            return e.select(is_near, found, _rounded(e, called))

        return e.unless_all(is_near, found, otherwise)

    return expand


def _is_near(e: Arithmetic, x: SSAValue) -> SSAValue:
    return e.compare("olt", x, e.constant(LARGE))


def _any(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The rest and the number of quarters for x >= 0; an infinity or NaN has no rest."""
    d, is_near = e.in_f64(), _is_near(e, x)
    pairs = zip(_near(e, x), _far(e, x), strict=True)
    rest, quarters = (e.select(is_near, near, far) for near, far in pairs)
    return d.add(rest, d.sub(wide := e.cast(upstream.ExtFOp, x, e.f64), wide)), quarters


def _near(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The rest and the number of quarters for x below 2^20."""
    d, wide = e.in_f64(), e.cast(upstream.ExtFOp, x, e.f64)
    rounded = d.fma(wide, d.constant(QUARTERS), d.constant(ROUND))
    minus = d.sub(d.constant(ROUND), rounded)
    rest = d.fma(minus, d.constant(_QUARTER), wide)
    rest = d.fma(minus, d.constant(_QUARTER_REST), rest)
    return rest, d.bitcast(rounded, d.i64)


# x == m 2^k:  x 2/pi mod 4 == (m times the bits of 2/pi from the (k - 1)-th on) mod 4
def _far(e: Arithmetic, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The rest and the number of quarters for x from 2^20 on.

    A product has two bits of n and 62 of the rest, and 96 bits of 2/pi are in it.
    """
    bits = e.bitcast(x, e.i32)
    fraction = e.integer(arith.AndIOp, bits, e.bits(0x7FFFFF))
    m = e.cast(upstream.ExtUIOp, e.integer(arith.OrIOp, fraction, e.bits(0x800000)), e.i64)
    # The first bit is number k - 2 after the point, where k is the exponent - 23.
    exponent = e.integer(arith.ShRUIOp, bits, e.bits(23))
    first = e.wrapping(arith.SubiOp, exponent, e.bits(127 + 23 + 2 - 32))
    shift = e.cast(upstream.ExtUIOp, e.integer(arith.AndIOp, first, e.bits(31)), e.i64)
    words = [_word(e, x, n) for n in range(4)]
    half = e.wide_bits(32)

    def shifted(high: SSAValue, low: SSAValue) -> SSAValue:
        both = e.integer(arith.OrIOp, e.wrapping(arith.ShLIOp, high, half), low)
        return e.wrapping(arith.ShLIOp, both, shift)

    def upper(value: SSAValue) -> SSAValue:
        return e.integer(arith.ShRUIOp, value, half)

    most = e.integer(
        arith.OrIOp,
        shifted(words[0], words[1]),
        upper(e.wrapping(arith.ShLIOp, words[2], shift)),
    )
    least = upper(shifted(words[2], words[3]))
    product = e.wrapping(
        arith.AddiOp,
        e.wrapping(arith.MuliOp, m, most),
        upper(e.wrapping(arith.MuliOp, m, least)),
    )
    rounding = e.wrapping(arith.AddiOp, product, e.wide_bits(1 << 61))
    quarters = e.integer(arith.ShRUIOp, rounding, e.wide_bits(62))
    whole = e.wrapping(arith.ShLIOp, quarters, e.wide_bits(62))
    rest = e.cast(upstream.SIToFPOp, e.wrapping(arith.SubiOp, product, whole), e.f64)
    return e.in_f64().mul(rest, e.double(scalar_math.pi / 2 * 2.0**-62)), quarters


def _word(e: Arithmetic, x: SSAValue, number: int) -> SSAValue:
    """A word of 2/pi, counted from that in which the first bit for x is."""
    found = e.wide_bits(_WORDS[number])
    for passed in range(1, 5):
        # The first bit is in the next word from 2^25, 2^57, ... on.
        beyond = e.compare("oge", x, e.constant(2.0 ** (32 * passed - 7)))
        found = e.select(beyond, e.wide_bits(_WORDS[number + passed]), found)
    return found


def is_odd(e: Arithmetic, number: SSAValue) -> SSAValue:
    """Whether an integer is odd."""
    return e.cast(upstream.TruncIOp, number, e.i1)


def negated(e: Arithmetic, value: SSAValue, quarters: SSAValue) -> SSAValue:
    """Minus a value where the number of quarters is 2 or 3 (mod 4)."""
    sign = e.integer(arith.AndIOp, quarters, e.wide_bits(2))
    sign = e.wrapping(arith.ShLIOp, sign, e.wide_bits(62))
    return e.bitcast(e.integer(arith.XOrIOp, e.bitcast(value, e.i64), sign), e.f64)


def _rounded(e: Arithmetic, value: SSAValue, odd_in: SSAValue | None = None) -> SSAValue:
    """A value as f32, times the sign of what the function is odd in."""
    found = e.cast(upstream.TruncFOp, value, e.type)
    return found if odd_in is None else signed(e, found, odd_in)


def signed(e: Arithmetic, value: SSAValue, x: SSAValue) -> SSAValue:
    """A value times the sign of x."""
    return e.mul(value, e.copysign(e.constant(1.0), x))

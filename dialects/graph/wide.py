"""Arithmetic of f64 for functions that are rounded once, and pairs of numbers for those in f64.

A pair is a number and a smaller one, whose sum is precise to some 60 bits. The reduction of the
logarithm is that of FDLIBM (Sun Microsystems, 1993): with s = f / (2 + f)

    log(1 + f) == f - f^2 / 2 + s (f^2 / 2 + R(s^2))
"""

from __future__ import annotations

import math as numbers
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from . import scalars
from .interfaces import Nest

Pair: TypeAlias = tuple[SSAValue, SSAValue]

_SINH = tuple(1 / numbers.factorial(n) for n in range(19, 1, -2))
"""The series of (sinh(x) - x) / x^3 in x * x, for |x| <= 1."""
_COSH = tuple(1 / numbers.factorial(n) for n in range(20, 2, -2))
"""The series of (cosh(x) - 1 - x^2 / 2) / x^4 in x * x, for |x| <= 1."""
_TANH = (
    *(5.946956589774769e-05, -0.00022107222975864633, 0.0005849653729022644),
    *(-0.001454959384380466, 0.0035920334653723926, -0.008863229270067843, 0.021869488297234514),
    *(-0.05396825396361009, 0.13333333333329825, -0.3333333333333333),
)
"""(tanh(x) - x) / x^3 in x * x, for |x| <= 1/2; relative error of tanh(x) 2^-55.8."""
_EXP = tuple(1 / numbers.factorial(n) for n in range(14, 2, -1))
"""The series of (exp(r) - 1 - r - r^2 / 2) / r^3, for |r| <= ln(2) / 2."""
_LOG = (
    *(0.13614047041090588, 0.13209054081797564, 0.1538890111368957, 0.18181736791297387),
    *(0.2222222305900626, 0.2857142856721186, 0.40000000000008085, 0.6666666666666666),
)
"""R(z) / z for 0 <= z <= 0.04, relative error 2^-55."""
# ln 2 in two parts, the first of 32 bits: n times it is exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 1.5 * 2.0**52
"""Added to a number it leaves the nearest integer in the low bits."""
_ONE, _TWO_THIRDS, _EXPONENT = 1023 << 52, 0x3FE5555555555555, -1 << 52


class Wide:
    """Arithmetic with values of f64."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest

    def number(self, value: float) -> SSAValue:
        return self.nest.constant(value, f64)

    def add(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        return scalars.add(self.nest, a, self._value(b))

    def sub(self, a: SSAValue | float, b: SSAValue | float) -> SSAValue:
        return scalars.sub(self.nest, self._value(a), self._value(b))

    def mul(self, a: SSAValue, b: SSAValue | float) -> SSAValue:
        return scalars.mul(self.nest, a, self._value(b))

    def divide(self, a: SSAValue | float, b: SSAValue) -> SSAValue:
        return scalars.divide(self.nest, self._value(a), b)

    def negative(self, x: SSAValue) -> SSAValue:
        return scalars.negative(self.nest, x)

    def sqrt(self, x: SSAValue) -> SSAValue:
        return self.nest.insert(math.SqrtOp(x))

    def absolute(self, x: SSAValue) -> SSAValue:
        return self.nest.insert(math.AbsFOp(x))

    def above(self, x: SSAValue, limit: float) -> SSAValue:
        return scalars.less(self.nest, self.number(limit), x)

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.select(self.nest, condition, a, b)

    def polynomial(self, x: SSAValue, coefficients: tuple[float, ...]) -> SSAValue:
        """The polynomial with these coefficients, the highest power first."""
        total = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            total = scalars.fma(self.nest, total, x, self.number(coefficient))
        return total

    def with_sign(self, y: SSAValue, x: SSAValue) -> SSAValue:
        """y >= 0 with the sign of x; a zero of x is the result."""
        zero = self.number(0.0)
        below = scalars.less(self.nest, x, zero)
        signed = self.select(below, scalars.negative(self.nest, y), y)
        return self.select(scalars.equal(self.nest, x, zero), x, signed)

    def _value(self, value: SSAValue | float) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.number(value)

    def fma(self, a: SSAValue, b: SSAValue | float, c: SSAValue | float) -> SSAValue:
        return scalars.fma(self.nest, a, self._value(b), self._value(c))

    # Pairs

    def sum(self, a: SSAValue | float, b: SSAValue) -> Pair:
        """a + b without an error, where |a| >= |b|."""
        total = self.add(self._value(a), b)
        return total, self.sub(b, self.sub(total, a))

    def exponential(self, x: SSAValue) -> tuple[Pair, SSAValue]:
        """exp(x) as a pair times 4 p, and p, which is a power of 2, for 1 <= x <= 710.5."""
        rounded = self.fma(x, 1 / numbers.log(2), _ROUND)
        n = self.sub(rounded, _ROUND)
        first, less = self.fma(n, -_LN2_HIGH, x), self.mul(n, _LN2_LOW)
        r = self.sub(first, less)
        rest = self.sub(self.sub(first, r), less)
        square = self.mul(r, r)
        half, lost = self.mul(square, 0.5), self.mul(self.fma(r, r, self.negative(square)), 0.5)
        one, low = self.sum(1.0, r)
        high, more = self.sum(one, half)
        cubic = self.mul(self.mul(square, r), self.polynomial(r, _EXP))
        low = self.add(self.add(low, more), self.add(self.fma(rest, one, lost), cubic))
        return (high, low), self.power_of_2(rounded, -2)

    def power_of_2(self, rounded: SSAValue, more: int) -> SSAValue:
        """2^(n + more), where `rounded` is n + _ROUND."""
        bits = self.nest.insert(arith.BitcastOp(rounded, i64))
        bits = scalars.add(self.nest, bits, self.nest.constant(1023 + more, i64))
        shifted = self.nest.insert(arith.ShLIOp(bits, self.nest.constant(52, i64)))
        return self.nest.insert(arith.BitcastOp(shifted, f64))

    def half_of_sum(self, x: SSAValue, sign: float) -> SSAValue:
        """(exp(x) + sign exp(-x)) / 2 for x >= 1."""
        size = scalars.minimum(self.nest, x, self.number(710.5))
        (high, low), p = self.exponential(size)
        inverse = self.divide(sign / 16, self.mul(self.mul(p, p), self.add(high, low)))
        total, more = self.sum(high, inverse)
        scaled = self.mul(self.add(total, self.add(more, low)), p)
        return self.add(scaled, scaled)

    def sinh(self, x: SSAValue) -> SSAValue:
        size, square = self.absolute(x), self.mul(x, x)
        series = self.fma(self.mul(x, square), self.polynomial(square, _SINH), x)
        large = self.with_sign(self.half_of_sum(size, -1.0), x)
        return self.select(self.above(size, 1.0), large, series)

    def cosh(self, x: SSAValue) -> SSAValue:
        size, square = self.absolute(x), self.mul(x, x)
        lost = self.mul(self.fma(x, x, self.negative(square)), 0.5)
        high, low = self.sum(1.0, self.mul(square, 0.5))
        quartic = self.mul(self.mul(square, square), self.polynomial(square, _COSH))
        series = self.add(high, self.add(self.add(low, lost), quartic))
        return self.select(self.above(size, 1.0), self.half_of_sum(size, 1.0), series)

    def tanh(self, x: SSAValue) -> SSAValue:
        # tanh(x) == 1 - 2 / (exp(2 x) + 1)
        size = scalars.minimum(self.nest, self.absolute(x), self.number(20.0))
        square = self.mul(size, size)
        series = self.fma(self.mul(size, square), self.polynomial(square, _TANH), size)
        pair, p = self.exponential(self.add(size, size))
        (high, low), p = self.sum(*pair), self.mul(p, 4.0)
        below, rest = self.sum(self.mul(high, p), self.number(1.0))
        quotient = self.divide(2.0, below)
        lost = self.fma(self.negative(quotient), below, self.number(2.0))
        lost = self.fma(self.negative(quotient), self.fma(low, p, rest), lost)
        total, more = self.sum(1.0, self.negative(quotient))
        less = self.mul(self.mul(quotient, 0.5), lost)
        large = self.add(total, self.sub(more, less))
        return self.with_sign(self.select(self.above(size, 0.5), large, series), x)

    def log1p_of_pair(self, x: Pair) -> SSAValue:
        """log(1 + x) for x >= 0."""
        one = self.add(x[0], 1.0)
        larger = self.above(x[0], 1.0)
        lost = self.select(
            larger, self.sub(1.0, self.sub(one, x[0])), self.sub(x[0], self.sub(one, 1.0))
        )
        bits = self.nest.insert(arith.BitcastOp(one, i64))
        k = scalars.sub(self.nest, bits, self.nest.constant(_TWO_THIRDS, i64))
        k = self.nest.insert(arith.AndIOp(k, self.nest.constant(_EXPONENT, i64)))
        scale = scalars.sub(self.nest, self.nest.constant(_ONE, i64), k)
        scale = self.nest.insert(arith.BitcastOp(scale, f64))
        m = self.mul(one, scale)
        rest = self.divide(self.mul(self.add(lost, x[1]), scale), m)
        f = self.sub(m, 1.0)
        return self.add_logarithm(self.divided_exponent(k), f, rest)

    def divided_exponent(self, k: SSAValue) -> SSAValue:
        """The number n of n 2^52."""
        n = self.nest.insert(arith.ShRSIOp(k, self.nest.constant(52, i64)))
        return self.nest.insert(arith.SIToFPOp(n, f64))

    def add_logarithm(self, n: SSAValue, f: SSAValue, rest: SSAValue) -> SSAValue:
        """n log(2) + log(1 + f) + rest for |f| <= 1/3."""
        square = self.mul(f, f)
        half, lost = self.mul(square, 0.5), self.mul(self.fma(f, f, self.negative(square)), 0.5)
        s = self.divide(f, self.add(f, 2.0))
        z = self.mul(s, s)
        series = self.mul(s, self.fma(z, self.polynomial(z, _LOG), half))
        high, low = self.sum(f, self.negative(half))
        low = self.add(self.add(low, self.sub(series, lost)), self.fma(n, _LN2_LOW, rest))
        total, more = self.sum(self.mul(n, _LN2_HIGH), high)
        near = self.add(high, low)
        away = self.add(total, self.add(more, low))
        return self.select(scalars.equal(self.nest, n, self.number(0.0)), near, away)

    def atanh(self, x: SSAValue) -> SSAValue:
        # atanh(x) == log(1 + 2 x / (1 - x)) / 2
        size = self.absolute(x)
        twice = self.add(size, size)
        below = self.sub(1.0, size)
        lost = self.sub(self.sub(1.0, below), size)
        ratio = self.divide(twice, below)
        rest = self.fma(self.negative(ratio), lost, self.fma(self.negative(ratio), below, twice))
        y = self.mul(self.log1p_of_pair((ratio, self.divide(rest, below))), 0.5)
        special = self.select(scalars.less(self.nest, size, self.number(1.0)), y, ratio)
        outside = self.select(self.above(size, 1.0), self.number(numbers.nan), special)
        return self.with_sign(outside, x)

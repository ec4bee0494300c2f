"""Multiplication by powers of 2 through the bits of their exponents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects.upstream.float_ranges import number_of, range_of
from .arithmetic import Arithmetic

Factors: TypeAlias = tuple[SSAValue, SSAValue]


@dataclass(frozen=True)
class Scaling:
    """How a number is multiplied by 2^n for an integral n, in one type of floats.

    Args:
        digits: the bits of a mantissa.
        bias: what is added to an exponent.
        shift: how far exponents are raised that are known to be small enough. It is odd, as the
            bias is, so that halves are rounded to the same integers with and without it.
    """

    digits: int
    bias: int
    shift: int

    @property
    def round(self) -> float:
        """Added to |t| < 2^(digits - 1) it makes an integer n, with n + bias in the low bits."""
        return 1.5 * 2**self.digits + self.bias

    @property
    def _halves(self) -> float:
        """The same with n + 2 bias: each half of 2^n has an exponent of its own."""
        return self.round + self.bias

    @property
    def _raised(self) -> float:
        """The same with n + bias + shift: 2^(n + shift) is far from denormal numbers."""
        return self.round + self.shift

    def rounding(self, e: Arithmetic, x: SSAValue, unit: float = 1.0) -> SSAValue:
        """What is added to `unit` x to round it to the n of `factors`."""
        is_small = range_of(x)[1] * unit <= self.bias - self.shift
        return e.constant(self._raised if is_small else self._halves, x.type)

    def factors(self, e: Arithmetic, rounded: SSAValue, rounding: SSAValue) -> Factors:
        """Two powers of 2 whose product is 2^n, where `rounded` is n + `rounding`; |n| < 2 bias.

        They are 2^floor(n / 2) and 2^ceil(n / 2), or 2^(n + shift) and 2^-shift. They reach
        denormals and inf without a case: only the product with the second is rounded.
        """
        type, integers = rounded.type, e.i32 if self.digits == F32.digits else e.i64

        def shifted(count: int) -> SSAValue:
            return e.wrapping(arith.ShLIOp, bits, e.constant(count, integers))

        bits = e.bitcast(rounded, integers)
        if number_of(rounding) == self._raised:
            return e.bitcast(shifted(self.digits), type), e.constant(2.0**-self.shift, type)
        exponent = e.constant(-1 << self.digits, integers)
        floor = e.integer(arith.AndIOp, shifted(self.digits - 1), exponent)
        ceil = e.wrapping(arith.SubiOp, shifted(self.digits), floor)
        return e.bitcast(floor, type), e.bitcast(ceil, type)


F32 = Scaling(23, 127, 33)
F64 = Scaling(52, 1023, 65)


def scaled(e: Arithmetic, x: SSAValue, factors: Factors) -> SSAValue:
    """x times the factors of 2^n."""
    first, second = factors
    return e.mul(e.mul(x, first), second)

"""Conversions of 16-bit floats by arithmetic on their bits, for targets without instructions.

There LLVM calls a function of a compiler's run-time library for each lane, which a process may
not have.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import f16, i16
from xdsl.ir import SSAValue
from xdsl.utils.type import get_element_type_or_self

from ...dialects.upstream import ops as upstream
from ...dialects.upstream.element_types import with_element_type
from .arithmetic import Arithmetic

_SIGN, _MAGNITUDE = 0x8000, 0x7FFF
_INFINITY, _QUIET_NAN = 0x7F800000, 0x7FC00000
_REBIAS = 2.0**112
"""The exponents of f32 are 112 larger than those of f16."""


# An f16 of exponent e and fraction m is 2^112 times the f32 that has both in the same places;
# so is one without an exponent. Infinities and NaN have the largest exponent in either type.
def from_f16(e: Arithmetic, x: SSAValue) -> SSAValue:
    """The f32 with the value of an f16; a NaN keeps its bits and becomes a quiet one."""
    bits = e.cast(arith.ExtUIOp, e.bitcast(x, with_element_type(e.type, i16)), e.i32)
    sign = e.wrapping(arith.ShLIOp, e.integer(arith.AndIOp, bits, e.bits(_SIGN)), e.bits(16))
    magnitude = e.integer(arith.AndIOp, bits, e.bits(_MAGNITUDE))
    placed = e.wrapping(arith.ShLIOp, magnitude, e.bits(13))
    small = e.bitcast(placed, e.f32)
    scaled = e.bitcast(e.mul(small, e.constant(_REBIAS, e.f32)), e.i32)
    largest = e.constant(2.0**16 / _REBIAS, e.f32)
    exponent = e.select(e.compare("ogt", small, largest), e.bits(_QUIET_NAN), e.bits(_INFINITY))
    endless = e.integer(arith.OrIOp, placed, exponent)
    value = e.select(e.compare("oge", small, largest), endless, scaled)
    return e.bitcast(e.integer(arith.OrIOp, value, sign), e.f32)


# Half a unit in the last place, and less by one where the last place is even, carries into it
# what has to be rounded up. Below the normal numbers the sum with 1/2 does the same.
def to_f16(e: Arithmetic, x: SSAValue) -> SSAValue:
    """An f32 rounded to the nearest f16, to the even one of two; a NaN is a quiet one."""
    bits = e.bitcast(x, e.i32)
    sign = e.integer(arith.AndIOp, e.integer(arith.ShRUIOp, bits, e.bits(16)), e.bits(_SIGN))
    magnitude = e.integer(arith.AndIOp, bits, e.bits(0x7FFFFFFF))
    size = e.bitcast(magnitude, e.f32)
    kept = e.integer(arith.ShRUIOp, magnitude, e.bits(13))
    odd = e.integer(arith.AndIOp, kept, e.bits(1))
    carried = e.wrapping(arith.AddiOp, magnitude, e.bits(0xFFF - (112 << 23)))
    carried = e.wrapping(arith.AddiOp, carried, odd)
    normal = e.integer(arith.ShRUIOp, carried, e.bits(13))
    sum = e.bitcast(e.add(size, e.constant(0.5, e.f32)), e.i32)
    tiny = e.wrapping(arith.SubiOp, sum, e.bits(0x3F000000))
    finite = e.select(e.compare("olt", size, e.constant(2.0**-14, e.f32)), tiny, normal)
    payload = e.integer(arith.AndIOp, kept, e.bits(0x3FF))
    nan = e.integer(arith.OrIOp, payload, e.bits(0x7E00))
    endless = e.select(e.compare("uno", x, x), nan, e.bits(0x7C00))
    large = e.compare("uge", size, e.constant(2.0**16, e.f32))
    value = e.integer(arith.OrIOp, e.select(large, endless, finite), sign)
    low = e.cast(arith.TruncIOp, value, with_element_type(e.type, i16))
    return e.bitcast(low, with_element_type(e.type, f16))


# Rounding twice is rounding once if the first time an inexact result is made odd: it is then
# no middle of two numbers of 16 bits, and on the same side of it as x.
def to_odd_f32(e: Arithmetic, x: SSAValue) -> SSAValue:
    """An f64 as an f32 whose last place is odd where the f64 is none."""
    nearest = e.cast(upstream.TruncFOp, x, e.f32)
    bits, back = e.bitcast(nearest, e.i32), e.cast(upstream.ExtFOp, nearest, e.f64)
    magnitude = e.wide_bits(0x7FFFFFFFFFFFFFFF)
    sizes = [
        e.bitcast(e.integer(arith.AndIOp, e.bitcast(v, e.i64), magnitude), e.f64) for v in (back, x)
    ]
    step = e.select(e.compare("ogt", *sizes), e.bits(-1), e.bits(1))
    even = e.integer(arith.XOrIOp, e.integer(arith.AndIOp, bits, e.bits(1)), e.bits(1))
    step = e.wrapping(arith.MuliOp, step, even)
    moved = e.wrapping(arith.AddiOp, bits, step)
    return e.bitcast(e.select(e.compare("one", back, x), moved, bits), e.f32)


def extended(e: Arithmetic, x: SSAValue, instructions: bool) -> SSAValue:
    """A number of 16 bits as a wider one, of the type worked on.

    `instructions` says whether the machine has some that convert f16 and f32.
    """
    expand = not instructions and get_element_type_or_self(x.type) == f16
    single = from_f16(e, x) if expand else e.cast(upstream.ExtFOp, x, e.f32)
    return single if e.type == e.f32 else e.cast(upstream.ExtFOp, single, e.type)


def truncated(e: Arithmetic, x: SSAValue, instructions: bool) -> SSAValue:
    """A number rounded to the type of 16 bits worked on, once."""
    expand = not instructions and get_element_type_or_self(e.type) == f16
    single = x if x.type == e.f32 else to_odd_f32(e, x)
    return to_f16(e, single) if expand else e.cast(upstream.TruncFOp, single, e.type)

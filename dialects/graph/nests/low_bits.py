"""Low-bit types in scalar arithmetic: floats of 8 bits and fewer, and integers of fewer than 8.

An element is stored as its bits in the low end of a byte, and moved as these: its code, an i8. The
bits above it are 0 where an element is written, and ignored where it is read. What computes
converts codes to the wide type first: f32 for floats, i32 for integers.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    FloatNonfiniteBehavior,
    FloatSemantics,
    Signedness,
    f32,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from ....core.dtypes import LOW_BIT_FLOATS, dtype_of
from ....core.ir.typed import bits, integer_type
from ...upstream import ops as upstream
from .nest import Scalars

_IEEE = FloatNonfiniteBehavior.IEEE
_FINITE = FloatNonfiniteBehavior.FINITE_ONLY


def wide_type(element_type: Attribute) -> Attribute:
    """The type that the elements of a low-bit type are converted to: f32, or i32 for integers."""
    return f32 if element_type in LOW_BIT_FLOATS else i32


def code_of(number: float | int, element_type: Attribute) -> int:
    """The code of a number that is rounded to a low-bit type, as a signed integer."""
    with np.errstate(all="ignore"):
        return np.array(number, np.float64).astype(dtype_of(element_type)).view(np.int8).item()


def decoded(nest: Scalars, code: SSAValue, element_type: Attribute) -> SSAValue:
    """The value of a code, in the wide type."""
    word = nest.insert(arith.ExtUIOp(code, i32))
    if element_type in LOW_BIT_FLOATS:
        semantics = _semantics(element_type)
        return (_decoded if semantics.has_zero else _power_of_two)(nest, word, semantics)
    kind = integer_type(element_type)
    if kind.signedness.data == Signedness.UNSIGNED:
        return _and(nest, word, (1 << bits(kind)) - 1)
    unused = nest.constant(32 - bits(kind), i32)
    return nest.insert(arith.ShRSIOp(nest.insert(arith.ShLIOp(word, unused)), unused))


def encoded(nest: Scalars, value: SSAValue, element_type: Attribute) -> SSAValue:
    """The code of an f32 that is rounded to a float, or of an i32 whose low bits are kept.

    Floats are rounded to the nearest one, ties to even. What is beyond the largest one by half
    of a unit or more becomes an infinity, NaN where there is none, and the largest one where there
    is neither. NaN becomes 0 in a type without NaN.
    """
    if element_type not in LOW_BIT_FLOATS:
        mask = (1 << bits(element_type)) - 1
        return nest.insert(arith.TruncIOp(_and(nest, value, mask), i8))
    semantics = _semantics(element_type)
    code = (_encoded if semantics.has_zero else _exponent)(nest, value, semantics)
    return nest.insert(arith.TruncIOp(code, i8))


def _semantics(element_type: Attribute) -> FloatSemantics:
    return cast(Any, element_type).SEMANTICS


def _and(nest: Scalars, value: SSAValue, mask: int) -> SSAValue:
    return nest.insert(arith.AndIOp(value, nest.constant(mask, value.type)))


def _plus(nest: Scalars, value: SSAValue, number: int) -> SSAValue:
    return nest.insert(arith.AddiOp(value, nest.constant(number, value.type)))


def _left(nest: Scalars, value: SSAValue, places: int) -> SSAValue:
    return nest.insert(arith.ShLIOp(value, nest.constant(places, value.type)))


def _right(nest: Scalars, value: SSAValue, places: int) -> SSAValue:
    return nest.insert(arith.ShRUIOp(value, nest.constant(places, value.type)))


def _compare(nest: Scalars, a: SSAValue, b: int, predicate: str) -> SSAValue:
    return nest.insert(arith.CmpiOp(a, nest.constant(b, a.type), predicate))


def _select(nest: Scalars, condition: SSAValue, a: SSAValue | int, b: SSAValue) -> SSAValue:
    first = nest.constant(a, b.type) if isinstance(a, int) else a
    return nest.insert(arith.SelectOp(condition, first, b))


def _nan(semantics: FloatSemantics) -> int:
    """The code of the positive NaN, or of the only one."""
    highest = semantics.max_exponent << semantics.mantissa_bits
    if semantics.nonfinite is _IEEE:
        return highest | 1 << (semantics.mantissa_bits - 1)
    return (
        1 << semantics.sign_shift if _has_one_zero(semantics) else highest | _fractions(semantics)
    )


def _has_one_zero(semantics: FloatSemantics) -> bool:
    """Whether the code of -0 is NaN instead."""
    return semantics.nan_encoding.name == "NEGATIVE_ZERO"


def _fractions(semantics: FloatSemantics) -> int:
    return (1 << semantics.mantissa_bits) - 1


def _largest(semantics: FloatSemantics) -> int:
    """The code of the largest finite number."""
    highest = semantics.max_exponent << semantics.mantissa_bits
    if semantics.nonfinite is _IEEE:
        return highest - 1
    all_ones = highest | _fractions(semantics)
    return all_ones if semantics.nonfinite is _FINITE or _has_one_zero(semantics) else all_ones - 1


# A number is significand * 2 ** (exponent - bias - m), with m bits after the leading one. The
# exponent 0 is that of 1 without a leading one. No product is subnormal in f32.
def _decoded(nest: Scalars, word: SSAValue, semantics: FloatSemantics) -> SSAValue:
    m, shift = semantics.mantissa_bits, semantics.sign_shift
    magnitude = _and(nest, word, (1 << shift) - 1)
    exponent, fraction = _right(nest, magnitude, m), _and(nest, word, _fractions(semantics))
    is_normal = _compare(nest, exponent, 0, "ne")
    significand = _select(nest, is_normal, _plus(nest, fraction, 1 << m), fraction)
    power = _select(nest, is_normal, exponent, nest.constant(1, i32))
    power = _left(nest, _plus(nest, power, 127 - semantics.exponent_bias - m), 23)
    scale = nest.insert(arith.BitcastOp(power, f32))
    number = nest.insert(arith.SIToFPOp(significand, f32))
    number = nest.insert(arith.MulfOp(number, scale))
    found = nest.insert(arith.BitcastOp(number, i32))
    nan = 0x7FC00000
    if semantics.nonfinite is _IEEE:
        highest = semantics.max_exponent << m
        found = _select(nest, _compare(nest, magnitude, highest, "eq"), 0x7F800000, found)
        found = _select(nest, _compare(nest, magnitude, highest, "ugt"), nan, found)
    elif semantics.nonfinite is not _FINITE:
        own = _and(nest, word, (2 << shift) - 1) if _has_one_zero(semantics) else magnitude
        found = _select(nest, _compare(nest, own, _nan(semantics) & 0xFF, "eq"), nan, found)
    sign = _left(nest, _and(nest, word, 1 << shift), 31 - shift)
    return nest.insert(arith.BitcastOp(nest.insert(arith.OrIOp(found, sign)), f32))


# The significand is |x| / unit, rounded, where the unit is the distance of the numbers around x.
# Its leading one adds 1 to the exponent, and a carry does as well.
def _encoded(nest: Scalars, value: SSAValue, semantics: FloatSemantics) -> SSAValue:
    m, bias = semantics.mantissa_bits, semantics.exponent_bias
    limit = nest.constant(2.0 ** (semantics.max_exponent - bias + 1), f32)
    magnitude = nest.insert(math.AbsFOp(value))
    is_small = nest.insert(arith.CmpfOp(magnitude, limit, "olt"))
    magnitude = nest.insert(arith.SelectOp(is_small, magnitude, nest.constant(0.0, f32)))
    exponent = _right(nest, nest.insert(arith.BitcastOp(magnitude, i32)), 23)
    exponent = _plus(nest, exponent, bias - 127)
    exponent = nest.insert(arith.MaxSIOp(exponent, nest.constant(1, i32)))
    inverse = nest.insert(arith.SubiOp(nest.constant(127 + bias + m, i32), exponent))
    inverse = nest.insert(arith.BitcastOp(_left(nest, inverse, 23), f32))
    significand = nest.insert(math.RoundEvenOp(nest.insert(arith.MulfOp(magnitude, inverse))))
    code = nest.insert(arith.FPToSIOp(significand, i32))
    code = nest.insert(arith.AddiOp(code, _left(nest, _plus(nest, exponent, -1), m)))
    fits = nest.insert(arith.AndIOp(is_small, _compare(nest, code, _largest(semantics), "sle")))
    code = nest.insert(arith.SelectOp(fits, code, nest.constant(_beyond(semantics), i32)))
    return _signed(nest, value, code, semantics)


def _beyond(semantics: FloatSemantics) -> int:
    """The code of a magnitude that is too large."""
    if semantics.nonfinite is _IEEE:
        return _largest(semantics) + 1
    return _largest(semantics) if semantics.nonfinite is _FINITE else _nan(semantics)


def _signed(nest: Scalars, value: SSAValue, code: SSAValue, semantics: FloatSemantics) -> SSAValue:
    """The code of a magnitude with the sign of a value, which may be NaN."""
    shift, is_nan = semantics.sign_shift, nest.insert(arith.CmpfOp(value, value, "une"))
    sign = _right(nest, nest.insert(arith.BitcastOp(value, i32)), 31)
    sign = _left(nest, sign, shift)
    if semantics.nonfinite is _FINITE:
        return _select(nest, is_nan, 0, nest.insert(arith.OrIOp(code, sign)))
    code = _select(nest, is_nan, _nan(semantics), code)
    signed = nest.insert(arith.OrIOp(code, sign))
    if not _has_one_zero(semantics):
        return signed
    is_special = _compare(nest, _and(nest, code, (1 << shift) - 1), 0, "eq")
    return nest.insert(arith.SelectOp(is_special, code, signed))


# A code e is 2 ** (e - 127), and the largest one is NaN. 2 ** -127 is subnormal in f32.
def _power_of_two(nest: Scalars, word: SSAValue, semantics: FloatSemantics) -> SSAValue:
    found = _select(nest, _compare(nest, word, 0, "eq"), 0x400000, _left(nest, word, 23))
    found = _select(nest, _compare(nest, word, _nan(semantics), "eq"), 0x7FC00000, found)
    return nest.insert(arith.BitcastOp(found, f32))


# Half a unit of the last place carries into the exponent of a number that is rounded up, which in
# f64 is never subnormal. Numbers that are not positive, and what is rounded to no code, become NaN.
def _exponent(nest: Scalars, value: SSAValue, semantics: FloatSemantics) -> SSAValue:
    word = nest.insert(arith.BitcastOp(nest.insert(upstream.ExtFOp(value, f64)), i64))
    code = nest.insert(arith.TruncIOp(_right(nest, _plus(nest, word, 1 << 51), 52), i32))
    code = _plus(nest, code, semantics.exponent_bias - 1023)
    nan = _nan(semantics)
    fits = _compare(nest, code, nan, "ult")
    return nest.insert(arith.SelectOp(fits, code, nest.constant(nan, i32)))

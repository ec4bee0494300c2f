"""Scalar arithmetic for `value_at`: one function, whatever the element type.

Each function appends `arith` and `math` operations to a nest and returns a scalar. Integers
wrap around, as they do in NumPy, and no operation traps. Where a function depends on the order of
numbers, it may be given their element type, without which they are those of their scalar type.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerType,
    UnitAttr,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ....core.dtypes import LOW_BIT_FLOATS, dtype_of, is_low_bit
from ....core.ir.typed import bits, float_type, integer_type
from ...loop.proofs.bounds import integer_constant
from ...upstream import ops as upstream
from ..attrs import compute_type, is_float, is_half, is_reordered, is_unsigned
from . import low_bits
from .nest import Scalars


def zero(nest: Scalars, type: Attribute) -> SSAValue:
    """The constant 0 of a type."""
    return nest.constant(0.0 if is_float(type) else 0, type)


def literal(nest: Scalars, value: float | int, kind: Attribute) -> SSAValue:
    """A constant of an element type, in the type in which it is computed."""
    if is_low_bit(kind):
        return nest.constant(low_bits.code_of(value, kind), i8)
    return nest.constant(value, compute_type(kind))


def number(nest: Scalars, value: float, type: Attribute) -> SSAValue:
    """A constant of a float or integer type."""
    return nest.constant(float(value) if is_float(type) else int(value), type)


def add(nest: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """a + b."""
    return nest.insert(arith.AddfOp(a, b) if is_float(a.type) else arith.AddiOp(a, b))


def sub(nest: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """a - b."""
    return nest.insert(arith.SubfOp(a, b) if is_float(a.type) else arith.SubiOp(a, b))


def mul(nest: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """a * b."""
    return nest.insert(arith.MulfOp(a, b) if is_float(a.type) else arith.MuliOp(a, b))


def fma(nest: Scalars, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    """a * b + c, rounded once for floats."""
    if is_float(a.type):
        return nest.insert(math.FmaOp(a, b, c))
    return add(nest, mul(nest, a, b), c)


def origin_of_softmax(nest: Scalars, maximum: SSAValue) -> SSAValue:
    """The number that a softmax takes from its elements before their exponentials.

    It cancels in the quotients by their sum, so that any number will do from which none is far
    above. A difference of 64 from the maximum is rounded by up to 2^-18 in f32, which makes 64 ulp
    of its exponential; one from 0 is exact. So it is 0 where the maximum is from 0 to 60, or to 500
    in f64. Of a larger maximum it is as much below it, and of a negative one the maximum itself.
    """
    most = nest.constant(500.0 if maximum.type == f64 else 60.0, maximum.type)
    below, none = sub(nest, maximum, most), zero(nest, maximum.type)
    return maxnum(nest, below, select(nest, less(nest, maximum, none), maximum, none))


def exp_of_difference(nest: Scalars, difference: SSAValue) -> SSAValue:
    """exp of the difference of a number from the origin of its softmax, or from a maximum.

    It states that the difference is not above 64 in f32: a maximum less 60 is rounded down by 4 at
    most.
    """
    op = math.ExpOp(difference)
    if difference.type != f64:
        op.attributes[upstream.AT_MOST_64] = UnitAttr()
    return nest.insert(op)


def maxnum(nest: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """a where it is larger than b, else b: a NaN `a` is passed over."""
    if not is_float(a.type):
        return maximum(nest, a, b)
    return nest.insert(arith.SelectOp(nest.insert(arith.CmpfOp(a, b, "ogt")), a, b))


def maximum(nest: Scalars, a: SSAValue, b: SSAValue, kind: Attribute | None = None) -> SSAValue:
    """The larger one; NaN if one of them is."""
    if is_float(a.type):
        return nest.insert(arith.MaximumfOp(a, b))
    found = nest.insert(arith.MaxSIOp(ordered(nest, a, kind), ordered(nest, b, kind)))
    return ordered(nest, found, kind)


def minimum(nest: Scalars, a: SSAValue, b: SSAValue, kind: Attribute | None = None) -> SSAValue:
    """The smaller one; NaN if one of them is."""
    if is_float(a.type):
        return nest.insert(arith.MinimumfOp(a, b))
    found = nest.insert(arith.MinSIOp(ordered(nest, a, kind), ordered(nest, b, kind)))
    return ordered(nest, found, kind)


def negative(nest: Scalars, a: SSAValue) -> SSAValue:
    """-a."""
    if is_float(a.type):
        return nest.insert(arith.NegfOp(a))
    return sub(nest, zero(nest, a.type), a)


def select(nest: Scalars, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
    """a where the condition holds, else b."""
    return nest.insert(arith.SelectOp(condition, a, b))


def less(nest: Scalars, a: SSAValue, b: SSAValue, kind: Attribute | None = None) -> SSAValue:
    """a < b as i1; false if one of them is NaN."""
    if is_float(a.type):
        return nest.insert(arith.CmpfOp(a, b, "olt"))
    return nest.insert(arith.CmpiOp(ordered(nest, a, kind), ordered(nest, b, kind), "slt"))


def less_equal(nest: Scalars, a: SSAValue, b: SSAValue, kind: Attribute | None = None) -> SSAValue:
    """a <= b as i1; false if one of them is NaN."""
    if is_float(a.type):
        return nest.insert(arith.CmpfOp(a, b, "ole"))
    return nest.insert(arith.CmpiOp(ordered(nest, a, kind), ordered(nest, b, kind), "sle"))


def equal(nest: Scalars, a: SSAValue, b: SSAValue) -> SSAValue:
    """a == b as i1; false if one of them is NaN."""
    op = arith.CmpfOp(a, b, "oeq") if is_float(a.type) else arith.CmpiOp(a, b, "eq")
    return nest.insert(op)


def ordered(nest: Scalars, value: SSAValue, kind: Attribute | None) -> SSAValue:
    """A scalar of an element type as one that is compared as its type is; twice, itself again."""
    # Signed numbers are in the order of unsigned ones whose highest bit is the other one.
    if kind is None or not is_reordered(kind):
        return value
    return nest.insert(arith.XOrIOp(value, nest.constant(-(1 << 63), i64)))


def divide(nest: Scalars, a: SSAValue, b: SSAValue, kind: Attribute | None = None) -> SSAValue:
    """a / b; integers truncate toward zero, and x / 0 is 0."""
    if is_float(a.type):
        return nest.insert(arith.DivfOp(a, b))
    none, one = zero(nest, a.type), nest.constant(1, a.type)
    if kind is not None and is_reordered(kind):
        by_zero = equal(nest, b, none)
        quotient = nest.insert(arith.DivUIOp(a, select(nest, by_zero, one, b)))
        return select(nest, by_zero, none, quotient)
    if (known := integer_constant(b)) is not None:
        if known in (0, -1):
            return none if known == 0 else negative(nest, a)
        return nest.insert(arith.DivSIOp(a, b))
    by_zero = equal(nest, b, none)
    by_minus_one = equal(nest, b, nest.constant(-1, a.type))
    # Both divisors are replaced: x / 0 traps, and so does the smallest integer / -1.
    special = nest.insert(arith.OrIOp(by_zero, by_minus_one))
    quotient = nest.insert(arith.DivSIOp(a, select(nest, special, one, b)))
    quotient = select(nest, by_minus_one, negative(nest, a), quotient)
    return select(nest, by_zero, none, quotient)


def power(nest: Scalars, a: SSAValue, b: SSAValue, kind: Attribute | None = None) -> SSAValue:
    """a ** b; an integer to a negative power is truncated toward zero, and 0 for a = 0."""
    if is_float(a.type):
        return nest.insert(math.PowFOp(a, b))
    type, unsigned = integer_type(a.type), kind is not None and is_reordered(kind)
    none, one = zero(nest, type), nest.constant(1, type)
    result = one
    # Horner's scheme over the bits of the exponent, the highest first.
    for bit in reversed(range(type.width.data - (not unsigned))):
        square = mul(nest, result, result)
        mask = nest.insert(arith.AndIOp(b, nest.constant(1 << bit, type)))
        factor = select(nest, equal(nest, mask, none), one, a)
        result = mul(nest, square, factor)
    if unsigned:
        return result
    # a ** -n: 1 for a = 1, -1 or 1 for a = -1, else 0.
    odd = equal(nest, nest.insert(arith.AndIOp(b, one)), one)
    minus_one = nest.constant(-1, type)
    inverse = select(nest, equal(nest, a, one), one, none)
    sign = select(nest, odd, minus_one, one)
    inverse = select(nest, equal(nest, a, minus_one), sign, inverse)
    return select(nest, less(nest, b, none), inverse, result)


def convert(nest: Scalars, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A scalar of element type `source` as one of element type `target`.

    Both are in their compute types. Rounding to 16 bits is done here, so that a cast to f16
    and back is not lost in a fused kernel. An integer keeps the bits of the compute type.
    """
    if source == target:
        return value
    if is_low_bit(source):
        wide = low_bits.wide_type(source)
        return convert(nest, low_bits.decoded(nest, value, source), wide, target)
    if is_low_bit(target):
        return low_bits.encoded(nest, _wide(nest, value, source, target), target)
    wide = nest.compute_type(target)
    if target == i1:
        compare = arith.CmpfOp if is_float(value.type) else arith.CmpiOp
        condition = "une" if is_float(value.type) else "ne"
        return nest.insert(compare(value, zero(nest, value.type), condition))
    if is_float(target):
        # An f64 is rounded to f16 once; NumPy has no bf16, and ml_dtypes goes through f32.
        direct = target == f16 and value.type == f64
        result = value if direct else _to_float(nest, value, wide, is_reordered(source))
        if not is_half(target):
            return result
        return nest.insert(upstream.ExtFOp(nest.insert(upstream.TruncFOp(result, target)), wide))
    if not is_float(value.type):
        return _resize(nest, value, integer_type(wide))
    if is_reordered(target):
        # Numbers from 2 ** 63 on are moved into the range of i64 and back, as on x86.
        half = nest.constant(float(1 << 63), value.type)
        is_large = less_equal(nest, half, value)
        moved = select(nest, is_large, sub(nest, value, half), value)
        high = select(nest, is_large, nest.constant(-(1 << 63), i64), zero(nest, i64))
        return nest.insert(arith.XOrIOp(_float_to_integer(nest, moved, i64), high))
    return _float_to_integer(nest, value, integer_type(wide))


def _wide(nest: Scalars, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A scalar as an f32 that is rounded to a low-bit type, or as an i32 for one of integers."""
    if target in LOW_BIT_FLOATS:
        return _to_float(nest, value, f32, is_reordered(source))
    if is_float(value.type):
        return _float_to_integer(nest, value, i32)
    return _resize(nest, value, i32)


def _to_float(nest: Scalars, value: SSAValue, target: Attribute, unsigned: bool) -> SSAValue:
    if value.type == target:
        return value
    if value.type == i1 or (unsigned and not is_float(value.type)):
        return nest.insert(arith.UIToFPOp(value, float_type(target)))
    if not is_float(value.type):
        return nest.insert(arith.SIToFPOp(value, float_type(target)))
    widens = (value.type, target) == (f32, f64)
    return nest.insert((upstream.ExtFOp if widens else upstream.TruncFOp)(value, target))


def _float_to_integer(nest: Scalars, value: SSAValue, target: IntegerType) -> SSAValue:
    """What a value outside the integers becomes is that of x86: the smallest integer."""
    wide = i64 if target == i64 else i32
    bound = float(1 << (wide.width.data - 1))
    least, largest = _range(value)
    if -bound <= least and largest < bound:
        return _resize(nest, nest.insert(arith.FPToSIOp(value, wide)), target)
    low = nest.insert(arith.CmpfOp(value, nest.constant(-bound, value.type), "oge"))
    inside = nest.insert(arith.AndIOp(low, less(nest, value, nest.constant(bound, value.type))))
    safe = select(nest, inside, value, zero(nest, value.type))
    integer = nest.insert(arith.FPToSIOp(safe, wide))
    integer = select(nest, inside, integer, nest.constant(-int(bound), wide))
    return _resize(nest, integer, target)


def _range(value: SSAValue) -> tuple[float, float]:
    """The least and the largest number that a float may be; -inf and inf if it may be NaN."""
    op, unknown = value.owner, (-inf, inf)
    if not isinstance(op, arith.SelectOp) or not isinstance(compare := op.cond.owner, arith.CmpfOp):
        return unknown
    limit = op.rhs.owner
    if not isinstance(limit, arith.ConstantOp) or not isinstance(limit.value, FloatAttr):
        return unknown
    bound, (least, largest) = limit.value.value.data, _range(op.lhs)
    if isnan(bound) or arith.CMPF_COMPARISON_OPERATIONS[compare.predicate.value.data] != "olt":
        return unknown
    # A comparison with NaN is false, and the bound is chosen.
    if (compare.lhs, compare.rhs) == (op.rhs, op.lhs):
        return max(least, bound), max(largest, bound)
    if (compare.lhs, compare.rhs) == (op.lhs, op.rhs):
        return min(least, bound), min(largest, bound)
    return unknown


def _resize(nest: Scalars, value: SSAValue, target: IntegerType) -> SSAValue:
    source = integer_type(value.type)
    if source == target:
        return value
    if source == i1:
        return nest.insert(arith.ExtUIOp(value, target))
    narrows = target.width.data < source.width.data
    return nest.insert((arith.TruncIOp if narrows else arith.ExtSIOp)(value, target))


def computed(nest: Scalars, loaded: SSAValue, kind: Attribute) -> SSAValue:
    """What a buffer of this element type holds, in the type in which it is computed."""
    if is_half(kind):
        return nest.insert(upstream.ExtFOp(loaded, f32))
    if kind == i1:
        return nest.insert(arith.CmpiOp(loaded, nest.constant(0, i8), "ne"))
    if is_unsigned(kind) and loaded.type != compute_type(kind):
        return nest.insert(arith.ExtUIOp(loaded, integer_type(compute_type(kind))))
    return loaded


def stored(nest: Scalars, value: SSAValue, kind: Attribute) -> SSAValue:
    """A computed scalar as a buffer of this element type holds it."""
    source = value.owner
    if isinstance(source, upstream.ExtFOp) and source.input.type == kind:
        return source.input
    if is_half(kind):
        return nest.insert(upstream.TruncFOp(value, kind))
    if kind == i1:
        return nest.insert(arith.ExtUIOp(value, i8))
    if is_unsigned(kind) and bits(value.type) != bits(kind):
        return nest.insert(arith.TruncIOp(value, IntegerType(bits(kind))))
    return value


def wrapped(nest: Scalars, value: SSAValue, kind: Attribute) -> SSAValue:
    """What an element type keeps of a result in its compute type: the low bits of unsigned ones."""
    if not is_unsigned(kind) or bits(value.type) == bits(kind):
        return value
    op, mask = value.owner, (1 << bits(kind)) - 1
    if isinstance(op, arith.ExtUIOp) and bits(op.input.type) <= bits(kind):
        return value
    if isinstance(op, arith.AndIOp) and integer_constant(op.rhs) == mask:
        return value
    return nest.insert(arith.AndIOp(value, nest.constant(mask, value.type)))


def rounded(nest: Scalars, value: SSAValue, kind: Attribute) -> SSAValue:
    """A result in f32, rounded to f16 or bf16 and widened again."""
    if _is_rounded(value, kind):
        return value
    return computed(nest, stored(nest, value, kind), kind)


_CHOICES = (arith.MaximumfOp, arith.MinimumfOp, arith.SelectOp, arith.NegfOp, math.AbsFOp)
"""Operations whose result is one of their operands, or that with another sign."""


def _is_rounded(value: SSAValue, kind: Attribute, depth: int = 4) -> bool:
    """Whether a scalar is known to be a number of f16 or bf16: loaded, or chosen from such ones."""
    op = value.owner
    if isinstance(op, upstream.ExtFOp):
        return op.input.type == kind
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr):
        number = np.float64(op.value.value.data)
        with np.errstate(over="ignore"):
            return bool(number.astype(dtype_of(kind)) == number)
    if not isinstance(op, _CHOICES) or not depth:
        return False
    chosen = [operand for operand in op.operands if operand.type == value.type]
    return all(_is_rounded(operand, kind, depth - 1) for operand in chosen)


def to_index(nest: Scalars, value: SSAValue) -> SSAValue:
    """An integer as a scalar of type `index`."""
    return nest.insert(arith.IndexCastOp(value, IndexType()))


def from_index(nest: Scalars, value: SSAValue, type: Attribute) -> SSAValue:
    """A scalar of type `index` as a float or an integer."""
    integer = nest.insert(arith.IndexCastOp(value, i64))
    return convert(nest, integer, i64, type)


FUNCTIONS: dict[str, Callable[[SSAValue], Operation]] = {
    "abs": math.AbsFOp,
    "ceil": math.CeilOp,
    "cos": math.CosOp,
    "erf": math.ErfOp,
    "exp": math.ExpOp,
    "floor": math.FloorOp,
    "log": math.LogOp,
    "rsqrt": math.RsqrtOp,
    "sin": math.SinOp,
    "sqrt": math.SqrtOp,
    "tanh": math.TanhOp,
}
"""The functions of one float, by their names."""

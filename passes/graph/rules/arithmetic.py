"""Identities of arithmetic: signs, constants, powers, bounds, casts."""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign, inf

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....core.dtypes import LOW_BIT_FLOATS, ui32, ui64
from ....core.ir.weights import WeightStore
from ....core.pipelines.exactness import EXACT, ROUNDING, SPECIAL
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import holds_all_values, is_float, is_half
from ....dialects.graph.interfaces import element_type
from ....dialects.graph.known import elements_of, is_constant, is_nonnegative, is_regular
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.rules import IdentityRule, rule


@rule("x + -y == x - y", EXACT)
def add_negated(y: SSAValue) -> bool:
    return not is_constant(y)


@rule("x - -y == x + y", EXACT)
def subtract_negated() -> None: ...


@rule("-x * -y == x * y", EXACT)
def multiply_negated() -> None: ...


@rule("x * -1 == -x", EXACT)
def multiply_minus_one(x: SSAValue) -> bool:
    return not is_constant(x)


def _inverse(x: SSAValue, c: SSAValue) -> tuple[np.ndarray, np.ndarray] | None:
    """A constant divisor of x and its reciprocal, if all elements of both are normal numbers."""
    divisor = elements_of(c, WeightStore())
    if divisor is None or is_constant(x) or not is_float(element_type(x)):
        return None
    with np.errstate(all="ignore"):
        inverse = divisor.dtype.type(1) / divisor
    return (divisor, inverse) if is_regular(divisor) and is_regular(inverse) else None


@rule("x / c == x * inverse  for a power of two, where c and 1 / c are normal numbers", EXACT)
def divide_by_power_of_two(x: SSAValue, c: SSAValue) -> Mapping[str, np.ndarray] | None:
    if (found := _inverse(x, c)) is None:
        return None
    fractions = np.abs(np.frexp(found[0].astype(np.float64))[0])
    return {"inverse": found[1]} if np.all(fractions == 0.5) else None


@rule(
    "x / c == x * inverse  for inverse = 1 / c in f32 and f64: 41 / 41 is less than 1 then",
    ROUNDING,
)
def divide_by_constant(x: SSAValue, c: SSAValue) -> Mapping[str, np.ndarray] | None:
    found = _inverse(x, c)
    # In 16 bits the rounding of 1 / c would show.
    return None if found is None or is_half(element_type(x)) else {"inverse": found[1]}


@rule("1 / sqrt(x) == rsqrt(x)  which in 16 bits does not round the root", ROUNDING)
def inverse_of_root() -> None: ...


@rule("1 / (1 + exp(-x)) == sigmoid(x)  which in 16 bits does not round in between", ROUNDING)
def sigmoid_formula() -> None: ...


def _known(
    x: SSAValue, inner: SSAValue, constants: tuple[SSAValue, SSAValue], weights: WeightStore
) -> tuple[np.ndarray, np.ndarray] | None:
    """The elements of two constants, where x is none and only one operator uses `inner`."""
    if is_constant(x) or not inner.has_one_use() or is_half(element_type(inner)):
        return None
    first, second = (elements_of(constant, weights) for constant in constants)
    return None if first is None or second is None else (first, second)


@rule("(t := x * c) * d == x * (c * d)  which does not overflow or underflow in between", SPECIAL)
def multiply_twice(
    x: SSAValue, t: SSAValue, c: SSAValue, d: SSAValue, weights: WeightStore
) -> bool:
    if (found := _known(x, t, (c, d), weights)) is None:
        return False
    with np.errstate(all="ignore"):
        return is_regular(found[0] * found[1])


@rule("(t := x + c) + d == x + (c + d)  for c and d of one sign: nothing cancels", ROUNDING)
def add_twice(x: SSAValue, t: SSAValue, c: SSAValue, d: SSAValue, weights: WeightStore) -> bool:
    if (found := _known(x, t, (c, d), weights)) is None:
        return False
    with np.errstate(all="ignore"):
        cancels = np.signbit(found[0]) != np.signbit(found[1])
        finite = np.isfinite(found[0] + found[1])
    return not is_float(element_type(t)) or bool(np.all(finite) and not np.any(cancels))


@rule("x ** 0.5 == sqrt(x)  for x >= 0, except for -0.0, whose power is 0.0", SPECIAL)
def power_is_root(x: SSAValue) -> bool:
    return is_float(element_type(x)) and is_nonnegative(x)


@rule("x ** c == x * x * x  for c = 3, likewise (x * x) * (x * x) for c = 4", ROUNDING)
def power_is_product(b: InsertingBuilder, x: SSAValue, c: SSAValue) -> SSAValue | None:
    exponent = graph.splat_of(c)
    if exponent not in (3, 4) or is_half(element_type(x)):
        return None
    square: SSAValue = b.mul(x, x)
    return b.mul(square, x if exponent == 3 else square)


@rule("x ** -1 == 1 / x  which is the correctly rounded power", EXACT)
def power_is_inverse(x: SSAValue) -> bool:
    return is_float(element_type(x))


@rule("log(softmax(x, axis=a)) == log_softmax(x, axis=a)  which does not underflow", SPECIAL)
def log_of_softmax() -> None: ...


@rule("relu(x) == x  for x >= 0, except for -0.0, which becomes 0.0", SPECIAL)
def relu_of_nonnegative(x: SSAValue) -> bool:
    return is_nonnegative(x)


def bounds_of(op: graph.ReluOp | graph.ClipOp) -> tuple[float, float]:
    """The bounds of a relu or clip."""
    if isinstance(op, graph.ReluOp):
        return 0, inf
    low, high = op.bounds
    return -inf if low is None else low, inf if high is None else high


def _cut(bound: float, low: float, high: float) -> float:
    """A bound clipped to `low` and `high`; -0.0 is below 0.0."""

    def order(number: float) -> tuple[float, float]:
        return number, copysign(1, number)

    return min(max(bound, low, key=order), high, key=order)


@rule(
    "f(t := g(x)) == clip(x, low, high)  for relu and clip, whose bounds are those of g clipped to "
    "those of f; t if they are those of g, relu(x) for 0 and infinity",
    EXACT,
    f=graph.ReluOp | graph.ClipOp,
    g=graph.ReluOp | graph.ClipOp,
)
def clip_twice(
    b: InsertingBuilder,
    op: graph.ReluOp | graph.ClipOp,
    g: graph.ReluOp | graph.ClipOp,
    t: SSAValue,
    x: SSAValue,
) -> SSAValue | None:
    inner, outer = bounds_of(g), bounds_of(op)
    if inner[0] > inner[1] or outer[0] > outer[1]:
        return None
    low, high = (_cut(bound, *outer) for bound in inner)
    bounds = zip((low, high), inner, strict=True)
    if all(a == b and copysign(1, a) == copysign(1, b) for a, b in bounds):
        return t
    if (low, high) == (0, inf) and copysign(1, low) > 0:
        return b.relu(x)
    return b.clip(x, None if low == -inf else low, None if high == inf else high)


@rule("cast(w := cast(x)) == cast(x)  where the type of w holds all values of x", EXACT)
def cast_of_wider_cast(
    b: InsertingBuilder, op: graph.CastOp, x: SSAValue, w: SSAValue
) -> SSAValue | None:
    source, target = element_type(x), element_type(op.result)
    rounds = not is_float(source) and (is_float(target) or target in LOW_BIT_FLOATS)
    # A float beyond i32 has no low bits that a narrow integer could keep.
    wide = target in (i64, ui32, ui64)
    saturates = source == ui32 and is_float(element_type(w)) and not wide
    holds = holds_all_values(element_type(w), source) and not rounds and not saturates
    return b.cast(x, target) if holds else None


PATTERNS: tuple[IdentityRule, ...] = (
    add_negated,
    subtract_negated,
    multiply_negated,
    multiply_minus_one,
    divide_by_power_of_two,
    divide_by_constant,
    inverse_of_root,
    sigmoid_formula,
    power_is_root,
    power_is_product,
    power_is_inverse,
    log_of_softmax,
    relu_of_nonnegative,
    clip_twice,
    cast_of_wider_cast,
)

PATTERNS_ON_CONSTANTS: tuple[IdentityRule, ...] = (multiply_twice, add_twice)
"""Patterns that read the elements of constants, which may be in the weight store."""

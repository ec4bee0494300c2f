"""Identities that scalar functions satisfy, as canonicalisation patterns of their operators.

A row of `ops/elementwise/functions.py` names those of its function. All are bitwise exact.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue
from xdsl.traits import Commutative

from ...core.pipelines.exactness import EXACT
from .attrs import is_unsigned
from .interfaces import broadcasts, element_type
from .ops.elementwise.bases import UnaryOp
from .ops.elementwise.binary import BinaryOp
from .rules import rule


@rule("f(f(x)) == x  for an f that is its own inverse", EXACT, f=UnaryOp)
def involution() -> None: ...


@rule("f(t := f(x)) == t", EXACT, f=UnaryOp)
def idempotent() -> None: ...


@rule("f(-x) == f(x)  for an even f, of signed numbers", EXACT, f=UnaryOp)
def even_function(x: SSAValue) -> bool:
    return not is_unsigned(element_type(x))


@rule(
    "f(x, e) == x  for the element e that is neutral on the right, and broadcasts to x",
    EXACT,
    f=BinaryOp,
)
def right_neutral_operand(op: BinaryOp, x: SSAValue) -> bool:
    return broadcasts(op.rhs, x)


@rule(
    "f(x, e) == x  for the neutral element e, which broadcasts to x",
    EXACT,
    f=(BinaryOp, Commutative),
)
def neutral_operand(op: BinaryOp, x: SSAValue) -> bool:
    return broadcasts(op.rhs if op.lhs is x else op.lhs, x)


@rule("f(x, x) == x", EXACT, f=BinaryOp)
def of_same() -> None: ...


@rule("greater(x, y) == less(y, x)", EXACT)
def mirrored_greater() -> None: ...


@rule("greater_equal(x, y) == less_equal(y, x)", EXACT)
def mirrored_greater_equal() -> None: ...


@rule("x ** 2 == x * x  which is the correctly rounded power", EXACT)
def power_of_two() -> None: ...


@rule("~x == logical_not(x)  for truth values", EXACT)
def not_as_logical(x: SSAValue) -> bool:
    return element_type(x) == i1


@rule("bitwise_and(x, y) == logical_and(x, y)  for truth values", EXACT)
def and_as_logical(x: SSAValue) -> bool:
    return element_type(x) == i1


@rule("bitwise_or(x, y) == logical_or(x, y)  for truth values", EXACT)
def or_as_logical(x: SSAValue) -> bool:
    return element_type(x) == i1


@rule("bitwise_xor(x, y) == logical_xor(x, y)  for truth values", EXACT)
def xor_as_logical(x: SSAValue) -> bool:
    return element_type(x) == i1

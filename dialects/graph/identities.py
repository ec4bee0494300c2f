"""Identities that scalar functions satisfy, as canonicalisation patterns of their operators.

A row of `ops_functions.py` names those of its function. All are bitwise exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import i1
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Commutative

from ...core.exactness import Exactness
from .attrs import is_float
from .interfaces import GraphOp, element_type
from .ops_binary import BinaryOp
from .ops_elementwise import UnaryOp
from .rewrites import forward, is_splat, replace_by


@Exactness.EXACT
class Involution(RewritePattern):
    # f(f(x)) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnaryOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, type(op)):
            forward(op, inner.x, rewriter)


@Exactness.EXACT
class Idempotent(RewritePattern):
    # f(f(x)) == f(x)
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnaryOp, rewriter: PatternRewriter) -> None:
        if isinstance(op.x.owner, type(op)):
            forward(op, op.x, rewriter)


@Exactness.EXACT
@dataclass(frozen=True)
class EvenFunction(RewritePattern):
    # f(-x) == f(x)
    negation: type[UnaryOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnaryOp, rewriter: PatternRewriter) -> None:
        if isinstance(inner := op.x.owner, self.negation):
            replace_by(op, type(op)(inner.x), (inner, op), rewriter)


@Exactness.EXACT
@dataclass(frozen=True)
class AsLogical(RewritePattern):
    # ~x == not x, a & b == (a and b), a | b == (a or b), a ^ b == (a xor b)  for truth values
    logical: Callable[..., GraphOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnaryOp | BinaryOp, rewriter: PatternRewriter) -> None:
        if element_type(op.operands[0]) == i1:
            replace_by(op, self.logical(*op.operands), (op,), rewriter)


@Exactness.EXACT
@dataclass(frozen=True)
class NeutralOperand(RewritePattern):
    # f(x, e) == x, and f(e, x) == x where f is commutative
    number: float
    """The number e; that of integers is its magnitude, as they have no -0.0."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BinaryOp, rewriter: PatternRewriter) -> None:
        neutral = self.number if is_float(element_type(op.lhs)) else abs(self.number)
        if is_splat(op.rhs, neutral):
            forward(op, op.lhs, rewriter)
        elif op.has_trait(Commutative) and is_splat(op.lhs, neutral):
            forward(op, op.rhs, rewriter)


@Exactness.EXACT
class OfSame(RewritePattern):
    # f(x, x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BinaryOp, rewriter: PatternRewriter) -> None:
        if op.lhs is op.rhs:
            forward(op, op.lhs, rewriter)


@Exactness.EXACT
@dataclass(frozen=True)
class Mirrored(RewritePattern):
    # f(a, b) == g(b, a)
    other: type[BinaryOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BinaryOp, rewriter: PatternRewriter) -> None:
        replace_by(op, self.other(op.rhs, op.lhs), (op,), rewriter)


@Exactness.EXACT
@dataclass(frozen=True)
class PowerOfTwo(RewritePattern):
    # x ** 2 == x * x, which is the correctly rounded power
    product: type[BinaryOp]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BinaryOp, rewriter: PatternRewriter) -> None:
        if is_splat(op.rhs, 2):
            replace_by(op, self.product(op.lhs, op.lhs), (op,), rewriter)

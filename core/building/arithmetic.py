"""Index arithmetic as operations: affine expressions and polynomials over `index` values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from ..algebra.polynomials import AtomT, Monomial, Polynomial
from ..ir.typed import float_type
from .creation import created

INDEX = IndexType()

_INDEX_OPS: Mapping[AffineBinaryOpKind, Callable[[SSAValue, SSAValue], Operation]] = {
    AffineBinaryOpKind.Add: arith.AddiOp,
    AffineBinaryOpKind.Mul: arith.MuliOp,
    AffineBinaryOpKind.FloorDiv: arith.FloorDivSIOp,
    AffineBinaryOpKind.CeilDiv: arith.CeilDivSIOp,
}


def constant(value: float | int | bool, type: Attribute) -> arith.ConstantOp:
    """A scalar constant of an integer, index or float type: infinite if it is beyond a float's."""
    if isinstance(type, IntegerType | IndexType):
        attribute = IntegerAttr(int(value), type)
    else:
        try:
            attribute = FloatAttr(float(value), float_type(type))
        except OverflowError:
            attribute = FloatAttr(math.copysign(math.inf, value), float_type(type))
    return created(arith.ConstantOp, (), [type], {"value": attribute})


def computed(
    expr: AffineExpr,
    known: Callable[[AffineExpr], SSAValue | None],
    place: Callable[[AffineExpr, Operation], SSAValue],
) -> SSAValue:
    """An affine expression as a value of type `index`.

    Args:
        expr: the expression.
        known: returns the value that an expression has already, or None; all expressions but sums,
            products, quotients and remainders must have one.
        place: inserts the operation that computes an expression.
    """
    value = known(expr)
    if value is not None:
        return value
    assert isinstance(expr, AffineBinaryOpExpr), expr
    left, right = computed(expr.lhs, known, place), computed(expr.rhs, known, place)
    if expr.kind is AffineBinaryOpKind.Mod:
        # a mod b == a - (a floordiv b) * b, never negative, unlike the remainder of `arith`.
        quotient = AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, expr.lhs, expr.rhs)
        whole = AffineBinaryOpExpr(AffineBinaryOpKind.Mul, quotient, expr.rhs)
        return place(expr, arith.SubiOp(left, computed(whole, known, place)))
    return place(expr, _INDEX_OPS[expr.kind](left, right))


class IndexEmitter(Protocol):
    """Inserts the operations of a sum, each once."""

    def index(self, value: int) -> SSAValue:
        """A constant index."""
        ...

    def pure(
        self, kind: type[Operation], operands: list[SSAValue], result: Attribute, /
    ) -> SSAValue:
        """The result of a pure operation."""
        ...


def summed(
    value: Polynomial[AtomT],
    emitter: IndexEmitter,
    atom: Callable[[AtomT], SSAValue],
    depth: Callable[[AtomT], int] = lambda _: 0,
) -> SSAValue:
    """A polynomial as a value of type `index`.

    Terms of outer scopes are summed before those of inner ones, and in each scope added terms come
    before subtracted ones. The constant comes last, where the address of a load absorbs it for
    free.

    Args:
        value: the polynomial.
        emitter: creates the operations.
        atom: returns the value of an atom.
        depth: returns the number of scopes around an atom.
    """

    def place(term: tuple[Monomial[AtomT], int]) -> tuple[int, bool, Monomial[AtomT]]:
        monomial, coefficient = term
        return max(map(depth, monomial)), coefficient < 0, monomial

    def product(monomial: Monomial[AtomT], coefficient: int) -> SSAValue:
        factors = [atom(a) for a in sorted(monomial, key=depth)]
        return multiplied(factors, coefficient, emitter.index, times)

    def times(left: SSAValue, right: SSAValue) -> SSAValue:
        return emitter.pure(arith.MuliOp, [left, right], INDEX)

    total: SSAValue | None = None
    terms = sorted([term for term in value.terms if term[0]], key=place)
    for _, group in groupby(terms, lambda term: place(term)[0]):
        partial: SSAValue | None = None
        for monomial, coefficient in group:
            if partial is None:
                partial = product(monomial, coefficient)
                continue
            kind = arith.AddiOp if coefficient > 0 else arith.SubiOp
            partial = emitter.pure(kind, [partial, product(monomial, abs(coefficient))], INDEX)
        assert partial is not None
        total = partial if total is None else emitter.pure(arith.AddiOp, [total, partial], INDEX)
    if total is None:
        return emitter.index(value.constant)
    if value.constant:
        constant = emitter.index(value.constant)
        total = emitter.pure(arith.AddiOp, [total, constant], INDEX)
    return total


def multiplied(
    factors: Sequence[SSAValue],
    coefficient: int,
    constant: Callable[[int], SSAValue],
    times: Callable[[SSAValue, SSAValue], SSAValue],
) -> SSAValue:
    """A product of values and a coefficient, which multiplies the first of them."""
    value = constant(coefficient) if coefficient != 1 or not factors else None
    for factor in factors:
        value = factor if value is None else times(factor, value)
    assert value is not None
    return value

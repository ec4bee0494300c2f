"""Affine expressions as polynomials, and back.

The atoms are dimensions, symbols, and quotients and remainders of other polynomials by a number.
`expression` returns a normal form, which keeps maps short however often they are rebuilt. (xDSL's
`AffineExpr.simplify` writes `mod` as a difference, which is longer, and its `c - e` is `e - c`.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)
from xdsl.utils.exceptions import PassFailedException

from ..bounded_cache import bounded_cache
from .polynomials import AtomT, Polynomial

DIMENSION, SYMBOL, QUOTIENT = range(3)

ADD, MUL = AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul
FLOOR, CEIL, MOD = (
    AffineBinaryOpKind.FloorDiv,
    AffineBinaryOpKind.CeilDiv,
    AffineBinaryOpKind.Mod,
)


class DivisorError(PassFailedException):
    """An expression divides by something other than a positive constant."""


class Variable(NamedTuple):
    """A dimension or a symbol."""

    kind: int
    position: int


class Quotient(NamedTuple):
    """A quotient or a remainder; its first field orders it after variables."""

    kind: int
    operation: int
    divisor: int
    dividend: Polynomial[Variable | Quotient]

    @property
    def function(self) -> AffineBinaryOpKind:
        """The operation: a quotient rounded down or up, or the remainder."""
        return AffineBinaryOpKind(self.operation)


Atom: TypeAlias = Variable | Quotient
Affine: TypeAlias = Polynomial[Atom]
Replacements: TypeAlias = Sequence[AffineExpr] | Mapping[int, AffineExpr]
"""Expressions, by the positions of the variables that they replace."""

_Terms: TypeAlias = dict[tuple[Atom, ...], int]


@bounded_cache
def atom_of(kind: int, position: int) -> tuple[Variable]:
    """The monomial of a dimension or a symbol, cached."""
    return (Variable(kind, position),)


def variable(expr: AffineExpr) -> Variable:
    """The atom of a dimension or symbol expression."""
    assert isinstance(expr, AffineDimExpr | AffineSymExpr)
    return Variable(DIMENSION if isinstance(expr, AffineDimExpr) else SYMBOL, expr.position)


def polynomial(
    expr: AffineExpr, dims: Replacements | None = None, symbols: Replacements | None = None
) -> Affine:
    """The polynomial of an expression, with others substituted for dimensions and symbols.

    Raises:
        DivisorError: if a divisor is not a positive number.
    """
    terms: _Terms = {}
    _collect(expr, 1, terms, dims, symbols)
    return Polynomial(terms.items())


def _collect(
    expr: AffineExpr,
    factor: int,
    terms: _Terms,
    dims: Replacements | None,
    symbols: Replacements | None,
) -> None:
    """Add `factor * expr` to `terms`."""
    kind = type(expr)  # isinstance is slow for an ABC
    if kind is not AffineBinaryOpExpr:
        if kind is AffineConstantExpr:
            monomial = ()
            factor *= expr.value  # type: ignore[attr-defined]
        else:
            given = dims if kind is AffineDimExpr else symbols
            position: int = expr.position  # type: ignore[attr-defined]
            if given is not None:
                _collect(given[position], factor, terms, None, None)
                return
            monomial = atom_of(DIMENSION if kind is AffineDimExpr else SYMBOL, position)
        terms[monomial] = terms.get(monomial, 0) + factor
        return
    assert isinstance(expr, AffineBinaryOpExpr)
    if expr.kind is ADD:
        _collect(expr.lhs, factor, terms, dims, symbols)
        _collect(expr.rhs, factor, terms, dims, symbols)
        return
    right = polynomial(expr.rhs, dims, symbols)
    number = right.number
    if expr.kind is MUL and number is not None:
        # xDSL keeps the constant of a product on the right.
        _collect(expr.lhs, factor * number, terms, dims, symbols)
        return
    left = polynomial(expr.lhs, dims, symbols)
    if expr.kind is MUL:
        result = left * right
    elif number is not None and number > 0:
        result = divided(expr.kind, left, number)
    else:
        raise DivisorError(f"cannot divide by what is not a positive constant in {expr}")
    for monomial, coefficient in result.terms:
        terms[monomial] = terms.get(monomial, 0) + factor * coefficient


def divided(function: AffineBinaryOpKind, dividend: Affine, divisor: int) -> Affine:
    """A quotient or remainder by a positive number.

    (c * a + b) op c == a + (b op c) for the quotients, and b op c for the remainder.
    """
    whole, rest = dividend.split(divisor)
    number = rest.number
    if number is None:
        part: Affine = Polynomial.atom(Quotient(QUOTIENT, function.value, divisor, rest))
    elif function is MOD:
        part = Polynomial.of(number % divisor)
    else:
        part = Polynomial.of(number // divisor if function is FLOOR else -(-number // divisor))
    return part if function is MOD else whole + part


def without_remainders(value: Affine) -> Affine:
    """A polynomial whose remainders are written with quotients: a mod n == a - (a floordiv n) * n.

    Quotients of one dividend then cancel.
    """

    def replaced(atom: Atom) -> Affine:
        if not isinstance(atom, Quotient):
            return Polynomial.atom(atom)
        dividend = without_remainders(atom.dividend)
        if atom.function is not MOD:
            return divided(atom.function, dividend, atom.divisor)
        return dividend - divided(FLOOR, dividend, atom.divisor) * atom.divisor

    return Polynomial.of(value.substituted(replaced))


def expression(value: Affine) -> AffineExpr:
    """The affine expression of a polynomial: dimensions, symbols, quotients, then the constant.

    Subtracted quotients come after added ones.
    """
    result: AffineExpr | None = None
    for monomial, factor in sorted(value.terms, key=_is_subtracted_quotient):
        if not monomial:
            continue
        part = _expression_of(monomial[0])
        for atom in monomial[1:]:
            part = AffineBinaryOpExpr(MUL, part, _expression_of(atom))
        if factor != 1:
            part = AffineBinaryOpExpr(MUL, part, AffineConstantExpr(factor))
        result = part if result is None else AffineBinaryOpExpr(ADD, result, part)
    constant = value.constant
    if result is None:
        return AffineConstantExpr(constant)
    return AffineBinaryOpExpr(ADD, result, AffineConstantExpr(constant)) if constant else result


def _is_subtracted_quotient(term: tuple[tuple[Atom, ...], int]) -> bool:
    monomial, factor = term
    return factor < 0 and bool(monomial) and monomial[0].kind == QUOTIENT


def _expression_of(atom: Atom) -> AffineExpr:
    if isinstance(atom, Quotient):
        by = AffineConstantExpr(atom.divisor)
        return AffineBinaryOpExpr(atom.function, expression(atom.dividend), by)
    return _expression_of_variable(atom)


@bounded_cache
def _expression_of_variable(atom: Variable) -> AffineExpr:
    make = AffineDimExpr if atom.kind == DIMENSION else AffineSymExpr
    return make(atom.position)


def affine(
    value: Polynomial[AtomT],
    atom: Callable[[AtomT], AffineExpr],
    product: Callable[[AffineExpr, AffineExpr], AffineExpr],
) -> AffineExpr:
    """A polynomial as an affine expression.

    Args:
        value: the polynomial.
        atom: the expression of an atom.
        product: makes a variable of the product of two expressions, which is not affine.
    """
    total = AffineExpr.constant(value.constant)
    for monomial, coefficient in value.terms:
        if monomial:
            total = total + functools.reduce(product, map(atom, monomial)) * coefficient
    return total


def variables(value: Affine) -> set[Variable]:
    """The variables of a polynomial, including those inside its quotients."""
    found: set[Variable] = set()
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, Quotient):
                found |= variables(atom.dividend)
            else:
                found.add(atom)
    return found

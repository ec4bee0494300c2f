"""Affine expressions as polynomials, and back; the arithmetic of maps is done on polynomials.

`expression` returns a normal form, which keeps maps short however often they are rebuilt. (xDSL's
`AffineExpr.simplify` writes `mod` as a difference, which is longer, and its `c - e` is `e - c`.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

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
from .expressions import (
    CEIL,
    DIMENSION,
    FLOOR,
    MOD,
    QUOTIENT,
    SYMBOL,
    Affine,
    Atom,
    Quotient,
    Variable,
    atom_of,
    divided,
    variables,
)
from .polynomials import AtomT, Polynomial

ADD, MUL = AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul


class DivisorError(PassFailedException):
    """An expression divides by something other than a positive constant."""


Replacements: TypeAlias = Sequence[AffineExpr | Affine] | Mapping[int, AffineExpr | Affine]
"""Expressions, by the positions of the variables that they replace."""

_Terms: TypeAlias = dict[tuple[Atom, ...], int]


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
    expr: AffineExpr | Affine,
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
        elif kind is Polynomial:
            _add(expr, factor, terms)  # type: ignore[arg-type]
            return
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
    _add(result, factor, terms)


def _add(value: Affine, factor: int, terms: _Terms) -> None:
    for monomial, coefficient in value.terms:
        terms[monomial] = terms.get(monomial, 0) + factor * coefficient


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
    assert isinstance(atom, Variable), atom  # a minimum is no affine expression
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


def dims_in(expr: AffineExpr) -> Sequence[int]:
    """The positions of the dimensions in an expression, from left to right."""
    if type(expr) is AffineDimExpr:  # an ABC: isinstance is slow
        return (expr.position,)
    if type(expr) is AffineBinaryOpExpr:
        return (*dims_in(expr.lhs), *dims_in(expr.rhs))
    return ()


def with_dims(
    expr: AffineExpr,
    dims: Sequence[AffineExpr] | Mapping[int, AffineExpr],
    symbols: Sequence[AffineExpr] | None = None,
) -> AffineExpr:
    """The expression with its dimensions replaced, and its symbols if replacements are given.

    The result is not simplified; see `normalized`.
    """
    if type(expr) is AffineDimExpr:  # an ABC: isinstance is slow
        return dims[expr.position]
    if type(expr) is AffineBinaryOpExpr:
        left, right = with_dims(expr.lhs, dims, symbols), with_dims(expr.rhs, dims, symbols)
        if left is expr.lhs and right is expr.rhs:
            return expr
        return AffineBinaryOpExpr(expr.kind, left, right)
    if symbols is not None and type(expr) is AffineSymExpr:
        return symbols[expr.position]
    return expr


def normalized(
    expr: AffineExpr,
    dims: Replacements | None = None,
    symbols: Sequence[AffineExpr] | None = None,
) -> AffineExpr:
    """The normal form, with dimensions and symbols replaced by other expressions."""
    if dims is None and symbols is None and type(expr) is not AffineBinaryOpExpr:
        return expr
    return expression(polynomial(expr, dims, symbols))


def coefficient(expr: AffineExpr, of: AffineExpr) -> int | None:
    """The coefficient of a dimension or symbol; None if it is inside of a quotient."""
    if type(expr) is not AffineBinaryOpExpr:
        return int(expr == of)
    value, atom = polynomial(expr), variable(of)
    factor = value.coefficient(atom)
    return None if atom in variables(value - value.atom(atom) * factor) else factor


def minus(left: AffineExpr, right: AffineExpr) -> AffineExpr:
    """left - right."""
    return expression(polynomial(left) - polynomial(right))


def quotient(expr: AffineExpr, divisor: int) -> AffineExpr:
    """expr floordiv divisor."""
    return expression(divided(FLOOR, polynomial(expr), divisor))


def rounded_up_quotient(expr: AffineExpr, divisor: int) -> AffineExpr:
    """expr ceildiv divisor."""
    return expression(divided(CEIL, polynomial(expr), divisor))


def remainder(expr: AffineExpr, divisor: int) -> AffineExpr:
    """expr mod divisor."""
    return expression(divided(MOD, polynomial(expr), divisor))


def value_of(expr: AffineExpr) -> int | None:
    """The value of a constant expression, None for any other."""
    return expr.value if isinstance(expr, AffineConstantExpr) else None

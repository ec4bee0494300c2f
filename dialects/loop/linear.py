"""Arithmetic of affine expressions, each of whose results is in normal form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from ...core.building.affine import (
    CEIL,
    FLOOR,
    MOD,
    Affine,
    Atom,
    Quotient,
    Replacements,
    divided,
    expression,
    polynomial,
    variable,
    variables,
)
from ...core.building.polynomials import Polynomial


def with_dims(
    expr: AffineExpr, dims: Replacements, symbols: Sequence[AffineExpr] | None = None
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


def joined(index: Affine) -> Affine:
    """The same, in which c * (a floordiv c) + a mod c is a."""
    result = index
    for cut in index.atoms:
        if isinstance(cut, Quotient) and cut.function is MOD:
            quotient, factor = cut._replace(operation=FLOOR.value), index.coefficient(cut)
            if index.coefficient(quotient) == cut.divisor * factor:
                parts = Polynomial.atom(quotient) * cut.divisor + Polynomial.atom(cut)
                result += (cut.dividend - parts) * factor
    # The dividend may be a remainder as well.
    return result if result == index else joined(result)


def substituted(value: Affine, values: Mapping[Atom, Affine]) -> Affine:
    """A polynomial with others in place of some variables, also in its quotients."""

    def of_atom(atom: Atom) -> Affine:
        if isinstance(atom, Quotient):
            return divided(atom.function, substituted(atom.dividend, values), atom.divisor)
        return values[atom] if atom in values else Polynomial.atom(atom)

    return Polynomial[Atom].of(0) + value.substituted(of_atom)


def split(value: Affine, atom: Atom) -> tuple[Affine | None, Affine]:
    """A factor and a rest without an atom: value == factor * atom + rest; None for powers."""
    factor, rest = list[tuple[tuple[Atom, ...], int]](), list[tuple[tuple[Atom, ...], int]]()
    for monomial, number in value.terms:
        if atom not in monomial:
            rest.append((monomial, number))
            continue
        left = list(monomial)
        left.remove(atom)
        if atom in left:
            return None, value
        factor.append((tuple(left), number))
    return Polynomial(factor), Polynomial(rest)

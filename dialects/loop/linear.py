"""Affine expressions in a normal form: a sum of terms, each with a coefficient.

Equal expressions get equal forms, so that maps stay short however often they are rebuilt, and
the coefficient of a loop variable can be read off. (xDSL's `AffineExpr.simplify` writes `mod`
as a difference, which is longer, and its `c - e` is `e - c`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

Terms = dict[AffineExpr, int]
"""Coefficients of dimensions, symbols, and quotients and remainders of other expressions."""

_ADD, _MUL = AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul
_FLOOR, _CEIL = AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv


def with_dims(
    expr: AffineExpr,
    dims: Sequence[AffineExpr] | Mapping[int, AffineExpr],
    symbols: Sequence[AffineExpr] | None = None,
) -> AffineExpr:
    """The expression with others in the place of dimensions, and of symbols where they are given.

    It is not simplified: that is what `normalized` is for.
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


def linear(expr: AffineExpr) -> tuple[Terms, int]:
    """The terms of an expression with their coefficients, none of them 0, and its constant."""
    terms: Terms = {}
    constant = _collect(expr, 1, terms)
    return {term: c for term, c in terms.items() if c}, constant


def normalized(expr: AffineExpr) -> AffineExpr:
    """The expression as dimensions, then symbols, then quotients, then a constant."""
    if type(expr) is not AffineBinaryOpExpr:  # an ABC: isinstance is slow
        return expr
    return _sum(*linear(expr))


def coefficient(expr: AffineExpr, variable: AffineExpr) -> int | None:
    """The coefficient of a dimension or symbol; None if it is inside of a quotient."""
    terms, _ = linear(expr)
    if any(variable in term.dfs() for term in terms if term != variable):
        return None
    return terms.get(variable, 0)


def minus(left: AffineExpr, right: AffineExpr) -> AffineExpr:
    """left - right."""
    return normalized(left + right * -1)


def quotient(expr: AffineExpr, divisor: int) -> AffineExpr:
    """expr floordiv divisor."""
    return _divide(_FLOOR, expr, divisor)


def rounded_up_quotient(expr: AffineExpr, divisor: int) -> AffineExpr:
    """expr ceildiv divisor."""
    return _divide(_CEIL, expr, divisor)


def remainder(expr: AffineExpr, divisor: int) -> AffineExpr:
    """expr mod divisor."""
    return _divide(AffineBinaryOpKind.Mod, expr, divisor)


def value_of(expr: AffineExpr) -> int | None:
    """The value of a constant expression, None for any other."""
    return expr.value if isinstance(expr, AffineConstantExpr) else None


def _collect(expr: AffineExpr, factor: int, terms: Terms) -> int:
    """Add `factor * expr` to `terms`; returns what it adds to the constant."""
    if type(expr) is AffineConstantExpr:
        return factor * expr.value
    if type(expr) is not AffineBinaryOpExpr:
        terms[expr] = terms.get(expr, 0) + factor
        return 0
    if expr.kind == _ADD:
        return _collect(expr.lhs, factor, terms) + _collect(expr.rhs, factor, terms)
    right = normalized(expr.rhs)
    if not isinstance(right, AffineConstantExpr):
        # xDSL keeps the constant of a product on the right, and allows no other divisor.
        raise NotImplementedError(f"{expr} is not affine")
    if expr.kind == _MUL:
        return _collect(expr.lhs, factor * right.value, terms)
    divided = _divide(expr.kind, expr.lhs, right.value)
    if isinstance(divided, AffineBinaryOpExpr) and divided.kind in (_ADD, _MUL):
        return _collect(divided, factor, terms)
    if isinstance(divided, AffineConstantExpr):
        return factor * divided.value
    terms[divided] = terms.get(divided, 0) + factor
    return 0


def _divide(kind: AffineBinaryOpKind, expr: AffineExpr, divisor: int) -> AffineExpr:
    """A quotient or remainder, less whatever is a multiple of the divisor.

    (c * a + b) op c == a + (b op c) for the quotients, and b op c for the remainder.
    """
    if divisor == 1:
        return AffineExpr.constant(0) if kind == AffineBinaryOpKind.Mod else normalized(expr)
    terms, constant = linear(expr)
    whole = {term: c // divisor for term, c in terms.items() if c % divisor == 0}
    rest = {term: c for term, c in terms.items() if c % divisor}
    left = _sum(rest, constant % divisor)
    if isinstance(left, AffineConstantExpr):
        part = AffineExpr.binary(kind, left, AffineExpr.constant(divisor))
    else:
        part = AffineBinaryOpExpr(kind, left, AffineExpr.constant(divisor))
    if kind == AffineBinaryOpKind.Mod:
        return part
    if isinstance(part, AffineConstantExpr):
        return _sum(whole, constant // divisor + part.value)
    whole[part] = whole.get(part, 0) + 1
    return _sum(whole, constant // divisor)


def _order(term: AffineExpr) -> tuple[int, int]:
    match term:
        case AffineDimExpr():
            return 0, term.position
        case AffineSymExpr():
            return 1, term.position
    return 2, 0


def _sum(terms: Terms, constant: int) -> AffineExpr:
    result: AffineExpr | None = None
    for term, factor in _sorted(terms):
        part = term if factor == 1 else AffineBinaryOpExpr(_MUL, term, AffineConstantExpr(factor))
        result = part if result is None else AffineBinaryOpExpr(_ADD, result, part)
    if result is None:
        return AffineConstantExpr(constant)
    if constant == 0:
        return result
    return AffineBinaryOpExpr(_ADD, result, AffineConstantExpr(constant))


def _sorted(terms: Terms) -> Iterable[tuple[AffineExpr, int]]:
    return sorted(terms.items(), key=lambda item: _order(item[0]))

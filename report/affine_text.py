"""Affine expressions as text, as they stand between the brackets of an index."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

CHOICE, COMPARISON, SUM, PRODUCT, ATOM = range(5)
"""How tightly a text binds."""

_SIGNS = {
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.Mod: "%",
    AffineBinaryOpKind.FloorDiv: "//",
}


def affine_text(expr: AffineExpr, dims: Sequence[str], axes: Sequence[str]) -> tuple[str, int]:
    """The text of an affine expression, and how tightly it binds."""
    if isinstance(expr, AffineConstantExpr):
        return str(expr.value), ATOM
    if isinstance(expr, AffineDimExpr):
        return dims[expr.position], ATOM
    if isinstance(expr, AffineSymExpr):
        return axes[expr.position], SUM
    assert isinstance(expr, AffineBinaryOpExpr)
    if expr.kind == AffineBinaryOpKind.Add:
        text = " + ".join(affine_text(term, dims, axes)[0] for term in _terms(expr))
        return text.replace("+ -", "- "), SUM
    parts = [affine_text(part, dims, axes) for part in (expr.lhs, expr.rhs)]
    if expr.kind == AffineBinaryOpKind.Mul and isinstance(expr.rhs, AffineConstantExpr):
        # `-2 * i`, so that a sum can subtract it.
        parts.reverse()
    if expr.kind not in _SIGNS:
        return f"ceildiv({parts[0][0]}, {parts[1][0]})", ATOM
    sign, binding = _SIGNS[expr.kind], PRODUCT
    left, right = (
        f"({text})" if own < least else text
        for (text, own), least in zip(parts, (binding, binding + 1), strict=True)
    )
    return (f"-{right}" if (left, sign) == ("-1", "*") else f"{left} {sign} {right}"), binding


def _terms(expr: AffineExpr) -> list[AffineExpr]:
    """The terms of a sum: constants after indices, ranges of lanes at the end."""
    if isinstance(expr, AffineBinaryOpExpr) and expr.kind == AffineBinaryOpKind.Add:
        found = [*_terms(expr.lhs), *_terms(expr.rhs)]
        return sorted(found, key=_place)
    return [expr]


def _place(term: AffineExpr) -> tuple[bool, bool, bool]:
    """Where a term stands in a sum: what is false comes first."""
    factor = term.rhs if isinstance(term, AffineBinaryOpExpr) else None
    negative = isinstance(factor, AffineConstantExpr) and factor.value < 0
    has_lanes = any(isinstance(part, AffineSymExpr) for part in term.dfs())
    return has_lanes, isinstance(term, AffineConstantExpr), negative

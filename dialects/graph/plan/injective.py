"""Whether an index reads different elements for different values of its variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineExpr,
)


def is_injective(index: Iterable[AffineExpr], sizes: Mapping[AffineExpr, int | None]) -> bool:
    """Whether an index never names an element twice.

    True is certain, False is not.

    Args:
        index: affine expressions.
        sizes: for each variable the number of its values, from 0 on; None where it is not known.
    """
    known, fixed = list(index), {variable for variable, size in sizes.items() if size == 1}
    parts: set[AffineExpr] = set()
    while True:
        before = len(fixed), len(parts), len(known)
        for expr in known:
            free = {term: c for term, c in _terms(expr).items() if c and term not in fixed}
            if _is_mixed_radix(free, sizes):
                fixed |= set(free)
            elif len(free) == 1:
                parts |= set(free)
        known += _joined(parts, known)
        if fixed >= set(sizes):
            return True
        if before == (len(fixed), len(parts), len(known)):
            return False


def _terms(expr: AffineExpr) -> dict[AffineExpr, int]:
    """The terms of a sum with their coefficients; quotients and remainders stay as they are."""
    if isinstance(expr, AffineConstantExpr):
        return {}
    if isinstance(expr, AffineBinaryOpExpr):
        if expr.kind == AffineBinaryOpKind.Add:
            left, right = _terms(expr.lhs), _terms(expr.rhs)
            return {term: left.get(term, 0) + right.get(term, 0) for term in {**left, **right}}
        if expr.kind == AffineBinaryOpKind.Mul and isinstance(expr.rhs, AffineConstantExpr):
            return {term: c * expr.rhs.value for term, c in _terms(expr.lhs).items()}
    return {expr: 1}


def _is_mixed_radix(
    terms: Mapping[AffineExpr, int], sizes: Mapping[AffineExpr, int | None]
) -> bool:
    """Whether a sum of variables with coefficients has another value for each choice of them."""
    reach = 0
    for term, coefficient in sorted(terms.items(), key=lambda pair: abs(pair[1])):
        if term not in sizes or reach is None or abs(coefficient) <= reach:
            return False
        size = sizes[term]
        reach = None if size is None else reach + abs(coefficient) * max(size - 1, 0)
    return True


def _joined(parts: Iterable[AffineExpr], known: Iterable[AffineExpr]) -> list[AffineExpr]:
    """What is known because both its quotient and its remainder by a number are."""
    pairs: dict[tuple[AffineExpr, AffineExpr], set[AffineBinaryOpKind]] = {}
    for part in parts:
        if isinstance(part, AffineBinaryOpExpr):
            pairs.setdefault((part.lhs, part.rhs), set()).add(part.kind)
    both = {AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod}
    seen = set(known)
    return [expr for (expr, _), kinds in pairs.items() if both <= kinds and expr not in seen]

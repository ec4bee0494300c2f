"""Whether indices read different elements, one for different values of its variables, or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from xdsl.ir.affine import AffineExpr

from .affine import polynomial, variable
from .expressions import FLOOR, MOD, Affine, Atom, Quotient
from .ranges import Ranges


def is_injective(index: Sequence[AffineExpr], sizes: Mapping[AffineExpr, int | None]) -> bool:
    """Whether an index never names an element twice.

    True is certain, False is not.

    Args:
        index: affine expressions that divide by positive constants only.
        sizes: for each variable the number of its values, from 0 on; None where it is not known.
    """
    if all(size in (0, 1) or expr in index for expr, size in sizes.items()):
        return True  # as most are
    ranges, variables = _ranges(sizes), {variable(expr) for expr in sizes}
    known, fixed = [polynomial(expr) for expr in index], set[Atom]()
    while True:
        before = len(fixed), len(known)
        for value in known:
            fixed |= _fixed_by(value, fixed, ranges)
        if all(atom in fixed or _reach(atom, ranges) == 0 for atom in variables):
            return True
        known += _dividends(fixed, known, ranges)
        if before == (len(fixed), len(known)):
            return False


def are_apart(
    one: Sequence[AffineExpr],
    other: Sequence[AffineExpr],
    sizes: Mapping[AffineExpr, int | None],
) -> bool:
    """Whether two indices never name the same element, whatever their variables are.

    True is certain, False is not: some dimension has to have other values in one than in the other.

    Args:
        one: affine expressions that divide by positive constants only.
        other: as many.
        sizes: as for `is_injective`.
    """
    ranges = _ranges(sizes)
    for pair in zip(one, other, strict=True):
        (low, high), (start, end) = (ranges.of(polynomial(expr)) for expr in pair)
        if None not in (high, start) and cast(int, high) < cast(int, start):
            return True
        if None not in (end, low) and cast(int, end) < cast(int, low):
            return True
    return False


def _ranges(sizes: Mapping[AffineExpr, int | None]) -> Ranges:
    ranges = Ranges()
    for expr, size in sizes.items():
        ranges.know(variable(expr), 0, None if size is None else max(size - 1, 0))
    return ranges


def _reach(atom: Atom, ranges: Ranges) -> int | None:
    """The largest difference of two values of an atom, if it is known."""
    low, high = ranges.of(Affine.atom(atom))
    return None if low is None or high is None else high - low


def _fixed_by(value: Affine, fixed: set[Atom], ranges: Ranges) -> set[Atom]:
    """The atoms of a sum that follow from its value: it is one in mixed radix."""
    terms = [
        (monomial, coefficient)
        for monomial, coefficient in value.terms
        if any(atom not in fixed and _reach(atom, ranges) != 0 for atom in monomial)
    ]
    reach: int | None = 0
    for monomial, coefficient in sorted(terms, key=lambda term: abs(term[1])):
        if len(monomial) != 1 or reach is None or abs(coefficient) <= reach:
            return set()
        own = _reach(monomial[0], ranges)
        reach = None if own is None else reach + abs(coefficient) * own
    return {monomial[0] for monomial, _ in terms}


def _dividends(fixed: Iterable[Atom], known: Iterable[Affine], ranges: Ranges) -> list[Affine]:
    """What follows from quotients and remainders: from both of them, or from one that is all."""
    functions: dict[tuple[Affine, int], set[int]] = {}
    for atom in fixed:
        if isinstance(atom, Quotient):
            functions.setdefault((atom.dividend, atom.divisor), set()).add(atom.operation)
    both, found = {FLOOR.value, MOD.value}, dict[Affine, None]()
    for (dividend, divisor), operations in functions.items():
        low, high = ranges.of(dividend)
        small = low is not None and high is not None and 0 <= low and high < divisor
        if both <= operations or (small and MOD.value in operations):
            found[dividend] = None
    return [value for value in found if value not in set(known)]

"""The smallest and the largest values of expressions."""

from __future__ import annotations

from typing import TypeAlias

from .expressions import CEIL, FLOOR, MOD, ZERO, Affine, Atom, Least, Quotient, divided, rebuilt
from .polynomials import Monomial

Range: TypeAlias = tuple[int | None, int | None]
"""The smallest and the largest value, None where unknown."""

UNKNOWN: Range = (None, None)


class Ranges:
    """A table of the ranges of atoms, which determine those of polynomials.

    That of a quotient or a minimum is computed from those of its parts, if none is recorded.
    """

    def __init__(self) -> None:
        self._ranges: dict[Atom, Range] = {}

    def know(self, atom: Atom, low: int | None, high: int | None) -> None:
        """Record the range of an atom."""
        self._ranges[atom] = low, high

    def of(self, value: Affine) -> Range:
        """A range that contains the values of a polynomial; it need not be tight."""
        low: int | None = 0
        high: int | None = 0
        for monomial, coefficient in value.terms:
            least, most = self._of_product(monomial)
            if coefficient < 0:
                least, most = most, least
            low = None if low is None or least is None else low + coefficient * least
            high = None if high is None or most is None else high + coefficient * most
        return low, high

    def is_nonnegative(self, value: Affine) -> bool:
        """Whether a polynomial is known to be nonnegative."""
        low, _ = self.of(value)
        return low is not None and low >= 0

    def quotient(self, dividend: Affine, divisor: int) -> int | None:
        """The quotient, rounded down, of every value of a dividend; None where it differs."""
        low, high = self.of(dividend)
        if low is None or high is None or low // divisor != high // divisor:
            return None
        return low // divisor

    # r floordiv d == n, r mod d == r - n * d  for n * d <= r < n * d + d
    def folded(self, value: Affine) -> Affine:
        """A value without the quotients that are one number in the range of their dividend."""

        def of_atom(atom: Atom) -> Affine:
            if not isinstance(atom, Quotient):
                return rebuilt(atom, self.folded)
            dividend = self.folded(atom.dividend)
            number = self.quotient(dividend, atom.divisor)
            if number is not None and atom.function is not CEIL:
                return ZERO + number if atom.function is FLOOR else dividend - number * atom.divisor
            return divided(atom.function, dividend, atom.divisor)

        return ZERO + value.substituted(of_atom)

    def _of_product(self, monomial: Monomial[Atom]) -> Range:
        if not monomial:
            return 1, 1
        result = self._of_atom(monomial[0])
        for atom in monomial[1:]:
            result = _product(result, self._of_atom(atom))
        return result

    def _of_atom(self, atom: Atom) -> Range:
        known = self._ranges.get(atom)
        if known is None and isinstance(atom, Least):
            ends = [self.of(part) for part in atom.parts]
            lows = [low for low, _ in ends if low is not None]
            highs = [high for _, high in ends if high is not None]
            return min(lows) if len(lows) == len(ends) else None, min(highs, default=None)
        if known is None and isinstance(atom, Quotient):
            # The range of what is divided gives that of a quotient or a remainder.
            (low, high), divisor = self.of(atom.dividend), atom.divisor
            function = atom.function
            if function is MOD:
                if low is not None and high is not None and 0 <= low and high < divisor:
                    return low, high
                return 0, divisor - 1
            if function is CEIL:
                low, high = (None if end is None else end + divisor - 1 for end in (low, high))
            low, high = (None if end is None else end // divisor for end in (low, high))
            return low, high
        return UNKNOWN if known is None else known


def _product(left: Range, right: Range) -> Range:
    """The range of a product of two values."""
    (a, b), (c, d) = left, right
    if a is not None and b is not None and c is not None and d is not None:
        corners = a * c, a * d, b * c, b * d
        return min(corners), max(corners)
    if a is not None and c is not None and a >= 0 and c >= 0:
        return a * c, None
    return UNKNOWN

"""Facts about polynomials and their atoms: ranges, and which are positive.

Nothing here knows of operations: who opens loops records what holds in them. The index values of
`dialects/loop/indices.py` have their ranges in such a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeAlias

from .expressions import CEIL, MOD, Least, Quotient
from .polynomials import AtomT, Monomial, Polynomial

Range: TypeAlias = tuple[int | None, int | None]
"""The smallest and the largest value, None where unknown."""

UNKNOWN: Range = (None, None)


class Ranges(Generic[AtomT]):
    """A table of the ranges of atoms, which determine those of polynomials.

    That of a quotient or a minimum is computed from those of its parts, if none is recorded.
    """

    def __init__(self) -> None:
        self._ranges: dict[AtomT, Range] = {}

    def know(self, atom: AtomT, low: int | None, high: int | None) -> None:
        """Record the range of an atom."""
        self._ranges[atom] = low, high

    def of(self, value: Polynomial[AtomT]) -> Range:
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

    def is_nonnegative(self, value: Polynomial[AtomT]) -> bool:
        """Whether a polynomial is known to be nonnegative."""
        low, _ = self.of(value)
        return low is not None and low >= 0

    def _of_product(self, monomial: Monomial[AtomT]) -> Range:
        if not monomial:
            return 1, 1
        result = self._of_atom(monomial[0])
        for atom in monomial[1:]:
            result = _product(result, self._of_atom(atom))
        return result

    def _of_atom(self, atom: AtomT) -> Range:
        known = self._ranges.get(atom)
        if known is None and isinstance(atom, Least):
            ends = [self.of(part) for part in atom.parts]  # type: ignore[arg-type]
            lows = [low for low, _ in ends if low is not None]
            highs = [high for _, high in ends if high is not None]
            return min(lows) if len(lows) == len(ends) else None, min(highs, default=None)
        if known is None and isinstance(atom, Quotient):
            # The range of what is divided gives that of a quotient or a remainder.
            (low, high), divisor = self.of(atom.dividend), atom.divisor  # type: ignore[arg-type]
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


class Facts(Ranges[AtomT]):
    """Ranges of atoms, and other facts that hold in the open loops."""

    def __init__(self) -> None:
        super().__init__()
        self.positive: list[Polynomial[AtomT]] = []
        """Polynomials that are at least 1 in every iteration of the open loops."""
        self._least_of: dict[AtomT, Sequence[Polynomial[AtomT]]] = {}
        self._quotients: dict[AtomT, tuple[Polynomial[AtomT], int]] = {}

    def know_least(self, atom: AtomT, parts: Sequence[Polynomial[AtomT]]) -> None:
        """Record that an atom is the minimum of `parts`."""
        self._least_of[atom] = parts

    def know_quotient(self, atom: AtomT, dividend: Polynomial[AtomT], divisor: int) -> None:
        """Record that an atom is a quotient by a positive number, rounded down."""
        self._quotients[atom] = dividend, divisor

    def is_positive(self, value: Polynomial[AtomT]) -> bool:
        """Whether a polynomial is at least 1 in every iteration of the open loops."""
        if self.is_nonnegative(value - 1):
            return True
        if any(self.is_nonnegative(value - fact) for fact in self.positive):
            return True
        atom = value.single_atom
        parts = self._least_of.get(atom, ()) if atom is not None else ()
        return bool(parts) and all(self.is_positive(part) for part in parts)

    def assume_below(
        self, variable: Polynomial[AtomT], bounds: Sequence[Polynomial[AtomT]]
    ) -> None:
        """Record that `variable` is below each of `bounds` in a loop."""
        for bound in bounds:
            self.positive.append(bound - variable)
            if (atom := bound.single_atom) is not None:
                self.assume_below(variable, self._least_of.get(atom, ()))
            for monomial, coefficient in bound.terms:
                quotient = self._quotients.get(monomial[0]) if len(monomial) == 1 else None
                if quotient is None or coefficient != 1:
                    continue
                # i < a floordiv f + w  ==>  a - f * (i - w) - f >= 0
                total, factor = quotient
                offset = variable - (bound - Polynomial.atom(monomial[0]))
                self.positive.append(total - offset * factor - (factor - 1))

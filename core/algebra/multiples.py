"""Sizes that are multiples of numbers, so that their quotients are exact.

A pair of equal sizes says so: n == 2*(n//2) holds for an even n only.
"""

from __future__ import annotations

import math

from .dims import Dim, SizeQuotient


class Multiples:
    """Sizes that are known to be multiples of numbers."""

    def __init__(self) -> None:
        self._of: dict[Dim, int] = {}

    def copy(self) -> Multiples:
        """What is known now, for later."""
        same = Multiples()
        same._of |= self._of
        return same

    @property
    def pairs(self) -> list[tuple[Dim, Dim]]:
        """The known multiples, as pairs of equal sizes."""
        return [multiple(size, number) for size, number in self._of.items()]

    def note(self, left: Dim, right: Dim) -> None:
        """Two sizes are equal."""
        if (known := as_multiple(left, right)) is not None:
            size, number = known
            self._of[size] = math.lcm(self._of.get(size, 1), number)

    # d * (p // d) == p  for a multiple p of d
    def settled(self, size: Dim) -> Dim:
        """The same size, in which exact quotients are multiplied out where that is possible."""
        for monomial, factor in size.terms:
            for place, atom in enumerate(monomial):
                if isinstance(atom, SizeQuotient) and self._is_whole(atom, factor):
                    others = (*monomial[:place], *monomial[place + 1 :])
                    product = Dim([(others, factor // atom.divisor)]) * atom.dividend
                    return self.settled(size - Dim([(monomial, factor)]) + product)
        return size

    def _is_whole(self, atom: SizeQuotient, factor: int) -> bool:
        """Whether a factor times an exact quotient is a multiple of its dividend."""
        if factor % atom.divisor:
            return False
        terms = ((self._of.get(Dim([(m, 1)]), 1), c) for m, c in atom.dividend.terms)
        return self._of.get(atom.dividend, 1) % atom.divisor == 0 or all(
            number * c % atom.divisor == 0 for number, c in terms
        )

    def same(self, left: Dim, right: Dim) -> bool:
        """Whether two sizes are known to be equal."""
        difference = left - right
        return self.settled(difference * _common_divisor(difference)) == 0

    def demand(self, size: Dim, divisor: int) -> tuple[Dim, Dim] | None:
        """The simplest pair of sizes that are equal where a number divides a size.

        None where no size is a multiple of it, such as 2*n+1 of 2.
        """
        scale = _common_divisor(size)
        terms, divisor = self.settled(size * scale).terms, divisor * scale
        common = math.gcd(divisor, *(factor for _, factor in terms))
        divisor //= common
        rest = [(m, factor // common % divisor) for m, factor in terms]
        rest = [(m, factor) for m, factor in rest if factor]
        if len(rest) == 1:
            # d divides c * m where it divides m, as it has no divisor in common with c.
            rest = [(rest[0][0], 1)]
        dim = Dim(rest)
        return None if dim.is_static else multiple(dim, divisor)


def multiple(size: Dim, number: int) -> tuple[Dim, Dim]:
    """The pair of sizes that are equal where a number divides a size."""
    return size, size.floordiv(number) * number


def as_multiple(left: Dim, right: Dim) -> tuple[Dim, int] | None:
    """The size that is a multiple where these are equal, and the number; None for other pairs."""
    for size, other in ((left, right), (right, left)):
        number = math.gcd(*(factor for _, factor in other.terms))
        if number > 1 and not size.is_static and multiple(size, number)[1] == other:
            return size, number
    return None


def misfit(left: Dim, right: Dim) -> tuple[str, str, Dim] | None:
    """The words of an error for sizes that differ because a number does not divide one of them.

    The fact, what is expected, and the size; None for other pairs.
    """
    if (known := as_multiple(left, right)) is None:
        return None
    size, number = known
    return f"size {size} is not divisible", f"a multiple of {number}", size


def _common_divisor(size: Dim) -> int:
    """A number whose products with the quotients in a size have no remainders."""
    return math.lcm(*(atom.divisor for atom in size.atoms if isinstance(atom, SizeQuotient)))

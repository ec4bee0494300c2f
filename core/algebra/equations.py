"""Whether indices of two iterations are never equal.

Each dimension of a place is an equation over the unknowns of both iterations. There is no solution
if an equation, or one that follows from several, has none: by the greatest common divisor of its
coefficients (Banerjee, Dependence Analysis, 1997, chapter 3), or by the ranges of its terms
(chapter 4).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from xdsl.ir.affine import AffineBinaryOpKind

from .expressions import FLOOR, MOD, ZERO, Affine, Atom, Quotient, joined
from .polynomials import Polynomial
from .ranges import Ranges

MOST_EQUATIONS = 24
"""The limit of equations combined from those of the dimensions; more have not helped."""


class TwoIterations(Protocol):
    """Facts about the unknowns of two iterations of a loop."""

    @property
    def ranges(self) -> Ranges:
        """The ranges of atoms."""
        ...

    @property
    def distance(self) -> Atom:
        """How many iterations are between the two: a number that is not 0."""
        ...

    @property
    def size(self) -> int | None:
        """The largest number of iterations, if it is known."""
        ...

    def is_negative(self, value: Affine) -> bool:
        """Whether a value is known to be below 0."""
        ...


def never_equal(
    first: Sequence[Affine],
    second: Sequence[Affine],
    shape: Sequence[int],
    both: TwoIterations,
    implied: Iterable[Affine] = (),
) -> bool:
    """Whether two places in a buffer are known to be different ones.

    Args:
        first: the indices of one, in the first iteration.
        second: those of the other, in the second iteration.
        shape: the sizes of the buffer, below 0 where they are not known.
        both: what is known of the two iterations.
        implied: polynomials that are 0 if the places are the same.
    """
    equations = [one - other for one, other in zip(first, second, strict=True)]
    if any(_has_no_solution(equation, both) for equation in equations):
        return True
    equations += _numbered(first, second, shape)
    return (
        _has_no_common_solution([*equations, *_whole(first, second)], both)
        or _has_no_common_solution([*implied, *equations], both)
        or any(_is_too_far(equation, both) for equation in equations)
        or any(_has_no_solution(part, both) for e in equations for part in _higher(e, both))
    )


# c * a + k == 0  <=>  a == -k / c, and all other unknowns are 0
def sometimes_equal(
    first: Sequence[Affine], second: Sequence[Affine], count_of: Callable[[Atom], int | None]
) -> bool:
    """Whether two places in a buffer are known to be the same for some numbers.

    It is quick, and finds what is evident: "no" is no proof of the contrary.

    Args:
        first: the indices of one place.
        second: those of the other.
        count_of: how many numbers from 0 on an unknown may be, whatever others are; None if that is
            not known.
    """
    equations = [one - other for one, other in zip(first, second, strict=True)]
    uses = Counter(atom for equation in equations for atom in equation.atoms)
    counts = {atom: count_of(atom) or 0 for atom in uses}
    if not all(counts.values()):
        return False
    for equation in equations:
        if any(len(monomial) > 1 for monomial, _ in equation.terms):
            return False
        alone = [atom for atom in equation.atoms if uses[atom] == 1]
        solutions = (divmod(-equation.constant, equation.coefficient(atom)) for atom in alone)
        found = (
            rest == 0 and 0 <= number < counts[atom]
            for atom, (number, rest) in zip(alone, solutions, strict=True)
        )
        if equation.constant and not any(found):
            return False
    return True


def _has_no_common_solution(equations: Sequence[Affine], both: TwoIterations) -> bool:
    return any(_has_no_solution(equation, both) for equation in _eliminated(equations, both))


# c * distance + rest == 0 for no distance but 0 if |rest| < |c|, and for none at all if |rest|
# is larger than |c| times the largest distance; and never if gcd(coefficients) does not divide
# the constant
def _has_no_solution(equation: Affine, both: TwoIterations) -> bool:
    """Whether a polynomial is never 0, where the distance of two iterations is not 0."""
    constant = equation.constant
    if equation == constant:
        return constant != 0
    if constant % math.gcd(*(c for monomial, c in equation.terms if monomial)):
        return True
    factor = equation.coefficient(both.distance)
    rest = equation - Polynomial.atom(both.distance) * factor
    if factor and _skips(factor, rest, both.size):
        return True
    least, most = both.ranges.of(rest)
    if least is None or most is None:
        return False
    factor, size, nearest = abs(factor), both.size, max(0, least, -most)
    if factor == 0:
        return nearest > 0
    return max(-least, most) < factor or (size is not None and nearest > factor * (size - 1))


# c * distance + k == 0 (mod g)  <=>  distance == -k / c (mod g / gcd(c, g))
def _skips(factor: int, rest: Affine, size: int | None) -> bool:
    """Whether the distances at which the terms with unknowns may make up for the others are all
    0, or at least the number of iterations."""
    step = math.gcd(*(c for monomial, c in rest.terms if monomial))
    if size is None or not step:
        return False
    common = math.gcd(factor, step)
    period = step // common
    nearest = -(rest.constant // common) * pow(factor // common, -1, period) % period
    return min(nearest or period, period - nearest) >= size


# c * distance + rest == 0 for no distance but 0 if -|c| < rest < |c|
def _is_too_far(equation: Affine, both: TwoIterations) -> bool:
    """Whether a polynomial is never 0 by what loop variables and lanes are below."""
    factor = equation.coefficient(both.distance)
    rest = equation - Polynomial.atom(both.distance) * factor
    ends = both.is_negative(rest - abs(factor)), both.is_negative(-rest - abs(factor))
    return all(ends) if factor else any(ends)


# g * high + low == 0  =>  high == 0  for -g < low < g
def _higher(equation: Affine, both: TwoIterations) -> Iterator[Affine]:
    """The higher digits of an equation, where the other terms are a digit that is 0 itself."""
    for base in sorted({abs(factor) for _, factor in equation.terms} - {1}):
        high = Polynomial([term for term in equation.terms if term[1] % base == 0])
        low = equation - high
        if low == ZERO or low.coefficient(both.distance):
            continue
        least, most = both.ranges.of(low)
        if least is not None and most is not None and max(-least, most) < base:
            yield high


# a == b and c == d  =>  n * a + c == n * b + d
def _numbered(
    first: Sequence[Affine], second: Sequence[Affine], shape: Sequence[int]
) -> Iterator[Affine]:
    """Equal indices in the last dimensions of a buffer have equal row-major numbers.

    In such a number the quotients and remainders of a fused loop cancel out.
    """
    one, other, stride = ZERO, ZERO, 1
    inner_first = zip(reversed(first), reversed(second), reversed(shape), strict=True)
    for number, (a, b, size) in enumerate(inner_first):
        one, other = one + a * stride, other + b * stride
        if number > 0:
            yield joined(one) - joined(other)
        if size < 0:
            return
        stride *= size


# q * c * (p * (a floordiv c)) + p * (q * (a mod c)) == p * q * a
def _whole(first: Sequence[Affine], second: Sequence[Affine]) -> Iterator[Affine]:
    """Consequences for indices that are split into a quotient and a remainder."""
    for high, low in itertools.permutations(range(len(first)), 2):
        for p, divisor in _cuts(first[high], FLOOR):
            for q in [q for q, other in _cuts(first[low], MOD) if other == divisor]:
                one, other = (
                    joined(place[high] * (q * divisor) + place[low] * p)
                    for place in (first, second)
                )
                yield one - other


def _cuts(index: Affine, function: AffineBinaryOpKind) -> list[tuple[int, int]]:
    """The coefficients and divisors of the quotients or remainders in an index."""
    cuts = [atom for atom in index.atoms if isinstance(atom, Quotient)]
    found = {(index.coefficient(c), c.divisor) for c in cuts if c.function is function}
    return sorted(pair for pair in found if pair[0])


def _eliminated(equations: Sequence[Affine], both: TwoIterations) -> list[Affine]:
    """The equations, and those that remain when others are solved for one unknown."""
    found = list(dict.fromkeys(equations))
    for solved in found:
        if len(found) >= MOST_EQUATIONS:
            break
        for unknown, factor in solved.terms:
            if abs(factor) != 1 or unknown in ((), (both.distance,)):
                continue
            for other in list(found):
                count = other.coefficient(*unknown)
                if other is not solved and count:
                    new = other - solved * (count * factor)
                    if new not in found:
                        found.append(new)
    return found

"""Whether a statement about expressions follows from what is known of them, and why.

There is one question: is a polynomial below 0 wherever none of some facts, polynomials too, is
negative? Unknowns are eliminated from it one by one (Fourier and Motzkin): each is replaced by
what it is at most, or at least, until the range of what is left is below 0. What is left over sizes
alone, but not below 0 in all of them, is a condition under which the statement is true.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .expressions import (
    FLOOR,
    MOD,
    Affine,
    Atom,
    Least,
    Quotient,
    Variable,
    inner,
    joined,
    split,
    substituted,
    variables,
)
from .polynomials import Polynomial
from .ranges import Ranges

_MOST_STEPS = 400
"""The most bounds that are tried for one question: a proof that takes more is not found."""

_DEEPEST = 60
"""The most bounds of bounds: facts that bound one another in a circle have no end."""

_MOST_NUMBERS = 64
"""The most numbers that are tried one by one."""

Conditions: TypeAlias = frozenset[Affine]
"""Polynomials over sizes that have to be below 0."""

_NONE: Conditions = frozenset()


class Case(NamedTuple):
    """One of the polynomials that an atom may be, and what is not negative where it is that."""

    value: Affine
    facts: Sequence[Affine]


class Knowledge:
    """Facts about atoms that hold for every question: their ranges, and by default no others."""

    ranges: Ranges
    sizes: Container[Atom] = ()
    """The atoms that conditions may be about; they are not eliminated."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def facts_of(self, atom: Atom) -> Iterable[Affine]:
        """Polynomials with an atom in them that are not negative."""
        return ()

    def cases_of(self, atom: Atom) -> Sequence[Case]:
        """The cases of which one holds; none if an atom is no choice."""
        return ()


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a value is below 0: as `facts` are not negative, it is unless one of `parts` is not.

    A proof without parts rests on the ranges of atoms.
    """

    value: Affine
    facts: tuple[Affine, ...] = ()
    parts: tuple[Proof, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        facts = "".join(f", {fact} >= 0" for fact in self.facts)
        yield f"{indent}{self.value} < 0{facts}"
        for part in self.parts:
            yield from part._lines(indent + "  ")


@dataclass(frozen=True, slots=True)
class Missing:
    """A value is not known to be below 0."""

    conditions: Conditions = _NONE
    """Where all of these are below 0, so is the value; empty if nothing over sizes suffices."""


Answer: TypeAlias = Proof | Missing


def follows(value: Affine, known: Knowledge, facts: Sequence[Affine] = ()) -> Answer:
    """Whether a value is below 0, in all sizes, wherever no fact is negative.

    "No" is no proof of the contrary.
    """
    return _ProofSearch(known).answer(value, [*facts, *itertools.chain(*map(_consequences, facts))])


def in_order(conditions: Conditions) -> list[Affine]:
    """Conditions in an order that does not change between processes."""
    return sorted(conditions, key=lambda value: str(value.terms))


class _ProofSearch:
    """The search for one answer."""

    def __init__(self, known: Knowledge) -> None:
        self.known, self.ranges = known, known.ranges
        self.steps, self.depth = _MOST_STEPS, 0

    def answer(self, value: Affine, facts: Sequence[Affine]) -> Answer:
        value, self.steps = _tightest(joined(value)), self.steps - 1
        self.depth += 1
        found = self.found(value, facts)
        self.depth -= 1
        return found

    def found(self, value: Affine, facts: Sequence[Affine]) -> Answer:
        if self.is_below_0(value):
            return Proof(value)
        for fact in facts:
            if self.is_below_0(value + fact):
                return Proof(value, (fact,))
        if self.steps <= 0 or self.depth > _DEEPEST:
            return Missing()
        atoms = value.atoms
        cuts = [a for a in atoms if isinstance(a, Quotient) and a.function is FLOOR]
        if len(cuts) > 1 and (less := _without_pairs(value, cuts)) != value:
            return self.bounded(value, less, facts)
        unknown = sorted([a for a in atoms if a not in self.known.sizes], key=_rank)
        if unknown:
            # Quotients first, as a variable may be in one; or the variable that came last.
            other = [a for a in unknown if not isinstance(a, Quotient)][:1]
            atoms = dict.fromkeys((unknown[0], *other))
            found = self.best(one for a in atoms for one in self.without(value, a, facts))
            if isinstance(found, Proof):
                return found
            return self.by_numbers(value, facts) or found or Missing()
        lowest, _ = self.ranges.of(value)
        if lowest is not None and lowest >= 0:
            return Missing()
        return self.by_numbers(value, facts) or Missing(frozenset([_simplest(value)]))

    def is_below_0(self, value: Affine) -> bool:
        _, most = self.ranges.of(value)
        return most is not None and most < 0

    def bounded(
        self, value: Affine, bound: Affine, facts: Sequence[Affine], *used: Affine
    ) -> Answer:
        """The answer for a value that is below 0 if a bound is."""
        found = self.answer(bound, facts)
        return Proof(value, used, (found,)) if isinstance(found, Proof) else found

    def in_cases(self, value: Affine, cases: Iterable[tuple[Affine, Sequence[Affine]]]) -> Answer:
        """The answer for a value that is below 0 if all of these are, each with its own facts."""
        proofs, conditions = list[Proof](), _NONE
        for bound, facts in cases:
            found = self.answer(bound, facts)
            if isinstance(found, Proof):
                proofs.append(found)
            elif found.conditions:
                conditions |= found.conditions
            else:
                return found
        return Missing(conditions) if conditions else Proof(value, (), tuple(proofs))

    def best(self, found: Iterable[Answer]) -> Answer | None:
        """A proof, or the fewest conditions, or one that another one implies."""
        best: Missing | None = None
        for one in found:
            if isinstance(one, Proof):
                return one
            if best is None or self.is_weaker(one.conditions, best.conditions):
                best = one
        return best

    def is_weaker(self, one: Conditions, other: Conditions) -> bool:
        if not one or not other:
            return len(one) > len(other)
        if len(one) > 1 or len(other) > 1:
            return len(one) < len(other)
        (value,), (stronger,) = one, other
        if value == stronger or self.ranges.is_nonnegative(value - stronger):
            return False
        # Facts that bound each other lead to conditions with larger and larger factors.
        return self.ranges.is_nonnegative(stronger - value) or _factors(value) < _factors(stronger)

    # For a fact f(n):  not f(0) and .. and not f(k)  =>  k - n < 0
    def by_numbers(self, value: Affine, facts: Sequence[Affine]) -> Proof | None:
        """A proof that a value is below 0 but for a few numbers, which facts exclude."""
        for atom in value.atoms if facts else ():
            own, factor = Polynomial.atom(atom), value.coefficient(atom)
            _, most = self.ranges.of(value - own * factor)
            if factor >= 0 or most is None or most < 0 or most // -factor >= _MOST_NUMBERS:
                continue
            is_size = atom in self.known.sizes
            if not is_size and isinstance(self.answer(-own - 1, facts), Missing):
                continue
            numbers = map(Polynomial[Atom].of, range(most // -factor + 1))
            excluding = [self.excluding(atom, number, facts) for number in numbers]
            used = tuple(fact for fact in excluding if fact is not None)
            if len(used) == len(excluding):
                return Proof(value, tuple(dict.fromkeys(used)))
        return None

    def excluding(self, atom: Atom, number: Affine, facts: Sequence[Affine]) -> Affine | None:
        """A fact that is negative where an atom is a number."""
        values = {atom: number}
        return next((f for f in facts if self.is_below_0(substituted(f, values))), None)

    # Elimination.

    def without(self, value: Affine, atom: Atom, facts: Sequence[Affine]) -> Iterator[Answer]:
        """The answers for a value by all bounds of one of its atoms."""
        factor, rest = split(value, atom)
        if factor is None:
            return
        rising, falling = self.ranges.is_nonnegative(factor), self.ranges.is_nonnegative(-factor)
        if not rising and not falling:
            return
        if isinstance(atom, Quotient):
            for end, scale in _ends_of(atom, rising):
                yield self.bounded(value, factor * end + rest * scale, facts)
            return
        if isinstance(atom, Least):
            parts = [factor * part + rest for part in atom.parts]
            yield from self.without_least(value, parts, facts, rising)
        elif cases := self.known.cases_of(atom):
            yield self.in_cases(
                value, [(factor * c.value + rest, [*facts, *c.facts]) for c in cases]
            )
        tried = set[Affine]()
        for fact in (*facts, *self.known.facts_of(atom)):
            times, end = split(fact, atom)
            number = None if times is None else times.number
            if number is None or number == 0 or (number < 0) != rising:
                continue
            # fact == end - n * atom >= 0  ==>  n * atom <= end, and the same from below.
            bound = factor * (end if number < 0 else -end) + rest * abs(number)
            if bound not in tried:
                tried.add(bound)
                yield self.bounded(value, bound, facts, fact)
        least, most = self.ranges.of(Polynomial.atom(atom))
        last = most if rising else least
        if last is not None and (bound := factor * last + rest) not in tried:
            yield self.bounded(value, bound, facts)

    def without_least(
        self, value: Affine, parts: Sequence[Affine], facts: Sequence[Affine], rising: bool
    ) -> Iterator[Answer]:
        """The answers for a value that is each of `parts` with another part of a minimum."""
        # A minimum is at most each of its parts, and at least one of them.
        if not rising:
            yield self.in_cases(value, [(part, facts) for part in parts])
            return
        yield from (self.bounded(value, part, facts) for part in parts)
        if len(parts) == 2:
            # min(a, b) <= (a + b) / 2, which is all there is of -max(a, -a).
            yield self.bounded(value, parts[0] + parts[1], facts)


def _factors(value: Affine) -> int:
    """The sum of the magnitudes of the factors of the unknowns."""
    return sum(abs(factor) for monomial, factor in value.terms if monomial)


# a * x + b < 0  ==  x <= (-b - 1) floordiv a  for a > 0
def _simplest(value: Affine) -> Affine:
    """The same condition, with the smallest numbers."""
    common = _common(value)
    terms = [(monomial, factor // common) for monomial, factor in value.terms if monomial]
    return Polynomial(terms) - ((-1 - value.constant) // common) - 1


# a * x + b < 0  ==  a * x + a * (b floordiv a) < 0  for a > 0
def _tightest(value: Affine) -> Affine:
    """The same condition, with the smallest constant."""
    rest = value.constant % _common(value)
    return value - rest if rest else value


def _common(value: Affine) -> int:
    """The largest divisor of the factors of all unknowns."""
    return math.gcd(*(factor for monomial, factor in value.terms if monomial)) or 1


# a floordiv d - b floordiv d <= (a - b) ceildiv d  where a - b is a number
def _without_pairs(value: Affine, cuts: Sequence[Quotient]) -> Affine:
    """An upper bound in which no quotient is subtracted from one of nearly the same dividend."""
    for one, other in itertools.permutations(cuts, 2):
        count = min(value.coefficient(one), -value.coefficient(other))
        apart = (one.dividend - other.dividend).number
        if count > 0 and one.divisor == other.divisor and apart is not None:
            pair = Polynomial.atom(one) - Polynomial.atom(other)
            return _without_pairs(value + (-(-apart // one.divisor) - pair) * count, cuts)
    return value


# f + n * (a floordiv d) >= 0  =>  d * f + n * a >= 0  for n > 0
def _consequences(fact: Affine) -> Iterator[Affine]:
    """The bounds that follow from a fact for unknowns inside its quotients and minima."""
    for atom in fact.atoms:
        factor, rest = split(fact, atom)
        number = None if factor is None else factor.number
        if isinstance(atom, Variable) or not number:
            continue
        for end, scale in _ends_of(atom, number > 0):
            found = end * number + rest * scale
            yield found
            yield from _consequences(found)


def _ends_of(atom: Quotient | Least, upper: bool) -> Iterator[tuple[Affine, int]]:
    """Upper or lower bounds of a number of times an atom, with that number."""
    if isinstance(atom, Least):
        yield from ((part, 1) for part in atom.parts if upper)
        return
    dividend, divisor = atom.dividend, atom.divisor
    if atom.function is MOD:
        yield Polynomial.of(divisor - 1 if upper else 0), 1
    elif atom.function is FLOOR:
        yield dividend + (0 if upper else 1 - divisor), divisor
    else:
        yield dividend + (divisor - 1 if upper else 0), divisor


def _rank(atom: Atom) -> tuple[int, int]:
    """The order of elimination: first what others are in, then variables that came later.

    A minimum comes right before the last variable in it, but after those that it may bound.
    """
    if isinstance(atom, Variable):
        return 1, -2 * atom.position
    if isinstance(atom, Quotient):
        return 0, -_depth(atom)
    last = max(v.position for v in variables(Polynomial.atom(atom)))
    return 1, -2 * last - 1


def _depth(atom: Atom) -> int:
    """How many quotients are in one another."""
    found = (_depth(a) for part in inner(atom) for a in part.atoms)
    return max(found, default=0) + isinstance(atom, Quotient)

"""What follows about expressions, why, and that it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.algebra.expressions import (
    CEIL,
    DIMENSION,
    FLOOR,
    MOD,
    Affine,
    Atom,
    Least,
    Variable,
    divided,
    greatest,
    inner,
    joined,
    least,
    parts_of,
    substituted,
    variables,
    without_remainders,
)
from stepwell.core.algebra.follows import Case, Missing, Proof, follows, in_order
from stepwell.core.algebra.polynomials import Polynomial
from stepwell.core.algebra.ranges import Ranges


@dataclass
class About:
    """What is known: of a few atoms everything is told."""

    ranges: Ranges = field(default_factory=Ranges)
    sizes: set[Atom] = field(default_factory=set)
    facts: dict[Atom, list[Affine]] = field(default_factory=dict)
    cases: dict[Atom, list[Case]] = field(default_factory=dict)

    def facts_of(self, atom: Atom) -> Iterable[Affine]:
        return self.facts.get(atom, ())

    def cases_of(self, atom: Atom) -> Sequence[Case]:
        return self.cases.get(atom, ())


def unknown(position: int) -> Affine:
    return Polynomial.atom(Variable(DIMENSION, position))


N, M, A, B, X, C = map(unknown, range(6))
"""Two sizes, two loop variables, a value without a range, and a choice."""


def floor(value: Affine, divisor: int) -> Affine:
    return divided(FLOOR, value, divisor)


def ceil(value: Affine, divisor: int) -> Affine:
    return divided(CEIL, value, divisor)


def mod(value: Affine, divisor: int) -> Affine:
    return divided(MOD, value, divisor)


def atom(value: Affine) -> Atom:
    (found,) = value.atoms
    return found


def known(*facts: Affine) -> About:
    """Sizes and loop variables are not negative; C is B where B < M, and 0 elsewhere."""
    about = About(sizes={atom(N), atom(M)})
    for value in (N, M, A, B):
        about.ranges.know(atom(value), 0, None)
    zero = Polynomial[Atom].of(0)
    about.cases[atom(C)] = [Case(B, [M - 1 - B]), Case(zero, [B - M])]
    for fact in facts:
        for one in variables(fact):
            about.facts.setdefault(one, []).append(fact)
    return about


INSIDE = N - 1 - A
"""A < N."""


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        # Ranges, and facts.
        (-A - 1, []),
        (A - N, [INSIDE]),
        (A * 4 + mod(B, 4) - N * 4, [INSIDE]),
        (-floor(A, 3) - 1, []),
        (mod(X, 5) - 5, []),
        # c * (a floordiv c) + a mod c == a
        (floor(A, 6) * 6 + mod(A, 6) - N, [INSIDE]),
        # Steps through loops that depend on one another.
        (A + B - N, [INSIDE - B]),
        (B - N, [A - B, INSIDE]),
        # Tiles.
        (A * 4 + 3 - N, [floor(N, 4) - 1 - A]),
        (A * 4 + B - N, [ceil(N, 4) - 1 - A, least([unknown(2) * 0 + 4, N - A * 4]) - 1 - B]),
        (floor(A, 4) - ceil(N, 4), [INSIDE]),
        # What is inside of quotients and minima of facts.
        (-N, [floor(N, 4) - 1 - A]),
        (-M, [least([N, M]) - 1 - A]),
        (-N, [-ceil(3 - floor(N, 2), 4)]),
        # Quotients of nearly the same dividend.
        (floor(X, 4) - floor(X + 1, 4) - 1, []),
        # Minima and maxima, and what holds on average only.
        (least([X, N]) - N - 1, []),
        (least([X, A]) - N, [INSIDE]),
        (-greatest([X, A]) - 1, []),
        (-greatest([X, -X]) - 1, []),
        (least([greatest([X, unknown(2) * 0]), N - 1]) - N, []),
        (-least([greatest([X, unknown(2) * 0]), N]) - 1, []),
        (least([A, B]) * 2 - N - M, [INSIDE, M - 1 - B]),
        # Choices.
        (C - M, [M - 1]),
        (-C - 1, []),
        # Few numbers: not 0 and not 1  =>  1 - N < 0
        (-N + 1, [N - 1, N * 3 - 4]),
        # The first number above 4 that is 1 more than a multiple of 800: not one by one.
        (800 - A, [A - 4, floor(A + 799, 800) - floor(A + 798, 800) - 1]),
    ],
)
def test_what_follows(value: Affine, facts: list[Affine]) -> None:
    assert isinstance(follows(value, known(), facts), Proof)


@pytest.mark.parametrize(
    ("value", "facts", "missing"),
    [
        # Conditions of sizes.
        (A - M, [INSIDE], ["d0-d1-1"]),
        (A * 2 - 7, [INSIDE], ["d0-5"]),
        (least([A, B]) - 3, [INSIDE, M - 1 - B], ["d0-4"]),
        (-least([N, M]), [], ["-d0", "-d1"]),
        (C - N, [], ["-d0+d1-1", "-d0"]),
        # Nothing of sizes suffices.
        (X - N, [], []),
        (A - N, [], []),
        (X * X, [], []),
        (N + 1, [], []),
        (A * B - N * B - 1, [INSIDE], []),
    ],
)
def test_what_is_missing(value: Affine, facts: list[Affine], missing: list[str]) -> None:
    answer = follows(value, known(), facts)
    assert isinstance(answer, Missing)
    assert list(map(str, in_order(answer.conditions))) == missing


def test_a_proof_names_facts_and_bounds() -> None:
    answer = follows(least([X, A * 4]) + 3 - N, known(), [floor(N, 4) - 1 - B, B - A])
    assert str(answer).splitlines() == [
        "-d0+min(d4, 4*d2)+3 < 0",
        "  -d0+4*d2+3 < 0, -d2+d3 >= 0",
        "    -d0+4*d3+3 < 0, d0-4*d3-4 >= 0",
    ]


def test_facts_of_an_atom_hold_wherever_it_is() -> None:
    assert isinstance(follows(A - N, known(INSIDE)), Proof)
    assert isinstance(follows(A - N, known()), Missing)


def test_the_search_ends() -> None:
    many = [unknown(n) for n in range(10, 22)]
    facts = [a - b for a in many for b in many if a is not b]
    assert isinstance(follows(many[0] - N, known(), facts), Missing)


# Minima.


def test_minima_are_canonical() -> None:
    three, five = (unknown(0) * 0 + number for number in (3, 5))
    assert least([three, five]) == 3 == -greatest([-three, -five])
    assert least([A]) == A == least([A, A])
    assert least([least([A, five]), B, three]) == least([A, B, three])
    assert list(parts_of(least([A, B]))) == [A, B]
    assert list(parts_of(A + B)) == [A + B]
    assert substituted(least([A, B]), {atom(A): B}) == B
    assert variables(least([floor(A, 2), B * N])) == {atom(v) for v in (A, B, N)}


# Every yes holds.

POSITIONS = range(4)
numbers = st.integers(-6, 6)
points = st.lists(st.integers(-9, 9), min_size=len(POSITIONS), max_size=len(POSITIONS))


def larger(part: st.SearchStrategy[Affine]) -> st.SearchStrategy[Affine]:
    divisors = st.integers(1, 5)
    functions = st.sampled_from([FLOOR, CEIL, MOD])
    return st.one_of(
        st.tuples(part, part).map(lambda pair: pair[0] + pair[1]),
        st.tuples(part, numbers).map(lambda pair: pair[0] * pair[1]),
        st.tuples(part, part).map(lambda pair: pair[0] * pair[1]),
        st.tuples(functions, part, divisors).map(lambda given: divided(*given)),
        st.lists(part, min_size=1, max_size=3).map(least),
        st.lists(part, min_size=1, max_size=3).map(greatest),
    )


leaves = numbers.map(lambda n: unknown(0) * 0 + n) | st.sampled_from([*map(unknown, POSITIONS)])
expressions = st.recursive(leaves, larger, max_leaves=6)


def evaluated(value: Affine, at: Sequence[int]) -> int:
    def number(atom: Atom) -> int:
        if isinstance(atom, Variable):
            return at[atom.position]
        parts = [evaluated(part, at) for part in inner(atom)]
        if isinstance(atom, Least):
            return min(parts)
        (dividend,) = parts
        if atom.function is MOD:
            return dividend % atom.divisor
        return dividend // atom.divisor if atom.function is FLOOR else -(-dividend // atom.divisor)

    return value.evaluate({atom: number(atom) for atom in value.atoms})


@given(expressions, expressions, points, st.integers(0, 3))
def test_expressions_keep_their_value(a: Affine, b: Affine, at: list[int], place: int) -> None:
    assert evaluated(joined(a), at) == evaluated(without_remainders(a), at) == evaluated(a, at)
    inside = [*at[:place], evaluated(b, at), *at[place + 1 :]]
    assert evaluated(substituted(a, {Variable(DIMENSION, place): b}), at) == evaluated(a, inside)
    assert evaluated(least([a, b]), at) == min(evaluated(a, at), evaluated(b, at))
    assert evaluated(greatest([a, b]), at) == max(evaluated(a, at), evaluated(b, at))


@st.composite
def questions(draw: st.DrawFn) -> tuple[Affine, About, list[Affine], list[list[int]]]:
    """A value, what is known, facts, and points at which all of it holds.

    The last unknown is a choice. Sizes are the first two.
    """
    value, facts = draw(expressions), draw(st.lists(expressions, max_size=3))
    condition, one, other = draw(expressions), *(draw(leaves) for _ in range(2))
    about = About(sizes={Variable(DIMENSION, 0), Variable(DIMENSION, 1)})
    chosen = Variable(DIMENSION, POSITIONS[-1])
    inner_values = (condition, one, other)
    is_choice = all(chosen not in variables(part) for part in inner_values)
    at = draw(st.lists(points, min_size=1, max_size=20))
    if is_choice:
        about.cases[chosen] = [Case(one, [condition]), Case(other, [-condition - 1])]
        for point in at:
            point[-1] = evaluated(one if evaluated(condition, point) >= 0 else other, point)
    for position in POSITIONS[:-1]:
        low, high = draw(st.none() | st.just(0)), draw(st.none() | st.integers(0, 9))
        about.ranges.know(Variable(DIMENSION, position), low, high)
        at = [p for p in at if (low is None or p[position] >= 0)]
        at = [p for p in at if high is None or p[position] <= high]
    return value, about, facts, [p for p in at if all(evaluated(f, p) >= 0 for f in facts)]


def proofs_in(proof: Proof) -> Iterator[Proof]:
    yield proof
    for part in proof.parts:
        yield from proofs_in(part)


@given(questions())
def test_every_yes_holds(
    question: tuple[Affine, About, list[Affine], list[list[int]]],
) -> None:
    value, about, facts, at = question
    answer = follows(value, about, facts)
    for point in at:
        if isinstance(answer, Proof):
            assert evaluated(value, point) < 0
            for proof in proofs_in(answer):
                # As the facts hold, a value is below 0 unless one of the parts is not.
                if all(evaluated(fact, point) >= 0 for fact in proof.facts) and proof.parts:
                    largest = max(evaluated(part.value, point) for part in proof.parts)
                    assert evaluated(proof.value, point) < 0 or largest >= 0
        elif answer.conditions and all(evaluated(c, point) < 0 for c in answer.conditions):
            assert evaluated(value, point) < 0

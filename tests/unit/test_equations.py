"""What the algebra says of two iterations holds for all numbers that the unknowns may be."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.algebra.equations import never_equal, sometimes_equal
from stepwell.core.algebra.expressions import (
    CEIL,
    DIMENSION,
    FLOOR,
    MOD,
    Affine,
    Atom,
    Variable,
    divided,
    least,
)
from stepwell.core.algebra.polynomials import Polynomial
from stepwell.core.algebra.ranges import Ranges

from .test_follows import evaluated

DISTANCE, OWN, ONE, OTHER = (Variable(DIMENSION, number) for number in range(4))
"""How far the iterations are apart, the loop variable, another variable in each of the two."""
SHAPES = ((), (5,), (3, 4), (-1, 4), (3, -1))


@dataclass
class Both:
    """Two iterations of a loop of some size, around a loop of another size."""

    size: int
    inner: int
    distance: Atom = DISTANCE
    ranges: Ranges = field(default_factory=Ranges)

    def __post_init__(self) -> None:
        self.ranges.know(OWN, 0, self.size - 1)
        for atom in (ONE, OTHER):
            self.ranges.know(atom, 0, self.inner - 1)

    def is_negative(self, value: Affine) -> bool:
        _, most = self.ranges.of(value)
        return most is not None and most < 0

    def points(self) -> list[list[int]]:
        """All numbers that the unknowns may be, in different iterations."""
        numbers = range(self.size), range(self.size), range(self.inner), range(self.inner)
        every = itertools.product(*numbers)
        return [[i - j, i, one, other] for i, j, one, other in every if i != j]


Number = st.integers(-4, 4)


@st.composite
def indices(draw: st.DrawFn) -> tuple[Affine, Affine]:
    """An index, in the first iteration and in the second."""
    variable, inner = (Polynomial[Atom].atom(atom) for atom in (OWN, ONE))
    own = variable * draw(Number) + inner * draw(Number) + draw(Number)
    other = (variable - Polynomial.atom(DISTANCE), Polynomial[Atom].atom(OTHER))

    def there(value: Affine) -> Affine:
        return Polynomial[Atom].of(0) + value.substituted(
            lambda atom: dict(zip((OWN, ONE), other, strict=True))[atom]
        )

    pair = own, there(own)
    match draw(st.sampled_from(["plain", "divided", "least", "split"])):
        case "plain":
            return pair
        case "least":
            bound = Polynomial[Atom].of(draw(Number))
            return least([pair[0], bound]), least([pair[1], bound])
        case "split":
            divisor = draw(st.integers(1, 4))
            parts = (divided(FLOOR, v, divisor) * 2 + divided(MOD, v, divisor) for v in pair)
            return next(parts), next(parts)
        case _:
            function, divisor = draw(st.sampled_from([FLOOR, CEIL, MOD])), draw(st.integers(1, 4))
            return divided(function, pair[0], divisor), divided(function, pair[1], divisor)


@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.sampled_from(SHAPES))
def test_places_that_are_never_equal_differ(
    data: st.DataObject, size: int, inner: int, shape: tuple[int, ...]
) -> None:
    both = Both(size, inner)
    pairs = [data.draw(indices()) for _ in shape]
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    if never_equal(first, second, shape, both):
        for point in both.points():
            one, other = ([evaluated(v, point) for v in place] for place in (first, second))
            assert one != other, (point, one)


def test_a_place_for_each_iteration() -> None:
    both, i = Both(4, 3), Polynomial[Atom].atom(OWN)
    j, one, other = (Polynomial[Atom].atom(atom) for atom in (DISTANCE, ONE, OTHER))
    assert never_equal([i * 3 + one], [(i - j) * 3 + other], [12], both)
    assert not never_equal([i * 2 + one], [(i - j) * 2 + other], [12], both)
    assert never_equal([i * 2], [(i - j) * 2 + 1], [12], both)
    # The loop has the digit between a lower and a higher one.
    low, high = (Polynomial[Atom].atom(Variable(DIMENSION, n)) for n in (4, 5))
    for n in (4, 5):
        both.ranges.know(Variable(DIMENSION, n), -2, 2)
    assert never_equal([i * 3 + low + high * 12], [(i - j) * 3], [60], both)
    assert not never_equal([i * 2 + low + high * 12], [(i - j) * 2], [60], both)
    assert not never_equal([i * 3 + low + high * 6], [(i - j) * 3], [60], both)
    implied = [i - (i - j)]
    assert never_equal([one], [other], [12], both, implied)


@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 2))
def test_places_that_are_sometimes_equal_meet(
    data: st.DataObject, size: int, inner: int, rank: int
) -> None:
    pairs = [data.draw(indices()) for _ in range(rank)]
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    counts = {DISTANCE: 1, OWN: size, ONE: inner, OTHER: inner}
    if sometimes_equal(first, second, counts.get):
        points = ([0, *point] for point in itertools.product(*map(range, [size, inner, inner])))
        found = ([[evaluated(v, p) for v in place] for place in (first, second)] for p in points)
        assert any(one == other for one, other in found)


def test_a_place_that_another_reaches() -> None:
    i, j = (Polynomial[Atom].atom(atom) for atom in (OWN, ONE))
    counts = {OWN: 4, ONE: 3}
    assert sometimes_equal([i * 2, j], [Polynomial[Atom].of(6), Polynomial[Atom].of(0)], counts.get)
    assert not sometimes_equal([i * 2], [Polynomial[Atom].of(8)], counts.get)
    assert not sometimes_equal([i * 2], [Polynomial[Atom].of(3)], counts.get)
    assert not sometimes_equal([i, i], [Polynomial[Atom].of(1), j], counts.get)
    assert not sometimes_equal([i], [Polynomial[Atom].of(1)], {OWN: None}.get)

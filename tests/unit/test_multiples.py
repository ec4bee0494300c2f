"""Sizes that are known to be multiples of numbers, and exact quotients of them."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from stepwell.core.algebra.dims import Dim
from stepwell.core.algebra.multiples import Multiples, as_multiple, misfit

N, M = Dim.symbol("n"), Dim.symbol("m")
SIZES = st.builds(
    lambda a, b, c, d: N * a + M * b + N * M * c + d, *[st.integers(0, 30) for _ in range(4)]
)


@given(SIZES, st.integers(1, 12), st.integers(0, 24), st.integers(0, 24))
def test_a_demand_holds_where_a_number_divides(size: Dim, number: int, n: int, m: int) -> None:
    values = {"n": n, "m": m}
    demand = Multiples().demand(size, number)
    divides = size.evaluate(values) % number == 0
    if demand is None:
        assert size.floordiv(number) * number == size or not divides
    else:
        left, right = (side.evaluate(values) for side in demand)
        assert (left == right) == divides
        assert as_multiple(*demand) is not None


@given(SIZES, st.lists(st.integers(2, 6), max_size=3), st.integers(0, 24), st.integers(0, 24))
def test_products_of_exact_quotients(size: Dim, numbers: list[int], n: int, m: int) -> None:
    multiples, values, known = Multiples(), {"n": n, "m": m}, size
    for number in numbers:
        quotient = multiples.settled(known).floordiv(number)
        demand = multiples.demand(known, number)
        if demand is not None:
            multiples.note(*demand)
            assume(demand[0].evaluate(values) == demand[1].evaluate(values))
        assume(known.evaluate(values) % number == 0)
        known = quotient * number
        assert known.evaluate(values) == size.evaluate(values)
        assert multiples.settled(known).evaluate(values) == size.evaluate(values)


def test_a_quotient_of_a_multiple_is_its_inverse() -> None:
    multiples = Multiples()
    multiples.note(N, N.floordiv(4) * 4)
    assert multiples.settled((N * 15).floordiv(2) * 2) == N * 15
    assert multiples.settled(N.floordiv(4) * M * 8) == N * M * 2
    assert multiples.settled(N.floordiv(8) * 8) == N.floordiv(8) * 8
    assert multiples.settled(N.floordiv(4) * 3) == N.floordiv(4) * 3
    assert multiples.same(N.floordiv(4) * 3, (N * 3).floordiv(4))
    assert not multiples.same(N.floordiv(8) * 2, N.floordiv(4))
    assert multiples.pairs == [(N, N.floordiv(4) * 4)]


def test_a_quotient_that_is_not_exact_stays() -> None:
    assert Multiples().settled(N.floordiv(2) * 2) == N.floordiv(2) * 2
    assert not Multiples().same(N.floordiv(2) * 2, N)


def test_words() -> None:
    assert misfit(N, M) is None
    assert misfit(N, M * 2) is None
    found = "size n is not divisible", "a multiple of 6", N
    assert misfit(N, N.floordiv(6) * 6) == found == misfit(N.floordiv(6) * 6, N)

"""Symbolic dimensions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.dims import Dim, product

NAMES = ("batch", "N", "E")
SIZES = {"batch": 3, "N": 5, "E": 7}


@st.composite
def dims(draw: st.DrawFn) -> Dim:
    result = Dim.of(draw(st.integers(-4, 4)))
    for _ in range(draw(st.integers(0, 3))):
        term = Dim.of(draw(st.integers(-4, 4)))
        for _ in range(draw(st.integers(0, 2))):
            term = term * Dim.symbol(draw(st.sampled_from(NAMES)))
        result = result + term
    return result


@given(dims(), dims())
def test_arithmetic_is_that_of_numbers(a: Dim, b: Dim) -> None:
    x, y = a.evaluate(SIZES), b.evaluate(SIZES)
    assert (a + b).evaluate(SIZES) == x + y
    assert (a - b).evaluate(SIZES) == x - y
    assert (a * b).evaluate(SIZES) == x * y
    assert (a * b).substitute({n: Dim.of(s) for n, s in SIZES.items()}) == x * y


@given(dims())
def test_text_is_read_back(a: Dim) -> None:
    assert Dim.parse(str(a)) == a


@given(dims(), st.integers(1, 5))
def test_exact_division(a: Dim, n: int) -> None:
    assert (a * n).exact_div(n) == a
    assert (a * Dim.symbol("N")).exact_div(Dim.symbol("N")) == a


def test_division_that_is_not_exact() -> None:
    assert Dim.symbol("N").exact_div(2) is None
    assert (Dim.symbol("N") + 1).exact_div(Dim.symbol("N")) is None
    assert (Dim.symbol("N") + 1).exact_div(Dim.symbol("N") + 1) == 1


def test_equality_with_numbers() -> None:
    assert Dim.of(4) == 4
    assert hash(Dim.of(4)) == hash(4)
    assert Dim.symbol("N") != 4
    assert Dim.of(0) == 0
    assert not Dim.of(0).terms


def test_text() -> None:
    assert str(Dim.symbol("N") * 4 + Dim.symbol("E") - 3) == "E+4*N-3"
    assert str(Dim.of(0)) == "0"
    with pytest.raises(ValueError, match="not a dimension: '4/N'"):
        Dim.parse("4/N")
    with pytest.raises(ValueError, match="dimension N is symbolic"):
        _ = Dim.symbol("N").value


def test_product() -> None:
    assert product(()) == 1
    assert product((Dim.of(3), Dim.symbol("N"))) == 3 * Dim.symbol("N")

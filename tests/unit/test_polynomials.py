"""The algebra of sizes and indices: polynomials over atoms."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.algebra.polynomials import Polynomial

ATOMS = range(3)

monomials = st.lists(st.sampled_from(ATOMS), max_size=3).map(lambda atoms: tuple(sorted(atoms)))
polynomials = st.dictionaries(monomials, st.integers(-6, 6), max_size=4).map(
    lambda terms: Polynomial(terms.items())
)
values = st.fixed_dictionaries({atom: st.integers(-9, 9) for atom in ATOMS})


@given(polynomials, polynomials, polynomials)
def test_ring(a: Polynomial[int], b: Polynomial[int], c: Polynomial[int]) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a * b == b * a
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a + 0 == a == 0 + a
    assert a * 1 == a == 1 * a
    assert a * 0 == 0
    assert a - a == 0
    assert 1 - a == -(a - 1)


@given(polynomials, polynomials)
def test_equal_ones_have_one_form(a: Polynomial[int], b: Polynomial[int]) -> None:
    left, right = (a + b) * (a - b), a * a - b * b
    assert left.terms == right.terms
    assert hash(left) == hash(right)
    assert str(left) == str(right)
    assert all(c for _, c in left.terms)
    assert list(left.terms) == sorted(left.terms)


@given(polynomials, polynomials, values)
def test_values_follow_the_operations(
    a: Polynomial[int], b: Polynomial[int], at: dict[int, int]
) -> None:
    x, y = a.evaluate(at), b.evaluate(at)
    assert (a + b).evaluate(at) == x + y
    assert (a - b).evaluate(at) == x - y
    assert (a * b).evaluate(at) == x * y
    assert a.substituted(lambda atom: Polynomial.of(at[atom])) == x


@given(polynomials, polynomials, polynomials, values)
def test_substitution(
    a: Polynomial[int], b: Polynomial[int], c: Polynomial[int], at: dict[int, int]
) -> None:
    put_in = {0: b, 1: c, 2: Polynomial.atom(2)}
    inner = {atom: p.evaluate(at) for atom, p in put_in.items()}
    found = Polynomial.of(a.substituted(put_in.__getitem__))
    assert found.evaluate(at) == a.evaluate(inner)


@given(polynomials, st.integers(1, 7), values)
def test_split(a: Polynomial[int], divisor: int, at: dict[int, int]) -> None:
    whole, rest = a.split(divisor)
    assert whole * divisor + rest == a
    assert 0 <= rest.constant < divisor
    assert all(c % divisor for _, c in rest.terms)
    assert a.evaluate(at) // divisor == whole.evaluate(at) + rest.evaluate(at) // divisor


@given(polynomials, st.integers(1, 5), st.sampled_from(ATOMS))
def test_exact_division(a: Polynomial[int], number: int, atom: int) -> None:
    divisor = Polynomial.atom(atom) * number
    assert (a * divisor).exact_div(divisor) == a
    assert (a * number * 2 + 1).exact_div(number * 2) is None


def test_parts() -> None:
    x, y = Polynomial.atom("x"), Polynomial.atom("y")
    p = x * y * 3 - y + 5
    assert (p.constant, p.number, p.atoms) == (5, None, ["x", "y"])
    assert (p.coefficient("x", "y"), p.coefficient("y"), p.coefficient("x")) == (3, -1, 0)
    assert (x.single_atom, (x * 2).single_atom, (x + 1).single_atom) == ("x", None, None)
    assert (Polynomial.of(7).number, Polynomial().number) == (7, 0)
    assert str(p) == "3*x*y-y+5"
    assert repr(x - 1) == "Polynomial(x-1)"
    assert Polynomial.of(4) == 4
    assert hash(Polynomial.of(4)) == hash(4)
    assert x != 4


@given(polynomials)
def test_pickling(a: Polynomial[int]) -> None:
    hash(a)
    copy = pickle.loads(pickle.dumps(a))
    assert copy == a
    assert hash(copy) == hash(a)


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        Polynomial.atom(1).evaluate({})

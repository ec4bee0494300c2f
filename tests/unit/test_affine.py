"""Affine expressions as polynomials, and the ranges of these."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from stepwell.core.algebra.affine import (
    DivisorError,
    coefficient,
    expression,
    minus,
    normalized,
    polynomial,
)
from stepwell.core.algebra.expressions import (
    DIMENSION,
    Affine,
    Quotient,
    Variable,
    variables,
    without_remainders,
)
from stepwell.core.algebra.ranges import Ranges
from stepwell.core.building.arithmetic import computed

DIMS, SYMBOLS = 3, 2
values = st.lists(st.integers(-20, 20), min_size=DIMS + SYMBOLS, max_size=DIMS + SYMBOLS)

leaves = st.one_of(
    st.integers(-9, 9).map(AffineExpr.constant),
    st.integers(0, DIMS - 1).map(AffineExpr.dimension),
    st.integers(0, SYMBOLS - 1).map(AffineExpr.symbol),
)
numbers = st.integers(1, 6)


def larger(inner: st.SearchStrategy[AffineExpr]) -> st.SearchStrategy[AffineExpr]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, st.integers(-4, 4)).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, numbers).map(lambda pair: pair[0] // pair[1]),
        st.tuples(inner, numbers).map(lambda pair: pair[0].ceil_div(pair[1])),
        st.tuples(inner, numbers).map(lambda pair: pair[0] % pair[1]),
    )


expressions = st.recursive(leaves, larger, max_leaves=8)


def value_of(expr: AffineExpr, at: list[int]) -> int:
    return expr.eval(at[:DIMS], at[DIMS:])


@given(expressions, values)
def test_the_normal_form_has_the_same_value(expr: AffineExpr, at: list[int]) -> None:
    assert value_of(expression(polynomial(expr)), at) == value_of(expr, at)


MEANINGS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.FloorDivSIOp: operator.floordiv,
    arith.CeilDivSIOp: lambda a, b: -(-a // b),
}


@given(expressions, values)
def test_operations_have_the_same_value(expr: AffineExpr, at: list[int]) -> None:
    """Remainders of what is negative among them."""
    found: dict[SSAValue, int] = {}

    def noted(op: Operation, value: int) -> SSAValue:
        found[op.results[0]] = value
        return op.results[0]

    def known(part: AffineExpr) -> SSAValue | None:
        if isinstance(part, AffineBinaryOpExpr):
            return None
        value = value_of(part, at)
        return noted(arith.ConstantOp(IntegerAttr(value, IndexType())), value)

    def place(_: AffineExpr, op: Operation) -> SSAValue:
        left, right = (found[operand] for operand in op.operands)
        return noted(op, MEANINGS[type(op)](left, right))

    assert found[computed(expr, known, place)] == value_of(expr, at)


@given(expressions)
def test_the_way_there_and_back(expr: AffineExpr) -> None:
    value = polynomial(expr)
    assert polynomial(expression(value)) == value
    assert normalized(normalized(expr)) == normalized(expr)


@given(expressions, values)
def test_remainders_as_quotients(expr: AffineExpr, at: list[int]) -> None:
    found = expression(without_remainders(polynomial(expr)))
    assert " mod " not in str(found)
    assert value_of(found, at) == value_of(expr, at)


def test_quotients_and_remainders_cancel() -> None:
    i = AffineExpr.dimension(0) * 16 + AffineExpr.symbol(0)
    number = (i // 21) * 21 + ((i % 21) // 7) * 7 + i % 7
    assert without_remainders(polynomial(number)) == polynomial(i)


@given(expressions, expressions, values)
def test_sums(a: AffineExpr, b: AffineExpr, at: list[int]) -> None:
    assert polynomial(a + b) == polynomial(b + a) == polynomial(a) + polynomial(b)
    assert minus(a + b, b) == normalized(a)
    assert value_of(minus(a, b), at) == value_of(a, at) - value_of(b, at)


@given(expressions, expressions, expressions, values)
def test_substitution(a: AffineExpr, b: AffineExpr, c: AffineExpr, at: list[int]) -> None:
    dims = [b, c, AffineExpr.dimension(2)]
    inner = [value_of(b, at), value_of(c, at), *at[2:]]
    assert value_of(normalized(a, dims), at) == value_of(a, inner)


def test_products_of_dimensions() -> None:
    i, j = AffineExpr.dimension(0), AffineExpr.dimension(1)
    value = polynomial(i, [i]) * polynomial(j)
    assert expression(value * 3 + 1).eval([4, 5], []) == 61
    assert polynomial(expression(value)) == value


def test_a_quotient_by_no_positive_number_is_refused() -> None:
    i = AffineExpr.dimension(0)
    for expr in (i // 0, AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, i, i)):
        with pytest.raises(
            DivisorError, match=r"not a positive constant in \(d0 floordiv (0|d0)\)"
        ):
            polynomial(expr)


@given(expressions, st.integers(0, DIMS - 1), values)
def test_coefficient(expr: AffineExpr, position: int, at: list[int]) -> None:
    factor = coefficient(expr, AffineExpr.dimension(position))
    inside = Variable(DIMENSION, position) in variables(polynomial(expr))
    if factor is None:
        assert inside
        return
    further = [n + (place == position) for place, n in enumerate(at)]
    assert value_of(expr, further) - value_of(expr, at) == factor


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Ranges, list[int]]:
    """What is known of the dimensions and symbols, and values for which it holds."""
    table, at = Ranges(), draw(values)
    for place, number in enumerate(at):
        kind, position = divmod(place, DIMS)
        low = draw(st.none() | st.integers(-30, number))
        high = draw(st.none() | st.integers(number, 30))
        table.know(Variable(kind, position), low, high)
    return table, at


@given(expressions, expressions, ranges())
def test_ranges_hold(a: AffineExpr, b: AffineExpr, known: tuple[Ranges, list[int]]) -> None:
    table, at = known
    for value, number in (
        (polynomial(a), value_of(a, at)),
        (polynomial(a) * polynomial(b), value_of(a, at) * value_of(b, at)),
    ):
        low, high = table.of(value)
        assert low is None or low <= number
        assert high is None or number <= high


@given(expressions, ranges())
def test_folding_keeps_values(expr: AffineExpr, known: tuple[Ranges, list[int]]) -> None:
    table, at = known
    assert value_of(expression(table.folded(polynomial(expr))), at) == value_of(expr, at)


def test_quotients_are_folded() -> None:
    table = Ranges()
    i, j = AffineExpr.dimension(0), AffineExpr.dimension(1)
    table.know(Variable(DIMENSION, 0), 0, 3)
    for expr, want in (
        ((j * 4 + i) // 4, j),
        ((j * 4 + i) % 4, i),
        ((i + 5) // 5, AffineExpr.constant(1)),
        ((i + 6) % 5, i + 1),
        (i // 3, i // 3),
    ):
        assert table.folded(polynomial(expr)) == polynomial(want)


def test_ranges_are_as_narrow_as_they_are_known() -> None:
    table = Ranges()
    i = AffineExpr.dimension(0)
    table.know(Variable(DIMENSION, 0), 0, 3)
    assert table.of(polynomial(i * -2 + 7)) == (1, 7)
    assert table.of(polynomial(i % 8)) == (0, 3)
    assert table.of(polynomial(i % 3)) == (0, 2)
    assert table.of(polynomial(i.ceil_div(2))) == (0, 2)
    assert table.of(polynomial(AffineExpr.dimension(1) % 5)) == (0, 4)
    assert table.of(polynomial(AffineExpr.dimension(1) - 1)) == (None, None)


def test_quotients_are_told_apart() -> None:
    i, j = AffineExpr.dimension(0), AffineExpr.dimension(1)
    one: Affine = polynomial(i // 2 + j // 2)
    assert one == polynomial(j // 2 + i // 2)
    assert one != polynomial(i // 2 + j.ceil_div(2))
    assert all(isinstance(atom, Quotient) for atom in one.atoms)
    assert expression(one) == normalized(j // 2 + i // 2)

"""The interpreter of all stages: the values of calls and regions."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser

from stepwell.backends.reference.affine import evaluator
from stepwell.backends.reference.machine import ReferenceMachine, call
from stepwell.core.errors import UnsupportedError
from stepwell.core.registry import make_context

SUM = """
func.func @sum(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.cmpi sgt, %n, %c0 : index
  %r = scf.if %more -> (index) {
    %m = arith.subi %n, %c1 : index
    %s = func.call @sum(%m) : (index) -> index
    %t = arith.addi %s, %n : index
    scf.yield %t : index
  } else {
    scf.yield %c0 : index
  }
  func.return %r : index
}
"""

NESTED = """
func.func @nested(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (index) {
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> (index) {
      %t = arith.addi %b, %i : index
      scf.yield %t : index
    }
    %u = arith.addi %s, %i : index
    scf.yield %u : index
  }
  func.return %r : index
}
"""


def machine(text: str) -> ReferenceMachine:
    return ReferenceMachine(Parser(make_context(), text).parse_module())


def result(of: ReferenceMachine, name: str, argument: int) -> int:
    (number,) = call(of, of.get_op_for_symbol(name), [argument])
    return int(number)


def test_each_call_has_its_own_values() -> None:
    """A function that calls itself still has its argument afterwards."""
    sums = machine(SUM)
    assert [result(sums, "sum", n) for n in (0, 1, 5)] == [0, 1, 15]


def test_regions_that_run_again() -> None:
    loops = machine(NESTED)
    assert [result(loops, "nested", n) for n in (4, 0, 4)] == [20, 0, 20]


def test_operations_that_cannot_be_interpreted() -> None:
    broken = machine(NESTED.replace("arith.addi %b, %i", "math.ctpop %b"))
    with pytest.raises(UnsupportedError, match=r"math\.ctpop: Could not find interpretation"):
        result(broken, "nested", 3)


def test_affine_maps_run_as_they_are_evaluated() -> None:
    d, e, s = AffineExpr.dimension(0), AffineExpr.dimension(1), AffineExpr.symbol(0)
    exprs = e, d * 3 + s - 2, (d - 7) // 2, (d - e) % 5, s.ceil_div(4), AffineExpr.constant(9)
    map = AffineMap(2, 1, exprs)
    for numbers in itertools.product(range(-4, 5), repeat=3):
        assert evaluator(map)(numbers) == map.eval(numbers[:2], numbers[2:])
    assert evaluator(AffineMap(2, 0, (e, d)))([3, 4]) == (4, 3)


def test_unsigned_quotients_are_rounded_up() -> None:
    """A negated unsigned number is no small one."""
    groups = machine("""
func.func @groups(%n: index) -> index {
  %c7 = arith.constant 7 : index
  %q = arith.ceildivui %n, %c7 : index
  func.return %q : index
}
""")
    assert [result(groups, "groups", n) for n in (0, 1, 7, 8, 9)] == [0, 1, 1, 2, 2]


QUOTIENTS: dict[str, Callable[[int, int], int]] = {
    "divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "remsi": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: a % 256 // (b % 256),
    "remui": lambda a, b: a % 256 % (b % 256),
    "ceildivui": lambda a, b: -(-(a % 256) // (b % 256)),
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_of_all_bytes(name: str) -> None:
    """The smallest integer, too, which has no negative; its quotient by -1 is undefined."""
    pairs = [*itertools.product(range(-128, 128), repeat=2)]
    pairs = [(a, b) for a, b in pairs if b != 0 and (a, b) != (-128, -1)]
    kind = f"vector<{len(pairs)}xi8>"
    divided = machine(f"""
func.func @divided(%a: {kind}, %b: {kind}) -> {kind} {{
  %q = arith.{name} %a, %b : {kind}
  func.return %q : {kind}
}}
""")
    operands = [np.array(column, np.int8) for column in zip(*pairs, strict=True)]
    (got,) = call(divided, divided.get_op_for_symbol("divided"), operands)
    expected = np.array([QUOTIENTS[name](a, b) for a, b in pairs]).astype(np.int8)
    np.testing.assert_array_equal(got, expected)


FLOAT_ORDER: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "ne": np.not_equal,
}


@pytest.mark.parametrize("order", FLOAT_ORDER)
def test_comparisons_of_what_is_no_number(order: str) -> None:
    """None is ordered, and all that are unordered hold."""
    values = [1.0, 2.0, np.inf, np.nan]
    a, b = np.array(list(itertools.product(values, repeat=2)), np.float32).T
    unordered = np.isnan(a) | np.isnan(b)
    for kind in "ou":
        compared = machine(f"""
func.func @compared(%a: vector<16xf32>, %b: vector<16xf32>) -> vector<16xi1> {{
  %q = arith.cmpf {kind}{order}, %a, %b : vector<16xf32>
  func.return %q : vector<16xi1>
}}
""")
        (got,) = call(compared, compared.get_op_for_symbol("compared"), [a, b])
        np.testing.assert_array_equal(
            got, np.where(unordered, kind == "u", FLOAT_ORDER[order](a, b))
        )


def test_a_multiply_add_rounds_once() -> None:
    fused = machine("""
func.func @fused(%a: vector<2xf32>, %b: vector<2xf32>, %c: vector<2xf32>) -> vector<2xf32> {
  %q = math.fma %a, %b, %c : vector<2xf32>
  func.return %q : vector<2xf32>
}
""")
    a, c = np.array([1 + 2**-12, 3], np.float32), np.array([-1 - 2**-11, 1], np.float32)
    (got,) = call(fused, fused.get_op_for_symbol("fused"), [a, a, c])
    np.testing.assert_array_equal(got, np.array([2**-24, 10], np.float32))

"""Affine maps as Python functions, which run faster than a walk over their expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from ...core.bounded_cache import bounded_cache

Evaluator = Callable[[Sequence[Any]], tuple[Any, ...]]
"""From the dimensions and then the symbols, which may be arrays, to the results of a map."""

_FUNCTIONS: dict[AffineBinaryOpKind, Callable[[Any, Any], Any]] = {
    AffineBinaryOpKind.Add: operator.add,
    AffineBinaryOpKind.Mul: operator.mul,
    AffineBinaryOpKind.Mod: operator.mod,
    AffineBinaryOpKind.FloorDiv: operator.floordiv,
    AffineBinaryOpKind.CeilDiv: lambda a, b: -(-a // b),
}


@bounded_cache
def evaluator(map: AffineMap) -> Evaluator:
    """The function that a map is."""
    if all(isinstance(expr, AffineDimExpr) for expr in map.results):
        places = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
        return lambda numbers: tuple([numbers[place] for place in places])
    results = [_function(expr, map.num_dims) for expr in map.results]
    return lambda numbers: tuple([result(numbers) for result in results])


def _function(expr: AffineExpr, dims: int) -> Callable[[Sequence[Any]], Any]:
    match expr:
        case AffineDimExpr():
            return operator.itemgetter(expr.position)
        case AffineSymExpr():
            return operator.itemgetter(dims + expr.position)
        case AffineConstantExpr():
            number = expr.value
            return lambda numbers: number
        case AffineBinaryOpExpr():
            function = _FUNCTIONS[expr.kind]
            left, right = _function(expr.lhs, dims), _function(expr.rhs, dims)
            return lambda numbers: function(left(numbers), right(numbers))
        case _:
            raise TypeError(f"not an affine expression: {expr}")

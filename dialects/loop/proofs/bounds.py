"""Maps applied to indices, such as the bound of a loop, where some indices are constants."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ....core.algebra.affine import normalized, value_of
from ..syntax import compress


def constant_index(value: SSAValue) -> int | None:
    """The value of an index that is an `arith.constant`, None for any other."""
    return integer_constant(value) if isinstance(value.type, IndexType) else None


def integer_constant(value: SSAValue) -> int | None:
    """The value of an integer or an index that is an `arith.constant`, None for any other."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, IntegerAttr):
        return None
    return owner.value.value.data


def filled_in(map: AffineMap, operands: Sequence[SSAValue]) -> list[AffineExpr]:
    """The results of a map over its operands in normal form, with constants filled in."""
    dims = _dims(operands)
    if all(isinstance(dim, AffineDimExpr) for dim in dims):
        return [normalized(expr) for expr in map.results]
    return [normalized(expr, dims) for expr in map.results]


def _dims(operands: Sequence[SSAValue]) -> list[AffineExpr]:
    """The expression of each operand: its constant, or the dimension of its number."""
    constants = map(constant_index, operands)
    return [
        AffineExpr.dimension(number) if value is None else AffineExpr.constant(value)
        for number, value in enumerate(constants)
    ]


def iterations(bound: AffineMap, operands: Sequence[SSAValue]) -> int | None:
    """The number of iterations with these bounds, None where it is not known at compile time."""
    numbers = [value_of(e) for e in filled_in(bound, operands)]
    known = [n for n in numbers if n is not None]
    if known and min(known) <= 0:
        return 0
    return min(known) if len(known) == len(numbers) else None


def without_repeats(exprs: Sequence[AffineExpr]) -> list[AffineExpr]:
    """The same minimum in fewer expressions.

    The first constant stays even if another one is smaller: it is the number of lanes that the loop
    has as an axis; the others are how many of them are valid.
    """
    result: list[AffineExpr] = []
    for expr in dict.fromkeys(exprs):
        known = [e.value for e in result if isinstance(e, AffineConstantExpr)]
        if not isinstance(expr, AffineConstantExpr) or not known or expr.value < min(known):
            result.append(expr)
    return result


def shortened(
    map: AffineMap, operands: Sequence[SSAValue]
) -> tuple[AffineMap, list[SSAValue]] | None:
    """The same map on fewer indices, with constants filled in; None if nothing changes."""
    dims = _dims(operands)
    symbols = [AffineExpr.symbol(number) for number in range(map.num_symbols)]
    results = [normalized(e.replace_dims_and_symbols(dims, symbols)) for e in map.results]
    new, left = compress(results, operands, map.num_symbols)
    return None if (new, left) == (map, list(operands)) else (new, left)

"""Arithmetic on 16-bit floats becomes arithmetic on f32, for targets without the former."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.type import get_element_type_or_self

from ...core.ir.walks import operations_in
from ...dialects.upstream import ops as upstream
from ...dialects.upstream.element_types import with_element_type

_MOVES = {
    arith.BitcastOp,
    arith.ConstantOp,
    arith.ExtFOp,
    arith.SelectOp,
    arith.TruncFOp,
    upstream.ExtFOp,
    upstream.SelectOp,
    upstream.TruncFOp,
}
"""Operations that do not compute with a number."""


# f(x) == truncf(f(extf(x)))  for sums, products, quotients and roots: f32 has more than twice
# the bits of x and two, so that rounding twice is rounding once
def widen(module: ModuleOp, narrow: Collection[Attribute]) -> None:
    """Compute in f32 instead of these element types."""
    computing = [op for op in operations_in(module) if op.name.startswith(("arith.", "math."))]
    for op in computing:
        if type(op) in _MOVES:
            continue
        if any(_is(value, narrow) for value in (*op.operands, *op.results)):
            wide = {
                value: upstream.ExtFOp(value, with_element_type(value.type, f32))
                for value in dict.fromkeys(op.operands)
                if _is(value, narrow)
            }
            new = type(op).create(
                operands=[wide[value].result if value in wide else value for value in op.operands],
                result_types=[
                    with_element_type(result.type, f32) if _is(result, narrow) else result.type
                    for result in op.results
                ],
                properties=op.properties,
                attributes=op.attributes,
            )
            results: list[SSAValue] = []
            made: list[Operation] = [*wide.values(), new]
            for old, result in zip(op.results, new.results, strict=True):
                if old.type == result.type:
                    results.append(result)
                    continue
                made.append(upstream.TruncFOp(result, old.type))
                results.append(made[-1].results[0])
            for part in made:
                part.location = op.location
            Rewriter.replace_op(op, made, results)


def _is(value: SSAValue, kinds: Collection[Attribute]) -> bool:
    return get_element_type_or_self(value.type) in kinds

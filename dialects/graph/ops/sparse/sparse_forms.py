"""What an operator is on a sparse operand: the same pattern with other values, or fewer rows.

What is not stored is 0. An operator that makes something else of it has no sparse form. Whether one
keeps 0 is computed by its `reference`; forms of single operators, such as products, name them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from .....core.dtypes import dtype_of
from ....sparse_tensor import is_sparse
from ... import ops as graph
from ...attrs import ReduceKind, ints
from ...interfaces import FusionKind, GraphOp, element_type, names_a_symbol, rank, tensor_type
from ..moves.select import WHOLE_END

_SCALES = (graph.MulOp, graph.DivOp)


def sparse_form(op: GraphOp, operands: Sequence[SSAValue]) -> list[GraphOp] | None:
    """The operators that stand for `op` where an operand is sparse; None if there are none.

    Args:
        op: an operator on dense tensors, as it is or would be; its operands do not count.
        operands: their replacements. The last new operator has the result, which is
            sparse unless `op` is a product or a sum of each row.
    """
    a, *rest = operands
    if isinstance(op, graph.MulOp) and not is_sparse(a.type):
        a, rest = operands[1], [a]
    if not is_sparse(a.type) or any(is_sparse(other.type) for other in rest):
        return None
    if isinstance(a.owner, graph.SliceRowsOp) and (isinstance(op, _SCALES) or keeps_zero(op)):
        return _of_rows(op, a.owner, rest)
    if keeps_zero(op):
        return _elementwise(op, a)
    if isinstance(op, _SCALES):
        return _scaled(op, a, rest[0])
    if isinstance(op, graph.SliceOp):
        return _rows(op, a)
    if isinstance(op, graph.ReduceOp):
        if op.kind.data != ReduceKind.SUM or list(ints(op.axes)) not in ([1], [-1]):
            return None
        sums = graph.DegreeOp(a)
        return [sums, graph.ReshapeOp(sums, [-1, 1])] if op.keepdims.value.data else [sums]
    return _product(op, a, rest)


def keeps_zero(op: GraphOp) -> bool:
    """Whether an operator computes its elements one by one, with f(0) == 0, in the same type."""
    if op.fusion != FusionKind.ELEMENTWISE or len(op.operands) != 1 or names_a_symbol(op):
        return False
    kind = element_type(op.operands[0])
    if op.infer_element_types() != [kind]:
        return False
    with np.errstate(all="ignore"):
        (made,) = op.reference(np.zeros((1, 1), dtype_of(kind)))
    return bool(made[0, 0] == 0)


def by_rows_and_columns(
    a: SSAValue, rows: SSAValue | None, columns: SSAValue | None, divide: bool = False
) -> list[GraphOp]:
    """`a` with entry (i, j) times (or divided by) ``rows[i]`` and ``columns[j]``, where given."""
    new: list[GraphOp] = [graph.EntriesOp(a)]
    for axis, factor in enumerate((rows, columns)):
        if factor is None:
            continue
        values = new[-1]
        new.append(graph.AtEntriesOp(a, factor, axis))
        new.append((graph.DivOp if divide else graph.MulOp)(values, new[-1]))
    return [*new, graph.WithEntriesOp(a, new[-1])]


def _of_rows(op: GraphOp, cut: graph.SliceRowsOp, rest: Sequence[SSAValue]) -> list[GraphOp] | None:
    """An elementwise operator on some rows of a matrix: these rows of it on the whole matrix."""
    (start, end), rows = cut.bounds, tensor_type(cut.a).get_shape()[0]
    new: list[GraphOp] = []
    operands = [cut.a]
    for factor in rest:
        shape = tensor_type(factor).get_shape()
        if len(shape) == 2 and shape[0] == end - start and shape[0] != 1:
            # What the other rows are scaled by does not count.
            new.append(graph.PadOp(factor, [start, 0], [rows - end, 0], value=1.0))
            factor = new[-1].results[0]
        operands.append(factor)
    made = sparse_form(op, operands)
    if made is None:
        for part in reversed(new):
            part.erase()
        return None
    return [*new, *made, graph.SliceRowsOp(made[-1], start, end)]


def _elementwise(op: GraphOp, a: SSAValue) -> list[GraphOp]:
    values = graph.EntriesOp(a)
    new = type(op).create(
        operands=[values.result], result_types=values.result_types, properties=op.properties
    )
    return [values, new, graph.WithEntriesOp(a, new)]


def _scaled(op: graph.MulOp | graph.DivOp, a: SSAValue, factor: SSAValue) -> list[GraphOp] | None:
    """A matrix times or by a number, one for each row, or one for each column."""
    divide = isinstance(op, graph.DivOp)
    shape, matrix = tensor_type(factor).get_shape(), tensor_type(a).get_shape()
    if math.prod(shape) == 1:
        number = graph.ReshapeOp(factor, [1])
        values = graph.EntriesOp(a)
        scaled = type(op)(values, number)
        return [number, values, scaled, graph.WithEntriesOp(a, scaled)]
    flat = graph.ReshapeOp(factor, [-1])
    if len(shape) == 2 and shape[1] == 1:
        return [flat, *by_rows_and_columns(a, flat.result, None, divide)]
    if shape[-1] != 1 and shape[-1] == matrix[1] and math.prod(shape) == shape[-1]:
        return [flat, *by_rows_and_columns(a, None, flat.result, divide)]
    flat.erase()
    return None


def _rows(op: graph.SliceOp, a: SSAValue) -> list[GraphOp] | None:
    rows, columns = op.bounds
    whole = columns in ((0, tensor_type(a).get_shape()[1], 1), (0, WHOLE_END, 1))
    if rows[2] != 1 or not whole:
        return None
    return [graph.SliceRowsOp(a, rows[0], max(rows[:2]))]


def _product(op: GraphOp, a: SSAValue, rest: Sequence[SSAValue]) -> list[GraphOp] | None:
    """A product of two matrices with the sparse one on the left."""
    if isinstance(op, graph.MatmulOp) and rank(rest[0]) == 2:
        return [graph.SpmmOp(a, rest[0])]
    if not isinstance(op, graph.DenseOp):
        return None
    weights = graph.TransposeOp(rest[0], [1, 0])
    product = graph.SpmmOp(a, weights)
    return [weights, product, *(graph.AddOp(product, bias) for bias in rest[1:])]

"""Scatters and gathers by index vectors: what they read, and by which vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....core.algebra.dims import Dim, product
from ....core.dtypes import dtype_of
from ....core.ir.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import FLOAT_TENSOR, ReduceKind, ScatterKind, ints
from ....dialects.graph.interfaces import FusionKind, GraphOp, Sizes, element_type, rank
from ....dialects.graph.known import elements_of, sizes_of

_DEPTH = 12


class EdgeListFacts(Sizes, Protocol):
    """What is known of values: their sizes, and the elements of constants."""

    weights: WeightStore


@dataclass(frozen=True)
class Scatter:
    """An operator that combines updates [E, ...] with slices of `init` [N, ...].

    `rows` holds the E indices: see `vector_of`.
    """

    op: GraphOp
    kind: ScatterKind
    init: SSAValue
    rows: SSAValue
    updates: SSAValue


def scatter_of(op: Operation, facts: EdgeListFacts) -> Scatter | None:
    """A scatter of whole slices along axis 0; None for other operators."""
    if isinstance(op, graph.ScatterElementsOp) and op.axis_from_front == 0:
        rows = vector_of(op.indices, facts)
    elif isinstance(op, graph.ScatterNdOp) and len(op.indices) == 1 and rank(op.indices[0]) == 1:
        rows = vector_of(op.indices[0], facts)
    else:
        return None
    init, updates = facts.shape(op.x), facts.shape(op.updates)
    if rows is None or init[1:] != updates[1:]:
        return None
    return Scatter(op, op.kind.data, op.x, rows, op.updates)


@dataclass(frozen=True)
class Gather:
    """An operator that reads slices of x at indices along axis 0: see `vector_of`."""

    x: SSAValue
    indices: SSAValue


def gather_of(value: SSAValue, facts: EdgeListFacts) -> Gather | None:
    """The gather of whole slices along axis 0 that makes a value [E, ...]; None for others."""
    op = value.owner
    if isinstance(op, graph.GatherOp) and op.axis_from_front == 0 and rank(op.indices) == 1:
        indices = vector_of(op.indices, facts)
    elif isinstance(op, graph.GatherNdOp) and len(op.indices) == 1 and rank(op.indices[0]) == 1:
        indices = vector_of(op.indices[0], facts)
    elif isinstance(op, graph.GatherElementsOp) and op.axis_from_front == 0:
        indices = vector_of(op.indices, facts)
        if facts.shape(op.x)[1:] != facts.shape(op.indices)[1:]:
            return None
    else:
        return None
    return None if indices is None else Gather(op.x, indices)


def vector_of(indices: SSAValue, facts: EdgeListFacts) -> SSAValue | None:
    """A value whose elements, in row-major order, are the indices [i, ...] for each i.

    None where the indices depend on more than i. Reshapes are left out, and indices that are
    checked somewhere are checked everywhere, so that all uses of a vector have the same value.
    """
    edges, size = facts.shape(indices)[0], None
    if isinstance(indices.owner, graph.BroadcastToOp) and rank(indices) > 1:
        indices = indices.owner.x
        if rank(indices) < 2 or facts.shape(indices)[0] != edges:
            return None
    if any(size != 1 for size in facts.shape(indices)[1:]):
        return None
    while isinstance(op := indices.owner, graph.ReshapeOp | graph.CheckIndicesOp):
        if isinstance(op, graph.CheckIndicesOp):
            size = op.limit(facts)
        indices = op.operands[0]
    return _checked(indices, size, facts) if product(facts.shape(indices)) == edges else None


def _checked(indices: SSAValue, size: Dim | None, facts: EdgeListFacts) -> SSAValue:
    """The result of the first check of indices, if there is one: against `size`, if given.

    It may come after a use, or be against another size: its result is the indices, regions cannot
    use values from outside, so it is in the block of the use, and the caller raises only what comes
    after the check. A kernel skips its own check only where the sizes are equal.
    """
    found = None
    for check in _checks(indices):
        if size is None or check.limit(facts) == size:
            first = found is None or (
                check.parent is found.parent and check.is_before_in_block(found)
            )
            found = check if first else found
    return indices if found is None else found.result


def _checks(indices: SSAValue) -> Iterator[graph.CheckIndicesOp]:
    """The checks of indices, or of reshapes of them."""
    for use in indices.uses:
        op = use.operation
        if isinstance(op, graph.CheckIndicesOp) and use.index == 0:
            yield op
        if isinstance(op, graph.ReshapeOp | graph.CheckIndicesOp) and use.index == 0:
            yield from _checks(op.results[0])


def number_of(value: SSAValue, weights: WeightStore, depth: int = _DEPTH) -> float | None:
    """The number that all elements of a value are known to be; None if there is none."""
    op = value.owner
    if isinstance(op, graph.ConstantOp):
        array = elements_of(value, weights)
        if array is None or not array.size or array.flat[0] != array.flat[-1]:
            return None
        return float(array.flat[0]) if bool(np.all(array == array.flat[0])) else None
    if not isinstance(op, GraphOp) or not depth:
        return None
    if isinstance(op, graph.ReduceOp):
        sizes = sizes_of(op.x)
        none = any(sizes[axis] == 0 for axis in ints(op.axes))
        return 0.0 if none and op.kind.data == ReduceKind.SUM else None
    moves = isinstance(op, graph.ReshapeOp | graph.BroadcastToOp)
    if not moves and (op.fusion != FusionKind.ELEMENTWISE or len(op.results) != 1):
        return None
    numbers = [number_of(operand, weights, depth - 1) for operand in op.operands]
    if moves or any(number is None for number in numbers):
        return numbers[0] if moves else None
    arrays = [
        np.full((1,) * rank(operand), number, dtype_of(element_type(operand)))
        for operand, number in zip(op.operands, numbers, strict=True)
    ]
    with np.errstate(all="ignore"):
        return float(np.asarray(op.reference(*arrays)[0]).reshape(-1)[0])


def is_float_tensor(value: SSAValue) -> bool:
    """Whether a sparse matrix may have the element type of a value."""
    return element_type(value) in FLOAT_TENSOR.elements and str(element_type(value)) != "bf16"


def width_of(value: SSAValue, facts: EdgeListFacts) -> Dim:
    """The number of elements of a slice of a value."""
    return product(facts.shape(value)[1:])

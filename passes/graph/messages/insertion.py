"""What takes the place of scatters: the matrix of their edge list, and aggregations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from ....core.algebra.dims import Dim, product
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import ScatterKind
from ....dialects.graph.combiners import COMBINERS
from ....dialects.graph.interfaces import element_type, rank
from ....dialects.graph.known import sizes_of
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.loop.combiners import neutral_value
from .edge_lists import EdgeListFacts, Scatter, number_of, scatter_of

KINDS = {
    ScatterKind.ADD: "sum",
    ScatterKind.MUL: "prod",
    ScatterKind.MAX: "max",
    ScatterKind.MIN: "min",
}
"""The scatters that are aggregations."""
_JOINED: dict[ScatterKind, type[graph.BinaryOp]] = {
    ScatterKind.ADD: graph.AddOp,
    ScatterKind.MUL: graph.MulOp,
    ScatterKind.MAX: graph.MaxOp,
    ScatterKind.MIN: graph.MinOp,
}


@dataclass(frozen=True)
class EdgeMatrix:
    """The matrix of an edge list.

    Attributes:
        ends: the vectors of rows and of columns, as `vector_of` gives them; None where the column
            of an edge is its place in the list.
        shape: the numbers of rows and columns.
        matrix: the CSR matrix, whose values are 1.
        order: the edge of each entry.
    """

    ends: tuple[SSAValue, SSAValue | None]
    shape: tuple[Dim, Dim]
    matrix: SSAValue
    order: SSAValue


def flat(b: InsertingBuilder, value: SSAValue) -> SSAValue:
    """The elements of a value as a vector."""
    return value if rank(value) == 1 else b.reshape(value, [-1])


def nodes_of(b: InsertingBuilder, size: int) -> SSAValue:
    """A value with so many elements, which are never read."""
    if size:
        return b.insert(graph.ConstantOp.literal(np.zeros(size, np.int8)))
    one = b.insert(graph.ConstantOp.literal(np.zeros(1, np.int8)))
    return b.slice(one, [0], [0])


def matrix_of(
    b: InsertingBuilder,
    ends: tuple[SSAValue, SSAValue],
    nodes: tuple[SSAValue, SSAValue],
    kind: Attribute,
    facts: EdgeListFacts,
) -> EdgeMatrix:
    """The matrix of an edge list with values 1.

    Args:
        b: inserts operators.
        ends: the rows and columns of the edges.
        nodes: values with as many slices as there are rows and columns.
        kind: the element type.
        facts: the sizes of these values.
    """
    rows, columns = (flat(b, end) for end in ends)
    indptr, indices, order = b.sort_edges(rows, columns, *nodes)
    matrix = assembled(b, indptr, indices, nodes[1], kind)
    shape = facts.shape(nodes[0])[0], facts.shape(nodes[1])[0]
    return EdgeMatrix(ends, shape, matrix, order)


def segments_of(
    b: InsertingBuilder, rows: SSAValue, targets: SSAValue, kind: Attribute, facts: EdgeListFacts
) -> EdgeMatrix:
    """The matrix with values 1 whose row i has the places of i in a vector as its columns.

    Args:
        b: inserts operators.
        rows: the vector.
        targets: a value with as many slices as there are rows.
        kind: the element type.
        facts: the sizes of these values.
    """
    vector = flat(b, rows)
    indptr, _, order = b.sort_edges(vector, vector, targets, targets)
    matrix = assembled(b, indptr, order, vector, kind)
    shape = facts.shape(targets)[0], product(facts.shape(rows))
    return EdgeMatrix((rows, None), shape, matrix, order)


def assembled(
    b: InsertingBuilder, indptr: SSAValue, columns: SSAValue, sources: SSAValue, kind: Attribute
) -> SSAValue:
    """The matrix of sorted edges with values 1."""
    ones = b.cast(b.equal(columns, columns), kind)
    return b.assemble(indptr, columns, ones, sources)


def aggregated(
    scatter: Scatter,
    edges: EdgeMatrix,
    messages: SSAValue,
    b: InsertingBuilder,
    facts: EdgeListFacts,
) -> SSAValue:
    """What a scatter gives: messages in entry order, combined for each row.

    Rows without entries keep what the scatter had there.
    """
    kind, base = scatter.kind, scatter.init
    combine = COMBINERS[kind.value].combine
    neutral = neutral_value(combine, element_type(base))
    before = _base_of(scatter, neutral, facts)
    alone = before is not None or number_of(base, facts.weights) == neutral
    base = base if before is None else before
    found = _reduced(scatter, edges, messages, b, facts)
    if kind in (ScatterKind.ADD, ScatterKind.MUL):
        # An empty sum is 0, and an empty product 1.
        return (
            found
            if number_of(base, facts.weights) == neutral
            else b.apply(_JOINED[kind], base, found)
        )
    if alone and number_of(base, facts.weights) == 0:
        return found
    joined = found if alone else b.apply(_JOINED[kind], base, found)
    degree = _column(b.degree(edges.matrix), rank(base), b)
    return b.where(b.less(0, degree), joined, base)


def _reduced(
    scatter: Scatter,
    edges: EdgeMatrix,
    messages: SSAValue,
    b: InsertingBuilder,
    facts: EdgeListFacts,
) -> SSAValue:
    """The messages of each row, combined; the sum of ones is the degree."""
    type = scatter.op.results[0].type
    ones = number_of(scatter.updates, facts.weights) == 1
    same = element_type(messages) == element_type(edges.matrix)
    sizes = sizes_of(scatter.updates)[1:]
    if ones and same and scatter.kind == ScatterKind.ADD and all(size >= 0 for size in sizes):
        degree = _column(b.degree(edges.matrix), rank(messages), b)
        return b.insert(graph.BroadcastToOp(degree, [-1, *sizes], type)) if sizes else degree
    kind = KINDS[scatter.kind]
    return b.insert(graph.ReduceEntriesOp(edges.matrix, messages, kind, result_type=type))


def _column(vector: SSAValue, dims: int, b: InsertingBuilder) -> SSAValue:
    """A vector with so many dimensions; all but the first are 1."""
    shape = [-1, *[1] * (dims - 1)]
    return vector if dims == 1 else b.reshape(vector, shape)


def _base_of(scatter: Scatter, neutral: float, facts: EdgeListFacts) -> SSAValue | None:
    """What a scatter updates without a part of its own; None where that has a part.

    A reduction that leaves out what is there is written as two scatters: the first one makes the
    elements neutral that are updated.
    """
    made = scatter.init.owner
    first = scatter_of(made, facts) if isinstance(made, Operation) else None
    if first is None or first.kind != ScatterKind.NONE or first.rows is not scatter.rows:
        return None
    return first.init if number_of(first.updates, facts.weights) == neutral else None

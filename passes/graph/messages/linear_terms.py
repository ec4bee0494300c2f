"""Values that are linear in slices gathered along axis 0: which ones, and by what.

    [x_i, x_j - x_i]    is x_i - x_i and x_j in the trailing columns, x_i in the leading ones

A value [E, ..., K] is a sum of terms: each one has some of the K columns, and is a factor times a
slice of a value [N, ..., k] for each edge, or times a value of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ....core.algebra.dims import Dim, Shape
from ....dialects.graph import ops as graph
from ....dialects.graph.interfaces import Sizes, rank
from ....dialects.graph.op_builder import InsertingBuilder

_DEPTH = 12
_ALL = (1 << 63) - 1
"""The end of a symbolic axis in a slice."""


@dataclass(frozen=True)
class Ends:
    """Which slice of a value [N, ...] each edge has: that of its row or column, or at an index.

    Attributes:
        by: a sparse matrix, or a vector of indices.
        axis: 0 for the rows of a matrix, 1 for its columns; None for indices.
    """

    by: SSAValue
    axis: int | None = None

    def of(self, value: SSAValue, b: InsertingBuilder) -> SSAValue:
        """The slices of a value."""
        if self.axis is None:
            return b.gather(value, self.by, 0)
        return b.at_entries(self.by, value, self.axis)


@dataclass(frozen=True)
class Reshaped:
    """A reshape of slices to some sizes."""

    sizes: tuple[int, ...]

    def of(self, value: SSAValue, rows: Dim, b: InsertingBuilder) -> SSAValue:
        """The slices of a value with so many rows."""
        return b.reshape(value, [0, *self.sizes])


@dataclass(frozen=True)
class Cut:
    """A part of slices: the start, end and step of each axis."""

    bounds: tuple[tuple[int, int, int], ...]

    def of(self, value: SSAValue, rows: Dim, b: InsertingBuilder) -> SSAValue:
        """The slices of a value with so many rows."""
        whole = (0, rows.value if rows.is_static else _ALL, 1)
        starts, ends, steps = zip(whole, *self.bounds, strict=True)
        return b.slice(value, starts, ends, steps)


@dataclass(frozen=True)
class LinearTerm:
    """`scale` times the slices of a value, at columns from `start` on.

    Attributes:
        value: what is gathered; a value of the edges where `ends` is None.
        ends: which slices are gathered.
        moves: what is done with slices before, such as a reshape.
        start: the first column.
        width: the number of columns.
        scale: the factor.
    """

    value: SSAValue
    ends: Ends | None
    moves: tuple[Reshaped | Cut, ...]
    start: int
    width: int
    scale: float = 1.0

    def made(self, sizes: Sizes, b: InsertingBuilder) -> SSAValue:
        """What is multiplied with weights: the value after its moves, of the nodes or edges."""
        value, rows = self.value, sizes.shape(self.value)[0]
        for move in self.moves:
            value = move.of(value, rows, b)
        return value


def ends_of(value: SSAValue) -> tuple[Ends, SSAValue] | None:
    """Which slices of which value a value has; None where none are gathered."""
    op = value.owner
    if isinstance(op, graph.AtEntriesOp):
        return Ends(op.a, op.axis.value.data), op.x
    if isinstance(op, graph.GatherOp) and op.axis_from_front == 0 and rank(op.indices) == 1:
        return Ends(op.indices), op.x
    return None


def terms_of(value: SSAValue, sizes: Sizes, depth: int = _DEPTH) -> list[LinearTerm] | None:
    """The terms of a value [E, ..., K]; None where K is symbolic."""
    width = sizes.shape(value)[-1:]
    if rank(value) < 2 or not width[0].is_static:
        return None
    found = _terms(value, sizes, depth) if depth else None
    return [LinearTerm(value, None, (), 0, width[0].value)] if found is None else found


def _terms(value: SSAValue, sizes: Sizes, depth: int) -> list[LinearTerm] | None:
    """The terms of a value; None if its operator is not linear in other values."""
    op, gathered = value.owner, ends_of(value)
    if gathered is not None:
        ends, x = gathered
        return [LinearTerm(x, ends, (), 0, sizes.shape(x)[-1].value)]
    if isinstance(op, graph.ConcatOp) and op.axis_from_front == rank(value) - 1:
        return _joined(op, sizes, depth)
    if isinstance(op, graph.AddOp):
        return _added(op, 1.0, sizes, depth)
    if isinstance(op, graph.SubOp):
        return _added(op, -1.0, sizes, depth)
    if isinstance(op, graph.NegOp):
        return _scaled(op.x, -1.0, sizes, depth)
    if isinstance(op, graph.MulOp):
        # The terms of a product with a number.
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = graph.splat_of(other)
            if number is not None and sizes.shape(one) == sizes.shape(op.result):
                return _scaled(one, float(number), sizes, depth)
        return None
    if isinstance(op, graph.SliceOp | graph.ReshapeOp):
        return _moved(op, sizes, depth)
    return None


def _joined(op: graph.ConcatOp, sizes: Sizes, depth: int) -> list[LinearTerm] | None:
    """The terms of all parts, each at its own columns."""
    found, start = list[LinearTerm](), 0
    for part in op.inputs:
        terms = terms_of(part, sizes, depth - 1)
        if terms is None:
            return None
        found += [replace(term, start=start + term.start) for term in terms]
        start += sizes.shape(part)[-1].value
    return found


def _added(op: graph.BinaryOp, sign: float, sizes: Sizes, depth: int) -> list[LinearTerm] | None:
    """The terms of a sum or difference of values of the same shape."""
    if not sizes.shape(op.lhs) == sizes.shape(op.rhs) == sizes.shape(op.result):
        return None
    left, right = _scaled(op.lhs, 1.0, sizes, depth), _scaled(op.rhs, sign, sizes, depth)
    return None if left is None or right is None else left + right


def _scaled(value: SSAValue, factor: float, sizes: Sizes, depth: int) -> list[LinearTerm] | None:
    terms = terms_of(value, sizes, depth - 1)
    return terms and [replace(term, scale=factor * term.scale) for term in terms]


def _moved(
    op: graph.SliceOp | graph.ReshapeOp, sizes: Sizes, depth: int
) -> list[LinearTerm] | None:
    """The terms of a slice or reshape that leaves the first axis as it is.

    Where that concerns the last axis, there has to be one term.
    """
    before, after = sizes.shape(op.x), sizes.shape(op.result)
    if len(before) < 2 or len(after) < 2 or before[0] != after[0]:
        return None
    if not all(dim.is_static for dim in after[1:]):
        return None
    terms = terms_of(op.x, sizes, depth - 1)
    if terms is None or all(term.ends is None for term in terms):
        return None
    whole = isinstance(op, graph.ReshapeOp) or op.bounds[-1] == (0, before[-1].value, 1)
    if before[-1] == after[-1] and whole:
        return [replace(t, moves=(*t.moves, _move(op, after, t.width))) for t in terms]
    (first, *others), width = terms, after[-1].value
    moves = (*first.moves, _move(op, after, width))
    return None if others else [replace(first, moves=moves, width=width)]


def _move(op: graph.SliceOp | graph.ReshapeOp, after: Shape, width: int) -> Reshaped | Cut:
    """What an operator does with slices that have some columns."""
    if isinstance(op, graph.ReshapeOp):
        return Reshaped((*(dim.value for dim in after[1:-1]), width))
    *middle, last = op.bounds[1:]
    return Cut((*middle, last if after[-1] == width else (0, width, 1)))

"""Segments: runs of places into which a sequence that never decreases divides them.

Row i of a CSR matrix has the entries from `indptr[i]` up to `indptr[i + 1]`. Of the integers that a
kernel reads, only row pointers (`is_row_pointer`) are known to never decrease: calls pass matrices
for them, arguments of the program or assembled by it, and each call of the program checks both.
Part t of balanced work has the rows from `partition_point(t)` up to `partition_point(t + 1)`. A
part that owns a place has the places from `t * size` up to `(t + 1) * size`. Segments of one
division have no place in common, so that indices that are equal are in segments of equal numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr

from ....core.algebra.expressions import FLOOR, Affine, Quotient, substituted, variables
from ....core.algebra.polynomials import Polynomial
from ...upstream.ops import IndexCastOp
from ..arguments import INDPTR, attributes_of
from ..loops import bound_of, enclosing, loop_of
from ..ops_access import LoadOp, StoreOp
from ..ops_loops import ForOp
from ..ops_owned import OwnedOp
from ..ops_partition import PartitionPointOp
from .indices import IndexValues


@dataclass(frozen=True)
class Segment:
    """A segment of a division: by a buffer, for some sizes, and with a number."""

    division: Hashable
    sizes: tuple[Affine, ...]
    number: Affine


def is_row_pointer(buffer: SSAValue) -> bool:
    """Whether a buffer is an argument of a kernel for which every call has to pass a CSR matrix.

    It has the attribute, or the kernel visits the rows of that matrix.
    """
    kernel = buffer.owner.parent_op()
    if not isinstance(buffer, BlockArgument) or kernel is None:
        return False
    return INDPTR in attributes_of(kernel, buffer.index) or any(
        isinstance(op, PartitionPointOp)
        or (isinstance(op, ForOp) and op.over_entries and op.matrix[0] is buffer)
        for op in (use.operation for use in buffer.uses)
    )


# a in segment m, b in segment n of one division:  a == b  =>  m == n
def implied(
    first: LoadOp | StoreOp, second: LoadOp | StoreOp, both: IndexValues
) -> Iterator[Affine]:
    """What is 0 where two accesses are at one place, one in each iteration of a loop.

    The numbers of segments may be places in segments of another division: rows of a matrix are
    divided into parts.
    """
    alone = IndexValues(), IndexValues()
    sides = range(2)

    def there(value: Affine, side: int) -> Affine:
        values = alone[side].values
        return substituted(value, {atom: both.of(values[atom], side) for atom in variables(value)})

    places = [flat.place(access) for flat, access in zip(alone, (first, second), strict=True)]
    left = list(zip(*places, strict=True))
    while left:
        pair = left.pop()
        found = [list(_segments(pair[side], (first, second)[side], alone[side])) for side in sides]
        for one, other in ((a, b) for a in found[0] for b in found[1]):
            if one.division != other.division or [there(size, 0) for size in one.sizes] != [
                there(size, 1) for size in other.sizes
            ]:
                continue
            yield there(one.number, 0) - there(other.number, 1)
            left.append((one.number, other.number))


def _segments(index: Affine, access: LoadOp | StoreOp, known: IndexValues) -> Iterator[Segment]:
    """The segments that an index of an access is in, of different divisions."""
    for atom in index.atoms:
        value, place = known.values.get(atom), Polynomial.atom(atom)
        if value is None or index.coefficient(atom) != 1:
            continue
        if index == place:
            yield from _owning(value, access, known)
        loop = loop_of(value)
        if loop is not None and loop.over_entries and index == place:
            yield Segment(loop.matrix[0], (), known.bounds_of(loop)[0])
        segment = begun(value, known)
        if segment is None:
            continue
        after = Segment(segment.division, segment.sizes, segment.number + 1)
        ends = [v for v in _bounds(access, known) if begun(v, known) == after]
        if any(_is_within(index, place, known.of(v), known) for v in ends):
            yield segment


def _owning(value: SSAValue, access: LoadOp | StoreOp, known: IndexValues) -> Iterator[Segment]:
    """The parts that own a place wherever an access runs: loops around it ran out otherwise."""
    for loop in enclosing(access):
        for expr in () if loop.over_entries else bound_of(loop):
            op = loop.bounds[expr.position].owner if isinstance(expr, AffineDimExpr) else None
            if isinstance(op, OwnedOp) and op.place is value:
                size, part = (known.of(v) for v in (op.size, op.part))
                yield Segment(OwnedOp, (size,), part)


def begun(value: SSAValue, known: IndexValues) -> Segment | None:
    """The segment that begins at an index value, None if none is known to."""
    op = value.owner
    if isinstance(op, arith.IndexCastOp | IndexCastOp):
        op = op.input.owner
    if isinstance(op, PartitionPointOp):
        rows, parts, number = (known.of(v) for v in (op.rows, op.parts, op.part))
        return Segment((op.indptr, op.weight), (rows, parts), number)
    if not isinstance(op, LoadOp) or not is_row_pointer(op.buffer):
        return None
    place = known.place(op)
    return Segment(op.buffer, (), place[0]) if len(place) == 1 else None


def _bounds(access: LoadOp | StoreOp, known: IndexValues) -> list[SSAValue]:
    """The values from which the bounds of the loops around an access are computed."""
    operands = [operand for loop in enclosing(access) for operand in loop.bounds]
    for operand in operands:
        known.of(operand)
    return list(known.values.values())


def _is_within(index: Affine, begin: Affine, end: Affine, known: IndexValues) -> bool:
    """Whether an index is in a segment, whose end is not before its beginning."""
    for atom in index.atoms:
        if isinstance(atom, Quotient) and atom.function is FLOOR and atom.dividend == end - begin:
            known.ranges.know(atom, 0, None)
    return known.ranges.is_nonnegative(index - begin) and known.is_negative(index - end)

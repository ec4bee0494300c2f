"""Loops over the segments of a buffer that another buffer divides, as the rows of a CSR matrix do.

Row i of a matrix has the entries from `ends[i]` up to `ends[i + 1]`, where `ends` never decreases:
each call checks its matrices. Segments of different rows are disjoint.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineDimExpr, AffineExpr

from ...core.building.affine import ADD
from ..upstream.ops import IndexCastOp
from .ops_access import LoadOp, StoreOp
from .ops_loops import ForOp

_FIRST = AffineExpr.dimension(0)


def segments(access: LoadOp | StoreOp, loop: ForOp) -> set[tuple[int, SSAValue]]:
    """The dimensions in which an access stays in the segment of an iteration of a loop.

    Each comes with the buffer that divides it: the index is ``ends[i] + l``, where `i` is the
    variable of `loop` and `l` runs up to ``ends[i + 1] - ends[i]``, or it is the place of an
    entry of row `i`.
    """
    found: set[tuple[int, SSAValue]] = set()
    for place, expr in enumerate(access.map.data.results):
        if isinstance(expr, AffineDimExpr):
            ends = _pointers(access.indices[expr.position], loop)
            if ends is not None:
                found.add((place, ends))
        if not isinstance(expr, AffineBinaryOpExpr) or expr.kind is not ADD:
            continue
        terms = expr.lhs, expr.rhs
        if all(isinstance(term, AffineDimExpr) for term in terms):
            one, other = (access.indices[term.position] for term in terms)  # type: ignore[union-attr]
            for start, variable in ((one, other), (other, one)):
                ends = _divider(start, variable, loop)
                if ends is not None:
                    found.add((place, ends))
    return found


def _pointers(place: SSAValue, loop: ForOp) -> SSAValue | None:
    """The row pointers of a matrix, if a value is the place of an entry of an iteration's row."""
    inner = place.owner.parent_op() if isinstance(place.owner, Block) else None
    if not isinstance(inner, ForOp) or not inner.over_entries or place is not inner.variable:
        return None
    if list(inner.bounds) != [loop.variable] or inner.bound.data.results != (_FIRST,):
        return None
    pointers = inner.matrix[0]
    return pointers if isinstance(pointers.owner, Block) else None


def _divider(start: SSAValue, variable: SSAValue, loop: ForOp) -> SSAValue | None:
    """The buffer that divides the places that a variable counts from `start`."""
    inner = variable.owner.parent_op() if isinstance(variable.owner, Block) else None
    if not isinstance(inner, ForOp) or inner.over_entries or variable is not inner.variable:
        return None
    if len(inner.bounds) != 1 or inner.bound.data.results != (_FIRST,):
        return None
    count = inner.bounds[0].owner
    if not isinstance(count, arith.SubiOp) or count.rhs is not start:
        return None
    ends = _end(start, loop, 0)
    # Values that the kernel itself writes could decrease.
    if ends is None or ends is not _end(count.lhs, loop, 1) or not isinstance(ends.owner, Block):
        return None
    return ends


def _end(value: SSAValue, loop: ForOp, ahead: int) -> SSAValue | None:
    """The buffer from which `value` is loaded at the variable of a loop, or `ahead` of it."""
    op = value.owner
    if isinstance(op, arith.IndexCastOp | IndexCastOp):
        op = op.input.owner
    if not isinstance(op, LoadOp) or list(op.indices) != [loop.variable]:
        return None
    wanted = _FIRST + ahead if ahead else _FIRST
    return op.buffer if op.map.data.results == (wanted,) else None

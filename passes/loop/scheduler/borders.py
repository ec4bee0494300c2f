"""Loops with a border: padded and concatenated tensors.

A test of the index, `(i - low) as unsigned < size`, tells whether a place is inside of a tensor. If
every iteration tests it, accesses are not contiguous; in a loop that is cut at the border, those of
each part are.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import loop_names
from ....dialects.loop.ops import ForOp
from ....dialects.loop.proofs.bounds import constant_index
from ....dialects.loop.proofs.indices import IndexValues
from ....dialects.upstream.ops import CmpiOp
from .accesses import cost
from .schedule import Schedule

LITTLE = 16
"""Parts with less than this fraction (1/n) of the work are not vectorised."""
MOST_LOOPS = 24
"""A kernel of more loops is not cut any further: a hundred concatenated tensors."""
SLT, ULT = 2, 6
"""The predicates of `arith.cmpi` that compare as signed and as unsigned numbers."""


def border_of(loop: ForOp) -> tuple[int, int] | None:
    """How many iterations at the beginning and at the end of a loop are outside of a tensor."""
    extent = extent_of(loop)
    if extent is None:
        return _border_of_symbolic(loop)
    before = after = 0
    for use in loop.variable.uses:
        for low, index in _shifted(use.operation, loop.variable):
            for other in index.uses:
                first, last = _inside(other.operation, index, low) or (0, extent)
                if max(0, first) < min(last, extent):
                    before, after = max(before, first), max(after, extent - last)
    return (before, after) if 0 < before + after < extent else None


def _border_of_symbolic(loop: ForOp) -> tuple[int, int] | None:
    """The border of a loop whose bound is the size of a tensor and numbers before and after it."""
    values = IndexValues()
    bound, *others = values.bounds_of(loop)
    for use in loop.variable.uses if not others else ():
        for low, index in _shifted(use.operation, loop.variable):
            for other in (use.operation for use in index.uses):
                if not _compares(other, index) or other.operands[1] not in loop.bounds:
                    continue
                size = values.of(other.operands[1])
                after = (bound - size - low).number
                if low >= 0 and after is not None and after >= 0 and low + after:
                    return low, after
    return None


def _compares(op: Operation, index: SSAValue) -> bool:
    """Whether an index is compared with a size, as an unsigned number."""
    if not isinstance(op, CmpiOp | arith.CmpiOp) or op.lhs is not index:
        return False
    return op.predicate.value.data == ULT


def _shifted(op: Operation, variable: SSAValue) -> list[tuple[int, SSAValue]]:
    """The variable minus a number, and that number."""
    if isinstance(op, CmpiOp | arith.CmpiOp):
        return [(0, variable)]
    if not isinstance(op, arith.SubiOp | arith.AddiOp) or op.lhs is not variable:
        return []
    number = constant_index(op.rhs)
    if number is None:
        return []
    return [(number if isinstance(op, arith.SubiOp) else -number, op.result)]


def _inside(op: Operation, index: SSAValue, low: int) -> tuple[int, int] | None:
    """The range of a loop variable in which a comparison of it, minus `low`, is true."""
    if not isinstance(op, CmpiOp | arith.CmpiOp) or op.lhs is not index:
        return None
    size, predicate = constant_index(op.rhs), op.predicate.value.data
    if size is None or predicate not in (SLT, ULT):
        return None
    return (low if predicate == ULT else 0), low + size


def cut_border(schedule: Schedule, loop: str) -> list[str] | None:
    """Cut a loop at its border; return the new loops, None if there is no border.

    Those with little work stay as they are, and are not among them.
    """
    border = border_of(schedule.for_loop(loop))
    if border is None or len(loop_names(schedule.kernel)) > MOST_LOOPS:
        return None
    work = {part: cost(schedule.loop(part)) for part in schedule.split_border(loop, *border)}
    return [part for part in work if LITTLE * work[part] >= sum(work.values())]

"""Matrices of few columns that are reduced along their columns, such as a softmax of pairs.

A row has fewer elements than a machine vector has lanes. As rows follow each other in memory, some
of them fill a vector: each loop over rows is cut into as many, and its inner half and the loop over
columns become axes of one vector. What a reduction carries is folded after it.
"""

from __future__ import annotations

from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import extent_of
from ....dialects.loop.ops import ForOp
from .accesses import Stride, accesses, bytes_apart, dependents, lanes_for, stride
from .schedule import Schedule

FEWEST = 4
"""Chunks of rows; fewer are not worth the fold."""


def schedule_narrow_rows(schedule: Schedule, name: str) -> str | None:
    """Vectorise a loop over few columns with the rows in it; None if that does not fit."""
    columns = schedule.for_loop(name)
    size, lanes = extent_of(columns), lanes_for(schedule.target, columns)
    loops = [op for op in columns.body.block.ops if isinstance(op, ForOp)]
    if size is None or size < 2 or lanes % size or lanes // size < 2:
        return None
    rows = lanes // size
    if not any(loop.is_reduction for loop in loops):
        return None
    if not all(_follows(loop, columns, size, rows) for loop in loops):
        return None
    names = [loop.loop_name.data for loop in loops]
    inner = [schedule.split(loop, rows).inner for loop in names]
    schedule.vectorize(*inner, name)
    return f"vectors of {rows} rows of {size} elements"


def _follows(loop: ForOp, columns: ForOp, size: int, rows: int) -> bool:
    """Whether the elements of each access to rows are next to each other in memory."""
    extent = extent_of(loop)
    if extent is not None and extent < FEWEST * rows:
        return False
    if any(op.regions for op in loop.body.block.ops) or loop.over_entries:
        return False
    if not (loop.is_joinable if loop.results else loop.kind.data == LoopKind.PARALLEL):
        return False
    along = dependents(loop)
    return all(
        stride(access, loop.variable, along) == Stride.INVARIANT
        or bytes_apart(access, loop) == size * (bytes_apart(access, columns) or 0) > 0
        for access in accesses(loop)
    )

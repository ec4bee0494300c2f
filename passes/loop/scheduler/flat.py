"""Short rows that follow each other in memory: one loop over the elements of all of them.

A row of 3 elements fills only a part of a vector. Where nothing tells rows apart, as in elementwise
operators on buffers of one shape, vectors go across rows, as if the buffers had one dimension. So
do the lanes of products that read and write an image place by place.
"""

from __future__ import annotations

from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp, LoadOp, StoreOp
from .accesses import elements_apart, lanes_for
from .schedule import Schedule

LONGEST = 4
"""Rows of this many vectors and more lose little by the last one, which is not full."""


def fuse_rows(schedule: Schedule, nest: str) -> str | None:
    """Fuse loops over short rows with those around them; return the outermost loop, or None."""
    loops, fused = perfect_nest(schedule.for_loop(nest)), None
    if sum(extent_of(loop) != 1 for loop in loops) < 2:
        return None
    while len(loops) > 1:
        *_, outer, inner = loops
        size, lanes = extent_of(inner), lanes_for(schedule.target, inner)
        if size is None or size >= LONGEST * lanes or size % lanes == 0:
            break
        if not _continues(outer, inner, size):
            break
        name = schedule.fuse(outer.loop_name.data, inner.loop_name.data)
        fused = name if outer is loops[0] else nest
        loops = perfect_nest(schedule.for_loop(fused))
    return fused


def _continues(outer: ForOp, inner: ForOp, size: int) -> bool:
    """Whether each access goes on from row to row, and nothing else depends on the row."""
    if any(loop.kind.data != LoopKind.PARALLEL for loop in (outer, inner)):
        return False
    apart = {loop: n for loop, n in ((outer, size), (inner, 1)) if extent_of(loop) != 1}
    return all(
        isinstance(access := use.operation, LoadOp | StoreOp)
        and all(elements_apart(access, loop.variable) == n for loop, n in apart.items())
        for used in apart
        for use in used.variable.uses
    )

"""Reductions along memory: sums, maxima and dot products of rows.

The reduction is cut into chunks of some vectors, the inner half becomes an axis of partial
accumulators, and the remainder is cut again into a shorter vector as long as that pays off. A short
row of several that are reduced together becomes an axis as a whole: it is folded once, after all.
"""

from __future__ import annotations

from ....dialects.loop.ops import ForOp
from .accesses import Stride, accesses, dependents, is_expensive, lanes_for, stride
from .cascades import cascade_sums
from .schedule import Schedule

VECTORS = 4
"""Independent accumulators, which hide the latency of an addition."""
SHORTEST = 4
"""A vector of fewer lanes is not worth its fold."""
ROW_VECTORS = 8
"""A row of at most this many vectors may be an axis as a whole."""


def schedule_row(schedule: Schedule, name: str) -> str | None:
    """Vectorise a contiguous reduction; return what was done, None if it does not fit."""
    loop = schedule.loop(name)
    if not loop.is_joinable or loop.over_entries:
        return None
    if any(op.regions for op in loop.body.block.ops):
        return None
    dependent = dependents(loop)
    strides = {stride(access, loop.variable, dependent) for access in accesses(loop)}
    if Stride.OTHER in strides or Stride.UNIT not in strides:
        return None
    target = schedule.target
    lanes = lanes_for(target, loop)
    vectors = target.interleaved_vectors if is_expensive(loop) else VECTORS
    vectors = schedule.knobs.vectors or vectors
    widths = [lanes * vectors, lanes]
    size = schedule.extent(name)
    most = vectors if is_expensive(loop) else ROW_VECTORS
    whole = size is not None and SHORTEST <= size <= lanes * most
    if whole and _is_one_of_several(loop) and schedule.takes(schedule.vectorize, name):
        return f"rows of {size} elements are accumulated as a whole"
    if size is not None:
        widths = [1 << bit for bit in reversed(range((lanes * vectors).bit_length()))]
    left, used = name, list[int]()
    for width in dict.fromkeys(widths):
        rest = schedule.extent(left)
        if width < SHORTEST or (rest is not None and rest < width):
            continue
        parts = schedule.split(left, width)
        schedule.vectorize(parts.inner)
        cascade_sums(schedule, [parts.outer])
        used.append(width)
        if len(parts.inners) == 1:
            break
        left = parts.inners[1]
    return f"partial accumulators in {used} lanes" if used else None


def _is_one_of_several(loop: ForOp) -> bool:
    """Whether a reduction may be the body of another one of several iterations."""
    around = loop.parent_op()
    if not isinstance(around, ForOp) or not around.is_reduction:
        return False
    return around.body.block.first_op is loop

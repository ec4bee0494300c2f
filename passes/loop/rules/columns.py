"""Rows that are followed element by element, such as cumulative sums of rows: several at a time.

Each step waits for the one before it, and no access is contiguous but along the steps. Columns of
several rows are staged, by squares that are transposed in registers, so that the rows are lanes.
"""

from __future__ import annotations

from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import loops_in
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp
from .accesses import lanes_for, power_of_two_up_to
from .lanes import SQUARE, lane_loop, schedule_transpose
from .steps import Schedule
from .thread_tiles import cut_thread_tiles

COLUMNS = 64
"""How many columns are staged at a time: 4 KiB of single precision in each buffer."""
FEWEST = 4
"""Fewer rows are not worth it."""


def schedule_columns(schedule: Schedule, nest: str) -> str | None:
    """Stage columns of several rows; return what was done, None if the nest does not fit."""
    loops = perfect_nest(schedule.for_loop(nest))
    if loops[-1].kind.data != LoopKind.PARALLEL or lane_loop(loops) is not None:
        return None
    row = loops[-1].loop_name.data
    rows = _stage(schedule, row, min(SQUARE, lanes_for(schedule.target, loops[-1])))
    if rows is None:
        return None
    outermost = rows[1] if row == nest else nest
    schedule.attempt(lambda: cut_thread_tiles(schedule, outermost))
    return f"columns of {rows[0]} rows at a time"


def _stage(schedule: Schedule, row: str, most: int) -> tuple[int, str] | None:
    """Stage columns of up to `most` rows at a time; return how many, and the loop around that."""
    loop = schedule.for_loop(row)
    steps, size = loop.body.block.last_op, schedule.extent(row)
    lanes = most if size is None else min(most, power_of_two_up_to(size))
    if not isinstance(steps, ForOp) or lanes < FEWEST:
        return None
    length = schedule.extent(steps.loop_name.data)
    if length is not None and length < lanes:
        return None
    parts = schedule.split(row, lanes)
    columns = COLUMNS if length is None else min(COLUMNS, length // lanes * lanes)
    schedule.stage_columns(parts.inner, columns)
    for name in _parallel(schedule.for_loop(parts.outer)):
        if schedule_transpose(schedule, name) is None:
            schedule.vectorize(name)
    for left in parts.inners[1:]:
        schedule.attempt(lambda left=left: _stage(schedule, left, lanes // 4))
    return lanes, parts.outer


def _parallel(loop: ForOp) -> list[str]:
    """The outermost parallel loops in another one."""
    inner = [op for op in loops_in(loop.body.block) if op.kind.data == LoopKind.PARALLEL]
    return [op.loop_name.data for op in inner if op.parent_op() not in inner]

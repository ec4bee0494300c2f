"""Rows that are followed element by element, such as cumulative sums of rows: several at a time.

Each step waits for the one before it, and no access is contiguous but along the steps. Columns of
several rows are staged, by squares that are transposed in registers, so that the rows are lanes.

Where the accesses are contiguous along the rows instead, as for cumulative sums of columns, rows
are lanes already. If there are more of them than registers hold, and they do not stay in a cache,
what they carry is kept in a buffer, so that memory is read from its beginning to its end.
"""

from __future__ import annotations

from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import extent_of, loops_in
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp
from .accesses import lanes_for, power_of_two_up_to, widest_bits
from .lanes import SQUARE, WALKED_VECTORS, lane_loop, schedule_lanes, schedule_transpose
from .schedule import Schedule
from .thread_tiles import cut_thread_tiles

COLUMNS = 64
"""How many columns are staged at a time: 4 KiB of single precision in each buffer."""
FEWEST = 4
"""Fewer rows are not worth it."""
LONGEST = 4096
"""Rows whose carried values have more elements leave too little of the first cache."""


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
    squares = False
    for name in _parallel(schedule.for_loop(parts.outer)):
        if schedule_transpose(schedule, name) is None:
            schedule.vectorize(name)
        else:
            squares = True
    if not squares:
        return None
    for left in parts.inners[1:]:
        schedule.attempt(lambda left=left: _stage(schedule, left, lanes // 4))
    return lanes, parts.outer


def schedule_carried_rows(schedule: Schedule, nest: str) -> str | None:
    """Carry values of all rows in a buffer; return what was done, None if that does not pay.

    Threads have parts of the rows instead, where nothing else can be divided among them.
    """
    loops = perfect_nest(schedule.for_loop(nest))
    rows, steps = loops[-1], loops[-1].body.block.last_op
    if lane_loop([rows]) is None or not isinstance(steps, ForOp):
        return None
    if schedule.threads > 1 and len(loops) == 1:
        return None
    size, length = extent_of(rows), extent_of(steps)
    if size is None or length is None or size > LONGEST:
        return None
    in_registers = WALKED_VECTORS * lanes_for(schedule.target, rows)
    rows_bytes = size * length * widest_bits(rows) // 8
    if size <= in_registers or 2 * rows_bytes < schedule.target.l2_bytes:
        return None
    names = schedule.stage_columns(rows.loop_name.data, 1)
    schedule.drop_unit_loops()
    for name in names:
        if schedule.has(name) and schedule.for_loop(name).kind.data == LoopKind.PARALLEL:
            schedule_lanes(schedule, name)
    if len(loops) > 1:
        schedule.attempt(lambda: cut_thread_tiles(schedule, nest))
    return f"what {size} rows carry is in a buffer"


def _parallel(loop: ForOp) -> list[str]:
    """The outermost parallel loops in another one."""
    inner = [op for op in loops_in(loop.body.block) if op.kind.data == LoopKind.PARALLEL]
    return [op.loop_name.data for op in inner if op.parent_op() not in inner]

"""Products on a device: a tile of the result for each block, and in it one for each thread."""

from __future__ import annotations

from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import only_loop, perfect_nest
from ....dialects.loop.ops import ForOp
from .schedule import Schedule

TILES = ((128, 8), (64, 4), (32, 4))
"""The edge of the tile of a block, and of that of a thread: the largest of which there are several
blocks each way, or the smallest."""
_USUAL_SIZE = 128
"""The rows or columns where their number is not known."""
PANEL = 8
"""The iterations of the reduction that a panel in shared memory is for: a sector of floats."""


def schedule_block_product(schedule: Schedule, nest: str) -> str | None:
    """Schedule a product of rows and columns; return the reason, None where it does not fit.

    Rows and columns that fill no tile become nests of their own, which stay as they are.
    """
    loops = perfect_nest(schedule.for_loop(nest))
    if len(loops) < 2 or _reduction_in(loops[-1]) is None:
        return None
    *batch, row, column = (loop.loop_name.data for loop in loops)
    least = min(_USUAL_SIZE if (n := extent_of(loop)) is None else n for loop in loops[-2:])
    edge, own = next((tile for tile in TILES if least >= 2 * tile[0]), TILES[-1])
    if least < edge:
        return None
    rows, columns = schedule.split(row, edge), schedule.split(column, edge)
    around, inside = [*batch, rows.outer, rows.inner], columns.outer
    for place in reversed(range(len(around))):
        if only_loop(schedule.for_loop(around[place]).body.block) is None:
            around[place], _ = schedule.distribute(around[place], inside)
        inside = around[place]
    names = [loop.loop_name.data for loop in perfect_nest(schedule.for_loop(inside))]
    *blocks, row, column_of_block, column = names
    rows, columns = schedule.split(row, own), schedule.split(column, edge // own)
    blocks.append(column_of_block)
    schedule.reorder(*blocks, rows.outer, columns.inner, rows.inner, columns.outer)
    schedule.bind(*blocks, level="blocks")
    schedule.bind(rows.outer, columns.inner)
    schedule.unroll(rows.inner)
    schedule.unroll(columns.outer)
    reduction = _reduction_in(schedule.for_loop(columns.outer))
    assert reduction is not None
    schedule.stage_panels(schedule.split(reduction, PANEL).outer)
    return f"a tile of {edge} x {edge} for each block, of {own} x {own} for each thread"


def _reduction_in(loop: ForOp) -> str | None:
    """The only loop in the body of another one, if it is a reduction without loops in it that fills
    a panel."""
    inner = [op for op in loop.body.block.ops if isinstance(op, ForOp)]
    if len(inner) != 1 or not inner[0].is_reduction or inner[0].over_entries:
        return None
    size = extent_of(inner[0])
    if size is not None and size < PANEL:
        return None
    if any(isinstance(op, ForOp) for op in inner[0].body.block.ops):
        return None
    return inner[0].loop_name.data

"""Products on a device: a tile of the result for each block, and in it one for each thread."""

from __future__ import annotations

from functools import partial

from ....core.dtypes import byte_size
from ....core.ir.typed import memref_type
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import only_loop, perfect_nest
from ....dialects.loop.ops import ForOp, LoadOp
from ....dialects.loop.proofs.levels import VECTOR_BYTES
from .accesses import Stride, dependents, stride
from .schedule import Schedule

TILES = ((128, 8), (64, 4), (32, 4))
"""The edge of the tile of a block, and of that of a thread: the largest of which there are several
blocks each way, or the smallest."""
_USUAL_SIZE = 128
"""The rows or columns where their number is not known."""
PANEL = 8
"""The iterations of the reduction that a panel in shared memory is for: a sector of floats."""
PART = 4
"""Those that a thread of a large tile runs at a time: with 16 bytes of each row and column, and
64 sums, it has 128 registers."""
PART_OF_VECTORS = 2
"""The same where each term of its columns is in vectors: eight values at a time."""


def schedule_block_product(schedule: Schedule, nest: str) -> str | None:
    """Schedule a product of rows and columns; return the reason, None where it does not fit.

    Rows and columns that fill no tile become nests of their own, which stay as they are.
    """
    loops = perfect_nest(schedule.for_loop(nest))
    if len(loops) < 2 or _reduction_in(loops[-1]) is None:
        return None
    *batch, row, column = (loop.loop_name.data for loop in loops)
    least = min(_USUAL_SIZE if (n := extent_of(loop)) is None else n for loop in loops[-2:])
    sums = next(op for op in loops[-1].body.block.ops if isinstance(op, ForOp)).results
    # Those of 8 bytes would take all registers of a thread with a tile of 8 x 8.
    tiles = TILES[1:] if max(byte_size(value.type) for value in sums) > 4 else TILES
    edge, own = next((tile for tile in tiles if least >= 2 * tile[0]), tiles[-1])
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
    rows, (thread, *columns) = schedule.split(row, own), _columns(schedule, column, edge, own)
    blocks.append(column_of_block)
    schedule.reorder(*blocks, rows.outer, thread, *columns[:-1], rows.inner, columns[-1])
    schedule.bind(*blocks, level="blocks")
    schedule.bind(rows.outer, thread)
    for loop in (rows.inner, *columns):
        schedule.unroll(loop)
    reduction = _reduction_in(schedule.for_loop(columns[-1]))
    assert reduction is not None
    # A larger tile of a thread leaves registers for fewer terms.
    part = 0
    if own * own > PART**2:
        part = PART_OF_VECTORS if len(columns) > 1 else PART
    panels, device = schedule.split(reduction, PANEL).outer, schedule.target.device
    ahead = partial(schedule.stage_panels, panels, part=part, ahead=1)
    if device is None or not device.copies_asynchronously or not schedule.takes(ahead):
        schedule.stage_panels(panels, part=part)
    return f"a tile of {edge} x {edge} for each block, of {own} x {own} for each thread"


def _columns(schedule: Schedule, column: str, edge: int, own: int) -> tuple[str, ...]:
    """Cut the columns of a tile; return the loop over threads, and those in a thread.

    A thread has vectors of neighbours where a panel has them, each of which is next to that of the
    next thread; otherwise every n-th column, since columns are rows of the panel then. In both
    cases what neighbours read at a time is in different banks.
    """
    loop = schedule.for_loop(column)
    moving = dependents(loop)
    loads = (op for op in _loads(loop) if stride(op, loop.variable, moving) is Stride.UNIT)
    if (load := next(loads, None)) is None:
        columns = schedule.split(column, edge // own)
        return columns.inner, columns.outer
    lanes = min(own, VECTOR_BYTES // byte_size(memref_type(load.buffer).element_type))
    if lanes == own:
        columns = schedule.split(column, own)
        return columns.outer, columns.inner
    vectors = schedule.split(column, edge * lanes // own)
    columns = schedule.split(vectors.inner, lanes)
    return columns.outer, vectors.outer, columns.inner


def _loads(loop: ForOp) -> list[LoadOp]:
    """The loads in the reduction of a loop."""
    inner = next(op for op in loop.body.block.ops if isinstance(op, ForOp))
    return [op for op in inner.walk() if isinstance(op, LoadOp)]


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

"""Rows of a product that are read again: a softmax after a dense layer of few columns.

Such a kernel computes row by row: the first nest in the loop over rows fills a local buffer with
one row of the product, the others read it. A register tile needs several rows. So the loop is cut
into tiles of rows, and each tile is distributed over two loops: a contraction that fills a buffer
for all rows of the tile, and a loop for the rest of the work on each row, which finds the buffer in
the first-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....core.ir.typed import memref_type
from ....dialects.loop.loops import extent_of, loops_in
from ....dialects.loop.nests import body_of, perfect_nest
from ....dialects.loop.ops import ForOp, LocalOp, StoreOp
from ..steps.prefetch import bits_of
from .accesses import entry_loops, estimated, lanes_for
from .cascades import cascade_sums
from .contraction import (
    PANELS,
    Roles,
    bytes_between_rows,
    cut_rows,
    pack_panels,
    roles_of,
    sink_all,
    tuned_tile,
)
from .panels import prefetch_rows
from .register_tile import RegisterTile
from .schedule import Schedule
from .thread_tiles import cut_thread_tiles
from .work import PARALLEL_WORK, TILE_WORK

IN_CACHE = 2
"""The buffer for the rows of a tile takes at most this fraction (1/n) of the first-level cache."""
LARGE = 4
"""In register tiles. Tiles this large use a divisor of the row count, so there is no tail nest."""
MANY = 1 << 20
"""A number of rows for which the largest register tile is best."""


@dataclass(frozen=True)
class StagedRows:
    """A nest whose rows are computed tile by tile."""

    loops: Sequence[str]
    """The loops around a row, that over rows last."""
    roles: Roles
    """The roles of the loops in the contraction; its lane loop fills the buffer."""
    tile: RegisterTile
    """The register tile for many rows."""
    height: int
    """The rows of a tile that stays in the cache."""
    columns: int
    lanes: int
    """The elements of a vector."""
    apart: int | None
    """The distance in bytes between rows of the first operand, if known."""


def staged_rows(schedule: Schedule, nest: str) -> StagedRows | None:
    """The rows of a contraction that a nest stages, None if there are none."""
    loops = perfect_nest(schedule.for_loop(nest))
    if entry_loops(loops[-1]):
        return None  # its rows are balanced by their entries
    fill = _filled_row(loops[-1])
    roles = None if fill is None else roles_of(schedule.kernel, [*loops, fill])
    if fill is None or roles is None or roles.lane != fill.loop_name.data:
        return None
    names = [loop.loop_name.data for loop in loops]
    columns = extent_of(fill)
    if roles.row != names[-1] or columns is None or columns < 2 or extent_of(loops[-1]) == 0:
        return None
    lanes, apart = lanes_for(schedule.target, fill), bytes_between_rows(schedule, roles.row)
    tile = tuned_tile(schedule, lanes, MANY, columns, apart)
    height = _rows_of_a_tile(schedule, loops, fill, tile.rows)
    return StagedRows(names, roles, tile, height, columns, lanes, apart)


def _filled_row(row: ForOp) -> ForOp | None:
    """The nest that fills a local buffer for a row by a sum, before others read it."""
    body = body_of(row)
    buffers = [op.result for op in body if isinstance(op, LocalOp)]
    for op in body[:-1] if buffers else ():
        if isinstance(op, ForOp) and op.is_plain:
            stores = [inner for inner in op.walk() if isinstance(inner, StoreOp)]
            sums = any(inner.is_reduction for inner in loops_in(op.body.block))
            fills = sums and all(store.buffer in buffers for store in stores)
            return op if fills and len(perfect_nest(op)) == 1 else None
    return None


def schedule_staged_rows(schedule: Schedule, staged: StagedRows) -> str:
    """Cut the rows into tiles, and give the contraction of each its register tile.

    The nests that read what it fills are scheduled before.
    """
    roles, row, tile = staged.roles, staged.loops[-1], staged.tile
    rows, sizes = schedule.extent(row), [schedule.extent(name) for name in roles.reductions]
    panels = schedule.split(roles.lane, tile.columns, "mask")
    pack_panels(schedule, roles, panels.outer, panels.inner)
    if staged.columns <= tile.columns and 1 not in (rows, *sizes):
        # A single panel needs no loop in any of the parts.
        schedule.drop_unit_loops()
    fill = panels.outer if schedule.has(panels.outer) else panels.inner
    outermost, inside = staged.loops[0], (fill, panels.inner, *roles.reductions)
    nests = [(row, *inside)]
    if rows is None or rows > staged.height:
        tiles = schedule.split(row, staged.height, "mask" if rows is None else "peel")
        nests = tiles.nests(*inside)
        outermost = tiles.outer if outermost == row else outermost
    sums = [name for nest in nests for name in _contract(schedule, staged, *nest)]
    if len(roles.reductions) == 1:
        prefetch_rows(schedule, roles.reductions[0], roles.packed)
    cascade_sums(schedule, sums)
    if schedule.has(outermost):
        schedule.attempt(lambda: cut_thread_tiles(schedule, outermost))
    return f"{staged.height} rows of {staged.columns} columns at a time stay in the cache"


def _rows_of_a_tile(schedule: Schedule, nest: Sequence[ForOp], fill: ForOp, height: int) -> int:
    """How many rows are computed at a time: some register tiles of `height` rows.

    All of them if they are few; otherwise as many as stay in the cache and are enough work for a
    thread.
    """
    sizes = [extent_of(loop) for loop in (fill, *loops_in(fill.body.block))]
    of_row = estimated(sizes, least=1)
    store = next(op for op in fill.walk() if isinstance(op, StoreOp))
    kind = memref_type(store.buffer)
    row_bytes = math.prod(kind.get_shape()) * bits_of(kind) // 8
    cached = schedule.target.l1_bytes // IN_CACHE // row_bytes
    counts = [extent_of(loop) for loop in nest]
    known = [count for count in counts if count is not None]
    small = len(known) == len(counts) and of_row * math.prod(known) < PARALLEL_WORK
    if small and known[-1] <= cached:
        return known[-1]
    wanted = int(TILE_WORK * schedule.knobs.tile_scale) // of_row
    most = height * max(1, min(cached, wanted) // height)
    if counts[-1] is None or most < LARGE * height:
        return most
    return next((n for n in range(most, most // 2, -1) if counts[-1] % n == 0), most)


def _contract(
    schedule: Schedule, staged: StagedRows, rows: str, fill: str, lane: str, *reductions: str
) -> Sequence[str]:
    """Make a contraction of a tile of rows; return the innermost reductions.

    Args:
        staged: the nest.
        rows: the loop over the rows of the tile.
        fill: the loop in it that fills the buffer for a row: over panels, or one panel only.
        lane: the loop in a panel.
        reductions: those of the contraction.
    """
    first, _ = schedule.distribute(rows, fill)
    sink_all(schedule, first)
    if fill != lane and (schedule.extent(fill) or 0) >= PANELS:
        schedule.reorder(fill, first, lane)
    roles = replace(staged.roles, row=first, reductions=reductions)
    count = schedule.extent(first)
    tile = tuned_tile(schedule, staged.lanes, count, staged.columns, staged.apart)
    return cut_rows(schedule, roles, first, lane, tile).reductions

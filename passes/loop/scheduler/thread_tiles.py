"""Tiles for threads: the iterations of a nest in parts of about the same cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import extent_of
from ....dialects.loop.ops import ForOp
from ....dialects.loop.ops_partition import MOST_WEIGHT
from ..steps.balance import is_row_loop
from .accesses import (
    UNKNOWN_EXTENT,
    cost,
    entries_of_a_row,
    entry_loops,
    lanes_for,
    repetitions,
)
from .schedule import Schedule

TILES = 16
"""A nest is cut into at least this many tiles if they stay large enough, to balance threads."""
LARGEST = 50_000
"""The highest cost of a tile, in vector instructions: some 5 us."""
SMALLEST = 12_500
"""The lowest cost of a tile, as a thread has to fetch it and its data."""
LEAST_TILES = 4
"""Fewer tiles than this are not worth parallelising."""
ROW_COST = 32
"""The cost of a sparse row, in instructions: mostly a mispredicted branch."""


def cut_thread_tiles(schedule: Schedule, nest: str) -> str | None:
    """Cut a nest into tiles for threads; return the loop inside of a tile."""
    loop = schedule.for_loop(nest)
    if loop.kind.data != LoopKind.PARALLEL:
        return None
    size = extent_of(loop)
    iteration = max(1, cost(loop) // (UNKNOWN_EXTENT if size is None else max(1, size)))
    lanes = lanes_for(schedule.target, loop)
    # Those over rows of sparse matrices.
    reductions = [op for op in entry_loops(loop) if is_row_loop(loop, op)]
    iteration += ROW_COST * lanes * len(reductions)
    scale = schedule.knobs.tile_scale * lanes / iteration
    smallest, largest = (max(1, int(n * scale)) for n in (SMALLEST, LARGEST))
    chunk = math.isqrt(smallest * largest) if size is None else min(size // TILES, largest)
    chunk = max(chunk, smallest)
    if size is not None and size < LEAST_TILES * chunk:
        return None
    if reductions:
        name, weight = _weighed(loop, reductions, iteration, lanes)
        parts = schedule.balance(nest, name, chunk, weight)
    else:
        parts = schedule.split(nest, chunk, "mask")
    schedule.tiles(parts.outer)
    return parts.inner


def _weighed(loop: ForOp, reductions: Sequence[ForOp], row: int, lanes: int) -> tuple[str, int]:
    """The reduction whose entries are balanced, and the rest of the cost of a row, in entries.

    Reductions over the rows of one matrix have the same entries: any of them stands for all. Of
    several matrices, the one with the most expensive entries counts. `row` is the cost of a row.
    """
    entries: Counter[SSAValue] = Counter()
    for op in reductions:
        entries[op.matrix[0]] += _cost_of_entry(loop, op, lanes)
    ((indptr, entry),) = entries.most_common(1)
    counted = [op for op in reductions if op.matrix[0] is indptr]
    rest = row - sum(entries_of_a_row(op) * _cost_of_entry(loop, op, 1) for op in counted)
    weight = -(-rest // (lanes * max(1, entry)))
    return counted[0].loop_name.data, min(max(1, weight), MOST_WEIGHT)


def _cost_of_entry(loop: ForOp, reduction: ForOp, lanes: int) -> int:
    """The cost of an entry in an iteration of the loop, in vectors of `lanes` lanes."""
    times = repetitions(reduction, loop)
    return -(-times // lanes) * sum(cost(op) for op in reduction.body.block.ops)

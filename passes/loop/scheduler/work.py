"""Threads of a contraction: the loop that is cut into tiles for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from .accesses import estimated, widest_bits
from .register_tile import RegisterTile
from .schedule import Schedule

PANELS = 4
"""With at least this many panels, the loop over them is outermost and parallel."""
PARALLEL_WORK = 1_000_000
"""Nests with fewer multiplications are not parallelised."""
FEWEST_MULTIPLIED, FEWEST_STREAMED = 4, 8
"""Fewer rows take as long as this many: loading the panels takes that long, and longer where they
take more than half of the second-level cache, which has others in it as well."""
REGION_WORK = 250_000
"""The fewest multiplications of a loop that is parallelised inside of others, which begin it anew:
an image of few blocks."""
TILE_WORK = 100_000
"""The fewest multiplications of a thread's tile if rows are parallelised."""
STREAMS = 32
"""The number of thread tiles if panels are prefetched: each thread reads its own stream."""


@dataclass(frozen=True)
class ContractionWork:
    """The multiplications of a contraction, unknown sizes estimated."""

    of_row: int
    """Those of one row."""
    whole: int
    """Those of all rows."""
    is_small: bool
    """Whether the nest is known to be too small for threads."""
    has_unit: bool
    """Whether one of the loops is known to run once."""


def work_of(
    schedule: Schedule,
    in_a_row: Sequence[str],
    products: int,
    rows: int | None,
    outer: Sequence[str],
) -> ContractionWork:
    """The work of a contraction.

    Args:
        in_a_row: the loops along the lanes and the reductions.
        products: how many a step of the reductions takes for each lane.
        rows: the number of rows, if known.
        outer: the loops around those.
    """
    sizes = [schedule.extent(name) for name in in_a_row] + [products]
    of_row = estimated(sizes, least=1)
    around = [schedule.extent(name) for name in outer]
    weights = of_row * estimated(around) * widest_bits(schedule.loop(in_a_row[0])) // 8
    streams = 2 * weights > schedule.target.l2_bytes
    fewest = FEWEST_STREAMED if streams else FEWEST_MULTIPLIED
    least = None if rows is None else max(rows, fewest)
    sizes += [least, *around]
    is_small = None not in sizes and math.prod(cast(list[int], sizes)) < PARALLEL_WORK
    return ContractionWork(of_row, of_row * estimated([least]), is_small, 1 in sizes)


def parallel_panels(
    schedule: Schedule, nest: Sequence[str], work: ContractionWork, count: int | None
) -> tuple[str, str]:
    """The loop over panels, and the loop to parallelise, which may run over groups of panels.

    Args:
        nest: the loops from outside to that over panels.
        work: the work of the nest.
        count: how many panels there are if they are streamed from memory, else None.
    """
    panel, parallel = nest[-1], _loop_to_parallelise(schedule, nest, work.whole)
    several = count // STREAMS if count is not None and parallel == panel else 1
    if several <= 1:
        return panel, parallel
    # Split before the row cases multiply the nests.
    groups = schedule.split(panel, several, "mask")
    return groups.inner, groups.outer


def _loop_to_parallelise(schedule: Schedule, nest: Sequence[str], work: int) -> str:
    """The first loop with enough iterations and work for threads: an image has a batch of 1.

    Args:
        nest: loops from outside to inside; the last may have become an axis.
        work: the multiplications in the last of them.
    """
    sizes = [schedule.extent(name) if schedule.has(name) else 1 for name in nest]
    whole = estimated(sizes[:-1]) * work
    for position, size in enumerate(sizes):
        inside = estimated(sizes[position:-1]) * work
        enough = whole >= PARALLEL_WORK and inside >= REGION_WORK
        if size is not None and size >= PANELS and enough:
            return nest[position]
    # A symbolic batch may be 1, and then the rows of its image are all that there is.
    inner = range(1, len(nest) - 1)
    return next((nest[n] for n in inner if sizes[n] is None and work >= TILE_WORK), nest[0])


def parallel_rows(
    schedule: Schedule, outer: Sequence[str], tiles: str, work: ContractionWork, tile: RegisterTile
) -> str:
    """The loop to parallelise without a loop over panels: several tiles of rows at a time.

    Args:
        outer: the loops around those tiles.
        tiles: the loop over them.
        work: the work of the nest.
        tile: the register tile.
    """
    parallel = _loop_to_parallelise(schedule, [*outer, tiles], work.whole)
    several = -(-int(TILE_WORK * schedule.knobs.tile_scale) // (tile.rows * work.of_row))
    if parallel in outer or several < 2 or not schedule.may_parallelise(parallel):
        return parallel
    return schedule.split(parallel, several, "mask").outer

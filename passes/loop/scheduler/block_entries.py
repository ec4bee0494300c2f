"""Rows of sparse matrices on a device: a block of threads for each, mostly a warp.

The threads share the entries of the row, whose sums they join by shuffles. Where an iteration of
the row has loops, such as one over features, threads are along those: neighbours read neighbours,
and the columns and weights of entries are computed once, 32 at a time.
"""

from __future__ import annotations

from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp
from ....dialects.loop.proofs.levels import WARP
from .accesses import entry_loops
from .schedule import Schedule

MOST_THREADS = 1024
"""The most features of which each has a thread of its own."""


def schedule_block_entries(schedule: Schedule, nest: str) -> str | None:
    """Share rows of a sparse matrix among threads; return the reason, None where it does not fit.

    Features of which few are in a nest with the rows stay a thread each: several rows are in a warp
    then.
    """
    around = perfect_nest(schedule.for_loop(nest))
    entries = entry_loops(around[0])
    if not entries:
        return None
    inner = [op for op in around[-1].body.block.ops if isinstance(op, ForOp)]
    is_row = any(around[-1].variable in op.bounds for op in entries)
    if not is_row and not any(op.is_plain for op in inner):
        if (extent_of(around[-1]) or 0) < WARP or len(around) < 2:
            return None
        inner = [around.pop()]
    row = around[-1].loop_name.data
    for name in [op.loop_name.data for op in inner if op.over_entries]:
        schedule.count_entries(name)
    shared = [op.loop_name.data for op in inner if op.is_plain]
    widths = [_stage_entries(schedule, name) for name in shared]
    threads = -(-max([WARP, *(width for width, _ in widths)]) // WARP) * WARP
    schedule.share_rows(row, threads)
    for _, chunks in widths:
        if chunks is not None:
            schedule.stage_panels(chunks)
    return f"a block for each {row}, whose {threads} threads share its entries"


def _stage_entries(schedule: Schedule, loop: str) -> tuple[int, str | None]:
    """Cut the only reduction over entries in a loop along features into chunks.

    Return the number of features, and the loop over chunks; 0 and None where it does not fit.
    """
    features = schedule.for_loop(loop)
    inner = [op for op in features.body.block.ops if isinstance(op, ForOp)]
    size = extent_of(features)
    if size is None or not 0 < size <= MOST_THREADS or len(inner) != 1:
        return 0, None
    if not inner[0].over_entries or not inner[0].is_joinable:
        return 0, None
    name = inner[0].loop_name.data
    schedule.count_entries(name)
    schedule.hoist(loop)
    schedule.cascade(name, WARP)
    chunks = [op for op in schedule.for_loop(loop).body.block.ops if isinstance(op, ForOp)]
    return size, chunks[0].loop_name.data

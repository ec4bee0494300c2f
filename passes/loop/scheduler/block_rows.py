"""Rows on a device, such as those of a softmax: a block of threads for each."""

from __future__ import annotations

import math

from xdsl.ir.affine import AffineDimExpr

from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp, LoadOp, LocalOp
from ....dialects.loop.proofs.levels import WARP
from .schedule import Schedule

LONG = 1024
"""From this length on, a row has several warps."""
WARPS = 4


def schedule_block_rows(schedule: Schedule, nest: str) -> str | None:
    """Share the rows of a nest among threads; return the reason, None where it does not fit.

    A row is reduced, and what else is done with it is in other loops; or it is only reduced, and
    its elements are neighbours. An iteration with local buffers, such as a tile of queries of an
    attention, is shared as well: in one thread, they would be in its local memory.
    """
    last = perfect_nest(schedule.for_loop(nest))[-1]
    inner = [op for op in last.body.block.ops if isinstance(op, ForOp)]
    if any(isinstance(op, LocalOp) for op in last.body.block.ops):
        work = [math.prod(extent_of(loop) or 1 for loop in perfect_nest(op)) for op in inner]
        if max(work, default=0) >= WARP and all(op.is_plain for op in inner):
            schedule.share_rows(last.loop_name.data, WARP)
            return f"a block for each {last.loop_name.data}, whose buffers are shared memory"
    sizes = [extent_of(op) or 0 for op in inner if op.is_reduction and not op.over_entries]
    if max(sizes, default=0) < WARP or (len(inner) == 1 and not _is_contiguous(inner[0])):
        return None
    threads = WARP if max(sizes) < LONG else WARPS * WARP
    schedule.share_rows(last.loop_name.data, threads)
    return f"a block for each {last.loop_name.data}, whose sums have {threads} parts"


def _is_contiguous(reduction: ForOp) -> bool:
    """Whether a reduction reads neighbouring places of inputs."""
    loads = [op for op in reduction.walk() if isinstance(op, LoadOp)]
    reads = [op for op in loads if reduction.variable in op.indices]
    last = [op.map.data.results[-1] for op in reads]
    return bool(reads) and all(
        isinstance(expr, AffineDimExpr) and op.indices[expr.position] is reduction.variable
        for op, expr in zip(reads, last, strict=True)
    )

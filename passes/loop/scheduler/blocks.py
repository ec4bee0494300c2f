"""Nests of products in local buffers: attention.

An iteration of the parallel loops around them is much work, and there may be few of any one loop: a
batch of 1, 12 heads, 2 tiles of queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....core.ir.typed import memref_type
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import extent_of, loops_in
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp, LocalOp
from ..steps.prefetch import bits_of
from .schedule import Schedule
from .thread_tiles import cut_thread_tiles

FEWEST_ITERATIONS = 8
"""A loop of so many iterations has one or more for each thread."""


def schedule_blocks(schedule: Schedule, nest: str) -> tuple[str, Sequence[str]] | None:
    """Parallelise a nest of products in local buffers.

    Return where the work is done, and the loop inside of a thread's tile.
    """
    loops = perfect_nest(schedule.for_loop(nest))
    if not _has_blocks(loops[-1]) or any(op.kind.data != LoopKind.PARALLEL for op in loops):
        return None
    names = [op.loop_name.data for op in loops]
    # The first loop with enough iterations, or else that with the most of which it is known.
    known = {loop: size for loop in loops if (size := extent_of(loop)) is not None}
    enough = [loop for loop, size in known.items() if size >= FEWEST_ITERATIONS]
    unknown = [loop for loop in loops if loop not in known]
    first = [*enough, *unknown, max(loops, key=lambda loop: known.get(loop, 0))][0].loop_name.data
    if first != names[0]:
        schedule.reorder(first, *(name for name in names if name != first))
    # The local buffers of known sizes in the body of the innermost loop.
    kinds = [memref_type(op.result) for op in loops[-1].body.block.ops if isinstance(op, LocalOp)]
    local = sum(math.prod(k.get_shape()) * bits_of(k) for k in kinds if k.has_static_shape()) // 8
    reason = f"a tile and its blocks are in {local >> 10} KiB of local buffers"
    return reason, [schedule.attempt(lambda: cut_thread_tiles(schedule, first)) or first]


def _has_blocks(tile: ForOp) -> bool:
    """Whether the body of a loop has local buffers, and sums in two loops or more."""
    body = tile.body.block
    if not any(isinstance(op, LocalOp) for op in body.ops):
        return False
    inside = (op for op in loops_in(body) if op.is_plain)
    nests = (perfect_nest(op) for op in inside)
    return any(
        len(nest) > 1
        and any(isinstance(op, ForOp) and op.is_reduction for op in nest[-1].body.block.ops)
        for nest in nests
    )

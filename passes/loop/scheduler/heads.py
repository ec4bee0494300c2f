"""Rows of several heads over the entries of a row: the heads become rows of one block.

An entry has a weight for each head, and each head has columns of its own. As one block, the entries
are visited once for all heads, and what an entry has for each head, such as the exponential of a
score, is computed for all heads in one vector. If registers do not hold that many accumulators,
there is a block for each group of heads.
"""

from __future__ import annotations

from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp
from ..steps.balance import is_row_loop
from .accesses import entry_loops, lanes_for
from .lanes import lane_loop, unroll_entries
from .schedule import Schedule

REGISTERS = 2
"""The accumulators of a block take at most this fraction (1/n) of the registers."""


def schedule_heads(schedule: Schedule, nest: str) -> str | None:
    """Vectorise two loops around entries, the inner one as lanes; return so, or None."""
    loops = perfect_nest(schedule.for_loop(nest))
    inside = [op for op in loops[-1].body.block.ops if isinstance(op, ForOp) and op.is_plain]
    head, lane = (loops[-1], inside[0]) if len(inside) == 1 else [None, *loops][-2:]
    if head is None or lane_loop([lane]) is None or not entry_loops(lane):
        return None
    if any(is_row_loop(head, op) for op in entry_loops(head)) or len(perfect_nest(lane)) > 1:
        return None
    heads, size = (schedule.extent(loop.loop_name.data) for loop in (head, lane))
    if heads is None or size is None or min(heads, size) < 2:
        return None
    vectors = -(-size // lanes_for(schedule.target, lane))
    most = schedule.target.vector_registers // (REGISTERS * vectors)
    if most < 2:
        return None
    names, sums = [lane.loop_name.data], [op.loop_name.data for op in entry_loops(lane)]
    names += [op.loop_name.data for op in entry_loops(head)]
    groups = [(head.loop_name.data, *names)]
    together = -(-heads // -(-heads // most))
    if together < heads:
        groups = schedule.split(head.loop_name.data, together, "even").nests(*names)
    for rows, lanes, *entries in groups:
        count = (schedule.extent(rows) or 1) * vectors
        schedule.vectorize(rows, lanes)
        for name, entry in zip(names[1:], entries, strict=True):
            unroll_entries(schedule, [entry], count if name in sums else 1)
    return f"{together} heads of {size} elements are one block"

"""Rows of several heads over the entries of a row: the heads become rows of one block.

An entry has a weight for each head, and each head has columns of its own. As one block, the entries
are visited once for all heads, and what an entry has for each head, such as the exponential of a
score, is computed for all heads in one vector.
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
    vectors = heads * -(-size // lanes_for(schedule.target, lane))
    if vectors * REGISTERS > schedule.target.vector_registers:
        return None
    whole = {op.loop_name.data: vectors for op in entry_loops(lane)}
    names = {op.loop_name.data: whole.get(op.loop_name.data, 1) for op in entry_loops(head)}
    schedule.vectorize(head.loop_name.data, lane.loop_name.data)
    for name, count in names.items():
        unroll_entries(schedule, [name], count)
    return f"{heads} heads of {size} elements are one block"

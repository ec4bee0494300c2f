"""Rows that the entries of a sparse matrix read at their columns: prefetched some entries early.

An entry may read anywhere in a table that is larger than a cache. Out-of-order execution looks
ahead by some hundred instructions, which are few entries where each takes many.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX

from ....core.ir.typed import memref_type
from ..steps.prefetch import lines_of
from ..steps.prefetch_entries import reads_of_columns
from .panels import bytes_of
from .schedule import Schedule

AHEAD = 16
"""How many entries early a hint comes."""
FEWEST_LINES = 2
"""Rows of fewer cache lines take as long to prefetch as to read."""


def prefetch_columns(schedule: Schedule, entries: str) -> None:
    """Prefetch what a loop over entries reads at their columns, if that is a long row."""
    loop = schedule.loop(entries)
    for number, buffer in enumerate(schedule.kernel.inputs):
        loads = reads_of_columns(loop, buffer)
        cached = schedule.target.l2_bytes // 2
        if not loads or sum(map(lines_of, loads)) < FEWEST_LINES:
            continue
        kind = memref_type(buffer)
        if DYNAMIC_INDEX not in kind.get_shape() and bytes_of(kind) <= cached:
            continue
        schedule.takes(schedule.prefetch_entries, number, entries, AHEAD)

"""Several reductions over the entries of the same row: the row is visited once.

What they read is read once then, and so are the indices of the matrix.
"""

from __future__ import annotations

from xdsl.ir import Block

from ....dialects.loop.loops import loops_in
from ....dialects.loop.ops import ForOp
from ..merge import range_of
from .steps import Schedule


def merge_walks(schedule: Schedule) -> str | None:
    """Merge reductions over the entries of one row; return what was done, None if there are none.

    Those that need another one stay behind it.
    """
    body = schedule.kernel.body.block
    blocks = dict.fromkeys(loop.parent for loop in loops_in(body) if loop.over_entries)
    walks = [names for block in blocks if block is not None for names in _walks(block)]
    merged = [
        other
        for first, *others in walks
        for other in others
        if schedule.takes(schedule.merge, first, other)
    ]
    return "the entries of a row are visited once for several reductions" if merged else None


def _walks(block: Block) -> list[list[str]]:
    """The names of the reductions of a block over entries, by the row."""
    found: dict[object, list[str]] = {}
    for op in block.ops:
        if isinstance(op, ForOp) and op.over_entries and op.is_reduction:
            found.setdefault(range_of(op), []).append(op.loop_name.data)
    return list(found.values())

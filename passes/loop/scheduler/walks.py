"""Several reductions over the same row: the row is visited once.

What they read is read once then, and so are the indices of a sparse matrix.
"""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from ....core.ir.walks import operations_in
from ....dialects.loop.loops import loops_in
from ....dialects.loop.ops import ForOp, LoadOp
from ..steps.merge import range_of
from .schedule import Schedule


def merge_walks(schedule: Schedule) -> list[str]:
    """Merge reductions over the entries of one row, or over the same elements; say what was done.

    Those that need another one stay behind it.
    """
    done = list[str]()
    if _merge(schedule, over_entries=True):
        done.append("the entries of a row are visited once for several reductions")
    merged = False
    # Of outer reductions that become one, so may the inner ones.
    while _merge(schedule, over_entries=False):
        merged = True
    if merged:
        done.append("elements are read once for several reductions")
    return done


def _merge(schedule: Schedule, over_entries: bool) -> bool:
    """Merge the reductions of each block that visit the same; return whether there are any."""
    body = schedule.kernel.body.block
    blocks = dict.fromkeys(loop.parent for loop in loops_in(body) if loop.is_reduction)
    walks = [names for block in blocks if block for names in _walks(block, over_entries)]
    merged = False
    for names in walks:
        # Each of them becomes one with the first that it can be one with.
        left = list[str]()
        for name in names:
            if not any(schedule.takes(schedule.merge, first, name) for first in left):
                left.append(name)
        merged |= len(left) < len(names)
    return merged


def _walks(block: Block, over_entries: bool) -> list[list[str]]:
    """The names of the reductions of a block over entries, or over elements, by what they visit."""
    found: dict[object, list[str]] = {}
    for op in block.ops:
        if isinstance(op, ForOp) and op.is_reduction and op.over_entries == over_entries:
            visited = range_of(op) if over_entries else (range_of(op), _read_by(op))
            found.setdefault(visited, []).append(op.loop_name.data)
    return list(found.values())


def _read_by(loop: ForOp) -> frozenset[object]:
    """The elements that a reduction reads, by the loops in it instead of their variables."""
    numbers = {
        inner.variable: depth for depth, inner in enumerate([loop, *loops_in(loop.body.block)])
    }

    def place(operand: SSAValue) -> object:
        return numbers.get(operand, operand)

    loads = (op for op in operations_in(loop) if isinstance(op, LoadOp))
    return frozenset((op.buffer, op.map, *map(place, op.operands[1:])) for op in loads)

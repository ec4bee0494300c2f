"""Which instructions of the processor combine several steps of a sum of products."""

from __future__ import annotations

from ....core.instructions import INSTRUCTIONS, Instruction
from ....core.ir.typed import memref_type
from ....dialects.bodies import depth_of
from ....dialects.loop.loops import extent_of
from ....dialects.loop.ops import LoadOp
from ..steps.prefetch import bits_of
from ..steps.tensorize import factors_of
from .accesses import accesses, bytes_apart
from .schedule import Schedule


def instructions_for(
    schedule: Schedule, reduction: str, packed: tuple[int, ...], lanes: int
) -> list[Instruction]:
    """The instructions for a reduction, those first that combine the most.

    Their operands have to be groups in memory: one factor is packed, and the others are contiguous
    along the reduction.

    Args:
        schedule: the schedule.
        reduction: the innermost reduction.
        packed: the arguments that are packed.
        lanes: the lanes of a machine vector of what is carried.
    """
    target, loop = schedule.target, schedule.loop(reduction)
    rows = [row for row in INSTRUCTIONS.values() if depth_of(row) > 1]
    rows = [row for row in rows if any(form.lanes == lanes for form in target.forms(row))]
    size = extent_of(loop)
    if not rows or size is None:
        return []
    buffers = [schedule.kernel.inputs[number] for number in packed]
    others = [a for a in accesses(loop) if isinstance(a, LoadOp) and a.buffer not in buffers]
    if len(others) != 1 or any(
        8 * (bytes_apart(a, loop) or 0) != bits_of(memref_type(a.buffer)) for a in others
    ):
        return []
    rows = [row for row in rows if size % depth_of(row) == 0 and factors_of(loop, row) is not None]
    return sorted(rows, key=depth_of, reverse=True)

"""Kernels on a device: products and rows in blocks of threads, else iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....core.dtypes import byte_size
from ....core.ir.typed import memref_type
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import perfect_nest
from ....dialects.loop.ops import ForOp
from ....dialects.loop.proofs.in_place import sharing
from ....dialects.loop.proofs.levels import VECTOR_BYTES, is_on_device, is_scalar
from .accesses import accesses, are_vectors, dependents
from .block_convolutions import schedule_block_convolution
from .block_entries import schedule_block_entries
from .block_products import schedule_block_product
from .block_rows import schedule_block_rows
from .schedule import Schedule

BLOCK_RULES = (
    schedule_block_product,
    schedule_block_convolution,
    schedule_block_entries,
    schedule_block_rows,
)
"""The rules by which a nest is run in blocks of threads; the first one that fits."""
BLOCK = 128
"""The least threads of a nest whose threads have several elements each."""


def schedule_for_device(schedule: Schedule) -> list[str]:
    """Tile products and share rows, and bind the loops of other nests; return the reasons.

    A kernel with more at its top than independent nests, such as the sum of all elements, runs in
    one thread, unless loops of it are on the device already.
    """
    body = list(schedule.kernel.body.block.ops)
    nests = [op for op in body if isinstance(op, ForOp)]
    others = [op for op in body if not isinstance(op, ForOp)]
    divisible = nests and all(map(_is_independent, nests)) and all(map(is_scalar, others))
    if not divisible and not is_on_device(schedule.kernel):
        schedule.enclose("one")
        schedule.bind("one")
        return ["one thread, as statements are outside of parallel loops"]
    reasons: list[str] = []
    for name in [nest.loop_name.data for nest in filter(_is_independent, nests)]:
        for rule in BLOCK_RULES:
            if reason := schedule.attempt(lambda name=name, rule=rule: rule(schedule, name)):
                reasons.append(reason)
                break
    left = [op for op in schedule.kernel.body.block.ops if isinstance(op, ForOp)]
    for nest in filter(_is_independent, left):
        names: list[str] = []
        for loop in perfect_nest(nest):
            if not _is_independent(loop):
                break
            names.append(loop.loop_name.data)
        own, lanes = "", _lanes(schedule, names)
        if lanes > 1:
            parts = schedule.split(names[-1], lanes)
            names[-1], own = parts.outer, f", which has {lanes} neighbours"
            schedule.unroll(parts.inner)
        schedule.bind(*names)
        reasons.append(f"a thread for each {', '.join(names)}{own}")
    return reasons


def _lanes(schedule: Schedule, names: Sequence[str]) -> int:
    """How many neighbours along the last of some loops a thread has: those of 16 bytes, if all that
    it accesses are such vectors, or are the same for them, and there are enough threads.

    Where an output may be written over an input, loads and stores cannot change places.
    """
    kernel, loops = schedule.kernel, [schedule.for_loop(name) for name in names]
    last = loops[-1]
    if any(isinstance(op, ForOp) for op in last.body.block.ops) or sharing(kernel):
        return 1
    moving, found = dependents(last), list(accesses(last))
    along = [op for op in found if any(index in moving for index in op.indices)]
    widest = max((byte_size(memref_type(op.buffer).element_type) for op in along), default=0)
    lanes = VECTOR_BYTES // widest if widest else 1
    size = extent_of(last)
    threads = math.prod(extent_of(loop) or BLOCK for loop in loops)
    fits = size is not None and size > lanes and size % lanes == 0 and threads >= BLOCK * lanes
    if not fits or not all(are_vectors(op, last.variable, lanes) for op in along):
        return 1
    return lanes


def _is_independent(loop: ForOp) -> bool:
    return loop.is_plain and loop.kind.data is LoopKind.PARALLEL

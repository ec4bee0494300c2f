"""Serial loops that update computed places, on several threads: scatters and histograms.

Parts of the result (`own`) keep the order of updates, whatever these are, but each thread computes
all places. Copies of the result (`privatise`) divide all of the work, but have to be joined, and
are exact only for integers, maxima and minima. The costs of both are compared with that of the
serial loop, in instructions.

Where a parallel loop in the serial one has places of its own in each iteration, as an update of a
column has, threads have parts of that loop, and run the serial one for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....core.ir.typed import memref_type
from ....core.target import Target
from ....dialects.loop.attrs import LoopKind
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import body_of, perfect_nest
from ....dialects.loop.ops import ForOp, LoadOp, StoreOp
from ..steps.own import Owned, owned_by
from ..steps.prefetch import LINE_BITS, bits_of
from .accesses import accesses, cost, lanes_for, repetitions
from .schedule import Schedule
from .thread_tiles import LARGEST, cut_thread_tiles

LINE_COST = 12
"""What a line of memory costs that is read in order, or that no cache of a core has."""
LIST_COST = 6
"""What it costs to list an iteration of a part, and to find it again."""
GAIN = 1.2
"""How many times as fast it has to be to be worth the threads."""
UNKNOWN_UPDATES = 1 << 16
"""The assumed number of updates if it is unknown."""


@dataclass(frozen=True)
class _Costs:
    """What an iteration costs, and a pass over the result."""

    count: int | None
    """The number of iterations."""
    place: float
    """Computing a place."""
    update: float
    """Updating it."""
    result: float

    @property
    def serial(self) -> float:
        """The cost of all iterations."""
        return self.updates * (self.place + self.update)

    @property
    def updates(self) -> int:
        return UNKNOWN_UPDATES if self.count is None else self.count

    @property
    def chunk(self) -> int:
        """The least number of iterations for a thread."""
        return math.ceil(LARGEST / (self.place + self.update))

    def owned(self, threads: int) -> float:
        """The cost where each thread owns a part of the places."""
        each = self.place + LIST_COST + (self.place + self.update) / threads
        return self.updates * each

    def copied(self, threads: int) -> float:
        """The cost where each thread has a copy, which it fills, and that is read again."""
        joining = self.result * (2 * threads + 1)
        if self.count is None and joining > LARGEST:
            return math.inf
        return self.serial / threads + joining


def parallelise_updates(schedule: Schedule, nest: str) -> tuple[str, Sequence[str]] | None:
    """Run a serial loop that updates computed places on several threads, if that pays.

    Return what was done, and the nests that are left to schedule.
    """
    loop, threads = schedule.for_loop(nest), schedule.threads
    if threads < 2 or loop.kind.data != LoopKind.SERIAL:
        return None
    costs = _costs(schedule.target, loop, owned_by(schedule.kernel, loop))
    if costs.serial < 2 * LARGEST:
        return None
    copied, owned = costs.copied(threads), costs.owned(threads)
    each = f"an update costs {costs.update:.0f}, computing its place {costs.place:.0f}"
    made = None
    if copied < owned and copied * GAIN < costs.serial:
        made = schedule.attempt(lambda: schedule.privatise(nest, threads, costs.chunk))
    if made is not None:
        schedule.tiles(made[0])
        return f"{threads} copies are updated at the same time, and joined: {each}", made
    if owned * GAIN < costs.serial:
        part, once = schedule.own(nest, threads, costs.chunk)
        schedule.tiles(part)
        return f"each of {threads} threads updates places of its own: {each}", [once]
    return f"updates stay in order on one thread: {each}", [nest]


def merge_fills(schedule: Schedule) -> None:
    """Merge each parallel nest of the kernel with the next one, if that updates what it fills.

    What an iteration has filled is in a cache when it is updated.
    """
    before: str | None = None
    parallel = [
        op.loop_name.data
        for op in schedule.kernel.body.block.ops
        if isinstance(op, ForOp) and op.is_plain and op.kind.data == LoopKind.PARALLEL
    ]
    for name in parallel:
        if before is None or not _merge_fill(schedule, before, name):
            before = name


def _merge_fill(schedule: Schedule, first: str, second: str) -> bool:
    one, other = (schedule.for_loop(name) for name in (first, second))
    filled = {op.buffer for op in one.walk() if isinstance(op, StoreOp)}
    updated = any(op.buffer in filled for op in accesses(other))
    return updated and schedule.takes(schedule.merge, first, second)


def parallelise_inside(schedule: Schedule, nest: str) -> tuple[str, Sequence[str]] | None:
    """Run the first parallel loop that is perfectly nested in a serial one on several threads.

    Each thread runs all iterations of the serial loop, on a part of those of the parallel one.
    Return what was done, and the serial loop of a part.
    """
    loops = perfect_nest(schedule.for_loop(nest))
    if schedule.threads < 2 or loops[0].kind.data != LoopKind.SERIAL:
        return None
    names = [loop.loop_name.data for loop in loops]
    parallel = [loop.loop_name.data for loop in loops if loop.kind.data == LoopKind.PARALLEL]
    if not parallel:
        return None
    first = parallel[0]
    schedule.reorder(first, *(name for name in names if name != first))
    part = cut_thread_tiles(schedule, first)
    if part is None:
        return None
    schedule.reorder(*(part if name == first else name for name in names))
    return f'threads run "{nest}" for parts of "{first}"', [nest]


def _costs(target: Target, loop: ForOp, owned: Owned) -> _Costs:
    places = [op for op in body_of(loop) if op in owned.before]
    updates = [op for op in body_of(loop) if op not in owned.before]
    result = memref_type(owned.access.buffer)
    size = math.prod(result.get_shape()) * bits_of(result) if result.has_static_shape() else None
    outside = size is None or size > 8 * target.l2_bytes
    lines = sum(_lines(access, loop, outside) for access in accesses(loop))
    # Loops are vectorised.
    instructions = sum(
        cost(op) / lanes_for(target, op) if isinstance(op, ForOp) else cost(op) for op in updates
    )
    return _Costs(
        extent_of(loop),
        sum(map(cost, places)),
        instructions + LINE_COST * lines,
        math.inf if size is None else LINE_COST * size / LINE_BITS,
    )


def _lines(access: LoadOp | StoreOp, loop: ForOp, outside: bool) -> float:
    """The lines of memory that an access reads in an iteration of a loop.

    Args:
        outside: whether what is stored is in no cache of a core.
    """
    lines = repetitions(access, loop) * bits_of(memref_type(access.buffer)) / LINE_BITS
    if isinstance(access, LoadOp):
        return lines
    return max(1.0, lines) if outside else 0.0

"""The default schedule of every kernel: `loop-schedule`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...core.errors import explain, first_line
from ...core.ir.context import decide, known_to, target_of
from ...core.ir.walks import operations_in
from ...core.pipelines.budgets import SUMS
from ...core.plugins import schedule_rules
from ...core.target import Target, named
from ...core.threads import SOME_THREADS, are_threads
from ...dialects.loop.nests import Consumed, ScheduleError, perfect_nest
from ...dialects.loop.ops import ForOp, KernelOp
from ...dialects.loop.trace import structure_of, trace_of
from ...dialects.stages import reach_scheduled
from .scheduler.blocks import schedule_blocks
from .scheduler.borders import cut_border
from .scheduler.cascades import cascade_entries
from .scheduler.columns import schedule_carried_rows, schedule_columns
from .scheduler.contraction import schedule_contraction
from .scheduler.device import schedule_for_device
from .scheduler.flat import fuse_rows
from .scheduler.heads import schedule_heads
from .scheduler.knobs import ANALYTIC, Knobs
from .scheduler.lanes import schedule_gathers, schedule_lanes, schedule_transpose
from .scheduler.message_products import schedule_message_products
from .scheduler.panels import prefetch_next_rows
from .scheduler.replay import read_traces, replay, replay_all
from .scheduler.rows import schedule_row
from .scheduler.schedule import HeldBackError, Schedule
from .scheduler.staged_rows import schedule_staged_rows, staged_rows
from .scheduler.thread_tiles import cut_thread_tiles
from .scheduler.updates import merge_fills, parallelise_inside, parallelise_updates
from .scheduler.walks import merge_walks

Rule = Callable[[Schedule, str], str | None]
"""Schedules a nest, and returns the reason; None where it does not fit."""
Division = Callable[[Schedule, str], tuple[str, Sequence[str]] | None]
"""A rule that leaves nests to schedule, and returns these too."""

RULES: tuple[Rule, ...] = (
    schedule_contraction,
    schedule_message_products,
    schedule_heads,
    schedule_lanes,
)
"""The kinds of nests, in the order in which they are tried."""
BLOCK_RULES = (schedule_contraction, schedule_transpose, schedule_lanes)
"""Those of nests on local buffers."""
DIVISIONS: tuple[tuple[Division, Sequence[Rule]], ...] = (
    (schedule_blocks, BLOCK_RULES),
    (parallelise_updates, RULES),
    (parallelise_inside, RULES),
)
"""Ways to divide a nest among threads, with the rules of the nests that they leave."""


def schedule_kernel(
    kernel: Consumed, target: Target, knobs: Knobs = ANALYTIC, threads: int = 1
) -> tuple[Schedule, list[str]]:
    """Schedule the nests of a kernel that is in no module, each by the first rule that fits.

    Tiles do not depend on the number of threads, but work that only threads are worth does.

    Returns:
        The schedule, with the new kernel and the trace of its steps, and a reason for each
        nest. A nest that no rule fits stays as it is.
    """
    schedule, reasons = Schedule(kernel, target, knobs, threads), list[str]()
    if target.device is not None:
        with suppress(HeldBackError):
            reasons += schedule_for_device(schedule)
        return schedule, reasons
    with suppress(HeldBackError):
        reasons += merge_walks(schedule)
        reasons += _rows(schedule, kernel.body.block)
        merge_fills(schedule)
        for nest in _top_loops(schedule.kernel):
            reasons += schedule.attempt(lambda nest=nest: _nest(schedule, nest)) or []
        schedule.drop_unit_loops()
        cascade_entries(schedule)
    return schedule, reasons


def _first(schedule: Schedule, nest: str, rules: Sequence[Rule]) -> str | None:
    """Apply the first rule that fits a nest; return its reason."""
    for rule in rules:
        if reason := schedule.attempt(lambda rule=rule: rule(schedule, nest)):
            return reason
    return None


def _by_others(schedule: Schedule, nest: str) -> str | None:
    """Apply the first rule of another package that fits a nest; return its reason.

    Raises:
        PassFailedException: if a rule fails, naming its package.
    """
    for name, rule, error in schedule_rules():
        try:
            reason = schedule.attempt(lambda rule=rule: rule(schedule, nest))
        except HeldBackError:
            raise
        except Exception as cause:
            # The boundary to code of others: it may raise anything.
            fact = f'schedule rule "{name}" raised {type(cause).__name__}: {first_line(cause)}'
            raise PassFailedException(str(error(fact))) from cause
        if reason is not None:
            return str(reason)
    return None


def _nest(schedule: Schedule, nest: str) -> list[str]:
    """Schedule a nest of the kernel's body, and parallelise it; return the reasons."""
    if reason := _first(schedule, nest, (_by_others, schedule_contraction)):
        return [reason]
    reasons: list[str] = []
    if fused := schedule.attempt(lambda: fuse_rows(schedule, nest)):
        nest = fused
        reasons.append("short rows are one loop")
    if done := schedule.attempt(lambda: _staged_rows(schedule, nest)):
        return reasons + done
    for division, rules in DIVISIONS:
        if divided := schedule.attempt(lambda division=division: division(schedule, nest)):
            reason, left = divided
            reasons.append(reason)
            for name in left:
                reasons += _inside(schedule, name, rules)
            return reasons
    others = set(_top_loops(schedule.kernel)) - {nest}
    if reason := _first(schedule, nest, (schedule_transpose,)):
        _tile_rest(schedule, others)
        return [*reasons, reason]
    if reason := _first(schedule, nest, (schedule_columns, schedule_carried_rows)):
        return [*reasons, reason]
    loop = schedule.for_loop(nest)
    if len(perfect_nest(loop)) == 1 and not _nests_in(loop.body.block):
        # A single loop: the outer half is tiled after the inner half has become lanes.
        reasons += _inside(schedule, nest, (schedule_lanes,))
        _tile_rest(schedule, others)
        return reasons
    # The first loop that is worth it: an image has a batch of 1.
    return reasons + _inside(schedule, _tiled(schedule, nest) or nest, RULES[1:])


def _staged_rows(schedule: Schedule, nest: str) -> list[str] | None:
    """Schedule a nest that stages rows and reads them again; return the reasons."""
    staged = staged_rows(schedule, nest)
    if staged is None:
        return None
    body = schedule.for_loop(staged.loops[-1]).body.block
    nested, reasons = _nests_in(body), _rows(schedule, body)
    for name in nested:
        if name != staged.roles.lane:
            reasons += _inside(schedule, name)
    return [schedule_staged_rows(schedule, staged), *reasons]


def _tile_rest(schedule: Schedule, others: set[str]) -> None:
    """Tile the first loop that can be tiled, in the first nest that is not one of these others."""
    if left := [name for name in _top_loops(schedule.kernel) if name not in others]:
        _tiled(schedule, left[0])


def _tiled(schedule: Schedule, nest: str) -> str | None:
    """Cut the first loop of a perfect nest that can be cut into tiles; return that in a tile."""
    for name in [loop.loop_name.data for loop in perfect_nest(schedule.for_loop(nest))]:
        if inner := schedule.attempt(lambda name=name: cut_thread_tiles(schedule, name)):
            return inner
    return None


def _top_loops(kernel: KernelOp) -> list[str]:
    """The outermost plain loops."""
    return _nests_in(kernel.body.block)


def _nests_in(block: Block) -> list[str]:
    """The plain loops of a block; a serial loop with carried values is replaced by those in it."""
    found: list[str] = []
    for op in block.ops:
        if isinstance(op, ForOp) and op.is_plain:
            found.append(op.loop_name.data)
        elif isinstance(op, ForOp) and not op.is_reduction:
            found += _nests_in(op.body.block)
    return found


def _inside(schedule: Schedule, nest: str, rules: Sequence[Rule] = RULES) -> list[str]:
    """Schedule a nest within a thread, or the nests in its body; return the reasons."""
    if cut := _cut(schedule, nest, rules):
        return cut
    inner = perfect_nest(schedule.for_loop(nest))[-1].loop_name.data
    nested = _nests_in(schedule.for_loop(inner).body.block)
    fitting = [rule for rule in rules if not (nested and rule is schedule_lanes)]
    if reason := _first(schedule, nest, fitting):
        return [reason]
    reasons = _rows(schedule, schedule.for_loop(inner).body.block)
    for name in nested:
        reasons += _inside(schedule, name, rules if rules is BLOCK_RULES else RULES)
    prefetch_next_rows(schedule, inner)
    # If nothing inside is contiguous, everything may be so along an outer loop.
    along = (schedule_lanes, schedule_gathers) if nested else (schedule_gathers,)
    if not reasons and (reason := _first(schedule, nest, along)):
        reasons.append(reason)
    return reasons


def _rows(schedule: Schedule, block: Block) -> list[str]:
    """Schedule the reductions of a block, or those in them; return the reasons."""
    names = [op.loop_name.data for op in _innermost_reductions(block)]
    found = (schedule.attempt(lambda name=name: schedule_row(schedule, name)) for name in names)
    return [reason for reason in found if reason]


def _innermost_reductions(block: Block) -> Iterator[ForOp]:
    """The reductions of a block over bounds; one that contains others is replaced by those."""
    for op in block.ops:
        if isinstance(op, ForOp) and op.results and not op.over_entries:
            yield from [*_innermost_reductions(op.body.block)] or ([op] if op.is_reduction else [])


def _cut(schedule: Schedule, nest: str, rules: Sequence[Rule]) -> list[str]:
    """Cut the first loop of a perfect nest that has a border, and schedule the parts."""
    for name in [loop.loop_name.data for loop in perfect_nest(schedule.for_loop(nest))]:
        if parts := schedule.attempt(lambda name=name: cut_border(schedule, name)):
            reasons = ["loops are cut at their borders"]
            for part in parts:
                reasons += _inside(schedule, part, rules)
            return reasons
    return []


@dataclass(frozen=True)
class LoopSchedulePass(ModulePass):
    """Schedule every kernel for the target, by the kinds of its nests.

    Contractions get a register tile, reductions of rows get partial accumulators, and other nests
    are vectorised along the loop with contiguous accesses. Nests with contiguous stores only gather
    vectors.

    Before:

    ```mlir
    loop.kernel @relu(%x: memref<64xf32>, %z: memref<1xf32>) -> (%y: memref<64xf32>) {
      %c = loop.load %z () -> (0)() : memref<1xf32>, f32
      loop.for "i" %i to 64 {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<64xf32>, f32
        %r = arith.maximumf %v, %c : f32
        loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<64xf32>
      }
    }
    ```

    Options: `target=x86-64-v4`

    After:

    ```mlir
    loop.kernel @relu(%x: memref<64xf32>, %z: memref<1xf32>) -> (%y: memref<64xf32>)
        attributes {loop.schedule = "split(i, 64, tail=mask); vectorize(i1); drop_unit_loops()"} {
      %c = loop.load %z () -> (0)() : memref<1xf32>, f32
      %v = loop.load %x ()[s0] -> (s0)() : memref<64xf32>, vector<64xf32>
      %w = vector.broadcast %c : f32 to vector<64xf32>
      %r = arith.maximumf %v, %w : vector<64xf32>
      loop.store %r, %y ()[s0] -> (s0)() : vector<64xf32>, memref<64xf32>
    }
    ```

    A kernel carries the trace of its steps. `trace` gives the steps of the named kernels, or of the
    only one; other kernels get the default schedule: `loop-schedule{trace="@relu: split(i, 16,
    tail=mask); vectorize(i1)"}`.

    Requires: unscheduled kernels; one that has blocks stays as it is.
    Leaves: the same kernels, with constants packed where `loop.packing` says so, and
        `loop.schedule`.
    """

    name = "loop-schedule"
    budget = SUMS

    target: str | None = None
    """The name of the target machine; by default that of the compilation."""
    trace: str | None = None
    """Steps for the only kernel, or for several as `@name: steps @other: steps`."""
    trace_file: str | None = None
    """A file with such text."""
    threads: int = 1
    """How many threads run tiles: work that only these are worth is left out for one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not are_threads(self.threads):
            fact = explain(self.name, "wrong threads", expected=SOME_THREADS, got=self.threads)
            raise PassFailedException(fact)
        target = target_of(ctx) if self.target is None else named(self.target)
        replayed = replay_all(op, read_traces(self.trace, self.trace_file))
        for kernel in replayed:
            decide(ctx, kernel, trace_of(kernel), "its trace is given")
        for kernel in [inner for inner in op.ops if isinstance(inner, KernelOp)]:
            if kernel in replayed or any(
                isinstance(r.type, VectorType) for o in operations_in(kernel) for r in o.results
            ):
                continue
            if self._tuned(ctx, kernel):
                continue
            place = InsertPoint.after(kernel)
            kernel.detach()
            schedule, reasons = schedule_kernel(kernel, target, threads=self.threads)
            Rewriter.insert_op(schedule.kernel, place)
            if trace := str(schedule):
                why = "; ".join(dict.fromkeys(reasons)) or "nothing else fits"
                decide(ctx, kernel, trace, why)
        reach_scheduled(op)

    def _tuned(self, ctx: Context, kernel: KernelOp) -> bool:
        """Give a kernel the schedule that tuning found for it, if there is one that is legal."""
        schedules = known_to(ctx).schedules
        trace = schedules.get(structure_of(kernel)) if schedules else None
        if trace is None:
            return False
        try:
            new = replay(kernel, trace)
        except ScheduleError as error:
            decide(ctx, kernel, "the default schedule", f"the tuned one does not fit: {error}")
            return False
        decide(ctx, new, trace, "tuning found it faster")
        return True

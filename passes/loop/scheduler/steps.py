"""A schedule in the making: the kernel, whose trace grows with each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ....core.actions import allowed
from ....core.building.creation import copied
from ....core.target import Target
from ....dialects.loop.handles import Forwarded, forwarding
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import ScheduleError, loop_named, loops_by_name
from ....dialects.loop.ops import ForOp, KernelOp
from ....dialects.loop.trace import trace_of
from ....dialects.loop.trace_text import StepArgument
from ..steps.balance import balance
from ..steps.cascade import cascade
from ..steps.distribute import distribute
from ..steps.drop_unit_loops import drop_unit_loops, has_unit_loop
from ..steps.fuse import fuse
from ..steps.merge import merge
from ..steps.own import own
from ..steps.pack import pack
from ..steps.prefetch import prefetch
from ..steps.prefetch_entries import prefetch_entries
from ..steps.privatise import privatise
from ..steps.reorder import reorder
from ..steps.sink import sink
from ..steps.split import split
from ..steps.split_border import split_border
from ..steps.stage import stage
from ..steps.stage_columns import stage_columns
from ..steps.stage_terms import stage_terms
from ..steps.tiles import may_be_tiles, tiles
from ..steps.unroll import unroll
from ..steps.vectorize import vectorize
from .knobs import ANALYTIC, Knobs

STEP = "loop-schedule"

Result = TypeVar("Result")


class HeldBackError(Exception):
    """A schedule is to end before its next step; see `core.actions`."""


@dataclass(frozen=True)
class Parts:
    """Handles to what a loop has been cut into: loops over chunks, and the loops in these.

    The first part has the whole chunks; what may be left has one or several of its own.
    """

    outers: Sequence[str]
    """The loops over chunks, and over parts."""
    inners: Sequence[str]
    """The loop over the iterations of a chunk in each part."""
    forwarded: Forwarded

    @property
    def outer(self) -> str:
        """The loop over the whole chunks."""
        return self.outers[0]

    @property
    def inner(self) -> str:
        """The loop over the iterations of a whole chunk."""
        return self.inners[0]

    def nests(self, *loops: str) -> list[tuple[str, ...]]:
        """The inner loop of each part, followed by what has become of these loops in it."""
        return list(zip(self.inners, *(self.forwarded[loop] for loop in loops), strict=True))


class Schedule:
    """Applies primitives to a kernel that is in no module; the kernel keeps the trace of them.

    Args:
        kernel: the kernel, which each step consumes, or a copy of one to come back to.
        target: the machine that the kernel is for.
        knobs: choices that override those of the rules.
        threads: how many threads run tiles.
    """

    def __init__(
        self, kernel: KernelOp, target: Target, knobs: Knobs = ANALYTIC, threads: int = 1
    ) -> None:
        self.kernel, self.target, self.knobs, self.threads = kernel, target, knobs, threads
        self._continues = bool(trace_of(kernel))
        """Whether the kernel has been scheduled before. Then it may have bounds of which it is not
        proved that iterations stay independent after another cut."""
        self._kept: list[KernelOp] = []
        self._copy: tuple[KernelOp | None, KernelOp] = None, kernel
        """A kernel to come back to and a copy of it, which a step has refused."""
        self._loops: tuple[KernelOp | None, dict[str, ForOp]] = None, {}

    def __str__(self) -> str:
        return trace_of(self.kernel)

    def attempt(self, rule: Callable[[], Result | None]) -> Result | None:
        """Apply the steps of a rule, or none of them if one is refused or it returns None."""
        kernel = self.kernel
        self._kept.append(kernel)
        try:
            result = rule()
        except ScheduleError:
            result = None
        finally:
            self._kept.pop()
        if result is not None and self._continues and any(self.kernel.dependences()):
            result = None
        if result is None:
            self.kernel = kernel
        return result

    def takes(self, step: Callable[..., object], *arguments: StepArgument) -> bool:
        """Apply one step, unless it is refused: an attempt without anything to undo."""
        try:
            step(*arguments)
        except ScheduleError:
            return False
        return True

    # The state of the kernel.

    def has(self, name: str) -> bool:
        """Whether there is a loop of this name."""
        return name in self._by_name()

    def loop(self, name: str) -> ForOp:
        """The loop of this name."""
        found = self._by_name().get(name)
        return loop_named(STEP, self.kernel, name) if found is None else found

    def _by_name(self) -> dict[str, ForOp]:
        """The loops, which are looked for once after each step."""
        kernel, loops = self._loops
        if kernel is not self.kernel:
            loops = loops_by_name(self.kernel)
            self._loops = self.kernel, loops
        return loops

    def for_loop(self, name: str) -> ForOp:
        """The loop of this name, which has no carried values."""
        loop = self.loop(name)
        assert loop.is_plain
        return loop

    def may_parallelise(self, name: str) -> bool:
        """Whether the iterations of a loop, or chunks of them, may be tiles for threads."""
        return may_be_tiles(self.kernel, name)

    def extent(self, name: str) -> int | None:
        """The number of iterations of a loop, None where it is not known."""
        return extent_of(self.loop(name))

    # Steps.

    def split(
        self, loop: str, factor: int, tail: str = "peel", cases: int = 0, alone: int = 0
    ) -> Parts:
        """Cut a loop; see `split`."""
        numbers = (cases, alone) if alone else (cases,) if cases else ()
        return self._parts(loop, self._take(split, loop, factor, tail, *numbers))

    def balance(self, loop: str, entries: str, factor: int, weight: int) -> Parts:
        """Cut a loop over rows into parts of about as many entries; see `balance`."""
        return self._parts(loop, self._take(balance, loop, entries, factor, weight))

    def own(self, loop: str, parts: int, chunk: int) -> tuple[str, str]:
        """Divide the places that a serial loop writes to among parts, see `own`.

        Return the loop over parts, and the one around an update.
        """
        once, *_, part = self._take(own, loop, parts, chunk)[loop]
        return part, once

    def privatise(self, loop: str, parts: int, chunk: int) -> tuple[str, str]:
        """Give parts of a serial loop copies of its accumulators, see `privatise`.

        Return the loop over parts, and the one that joins the copies.
        """
        made = self._take(privatise, loop, parts, chunk)[loop]
        part, *_, join = [name for name in made if self.loop(name).parent_op() is self.kernel]
        return part, join

    def distribute(self, loop: str, after: str) -> Sequence[str]:
        """Run a loop over each of two parts of a loop's body, return both; see `distribute`."""
        return self._take(distribute, loop, after)[loop]

    def split_border(self, loop: str, before: int, after: int) -> Sequence[str]:
        """Cut the first and the last iterations off, return all parts; see `split_border`."""
        return self._take(split_border, loop, before, after)[loop]

    def reorder(self, *loops: str) -> None:
        """Change the order of loops; see `reorder`."""
        self._take(reorder, loops)

    def fuse(self, outer: str, inner: str) -> str:
        """Fuse two perfectly nested loops, return the new one; see `fuse`."""
        (name,) = self._take(fuse, outer, inner)[outer]
        return name

    def sink(self, loop: str) -> None:
        """Make a loop perfectly nested; see `sink`."""
        self._take(sink, loop)

    def merge(self, first: str, second: str) -> None:
        """Compute two reductions in one loop; see `merge`."""
        self._take(merge, first, second)

    def pack(self, argument: int, *loops: str) -> None:
        """Lay an argument out; see `pack`."""
        self._take(pack, argument, loops)

    def vectorize(self, *loops: str) -> None:
        """Turn loops into axes; see `vectorize`."""
        self._take(vectorize, loops)

    def tiles(self, loop: str, order: str = "any") -> None:
        """Distribute the iterations of a loop over threads; see `tiles`."""
        self._take(tiles, loop, *(() if order == "any" else (order,)))

    def unroll(self, loop: str, factor: int) -> None:
        """Give a reduction more accumulators; see `unroll`."""
        self._take(unroll, loop, factor)

    def cascade(self, loop: str, factor: int) -> None:
        """Accumulate chunks of a reduction on their own; see `cascade`."""
        self._take(cascade, loop, factor)

    def prefetch(self, argument: int, loop: str, ahead: int) -> None:
        """Prefetch what a reduction will read; see `prefetch`."""
        self._take(prefetch, argument, loop, ahead)

    def prefetch_entries(self, argument: int, loop: str, ahead: int) -> None:
        """Prefetch what later entries of rows will read; see `prefetch_entries`."""
        self._take(prefetch_entries, argument, loop, ahead)

    def stage(self, argument: int, loop: str) -> None:
        """Copy what a loop reads repeatedly; see `stage`."""
        self._take(stage, argument, loop)

    def stage_columns(self, loop: str, size: int) -> Sequence[str]:
        """Run a serial loop on columns of local buffers; see `stage_columns`.

        Return the loops that it became: those over rows, and the serial ones over chunks.
        """
        return self._take(stage_columns, loop, size)[loop]

    def stage_terms(self, loop: str) -> str:
        """Compute what a reduction combines before it; return the loop that does."""
        self._take(stage_terms, loop)
        fill = self.loop(loop).prev_op
        assert isinstance(fill, ForOp)
        return fill.loop_name.data

    def drop_unit_loops(self) -> None:
        """Remove loops that run once; see `drop_unit_loops`."""
        if has_unit_loop(self.kernel):
            self._take(drop_unit_loops)
            self._loops = None, {}  # the one step that may take loops out of the same kernel

    def _take(self, primitive: Callable[..., KernelOp], *arguments: Any) -> Forwarded:
        """Take a step; return what has become of the loops that it rebuilt."""
        texts = [", ".join(a) if isinstance(a, tuple) else str(a) for a in arguments]
        if not allowed(f"{primitive.__name__}({', '.join(texts)})", self.kernel):
            raise HeldBackError
        kernel = self.kernel
        if kernel in self._kept:
            if self._copy[0] is not kernel:
                self._copy = kernel, copied(kernel)
            kernel = self._copy[1]
        with forwarding() as forwarded:
            self.kernel = primitive(kernel, *arguments)
        self._copy = None, kernel
        return forwarded

    def _parts(self, loop: str, forwarded: Forwarded) -> Parts:
        made = [self.loop(name) for name in forwarded[loop]]
        around = {op.parent_op() for op in made}
        outers = [op.loop_name.data for op in made if op in around]
        inners = [op.loop_name.data for op in made if op not in around]
        return Parts(outers, inners, forwarded)

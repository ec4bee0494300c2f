"""A schedule in the making: the kernel, and the steps that were taken, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ....core.actions import allowed
from ....core.target import Target
from ....dialects.loop.nests import (
    Loop,
    ScheduleError,
    extent_of,
    loop_named,
    loop_names,
    loops_of,
)
from ....dialects.loop.ops import ForOp, KernelOp
from ..drop_unit_loops import drop_unit_loops
from ..pack import pack
from ..prefetch import prefetch
from ..reorder import reorder
from ..sink import sink
from ..split import SplitNames, split, split_names
from ..stage import stage
from ..tiles import tiles
from ..unroll import unroll
from ..vectorize import vectorize

STEP = "loop-schedule"

Result = TypeVar("Result")


class HeldBackError(Exception):
    """A schedule is to end before its next step; see `core.actions`."""


class Schedule:
    """Applies primitives to a kernel that is in no module, and keeps a trace of them.

    Args:
        kernel: the kernel; each step makes another one, and leaves the one before as it was.
        target: the machine that the kernel is for.
    """

    def __init__(self, kernel: KernelOp, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.trace: list[str] = []

    def __str__(self) -> str:
        return "; ".join(self.trace)

    def attempt(self, rule: Callable[[], Result | None]) -> Result | None:
        """Take the steps of a rule, or none of them where one is refused or it gives None."""
        kernel, trace = self.kernel, list(self.trace)
        try:
            result = rule()
        except ScheduleError:
            result = None
        if result is None:
            self.kernel, self.trace = kernel, trace
        return result

    # What the kernel is like now.

    def has(self, name: str) -> bool:
        """Whether there is a loop of this name."""
        return name in loop_names(self.kernel)

    def loop(self, name: str) -> Loop:
        """The loop of this name."""
        return loop_named(STEP, self.kernel, name)

    def for_loop(self, name: str) -> ForOp:
        """The loop of this name, which is a `loop.for`."""
        loop = self.loop(name)
        assert isinstance(loop, ForOp)
        return loop

    def extent(self, name: str) -> int | None:
        """The number of iterations of a loop, None where it is not known."""
        return extent_of(self.loop(name))

    # Steps.

    def split(self, loop: str, factor: int, tail: str = "peel") -> SplitNames:
        """Cut a loop; see `split`."""
        names = split_names(self.kernel, loop)
        self._take(
            f"split({loop}, {factor}, tail={tail})", lambda: split(self.kernel, loop, factor, tail)
        )
        return names

    def reorder(self, *loops: str) -> None:
        """Change the order of loops; see `reorder`."""
        self._take(f"reorder({', '.join(loops)})", lambda: reorder(self.kernel, loops))

    def sink(self, loop: str) -> None:
        """Make a loop perfectly nested; see `sink`."""
        self._take(f"sink({loop})", lambda: sink(self.kernel, loop))

    def pack(self, argument: int, *loops: str) -> None:
        """Lay an argument out; see `pack`."""
        self._take(
            f"pack({argument}, {', '.join(loops)})", lambda: pack(self.kernel, argument, loops)
        )

    def vectorize(self, *loops: str) -> None:
        """Turn loops into axes; see `vectorize`."""
        self._take(f"vectorize({', '.join(loops)})", lambda: vectorize(self.kernel, loops))

    def tiles(self, loop: str) -> None:
        """Share the iterations of a loop among threads; see `tiles`."""
        self._take(f"tiles({loop})", lambda: tiles(self.kernel, loop))

    def unroll(self, loop: str, factor: int) -> None:
        """Give a reduction more accumulators; see `unroll`."""
        self._take(f"unroll({loop}, {factor})", lambda: unroll(self.kernel, loop, factor))

    def prefetch(self, argument: int, loop: str, ahead: int) -> None:
        """Ask for what a reduction will read; see `prefetch`."""
        self._take(
            f"prefetch({argument}, {loop}, {ahead})",
            lambda: prefetch(self.kernel, argument, loop, ahead),
        )

    def stage(self, argument: int, loop: str) -> None:
        """Copy what a loop reads repeatedly; see `stage`."""
        self._take(f"stage({argument}, {loop})", lambda: stage(self.kernel, argument, loop))

    def drop_unit_loops(self) -> None:
        """Take away loops that run once; see `drop_unit_loops`."""
        if any(has_unit_size(loop) for loop in loops_of(self.kernel)):
            self._take("drop_unit_loops()", lambda: drop_unit_loops(self.kernel))

    def _take(self, step: str, taken: Callable[[], KernelOp]) -> None:
        if not allowed(step, self.kernel):
            raise HeldBackError
        self.kernel = taken()
        self.trace.append(step)


def has_unit_size(loop: Loop) -> bool:
    """Whether a loop runs at most once."""
    size = extent_of(loop)
    return size is not None and size <= 1

"""A schedule in the making: the kernel, whose trace grows with each step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ....core.building.creation import copied
from ....core.pipelines.actions import allowed
from ....core.target import Target
from ....dialects.loop.handles import forwarding
from ....dialects.loop.loops import extent_of
from ....dialects.loop.nests import ScheduleError, loop_named, loops_by_name
from ....dialects.loop.ops import ForOp, KernelOp
from ....dialects.loop.trace import trace_of
from ....dialects.loop.trace_text import StepArgument
from ...primitive import Primitive
from ..steps.drop_unit_loops import has_unit_loop
from ..steps.tiles import may_be_tiles
from .knobs import ANALYTIC, Knobs
from .steps import StepMethods

STEP = "loop-schedule"

Result = TypeVar("Result")


class HeldBackError(Exception):
    """A schedule is to end before its next step; see `core.pipelines.actions`."""


class Schedule(StepMethods):
    """Applies primitives to a kernel that is in no module; the kernel keeps the trace of them.

    Each primitive is a method, `schedule.split("i", 8)`.

    Args:
        kernel: the kernel, which each step consumes.
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
        self._origin: KernelOp | None = None
        """A kernel to come back to, if an attempt has taken a step."""
        self._taken: list[tuple[Primitive, dict[str, Any]]] = []
        """The steps taken since, with their arguments."""
        self._begun: list[int] = []
        """How many of them had been taken when each attempt began, outer ones first."""
        self._loops: dict[str, ForOp] | None = None

    def __str__(self) -> str:
        return trace_of(self.kernel)

    def attempt(self, rule: Callable[[], Result | None]) -> Result | None:
        """Apply the steps of a rule, or none of them if one is refused or it returns None.

        If it had taken steps, the kernel and its loops are other operations afterwards.
        """
        self._begun.append(len(self._taken))
        try:
            result = rule()
        except ScheduleError:
            result = None
        finally:
            begun = self._begun.pop()
        if result is not None and self._continues and any(self.kernel.dependences()):
            result = None
        if result is None and len(self._taken) > begun:
            self._come_back(begun)
        return result

    def _come_back(self, begun: int) -> None:
        """Undo the last steps: take those before them again.

        Few attempts fail after a step, so that this is rare, and a copy for each would not be.
        """
        kernel, self._taken = self._origin, self._taken[:begun]
        assert kernel is not None
        if self._begun and self._begun[0] < begun:
            # An attempt around this one may have to come back further.
            self._origin = copied(kernel)
        else:
            self._origin, self._begun = None, [0] * len(self._begun)
        for step, arguments in self._taken:
            kernel = step.function(kernel, **arguments)
        if self._origin is None:
            self._taken = []
        self.kernel, self._loops = kernel, None

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
        if self._loops is None:
            self._loops = loops_by_name(self.kernel)
        return self._loops

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

    def drop_unit_loops(self) -> None:
        """Remove loops that run once; see `drop_unit_loops`."""
        if has_unit_loop(self.kernel):
            super().drop_unit_loops()

    def _take(self, step: Primitive, given: inspect.BoundArguments) -> Any:
        """Take a step; return handles to the loops that it makes."""
        texts = [
            ", ".join(value) if isinstance(value, tuple) else str(value)
            for name, value in given.arguments.items()
            if value != given.signature.parameters[name].default
        ]
        if not allowed(f"{step.name}({', '.join(texts)})", self.kernel):
            raise HeldBackError
        given.apply_defaults()
        if self._begun and self._origin is None:
            self._origin = copied(self.kernel)
        with forwarding() as forwarded:
            self.kernel = step.function(self.kernel, **given.arguments)
        self._loops = None
        if self._origin is not None:
            self._taken.append((step, given.arguments))
        if step.handles is None:
            return None
        first, *_ = given.arguments.values()
        return step.handles(self._by_name(), forwarded, first)

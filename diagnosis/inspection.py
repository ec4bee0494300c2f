"""Inspection of an `Executable`: text, weights and results of stages, profiles, fates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..driver.compilation import Compilation
from .reproducer import Reproducing

if TYPE_CHECKING:
    from ..runtime.fate import Fate
    from ..runtime.loaded import Program
    from ..runtime.profile import CallFacts, Profile
    from .profiling import Profiler


def inspected(compilation: Compilation) -> Inspection:
    """A compilation for inspection; a failure leaves a reproducer."""
    return Inspection(compilation.request, (Reproducing(),), form=compilation.form)


@dataclass(frozen=True)
class Inspection(Compilation):
    """A compilation whose stages users look at, see `runtime.staircase`."""

    def updated(self, program: Program, given: Mapping[str, object]) -> tuple[Program, Inspection]:
        """The program with new weights, and its inspection.

        Raises:
            InputError: if the weights do not fit those of the module.
            CompileError: if a pass refuses them.
        """
        found, compilation = super().updated(program, given)
        return found, inspected(compilation)

    @cached_property
    def _profiler(self) -> Profiler:
        """The program with clocks, which is kept for later profiles."""
        from .profiling import profiler

        return profiler(self)

    def profile(self, inputs: Sequence[object], repeat: int | None) -> Profile:
        """Profile calls.

        Raises:
            InputError: if the inputs do not fit, or `repeat` is below 1.
            StepwellError: if this machine has no clock that can be read, or the module is past
                the stage at which clocks are inserted.
        """
        from .profiling import check

        check(repeat)
        return self._profiler.run(inputs, repeat)

    def report(self, calls: CallFacts, against: str | os.PathLike[str] | None) -> str:
        """A page about the program: the model, its kernels at every stage, passes, decisions.

        Raises:
            CompileError: if a pass refuses the module.
            InputError: if the page to compare with is none.
        """
        from ..report.collecting import collect
        from ..report.comparing import compared, read_page
        from ..report.page import page

        if against is None:
            return page(collect(self, calls))
        before = read_page(against)
        return compared(page(collect(self, calls)), before, other=os.fspath(against))

    def why(self, node: str) -> Fate:
        """What becomes of a node of the model.

        Raises:
            InputError: if there is no such node.
        """
        from .why import fate

        return fate(self, node)

"""Inspection of an `Executable`: text, weights and results of stages, profiles, fates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.target import named
from ..driver.compilation import Compilation
from .reproducer import Reproducing

if TYPE_CHECKING:
    from ..core.ir.weights import WeightStore
    from ..runtime.fate import Fate
    from ..runtime.loaded import Program
    from ..runtime.lowered import Generated, Source
    from ..runtime.profile import CallFacts, Profile
    from .profiling import Profiler


class Inspection:
    """A compilation for inspection; a failure leaves a reproducer."""

    def __init__(self, compilation: Compilation) -> None:
        observers = (*compilation.observers, Reproducing())
        self._compilation = replace(compilation, observers=observers)
        self._profiler: Profiler | None = None

    def text(self, stage: str) -> str:
        """The text of a stage.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        return self._compilation.text(stage)

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names.

        Raises:
            CompileError: if the compilation has no such stage.
        """
        return self._compilation.weights(stage)

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage that is IR, interpreted.

        Raises:
            CompileError: if the compilation has no such stage, or it makes an invalid access.
            InputError: if the inputs do not fit.
        """
        return self._compilation.run(stage, inputs)

    def updated(
        self, program: Program, weights: Mapping[str, object]
    ) -> tuple[Program, Inspection]:
        """The program with new weights, and its inspection.

        Raises:
            InputError: if the weights do not fit those of the module.
            CompileError: if a pass refuses them.
        """
        found, compilation = self._compilation.updated(program, weights)
        return found, Inspection(replace(compilation, observers=()))

    def generated(self, target: str | None) -> Generated:
        """The LLVM IR of the program for a target, by default its own.

        Raises:
            CompileError: if a pass refuses the module for this target.
            TargetError: if it is unknown.
        """
        return self._compilation.generated(None if target is None else named(target))

    def source(self) -> Source:
        """The IR that is saved with the program: stage `optimized`, or that of the module."""
        return self._compilation.source()

    def profile(self, inputs: Sequence[object], repeat: int | None) -> Profile:
        """Profile calls; the program with clocks is kept for later profiles.

        Raises:
            InputError: if the inputs do not fit, or `repeat` is below 1.
            StepwellError: if this machine has no clock that can be read, or the module is past
                the stage at which clocks are inserted.
        """
        from . import profiling

        profiling.check(repeat)
        if self._profiler is None:
            self._profiler = profiling.profiler(self._compilation)
        return self._profiler.run(inputs, repeat)

    def report(self, calls: CallFacts) -> str:
        """A page about the program: the model, its kernels at every stage, passes, decisions.

        Raises:
            CompileError: if a pass refuses the module.
        """
        from ..report.collecting import collect
        from ..report.page import page

        return page(collect(self._compilation, calls))

    def why(self, node: str) -> Fate:
        """What becomes of a node of the model.

        Raises:
            InputError: if there is no such node.
        """
        from .why import fate

        return fate(self._compilation, node)

"""Where a program comes from, and its stages, as an executable sees them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..core.ir.weights import WeightStore
    from ..core.pipelines.decisions import Decision
    from .artefacts.reading import Artefact
    from .fate import Fate
    from .loaded import Program
    from .lowered import Generated, Source
    from .profile import CallFacts, Profile


class Staircase(Protocol):
    """The stages of a program, recomputed on request."""

    def text(self, stage: str) -> str:
        """The text of a stage."""
        ...

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names."""
        ...

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage."""
        ...

    def profile(self, inputs: Sequence[object], repeat: int | None) -> Profile:
        """A profile of the time."""
        ...

    def why(self, node: str) -> Fate:
        """The fate of a node."""
        ...

    def report(self, calls: CallFacts, against: str | os.PathLike[str] | None) -> str:
        """A page about the program, with what is known of its calls, and beside another page."""
        ...

    def updated(self, program: Program, given: Mapping[str, object]) -> tuple[Program, Staircase]:
        """The program with new weights."""
        ...

    def generated(self, target: str | None) -> Generated:
        """The LLVM IR of the program for a target, by default its own."""
        ...

    def source(self) -> Source:
        """The IR that is saved with the program."""
        ...


@dataclass(frozen=True)
class Origin:
    """Where a program comes from.

    Args:
        make: makes its stages, when one is first wanted.
        read: reads the decisions of its passes.
        stages: the names of its stages.
        restored: makes an executable of one that was pickled; None if it cannot be pickled.
        artefact: the file that it was loaded from, if any.
    """

    make: Callable[[], Staircase]
    read: Callable[[], Sequence[Decision]]
    stages: Sequence[str]
    restored: Callable[[bytes], Any] | None = None
    artefact: Artefact | None = None

    @cached_property
    def staircase(self) -> Staircase:
        """Its stages."""
        return self.make()

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions that passes took, in order."""
        return tuple(self.read())

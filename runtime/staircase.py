"""The stages of a program, as an executable sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..core.ir.weights import WeightStore
    from .fate import Fate
    from .loaded import Program
    from .machine_code import Generated, Source
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

    def report(self, calls: CallFacts) -> str:
        """A page about the program, with what is known of its calls."""
        ...

    def updated(self, program: Program, weights: Mapping[str, object]) -> tuple[Program, Staircase]:
        """The program with new weights."""
        ...

    def generated(self, target: str | None) -> Generated:
        """The LLVM IR of the program for a target, by default its own."""
        ...

    def source(self) -> Source:
        """The IR that is saved with the program."""
        ...

    def restored(self) -> Callable[[bytes], Any]:
        """The function that makes an executable of a saved one."""
        ...


class Deferred:
    """Stages of a program that was not compiled by this process, made when they are wanted.

    Args:
        make: makes them.
    """

    def __init__(self, make: Callable[[], Staircase]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Staircase:
        return self._make()

    def text(self, stage: str) -> str:
        """The text of a stage."""
        return self._made.text(stage)

    def weights(self, stage: str) -> WeightStore:
        """The arrays that the text of a stage names."""
        return self._made.weights(stage)

    def run(self, stage: str, inputs: Sequence[object]) -> Any:
        """The results of a stage."""
        return self._made.run(stage, inputs)

    def profile(self, inputs: Sequence[object], repeat: int | None) -> Profile:
        """A profile of the time."""
        return self._made.profile(inputs, repeat)

    def why(self, node: str) -> Fate:
        """The fate of a node."""
        return self._made.why(node)

    def report(self, calls: CallFacts) -> str:
        """A page about the program, with what is known of its calls."""
        return self._made.report(calls)

    def updated(self, program: Program, weights: Mapping[str, object]) -> tuple[Program, Staircase]:
        """The program with new weights."""
        return self._made.updated(program, weights)

    def generated(self, target: str | None) -> Generated:
        """The LLVM IR of the program for a target, by default its own."""
        return self._made.generated(target)

    def source(self) -> Source:
        """The IR that is saved with the program."""
        return self._made.source()

    def restored(self) -> Callable[[bytes], Any]:
        """The function that makes an executable of a saved one."""
        return self._made.restored()

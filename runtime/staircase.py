"""The stages of a program, as an executable sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..core.fate import Fate
    from ..core.weights import WeightStore
    from .loaded import Program
    from .machine_code import Generated, Source
    from .profile import Profile


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

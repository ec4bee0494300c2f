"""What the statuses of a call mean: the ways in which it can fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...core.errors import in_iteration, with_details
from ...core.indices import explained, explained_index, explained_offset
from .abi import DETAIL_WORDS


@dataclass(frozen=True)
class Failure:
    """A way in which a call can fail, as reported to its caller.

    `subject` is the registered function, the message of a check, or what was checked. So many
    `details` stand in a message as `{0}`, `{1}`, `{2}`. `loops` are around it, the innermost first.
    """

    kind: str
    subject: str
    details: int = 0
    loops: tuple[str, ...] = ()

    KINDS: ClassVar = ("function", "check", "csr", "index", "place", "offsets")

    def explain(self, words: Sequence[int]) -> str:
        """What went wrong; `words` are those of the context from its details on."""
        text = self._fact(words[:DETAIL_WORDS])
        for loop, number in zip(self.loops, words[DETAIL_WORDS:], strict=False):
            text = in_iteration(text, number, loop)
        return text

    def _fact(self, details: Sequence[int]) -> str:
        match self.kind:
            case "function":
                return f'registered function "{self.subject}" failed'
            case "check":
                return with_details(self.subject, details[: self.details])
            case "csr":
                return f"{self.subject}: {explained(*details)}"
            case "index":
                return f"{self.subject}: {explained_index(*details)}"
            case "place":
                return f"{self.subject}: {explained_index(*details, from_front=True)}"
            case _:
                return f"{self.subject}: {explained_offset(*details)}"

"""What the statuses of a call mean: the ways in which it can fail."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ...core.errors import in_iteration
from .abi import DETAIL_WORDS

if TYPE_CHECKING:
    from ...core.boundary.wording import WordingCase


@dataclass(frozen=True)
class CallFailure:
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
        from ...core.boundary.wording import worded

        text = self.beginning + worded(self.cases, words[: self.detail_words])
        for loop, number in zip(self.loops, words[DETAIL_WORDS:], strict=False):
            text = in_iteration(text, number, loop)
        return text

    @property
    def detail_words(self) -> int:
        """The number of details that the texts of `cases` are about."""
        return DETAIL_WORDS if self.kind in _INDICES else self.details

    @property
    def beginning(self) -> str:
        """What stands before the text of a case."""
        return f"{self.subject}: " if self.kind in _INDICES else ""

    @property
    def cases(self) -> Sequence[WordingCase]:
        """The texts of the message; it has the first that applies."""
        from ...core.boundary.wording import WordingCase

        if self.kind == "function":
            return (WordingCase(f'registered function "{self.subject}" failed'),)
        return _about_indices().get(self.kind) or (WordingCase(self.subject),)


_INDICES = ("csr", "index", "place", "offsets")
"""The kinds of failures that are about arrays of indices."""


@functools.cache
def _about_indices() -> Mapping[str, Sequence[WordingCase]]:
    """The texts about arrays of indices, by the kind of the failure.

    Loading a program does without them.
    """
    from ...core.boundary.indices import CSR, INDEX, OFFSETS, PLACE

    return dict(zip(_INDICES, (CSR, INDEX, PLACE, OFFSETS), strict=True))

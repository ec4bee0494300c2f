"""Versions of stored formats: IR text, tuning records, traces, weights.

Writers state the version of the format; readers upgrade older content step by step and refuse newer
content. `docs/stability.md` defines when a version changes, and for how long content can be
upgraded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .reading import STRING, ReadingError

if TYPE_CHECKING:
    import numpy as np

_Content = TypeVar("_Content")

KEY = "stepwell.version"
"""The key of the version in the attributes of a module and in the metadata of a weight file."""


_NEWER = "install a newer Stepwell"
_OLDER = "an older Stepwell reads it, and writes it as the next version"


@dataclass(frozen=True)
class Format(Generic[_Content]):
    """A stored format: its current version, and the upgrades to it.

    Entry n of `steps` upgrades content of version n to version n + 1.
    """

    version: int
    steps: Mapping[int, Callable[[_Content], _Content]] = field(
        default_factory=dict[int, Callable[[_Content], _Content]]
    )

    @property
    def oldest(self) -> int:
        """The oldest version that can be upgraded."""
        version = self.version
        while version - 1 in self.steps:
            version -= 1
        return version

    def upgraded(self, content: _Content, stated: int) -> _Content:
        """Content of a stated version, upgraded to the current one.

        Raises:
            ReadingError: if the version is newer, or too old to be upgraded.
        """
        if not self.oldest <= stated <= self.version:
            newer = stated > self.version
            relation, hint = ("newer", _NEWER) if newer else ("older", _OLDER)
            last = "" if self.oldest == self.version else f" to {self.version}"
            raise ReadingError(
                f"its version is {relation} than this Stepwell can read, expected "
                f"{self.oldest}{last}, got {stated}; {hint}"
            )
        for version in range(stated, self.version):
            content = self.steps[version](content)
        return content


IR_TEXT = Format[str](1)
"""MLIR text of any stage. Text without a version, as people write it, has the current one."""

RECORD = Format[dict[str, Any]](1, {0: lambda fields: fields})
"""A tuning record, as the fields of its line. The first records, without a version, have 0."""

TRACE = Format[list[Any]](1)
"""The steps of a trace. Those without a version, as people write them, have the current one."""

WEIGHTS = Format[dict[str, "np.ndarray"]](1)
"""The arrays of a safetensors file. A file without a version is from another tool."""

_STATED = re.compile(rf"{STRING}|//[^\n]*|\bstepwell\.version = (?P<version>\d{{1,18}})\b")
_HEADER = re.compile(
    rf"builtin\.module(?: @(?:[\w.$-]+|{STRING}))?(?P<attributes> attributes \{{)?"
)


def stated_in(text: str) -> re.Match[str] | None:
    """The match for the version that MLIR text states, in group `version`; None if none."""
    if KEY not in text:
        return None
    return next((match for match in _STATED.finditer(text) if match["version"]), None)


def with_version(text: str) -> str:
    """The text of a module, with the version added to its attributes."""
    header = _HEADER.match(text)
    assert header is not None, "the text of a module begins with its name"
    stated = f"{KEY} = {IR_TEXT.version} : i64"
    added = f"{stated}, " if header["attributes"] else f" attributes {{{stated}}}"
    return f"{text[: header.end()]}{added}{text[header.end() :]}"

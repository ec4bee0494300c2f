"""Stored formats: their versions, in `core.files.versions`, and upgrades to the current one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .reading import ReadingError

_Content = TypeVar("_Content")

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

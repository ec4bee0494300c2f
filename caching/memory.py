"""Texts that processes remember for each other, as files in the folder of the cache."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .folder import Folder

_LARGEST = 1 << 24


@dataclass(frozen=True)
class FolderMemory:
    """Short texts by name, each with its own digest. Where the folder cannot be used, none."""

    folder: Folder

    def recall(self, name: str) -> str | None:
        """The text of a name; None if it is unknown, or damaged."""
        try:
            with self.folder.read(name) as file:
                digest, _, text = file.read(_LARGEST).decode("ascii", "replace").partition(" ")
        except OSError:
            return None
        return text if digest == _digest(text) else None

    def remember(self, name: str, text: str) -> None:
        """Keep a text."""
        content = f"{_digest(text)} {text}".encode("ascii")
        try:
            self.folder.keep(name, lambda file: file.write(content))
        except OSError:
            return


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

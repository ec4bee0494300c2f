"""The digest of the compiler: its sources and plug-ins, and the versions of its packages.

Reading all sources takes longer than the rest of a hit. So their digest is remembered by a stamp,
which has the place, the size and the times of each file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..core.errors import StepwellError
from .packages import files_of_plugins, packages_of_plugins

_ROOT = Path(__file__).parent.parent
_ENDINGS = (".py", ".ll")
_PACKAGES = ("llvmlite", "ml_dtypes", "numpy", "onnx", "scipy", "xdsl")
"""The packages whose versions decide what an import or a compilation results in."""
_CLOCKS_DIFFER_BY = 2 * 10**9
"""How many nanoseconds the clock of a file system may be behind that of the process."""


class TextMemory(Protocol):
    """Remembers texts by name."""

    def recall(self, name: str) -> str | None:
        """The text of a name, if it is known."""
        ...

    def remember(self, name: str, text: str) -> None:
        """Keep a text."""
        ...


@dataclass(frozen=True)
class Stamp:
    """The state of all files: a digest of their places, sizes and times, and the latest time."""

    digest: str
    changed: int


def stamp() -> Stamp:
    """The present state of the sources."""
    hashed, latest = hashlib.sha256(), 0
    origins = (importlib.util.find_spec(package) for package in _PACKAGES)
    paths = [found.origin for found in origins if found is not None and found.origin]
    for path in (*paths, *_sources(str(_ROOT)), *files_of_plugins()):
        state = os.stat(path)
        # Programs can set the time of modification, but not that of the change of the state.
        latest = max(latest, state.st_ctime_ns)
        facts = path, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
        hashed.update(repr((*facts, state.st_ctime_ns)).encode("utf-8", "surrogateescape"))
    hashed.update(repr((sys.version, sys.platform)).encode())
    return Stamp(hashed.hexdigest(), latest)


def sources_digest(memory: TextMemory, imported_ns: int) -> tuple[str, Stamp] | None:
    """The digest of the compiler, and the state of the files of which it was made.

    Args:
        memory: remembers digests.
        imported_ns: when this process imported the package, in nanoseconds since the epoch.

    Returns:
        None if a file changed after that: this process may run what was in it before.
    """
    try:
        return _known(stamp(), memory, imported_ns)
    except (OSError, StepwellError):
        # The sources are not files of a folder, or are being replaced; or a plug-in is broken,
        # which compilation says.
        return None


def _known(begun: Stamp, memory: TextMemory, imported_ns: int) -> tuple[str, Stamp] | None:
    if begun.changed > imported_ns - _CLOCKS_DIFFER_BY or imported_ns > time.time_ns():
        return None
    name = f"sources-{begun.digest}"
    known = memory.recall(name)
    if known is None:
        known = _read()
        if stamp() != begun:
            return None
        memory.remember(name, known)
    return known, begun


def _read() -> str:
    from importlib import metadata

    hashed = hashlib.sha256(repr((sys.version, sys.platform)).encode())
    for package in _PACKAGES:
        try:
            hashed.update(f"{package} {metadata.version(package)}\n".encode())
        except metadata.PackageNotFoundError:
            hashed.update(f"{package} is not installed\n".encode())
    for package in packages_of_plugins():
        hashed.update(f"{package.name} {package.version}\n".encode())
    for path in (*_sources(str(_ROOT)), *files_of_plugins()):
        content = Path(path).read_bytes()
        name = os.path.relpath(path, _ROOT).encode("utf-8", "surrogateescape")
        hashed.update(repr((name, len(content))).encode() + content)
    return hashed.hexdigest()


def _sources(folder: str) -> Iterator[str]:
    """The sources of a package and those in it, in the order of their names."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    if not any(entry.name == "__init__.py" for entry in entries):
        return
    for entry in entries:
        if entry.is_dir():
            yield from _sources(entry.path)
        elif entry.name.endswith(_ENDINGS):
            yield entry.path

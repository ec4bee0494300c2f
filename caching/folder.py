"""The folder of the cache: files that appear complete or not at all, of a bounded total size.

Machine code is loaded from it, so nobody else may write there: folder and files belong to the user,
and others have no permission to write. They are opened relative to the checked folder, so
neither is replaced in between. The time of modification of a file is that of its last use.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..core.errors import StepwellError, explain

VARIABLE, LIMIT_VARIABLE = "STEPWELL_CACHE", "STEPWELL_CACHE_MB"
"""The environment variables with the folder, or `off`, and with the largest total size."""
OFF = "off"
LIMIT = 4 << 30
"""The largest total size in bytes, by default."""
_ABANDONED_S = 3600.0
"""The age from which a file that was not finished counts as abandoned."""
_USES, _TEMPORARY = "uses", ".new-"
"""The file that has a byte for each use, and what the names of unfinished files begin with."""
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UnsafeError(OSError):
    """Others may have written to the folder, or to a file in it."""


@dataclass(frozen=True)
class Entry:
    """A file of the cache: its name, its size in bytes, and when it was last used."""

    name: str
    size: int
    used: float

    @property
    def is_begun(self) -> bool:
        """Whether a process is writing it."""
        begun = self.name.startswith(_TEMPORARY)
        return begun and time.time() - self.used <= _ABANDONED_S


@dataclass(frozen=True)
class Folder:
    """A folder for entries.

    Methods raise an `OSError` if the system refuses, an `UnsafeError` if others can write there.
    """

    path: Path
    limit: int = LIMIT

    def trouble(self, *, make: bool = False) -> str | None:
        """Why the folder cannot be used; None if it can.

        Args:
            make: whether to make it if there is none.
        """
        try:
            if make:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened():
                return None
        except OSError as error:
            return error.strerror or str(error)

    @contextmanager
    def read(self, name: str) -> Iterator[IO[bytes]]:
        """An entry, open for reading; it counts as used now."""
        with self._opened() as folder:
            handle = os.open(name, _READ, dir_fd=folder)
            with os.fdopen(handle, "rb") as file:
                _check(handle, stat.S_ISREG)
                with contextlib.suppress(OSError):  # A folder that is read-only is used as it is.
                    os.utime(handle)
                yield file

    def keep(self, name: str, write: Callable[[IO[bytes]], object]) -> None:
        """Write an entry, and remove the oldest ones if there are too many.

        An exception of `write` leaves everything as it was.
        """
        with self._opened() as folder:
            temporary = f"{_TEMPORARY}{secrets.token_hex(16)}"
            handle = os.open(temporary, _WRITE | os.O_EXCL, 0o600, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    write(file)
                    if file.tell() > self.limit:
                        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                _remove(temporary, folder)
                raise
            # Remove the oldest entries beyond the limit, and what was abandoned.
            entries = _entries(folder)
            total = sum(entry.size for entry in entries)
            for entry in entries:
                abandoned = entry.name.startswith(_TEMPORARY) and not entry.is_begun
                if abandoned or (total > self.limit and not entry.is_begun):
                    _remove(entry.name, folder)
                    total -= entry.size

    def count_use(self) -> None:
        """Count a use of the cache."""
        with self._opened() as folder:
            # Appending a byte is atomic.
            handle = os.open(_USES, _WRITE | os.O_APPEND, 0o600, dir_fd=folder)
            try:
                os.write(handle, b"\n")
            finally:
                os.close(handle)

    def uses(self) -> int:
        """How often the cache was used, since it was made or cleared."""
        with self._opened() as folder:
            try:
                return os.stat(_USES, dir_fd=folder, follow_symlinks=False).st_size
            except FileNotFoundError:
                return 0

    def entries(self) -> list[Entry]:
        """The entries, the one that was used last at the end."""
        with self._opened() as folder:
            return [entry for entry in _entries(folder) if not entry.name.startswith(_TEMPORARY)]

    def clear(self) -> None:
        """Remove all entries."""
        with self._opened() as folder:
            for entry in _entries(folder):
                if not entry.is_begun:
                    _remove(entry.name, folder)
            _remove(_USES, folder)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor of the folder, after a check of its owner and its mode."""
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _check(folder, stat.S_ISDIR)
            yield folder
        finally:
            os.close(folder)


def is_supported() -> bool:
    """Whether this system tells who owns a file, and opens files relative to a folder."""
    return hasattr(os, "geteuid") and {os.open, os.stat, os.unlink} <= os.supports_dir_fd


def folder_of_user() -> Folder | None:
    """The folder that the environment names, else one among the user's caches; None for none.

    Raises:
        StepwellError: if the environment has a wrong limit.
    """
    named = os.environ.get(VARIABLE)
    if not is_supported() or (named is not None and named.strip().lower() in ("", "0", OFF)):
        return None
    if named is not None:
        return Folder(Path(named), _limit())
    try:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # This user has no home.
        return None
    return Folder(Path(caches) / "stepwell", _limit())


def _limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return LIMIT
    if not text.isascii() or not text.isdigit():
        fact, expected = "wrong size", "a number of megabytes"
        raise StepwellError(explain(LIMIT_VARIABLE, fact, expected=expected, got=repr(text)))
    return int(text) << 20


def _check(handle: int, is_kind: Callable[[int], bool]) -> None:
    """Check that a file is of a kind, belongs to this user, and is not written to by others.

    Raises:
        UnsafeError: if not.
    """
    state = os.fstat(handle)
    if not is_kind(state.st_mode):
        raise UnsafeError("not a folder" if is_kind is stat.S_ISDIR else "not a regular file")
    if state.st_uid != os.geteuid():
        raise UnsafeError("it belongs to another user")
    if state.st_mode & _OTHERS:
        raise UnsafeError("others may write to it")


def _entries(folder: int) -> list[Entry]:
    """All files but the counter of uses, the oldest first."""
    found: list[Entry] = []
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(FileNotFoundError):  # Another process has removed it.
                state = file.stat(follow_symlinks=False)
                if stat.S_ISREG(state.st_mode) and file.name != _USES:
                    found.append(Entry(file.name, state.st_size, state.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.name))


def _remove(name: str, folder: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)

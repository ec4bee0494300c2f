"""Folders for the files of a run, which are removed even if the process that made them was killed.

The process that makes a folder holds a lock on a file in it, which the system releases when the
process ends, however it ends. Who makes the next folder in the same place removes those whose lock
nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX, _LOCK = "stepwell-", "lock"

_held: dict[str, int] = {}
"""The descriptors by which this process holds the locks of folders."""


def new_folder(parent: str) -> str:
    """A new folder, held by this process; folders of processes that have ended are removed.

    Raises:
        OSError: if it cannot be created.
    """
    remove_stale(parent)
    path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    join_folder(path)
    return path


def join_folder(path: str) -> None:
    """Create a folder, unless it is there, and hold it.

    Raises:
        OSError: if it cannot be created.
    """
    if path in _held:
        return
    for old in [old for old in list(_held) if not os.path.exists(old)]:
        _release(old)
    if not os.path.exists(path):
        remove_stale(os.path.dirname(path))
    while path not in _held:
        Path(path).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink:
            _held[path] = descriptor
        else:
            # Another process has taken it for a stale one before it was held.
            os.close(descriptor)


def remove_folder(path: str) -> None:
    """Remove a folder and what is in it."""
    shutil.rmtree(path, ignore_errors=True)
    _release(path)


def remove_stale(parent: str) -> None:
    """Remove the folders of processes that have ended."""
    for lock in Path(parent).glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            descriptor = os.open(lock, os.O_RDWR)
        except OSError:
            # It has just been removed, or belongs to another user.
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(descriptor)


def _release(path: str) -> None:
    descriptor = _held.pop(path, None)
    if descriptor is not None:
        os.close(descriptor)

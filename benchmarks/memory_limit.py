"""A limit of memory, page cache included, for child processes: a control group of version 1 or 2.

Linux has one of the two. Groups of version 1 are made by root; of version 2 by root, or below a
group that systemd has delegated to the user. Nothing runs without its limit by mistake: where no
group can be made, that is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
"""The groups that this process is in."""
UNITS = {"KiB": 10, "MiB": 20, "GiB": 30}


@contextmanager
def limited(memory: str | None) -> Iterator[Callable[[], None] | None]:
    """What a child does before it runs, to have limited memory.

    Args:
        memory: the limit, such as "800MiB"; None for none, and nothing to do.

    Raises:
        OSError: if no control group can be made.
    """
    if memory is None:
        yield None
        return
    group = _new_group(int(memory[:-3]) << UNITS[memory[-3:]])
    try:
        yield lambda: _write(group / "cgroup.procs", os.getpid())
    finally:
        group.rmdir()


def _new_group(size: int) -> Path:
    """A new group whose memory is limited."""
    reasons: list[str] = []
    for parent, settings in _parents(size):
        group = parent / f"stepwell-{os.getpid()}"
        try:
            if parent != GROUPS / "memory" and "memory" not in _words(parent, "subtree_control"):
                _write(parent / "cgroup.subtree_control", "+memory")
            group.mkdir()
            try:
                for name, value in settings:
                    _write(group / name, value)
            except OSError:
                group.rmdir()
                raise
        except OSError as reason:
            reasons.append(str(reason))
            continue
        return group
    raise OSError(f"memory cannot be limited: {'; '.join(reasons) or 'no control groups'}")


def _parents(size: int) -> Iterator[tuple[Path, list[tuple[str, object]]]]:
    """Groups in which one may be made, and what limits its memory, swapped one included."""
    if (GROUPS / "memory").is_dir():
        settings: list[tuple[str, object]] = [("memory.limit_in_bytes", size)]
        if (GROUPS / "memory" / "memory.memsw.limit_in_bytes").exists():
            settings.append(("memory.memsw.limit_in_bytes", size))
        yield GROUPS / "memory", settings
        return
    lines = OWN.read_text().splitlines() if OWN.exists() else []
    for own in (line.removeprefix("0::/") for line in lines if line.startswith("0::/")):
        for parent in (GROUPS / own, *(GROUPS / own).parents):
            if parent.is_relative_to(GROUPS) and "memory" in _words(parent, "controllers"):
                yield parent, [("memory.max", size), ("memory.swap.max", 0)]


def _words(group: Path, name: str) -> list[str]:
    path = group / f"cgroup.{name}"
    return path.read_text().split() if path.exists() else []


def _write(path: Path, value: object) -> None:
    path.write_text(str(value))

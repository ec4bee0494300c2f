"""What becomes of loops when their kernel is rebuilt: how a schedule finds them again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from .ops_loops import ForOp

Forwarded: TypeAlias = defaultdict[str, list[str]]
"""The names of the loops that an old one has become, by its name: the inner of two comes first."""

_FORWARDED: ContextVar[Forwarded | None] = ContextVar("forwarded", default=None)


@contextmanager
def forwarding() -> Iterator[Forwarded]:
    """Collect what becomes of the loops that are rebuilt within the context."""
    found: Forwarded = defaultdict(list)
    token = _FORWARDED.set(found)
    try:
        yield found
    finally:
        _FORWARDED.reset(token)


def forward(old: ForOp, new: ForOp) -> None:
    """Note that a new loop comes from an old one."""
    if (found := _FORWARDED.get()) is not None:
        found[old.loop_name.data].append(new.loop_name.data)

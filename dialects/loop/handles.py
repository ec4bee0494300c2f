"""What becomes of loops when their kernel is rebuilt: how a schedule finds them again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Parts:
    """Handles to what a loop has been cut into: loops over chunks, and the loops in these.

    The first part has the whole chunks; what may be left has one or several of its own.
    """

    outers: Sequence[str]
    """The loops over chunks, and over parts."""
    inners: Sequence[str]
    """The loop over the iterations of a chunk in each part."""
    forwarded: Forwarded

    @property
    def outer(self) -> str:
        """The loop over the whole chunks."""
        return self.outers[0]

    @property
    def inner(self) -> str:
        """The loop over the iterations of a whole chunk."""
        return self.inners[0]

    def nests(self, *loops: str) -> list[tuple[str, ...]]:
        """The inner loop of each part, followed by what has become of these loops in it."""
        return list(zip(self.inners, *(self.forwarded[loop] for loop in loops), strict=True))


# Handles that steps give, from the loops of the new kernel by name; see `passes/primitive.py`.


def parts(loops: Mapping[str, ForOp], forwarded: Forwarded, loop: str) -> Parts:
    """The loops over chunks, and those in them."""
    made = [loops[name] for name in forwarded[loop]]
    around = {op.parent_op() for op in made}
    outers = [op.loop_name.data for op in made if op in around]
    inners = [op.loop_name.data for op in made if op not in around]
    return Parts(outers, inners, forwarded)


def all_loops(loops: Mapping[str, ForOp], forwarded: Forwarded, loop: str) -> Sequence[str]:
    """The loops that a loop has become."""
    return forwarded[loop]


def one_loop(loops: Mapping[str, ForOp], forwarded: Forwarded, loop: str) -> str:
    """The only loop that a loop has become."""
    (name,) = forwarded[loop]
    return name

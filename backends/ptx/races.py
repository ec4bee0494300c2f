"""Which accesses to memory are not ordered by a barrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Accessors:
    """The threads that execute an instruction, ascending, each with what orders its accesses.

    Attributes:
        thread: their numbers in the grid.
        warp: the numbers of their warps in the grid.
        barriers: how many barriers of its block each has passed.
        syncs: how many of its warp.
        threads: the threads of a block.
        warps: the warps of a block.
    """

    thread: Array
    warp: Array
    barriers: Array
    syncs: Array
    threads: int
    warps: int


class _Record:
    """The accesses of one kind to each granule of a memory: a range of threads, and its time.

    A granule with one accessor in its latest interval has `first == last`. Accesses that are
    ordered before a later one are forgotten; those of several blocks never are.
    """

    def __init__(self, granules: int) -> None:
        self.first = np.full(granules, -1, np.int32)
        self.last = np.full(granules, -1, np.int32)
        self.barriers = np.zeros(granules, np.int32)
        self.syncs = np.zeros(granules, np.int32)

    def unordered(self, at: Array, who: Accessors) -> Array:
        """Whether there is an access by another thread that nothing orders before this one."""
        first, last = self.first[at], self.last[at]
        other = (first >= 0) & ((first != who.thread) | (last != who.thread))
        if not other.any():
            return other
        block = who.thread // who.threads
        same = (first // who.threads == block) & (last // who.threads == block)
        passed = same & (self.barriers[at] < who.barriers)
        warp = (self._warp(first, who) == who.warp) & (self._warp(last, who) == who.warp)
        return other & ~(passed | (warp & (self.syncs[at] < who.syncs)))

    def other(self, at: int, thread: int) -> int:
        """A thread that accessed a granule, another one than `thread` if there is one."""
        first = int(self.first[at])
        return first if first != thread else int(self.last[at])

    def add(self, at: Array, who: Accessors) -> None:
        """Note accesses, of which several may be to one granule."""
        kept = self.unordered(at, who)
        first = np.where(kept, np.minimum(self.first[at], who.thread), who.thread)
        last = np.where(kept, np.maximum(self.last[at], who.thread), who.thread)
        # Of several assignments to one element, the last one counts; threads ascend.
        self.first[at[::-1]] = first[::-1]
        self.last[at] = last
        self.barriers[at] = np.where(
            kept, np.maximum(self.barriers[at], who.barriers), who.barriers
        )
        self.syncs[at] = np.where(kept, np.maximum(self.syncs[at], who.syncs), who.syncs)

    @staticmethod
    def _warp(thread: Array, who: Accessors) -> Array:
        return thread // who.threads * who.warps + thread % who.threads // 32


_CONFLICTS = {
    "read": ("write", "atomic"),
    "write": ("write", "read", "atomic"),
    "atomic": ("write", "read"),
}
"""The kinds of accesses that have to be ordered before one of each kind."""
_DONE = {"read": "read", "write": "written", "atomic": "atomically updated"}


class Races:
    """The accesses to the granules of a memory since the launch."""

    def __init__(self, granules: int) -> None:
        self._granules = granules
        self._records: dict[str, _Record] = {}

    def access(self, kind: str, at: Array, who: Accessors) -> tuple[int, str] | None:
        """Note accesses; a race is the number of an accessor, and what another thread did.

        Args:
            kind: "read", "write" or "atomic".
            at: the granule of each accessor.
            who: the accessors.
        """
        for other in _CONFLICTS[kind]:
            if record := self._records.get(other):
                found = record.unordered(at, who)
                if found.any():
                    n = int(found.argmax())
                    return n, f"{_DONE[other]} by {self._named(record, at[n], who, n)}"
        record = self._records.get(kind)
        if record is None:
            record = self._records[kind] = _Record(self._granules)
        record.add(at, who)
        if kind == "write":
            several = (record.first[at] != who.thread) | (record.last[at] != who.thread)
            if several.any():
                n = int(several.argmax())
                return n, f"written by {self._named(record, at[n], who, n)}"
        return None

    @staticmethod
    def _named(record: _Record, at: Any, who: Accessors, n: int) -> str:
        other = record.other(int(at), int(who.thread[n]))
        return f"thread {other % who.threads} of block {other // who.threads}"

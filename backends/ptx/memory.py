"""The memories of a launch: global buffers, shared memory of blocks, local memory of threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .races import Accessors, Races

Array = np.ndarray[Any, np.dtype[Any]]

WINDOW = 40
"""A global buffer has 2^40 addresses around it: those beside it belong to it, and to no other."""
_HALF = 1 << (WINDOW - 1)
_VECTOR = 16
"""The bytes that LLVM loads where some of them are needed."""
SHARED, LOCAL = 1 << 62, 1 << 61
"""Where shared and local memory begin among generic addresses."""


@dataclass
class FaultError(Exception):
    """A mistake of one of the threads that execute an instruction.

    Attributes:
        kind: what it is called; see `EmulationError`.
        fact: what is wrong, in words.
        at: the number of the thread among those that execute the instruction.
    """

    kind: str
    fact: str
    at: int


class Region:
    """A buffer, or the shared or local memories of some blocks or threads, one after the other.

    Args:
        name: what it is called in messages.
        data: its bytes.
        granule: the bytes of the smallest access to it.
        size: the bytes of each of its parts; by default it is one.
        races: whether accesses of several threads are compared.
        defined: whether its bytes are.
        writable: whether threads may write to it.
        shift: the bytes, less than 256, by which it begins after a multiple of 256.
        padded: whether the rest of the last 16 bytes may be loaded, as memory that others have.
        private: whether each part is of one thread, as registers are: what is not defined may be
            stored there, and loaded again.
    """

    def __init__(
        self,
        name: str,
        data: Array,
        granule: int,
        *,
        size: int | None = None,
        races: bool = True,
        defined: bool = True,
        writable: bool = True,
        shift: int = 0,
        padded: bool = False,
        private: bool = False,
    ) -> None:
        granules = -(-data.size // granule)
        self.name, self.data, self.granule, self.writable = name, data, granule, writable
        self.size, self.shift = data.size if size is None else size, shift
        self.padding = -data.size % _VECTOR if padded else 0
        self.races = Races(granules) if races else None
        self.defined = None if defined else np.zeros(granules, bool)
        self.private = private
        self.pending = np.zeros(0, bool)

    def positions(self, offset: Array, width: int, used: int | None, part: Array | None) -> Array:
        """Checked positions in `data` of accesses at offsets in a part.

        Args:
            offset: the offsets.
            width: the bytes of an access.
            used: those of a load that are used, counted from its first one; None for a store.
            part: the numbers of the parts.

        Raises:
            FaultError: if one of the bytes is outside, or an offset is not a multiple of the width.
        """
        end, padding = (width, 0) if used is None else (used, self.padding)
        outside = (offset < 0) | (offset > self.size + padding - end)
        if outside.any():
            n = int(outside.argmax())
            fact = (
                f"{end} bytes at offset {offset[n]} are outside of the {self.size} of {self.name}"
            )
            raise FaultError("bounds", fact, n)
        unaligned = (offset + self.shift) % width != 0
        if unaligned.any():
            n = int(unaligned.argmax())
            fact = f"offset {offset[n]} of {self.name} is not a multiple of {width}"
            raise FaultError("alignment", fact, n)
        return offset if part is None else offset + part * self.size

    def load(self, at: Array, dtype: np.dtype[Any], who: Accessors, kind: str = "read") -> Array:
        """The elements at positions.

        Raises:
            FaultError: if one is not defined, or there is a race.
        """
        if self.padding and (at > self.data.size - dtype.itemsize).any():
            return self._load_padded(at, dtype, who, kind)
        for granule in self._granules(at, dtype.itemsize):
            if self.pending.size and self.pending[granule].any():
                fact = f"an asynchronous copy to {self.name} is not complete"
                raise FaultError("race", fact, int(self.pending[granule].argmax()))
            self._note(kind, granule, who)
        if not self.private and (missing := self.missing(at, dtype.itemsize)) is not None:
            raise FaultError("uninitialised", self.unwritten(at, missing), int(missing.argmax()))
        return self._as(dtype)[at // dtype.itemsize]

    def missing(self, at: Array, width: int) -> Array | None:
        """Which elements at positions are not defined; None if all are."""
        if self.defined is None:
            return None
        known = np.logical_and.reduce([self.defined[g] for g in self._granules(at, width)])
        return None if known.all() else ~known

    def unwritten(self, at: Array, missing: Array) -> str:
        """In words, that the first one of missing elements is."""
        return f"{self._byte(int(at[missing.argmax()]))} has not been written"

    def forget(self, at: Array, width: int) -> None:
        """Note that what has been stored at positions is not defined."""
        assert self.defined is not None, "the memory of a thread begins undefined"
        for granule in self._granules(at, width):
            self.defined[granule] = False

    def _load_padded(self, at: Array, dtype: np.dtype[Any], who: Accessors, kind: str) -> Array:
        """The elements at positions, of which some reach beyond the end: zeros are there."""
        inside = at <= self.data.size - dtype.itemsize
        found = np.zeros(len(at), dtype)
        thread, warp, barriers, syncs = (
            part[inside] for part in (who.thread, who.warp, who.barriers, who.syncs)
        )
        order = Accessors(thread, warp, barriers, syncs, who.threads, who.warps)
        try:
            found[inside] = self.load(at[inside], dtype, order, kind)
        except FaultError as fault:
            fault.at = int(np.flatnonzero(inside)[fault.at])
            raise
        raw = found.view(np.uint8).reshape(len(at), dtype.itemsize)
        for n in range(dtype.itemsize):
            some = ~inside & (at + n < self.data.size)
            raw[some, n] = self.data[at[some] + n]
        return found

    def store(self, at: Array, values: Array, who: Accessors, kind: str = "write") -> None:
        """Write elements at positions.

        Raises:
            FaultError: if it is not writable, or there is a race.
        """
        if not self.writable and len(at):
            raise FaultError("read-only", f"{self.name} cannot be written to", 0)
        for granule in self._granules(at, values.dtype.itemsize):
            self._note(kind, granule, who)
            if self.defined is not None:
                self.defined[granule] = True
        self._as(values.dtype)[at // values.dtype.itemsize] = values

    def update(
        self, at: Array, function: Any, operands: tuple[Array, ...], who: Accessors
    ) -> Array:
        """What was at positions, which a function of it and operands replaces, one after the other.

        Raises:
            FaultError: if one is not defined, or there is a race.
        """
        dtype = operands[0].dtype
        old = self.load(at, dtype, who, "atomic")
        if not self.writable and len(at):
            raise FaultError("read-only", f"{self.name} cannot be written to", 0)
        memory, place = self._as(dtype), at // dtype.itemsize
        # Round by round, the next thread of each address.
        order = np.argsort(place, kind="stable")
        starts = (
            np.r_[True, place[order][1:] != place[order][:-1]] if len(at) else np.zeros(0, bool)
        )
        numbers = np.arange(len(at))
        rank = np.empty(len(at), np.intp)
        rank[order] = numbers - np.maximum.accumulate(np.where(starts, numbers, 0))
        for turn in range(int(rank.max(initial=-1)) + 1):
            chosen = np.flatnonzero(rank == turn)
            old[chosen] = memory[place[chosen]]
            memory[place[chosen]] = function(old[chosen], *(x[chosen] for x in operands))
        return old

    def begin_copy(self, at: Array, values: Array, who: Accessors) -> list[Array]:
        """Write elements that nobody may read until `end_copy` of the granules that it returns."""
        found = list(self._granules(at, values.dtype.itemsize))
        if not self.pending.size:
            self.pending = np.zeros(-(-self.data.size // self.granule), bool)
        self.store(at, values, who)
        for granule in found:
            self.pending[granule] = True
        return found

    def end_copy(self, granules: list[Array], who: Accessors) -> None:
        """Complete copies: as if their threads had written what they copied just now."""
        for granule in granules:
            self.pending[granule] = False
            self._note("write", granule, who)

    def _granules(self, at: Array, width: int) -> list[Array]:
        """The granules of accesses: one array, or several of accesses that have several."""
        first = at // self.granule
        return [first + n for n in range(width // self.granule)]

    def _note(self, kind: str, granule: Array, who: Accessors) -> None:
        if self.races is None or not len(granule):
            return
        if found := self.races.access(kind, granule, who):
            n, did = found
            where = self._byte(int(granule[n]) * self.granule)
            fact = f"{where} was {did}, and no barrier lies between"
            raise FaultError("race", fact, n)

    def _byte(self, at: int) -> str:
        return f"byte {at % self.size} of {self.name}"

    def _as(self, dtype: np.dtype[Any]) -> Array:
        whole = self.data.size // dtype.itemsize * dtype.itemsize
        return self.data[:whole].view(dtype)


class GlobalMemory:
    """Buffers by the number of their windows, from 1."""

    def __init__(self) -> None:
        self.regions: list[Region] = []

    def add(self, region: Region) -> int:
        """The address of a new buffer."""
        self.regions.append(region)
        return (len(self.regions) << WINDOW) + _HALF + region.shift

    def of(self, address: Array) -> list[tuple[Array | slice, Region, Array]]:
        """The accesses to each buffer: which they are, the buffer, and their offsets.

        Raises:
            FaultError: if an address is in no buffer.
        """
        window = address >> np.uint64(WINDOW)
        found: list[tuple[Array | slice, Region, Array]] = []
        if not len(window):
            return found
        same = window[0] == window[-1] and (window == window[0]).all()
        for number in window[:1] if same else np.unique(window):
            if not 1 <= number <= len(self.regions):
                n = int((window == number).argmax())
                raise FaultError("bounds", f"address {int(address[n]):#x} is in no buffer", n)
            chosen = slice(None) if same else np.flatnonzero(window == number)
            region = self.regions[int(number) - 1]
            start = (int(number) << WINDOW) + _HALF + region.shift
            found.append((chosen, region, address[chosen].astype(np.int64) - start))
        return found

"""Counters of a launch: what costs time on a device, by instruction and in all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

SECTOR, BANKS, WORD = 32, 32, 4


@dataclass
class LineCounters:
    """The counters of an instruction, over all warps.

    Attributes:
        line: its line in the text.
        text: the instruction.
        group: the kind of work: "fma", "float", "special", "integer", "move", "conversion",
            "control", "barrier", "shuffle", or "load", "store" and "atomic" with a state space.
        source: the file and line that it was compiled from, if the text says.
        warps: how often a warp executed it.
        threads: how often a thread did.
        diverged: how often the threads of a warp went different ways.
        sectors: the sectors of 32 bytes of global memory that were accessed, each access of a warp
            counted by itself.
        bytes: the different bytes in them that were accessed, counted likewise.
        wavefronts: the accesses to shared memory, of which each serves all banks once.
        conflicts: those of them that there would not be without bank conflicts.
    """

    line: int
    text: str
    group: str
    source: str | None
    warps: int = 0
    threads: int = 0
    diverged: int = 0
    sectors: int = 0
    bytes: int = 0
    wavefronts: int = 0
    conflicts: int = 0


_SUMS = ("warps", "threads", "diverged", "sectors", "bytes", "wavefronts", "conflicts")


@dataclass(frozen=True)
class Emulation:
    """The counters of a launch (see `stepwell.emulate`).

    Attributes:
        kernel: its name.
        blocks: the number of blocks.
        threads: the threads of a block.
        shared_bytes: the shared memory of a block.
        lines: the instructions that were executed, in the order of the text.
    """

    kernel: str
    blocks: int
    threads: int
    shared_bytes: int
    lines: tuple[LineCounters, ...]

    def total(self, counter: str) -> int:
        """The sum of one counter over all instructions, such as "sectors"."""
        return sum(getattr(row, counter) for row in self.lines)

    @property
    def mix(self) -> dict[str, int]:
        """How often warps executed instructions of each group, the most frequent first."""
        found: dict[str, int] = {}
        for row in self.lines:
            found[row.group] = found.get(row.group, 0) + row.warps
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def coalescing(self) -> float | None:
        """The part of the sectors of global memory that was used; None without accesses."""
        sectors = self.total("sectors")
        return self.total("bytes") / (SECTOR * sectors) if sectors else None

    @property
    def occupied(self) -> float:
        """The part of the threads of warps that took part in an instruction, on average."""
        warps = self.total("warps")
        return self.total("threads") / (32 * warps) if warps else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The dictionary that `json` writes."""
        return {
            "schema": 1,
            "kernel": self.kernel,
            "blocks": self.blocks,
            "threads": self.threads,
            "shared_bytes": self.shared_bytes,
            "mix": self.mix,
            "coalescing": self.coalescing,
            "occupied": self.occupied,
            **{name: self.total(name) for name in _SUMS},
            "lines": [asdict(row) for row in self.lines],
        }

    def json(self) -> str:
        """The counters as a JSON object, described in `docs/gpu.md`."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        warps = self.total("warps")
        launch = f"{self.blocks} blocks of {self.threads} threads"
        active = f"{self.occupied:.1%} of their threads"
        lines = [
            f"{self.kernel}: {launch}, {self.shared_bytes} bytes of shared memory",
            f"{warps} instructions of warps, with {active}; {self.total('diverged')} divergences",
            "mix: " + ", ".join(f"{n / warps:.1%} {group}" for group, n in self.mix.items()),
        ]
        if self.coalescing is not None:
            sectors = f"{self.total('sectors')} sectors"
            lines.append(f"global memory: {sectors}, {self.coalescing:.1%} of them used")
        if self.total("wavefronts"):
            lines.append(
                f"shared memory: {self.total('wavefronts')} wavefronts, "
                f"{self.total('conflicts')} of them for bank conflicts"
            )
        return "\n".join(lines)

    def listing(self) -> str:
        """The instructions with their counters, as a table."""
        names = ("line", "warps", "threads", *_SUMS[2:])
        rows = [names, *(tuple(str(getattr(row, n)) for n in names) for row in self.lines)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        texts = ("instruction", *(row.text for row in self.lines))
        return "\n".join(
            "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=True)), text])
            for row, text in zip(rows, texts, strict=True)
        )


def count_global(row: LineCounters, warp: Array, address: Array, width: int) -> None:
    """Count an access of some threads of each of some warps to global memory."""
    tag = warp.astype(np.uint64) << np.uint64(44)
    row.sectors += len(_distinct(tag | (address >> np.uint64(5)) & np.uint64((1 << 44) - 1)))
    row.bytes += width * len(
        _distinct(tag | (address // np.uint64(width)) & np.uint64((1 << 44) - 1))
    )


def count_shared(row: LineCounters, warp: Array, lane: Array, offset: Array, width: int) -> None:
    """Count an access to shared memory: in a wavefront, each bank serves one word of 4 bytes.

    Accesses of 8 and 16 bytes are made by half and quarter warps.
    """
    words = max(1, width // WORD)
    part = warp.astype(np.int64) * words + lane * words // 32
    word = (offset // WORD)[:, None] + np.arange(words)
    keys = _distinct(((part << 32)[:, None] | word).ravel())
    part_of, bank = keys >> 32, keys % BANKS
    first = part_of[0]
    counts = np.bincount((part_of - first) * BANKS + bank).astype(np.int64)
    counts = np.pad(counts, (0, -len(counts) % BANKS)).reshape(-1, BANKS).max(1)
    row.wavefronts += int(counts.sum())
    row.conflicts += int(counts.sum() - (counts > 0).sum())


def _distinct(keys: Array) -> Array:
    """The different ones of some keys, ascending."""
    if len(keys) > 1 and (keys[1:] < keys[:-1]).any():
        keys = np.sort(keys)
    return keys[np.r_[True, keys[1:] != keys[:-1]]]

"""The progress of what reads all edges, and of runs by stages, for `stepwell.progress`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from ..core.progress import report
from .edges import Chunk, Edges


def reported(edges: Edges, text: str, done: int = 0, total: int | None = None) -> Edges:
    """Edges that report each piece that is read of them.

    Args:
        edges: the edges.
        text: what they are read for.
        done: the number of edges that were read before, for another reason.
        total: the number of edges that are read in all; None if it is not known.
    """

    def read() -> Iterator[Chunk]:
        count = 0
        for chunk in edges.read():
            report(text, done + count, total, f"{count / 1e6:.1f} M edges")
            yield chunk
            count += len(chunk[0])

    return replace(edges, read=read)


class Visits:
    """Reports the entries that the stages of a run visit, and at what rate.

    Args:
        stages: the number of stages.
        entries: the number of entries that each visits.
    """

    def __init__(self, stages: int, entries: int) -> None:
        self._stages, self._entries = stages, entries
        self._begun, self._visited, self._done = time.monotonic(), 0, 0

    def add(self, stage: int, visited: int) -> None:
        """Report entries that a stage, a number from 0 on, has visited since the last call."""
        self._visited += visited
        self._report(stage, visited)

    def skip(self, stage: int) -> None:
        """Report a stage that an earlier run has finished."""
        self._report(stage, self._entries)

    def _report(self, stage: int, more: int) -> None:
        self._done += more
        rate = self._visited / max(time.monotonic() - self._begun, 1e-9) / 1e6
        text, total = f"stage {stage + 1} of {self._stages}", self._stages * self._entries
        report(text, self._done, total, f"{rate:.1f} M entries/s")

"""`Profile`: the time of a program, by kernel and by node of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.display import displayed

SCHEMA = 1
"""The version of the JSON form; it increases when a key changes its meaning or is removed."""

_LONGEST = 40


@dataclass(frozen=True)
class Row:
    """One kernel, or one node, in one run of the program.

    `of` names the nodes of a kernel, or the kernels of a node. `part` is the fraction of the total
    time. `flops` and `bytes` are None if unknown; `bytes` counts operands and results once each.
    `limit` is the least possible time as a fraction of the measured time, and `bound` the limiting
    resource: "compute" or "memory".
    """

    name: str
    of: tuple[str, ...]
    calls: int
    seconds: float
    part: float
    flops: int | None
    bytes: int | None
    limit: float | None
    bound: str | None

    @property
    def gflops(self) -> float | None:
        """Floating-point operations per second, in billions."""
        return _rate(self.flops, self.seconds)

    @property
    def gbytes(self) -> float | None:
        """Bytes per second, in billions."""
        return _rate(self.bytes, self.seconds)

    def cells(self) -> tuple[str, ...]:
        """The row as people read it; see `HEADINGS`."""
        return (
            short(self.name),
            f"{self.seconds * 1e6:.2f}",
            f"{self.part:.1%}",
            str(self.calls),
            _number(self.gflops),
            _number(self.gbytes),
            "" if self.limit is None else f"{self.limit:.0%} of {self.bound}",
            short(", ".join(self.of)),
        )

    def as_dict(self, members: str) -> dict[str, Any]:
        """The row as a dictionary, in which `members` is the key of `of`."""
        return {
            "name": self.name,
            members: list(self.of),
            "calls": self.calls,
            "seconds": self.seconds,
            "part": self.part,
            "flops": self.flops,
            "bytes": self.bytes,
            "gflops": self.gflops,
            "gbytes": self.gbytes,
            "limit": self.limit,
            "bound": self.bound,
        }


HEADINGS = ("us", "time", "calls", "GFLOP/s", "GB/s", "of the limit")
"""The headings of the cells of a row between its name and its members."""


@dataclass(frozen=True)
class Profile:
    """The time of a program, by kernel and by node.

    `seconds` is the time of one run, a mean over the faster half of `runs`: the call of machine
    code, without the Python code around it. `kernels` and `nodes` are sorted by time, the longest
    first. `threads` is the maximum number of threads of a call, `gflops` their peak performance,
    and `read` their bandwidth in GB/s, by the size of the buffer in bytes. `refused` is empty, or
    one sentence that says why rows are not compared with these limits.
    """

    seconds: float
    runs: int
    threads: int
    gflops: float
    read: dict[int, float]
    kernels: tuple[Row, ...]
    nodes: tuple[Row, ...]
    refused: str = ""

    @property
    def attributed(self) -> float:
        """The fraction of the time that is attributed to nodes."""
        return sum(row.part for row in self.nodes)

    def to_dict(self) -> dict[str, Any]:
        """The dictionary that `json` writes."""
        return {
            "schema": SCHEMA,
            "seconds": self.seconds,
            "runs": self.runs,
            "threads": self.threads,
            "attributed": self.attributed,
            "limits": {"gflops": self.gflops, "gbytes": {str(n): r for n, r in self.read.items()}},
            "refused": self.refused or None,
            "kernels": [row.as_dict("nodes") for row in self.kernels],
            "nodes": [row.as_dict("kernels") for row in self.nodes],
        }

    def json(self) -> str:
        """The profile as a JSON object, described in `docs/profiling.md`."""
        return json.dumps(self.to_dict(), indent=2)

    def summary(self) -> str:
        """The first line of the text."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return (
            f"{self.seconds * 1e6:.2f} us per run, over {self.runs} runs on {threads}; "
            f"{self.attributed:.1%} of it attributed to nodes"
        )

    def _repr_html_(self) -> str:
        return displayed(self)

    def __str__(self) -> str:
        lines = [self.summary()]
        for name, members, rows in (
            ("kernel", "nodes", self.kernels),
            ("node", "kernels", self.nodes),
        ):
            lines += ["", *_table([(name, *HEADINGS, members), *(row.cells() for row in rows)])]
        return "\n".join([*lines, *(["", self.refused] if self.refused else [])])


@dataclass(frozen=True)
class CallFacts:
    """What is known of calls of a program, for a report: nothing by default.

    `inputs` are their arguments as `core.boundary.arguments.taken` returns them, `sizes` the
    symbolic sizes.
    """

    profile: Profile | None = None
    inputs: Sequence[object] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows in columns: the first and the last are text, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if n in (0, last) else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def short(text: str) -> str:
    """A text, shortened to `_LONGEST` characters."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _rate(count: int | None, seconds: float) -> float | None:
    return None if count is None or not seconds else count / seconds / 1e9


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"

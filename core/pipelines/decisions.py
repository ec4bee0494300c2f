"""Decisions of passes, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RemarkKind = Literal["passed", "missed", "analysis"]


@dataclass(frozen=True)
class Decision:
    """A decision of a pass: its subject, what was done, the reason, and the cost.

    `kind` is "passed" for a change, "missed" for a candidate that was left alone, and "analysis"
    for information. `cost` includes its unit, such as ``"2.4 MFLOP"``. `nodes` are the nodes of the
    model that it concerns, `places` their positions in a file, as ``file:line:column``, if
    locations have them. `stage` and `pass_name` are those of the pass ("" if it runs outside of the
    staircase, or of a pipeline).
    """

    subject: str
    what: str
    why: str
    cost: str | None = None
    nodes: tuple[str, ...] = ()
    stage: str = ""
    pass_name: str = ""
    kind: RemarkKind = "passed"
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        cost = f" [{self.cost}]" if self.cost else ""
        return f"{self.subject}: {self.what}, because {self.why}{cost}"

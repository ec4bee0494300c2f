"""`Fate`: what became of a node of the model, as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core.pipelines.decisions import Decision

SCHEMA = 1
"""The version of the JSON form; it increases when a key changes its meaning or is removed."""

MOST = 8
"""The number of operations of a function that are listed; the others are only counted."""


@dataclass(frozen=True)
class NodePlace:
    """The operations of a node in a function of a stage.

    `operations` are those of the node: the text of a few operations of the model, else names and
    numbers. `count` is their number, `of` that of all operations of the function. `with_` are the
    other nodes that they compute, `loops` the loops of a kernel that belong to the node.
    """

    function: str
    operations: tuple[str, ...]
    count: int
    of: int
    with_: tuple[str, ...]
    loops: tuple[str, ...]

    def __str__(self) -> str:
        of = f" ({self.count} of {self.of} operations)" if self.count < self.of else ""
        shared = f", with {', '.join(self.with_)}" if self.with_ else ""
        lines = [f"@{self.function}{of}{shared}", *(f"  {line}" for line in self.operations)]
        if self.loops:
            lines.append(f"  loops: {', '.join(self.loops)}")
        return "\n".join(f"    {line}" for line in lines)


@dataclass(frozen=True)
class NodeChange:
    """A pass that changed the operations of a node: their names before and after it."""

    stage: str
    pass_name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.pass_name}: {listed(self.before)} became {listed(self.after)}"


@dataclass(frozen=True)
class Fate:
    """What became of a node.

    `stages` holds the functions with operations of the node, by stage, `lines` its lines in the
    debug information. `vanished` is the reason if no operation of it is left at the end.
    """

    node: str
    stages: Mapping[str, tuple[NodePlace, ...]]
    lines: tuple[str, ...]
    changes: tuple[NodeChange, ...]
    decisions: tuple[Decision, ...]
    vanished: str | None

    def to_dict(self) -> dict[str, Any]:
        """The dictionary that `json` writes."""
        stages = {
            stage: [
                {key.removesuffix("_"): value for key, value in asdict(place).items()}
                for place in found
            ]
            for stage, found in self.stages.items()
        }
        return {
            "schema": SCHEMA,
            "node": self.node,
            "stages": stages,
            "llvm-ir": list(self.lines),
            "changes": [asdict(change) for change in self.changes],
            "decisions": [asdict(decision) for decision in self.decisions],
            "vanished": self.vanished,
        }

    def json(self) -> str:
        """The fate as a JSON object, described in `docs/profiling.md`."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        lines = [f'node "{self.node}"']
        for stage, found in self.stages.items():
            lines.append(f"  {stage}" if found else f"  {stage}: nothing")
            lines += [f"    {change}" for change in self.changes if change.stage == stage]
            lines += map(str, found)
        if self.lines:
            lines += ["  llvm-ir", *(f"    {line}" for line in self.lines)]
        if self.vanished is not None:
            lines.append(f"  {self.vanished}")
        if self.decisions:
            lines.append("  decisions")
            lines += [f"    {d.stage}, {d.pass_name}: {d}" for d in self.decisions]
        return "\n".join(lines)


def listed(kinds: Iterable[str]) -> str:
    """Names of operations with their counts: ``graph.dense, 2 graph.constant``."""
    counts = Counter(kinds).most_common()
    shown = [f"{number} {name}" if number > 1 else name for name, number in counts[:MOST]]
    rest = sum(number for _, number in counts[MOST:])
    return ", ".join([*shown, *([f"{rest} more"] if rest else [])]) or "nothing"

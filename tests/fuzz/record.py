"""The record of what was checked: `record.json`, added to by `python -m tests.fuzz --record`."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from stepwell.core.registry import own_dialects, own_passes

from .running import Summary

PATH = Path(__file__).with_name("record.json")
DIALECTS = ("graph", "loop", "rt")
LEAST = 100
"""How often each pass is to run, and each operation of these dialects is to occur."""


@dataclass
class Record:
    """Ranges of seeds, what became of their modules, and how often what ran.

    `ranges` has for each level the first and the last seed of ranges without a difference that is
    left; `kinds` counts modules by level and outcome.
    """

    ranges: dict[str, list[list[int]]] = field(default_factory=dict)
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def read() -> Record:
        """The record of the repository."""
        return Record(**json.loads(PATH.read_text())) if PATH.exists() else Record()

    def next_seed(self, level: str) -> int:
        """The first seed after all that were checked."""
        return max((last for _, last in self.ranges.get(level, [])), default=0)

    def add(self, level: str, first: int, last: int, summary: Summary) -> None:
        """Add a range."""
        ranges = self.ranges.setdefault(level, [])
        if ranges and ranges[-1][1] == first:
            ranges[-1][1] = last
        else:
            ranges.append([first, last])
        kinds = Counter(self.kinds.get(level, {})) + summary.kinds
        self.kinds[level] = dict(sorted(kinds.items()))
        self.passes = dict(sorted((Counter(self.passes) + summary.passes).items()))
        self.operations = dict(sorted((Counter(self.operations) + summary.operations).items()))

    def rare(self) -> dict[str, int]:
        """The passes that ran, and the operations that occurred, less than `LEAST` times."""
        loads = own_dialects()
        operations = [op.name for name in DIALECTS for op in loads[name]().operations]
        counts = {name: self.passes.get(name, 0) for name in own_passes()}
        counts |= {name: self.operations.get(name, 0) for name in operations}
        return {name: count for name, count in counts.items() if count < LEAST}

    def write(self) -> None:
        """Write the record of the repository."""
        PATH.write_text(json.dumps(self.__dict__, indent=1) + "\n")

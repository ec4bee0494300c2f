"""Reports of hooks, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Protocol


class HookReport(Protocol):
    """Something to report."""

    def __str__(self) -> str:
        """The text for people, without the end of its last line."""
        ...

    def record(self) -> dict[str, Any]:
        """The report as a JSON object, whose `report` is its kind."""
        ...


Reporter = Callable[[HookReport], None]


def write_text(report: HookReport) -> None:
    """Write a report to standard error as text."""
    print(report, file=sys.stderr, flush=True)


def write_json(report: HookReport) -> None:
    """Write a report to standard error as one line of JSON."""
    print(json.dumps(report.record(), ensure_ascii=False), file=sys.stderr, flush=True)

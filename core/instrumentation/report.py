"""What hooks tell, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Protocol


class Report(Protocol):
    """Something to tell."""

    def __str__(self) -> str:
        """The text for people, without the end of its last line."""
        ...

    def record(self) -> dict[str, Any]:
        """The same as an object of JSON, whose `report` says what it is."""
        ...


Tell = Callable[[Report], None]


def tell_text(report: Report) -> None:
    """Write a report to the standard error as text."""
    print(report, file=sys.stderr, flush=True)


def tell_json(report: Report) -> None:
    """Write a report to the standard error as one line of JSON."""
    print(json.dumps(report.record(), ensure_ascii=False), file=sys.stderr, flush=True)

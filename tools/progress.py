"""Progress of what takes more than two seconds, with the time that is left: on terminals only."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from ..core.logs import logger
from .console import err

AFTER = 2.0
"""Seconds before anything is shown."""


@contextmanager
def passes_shown(what: str) -> Iterator[None]:
    """Show which pass runs, how many have, and the time that is left, on stderr.

    It follows what `stepwell.passes` logs, so all that runs passes is shown.
    """
    if not err.is_terminal:
        yield
        return
    log = logger("passes")
    level, bar = log.level, _Bar(what)
    log.addHandler(bar)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(bar)
        bar.end()


class _Bar(logging.Handler):
    """Shows the passes that are logged, from `AFTER` seconds on."""

    def __init__(self, what: str) -> None:
        super().__init__(logging.DEBUG)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=err,
            transient=True,
        )
        self._task: TaskID = self._progress.add_task(what, total=None)
        self._timer = threading.Timer(AFTER, self._progress.start)
        self._timer.daemon = True
        self._timer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Show the pass of a record, and how many there are."""
        done, left = getattr(record, "done", None), getattr(record, "left", None)
        if isinstance(done, int) and isinstance(left, int):
            text = record.getMessage().partition("{")[0]
            self._progress.update(self._task, description=text, completed=done, total=done + left)

    def end(self) -> None:
        """Remove what is shown."""
        self._timer.cancel()
        self._progress.stop()

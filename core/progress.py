"""The progress of what takes long: who does it reports, and `progress` shows it to those who ask.

Reports are made whether anybody follows them or not, and nothing is printed unless somebody does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

AFTER = 2.0
"""Seconds before anything is shown."""


@dataclass(frozen=True)
class ProgressStep:
    """A step of something that takes long.

    `text` says what begins or was done, `done` and `total` are steps or seconds, and `note` is how
    far that is in words. `total` is None where nobody knows it.
    """

    text: str
    done: float
    total: float | None
    note: str


_FOLLOWERS: list[Callable[[ProgressStep], None]] = []


def report(text: str, done: float, total: float | None, note: str = "") -> None:
    """Report a step to those who follow; by default its note is the number of steps."""
    for follow in tuple(_FOLLOWERS):
        steps = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        follow(ProgressStep(text, done, total, note or steps))


@contextmanager
def followed(follow: Callable[[ProgressStep], None]) -> Iterator[None]:
    """Call a function for each step that is reported meanwhile, on the thread that does it."""
    _FOLLOWERS.append(follow)
    try:
        yield
    finally:
        _FOLLOWERS.remove(follow)


@contextmanager
def progress(
    what: str = "working", *, after: float | None = None, console: Console | None = None
) -> Iterator[None]:
    """Show what is done meanwhile, how far it is, and the time that is left, on stderr.

        with sw.progress():
            exe = sw.compile(module, check=True)

    `compile`, its checks, `bisect`, `reduce`, `export` and `tune` report their steps, as do
    `partition` and the runs of `distribute` and `out_of_core`. Nothing is shown of what is done
    sooner, in another `progress`, or where stderr is neither a terminal nor that of a notebook
    (which needs ipywidgets); what was shown is removed in the end.

    Args:
        what: what is shown until the first step.
        after: the seconds before anything is shown; by default 2.
        console: where to show it; by default stderr.
    """
    from rich.console import Console

    screen = Console(stderr=True) if console is None else console
    if not (screen.is_terminal or screen.is_jupyter) or any(
        isinstance(follow, _Bar) for follow in _FOLLOWERS
    ):
        yield
        return
    bar = _Bar(what, AFTER if after is None else after, screen)
    try:
        with followed(bar):
            yield
    finally:
        bar.end()


class _Bar:
    """A bar that is shown from some seconds on."""

    def __init__(self, what: str, after: float, console: Console) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task: Any = self._progress.add_task(what, total=None, note="")
        self._done = 0.0
        self._timer = threading.Timer(after, self._progress.start)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, step: ProgressStep) -> None:
        """Show a step; the first one of something else begins a new estimate."""
        if step.done < self._done:
            self._progress.reset(self._task)
        self._done = step.done
        self._progress.update(
            self._task,
            description=step.text,
            completed=step.done,
            total=step.total,
            note=step.note,
        )

    def end(self) -> None:
        """Remove what is shown."""
        self._timer.cancel()
        # It may be about to show the bar.
        self._timer.join()
        self._progress.stop()

"""The progress of a run on the terminal: the rate, and the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(stages: int, entries: int, progress: bool | None) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of a run, by stages and visited entries of each.

    Args:
        stages: the number of stages.
        entries: the number of entries that each visits.
        progress: whether to show it on stderr; None if that is a terminal.

    Yields:
        a function that takes the number of a stage, and of entries that it has visited since.
    """
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda stage, visited: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed / 1e6:.1f} M entries/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=stages * entries)

        def advance(stage: int, visited: int) -> None:
            bar.update(task, advance=visited, description=f"stage {stage + 1} of {stages}")

        yield advance

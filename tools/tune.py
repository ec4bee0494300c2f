"""`stepwell tune`: search for faster schedules of a model, and record them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from .command import ModelOptions, ModelPath, err, out
from .grouped import grouped
from .models import parse_sizes
from .timing import duration

if TYPE_CHECKING:
    from ..tuning.search import Tuned

_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    TextColumn("{task.fields[tried]} tried, best {task.fields[best]}"),
    TimeElapsedColumn(),
    TextColumn("left"),
    TimeRemainingColumn(),
)
"""The columns of the progress bar."""


@grouped
def tune(
    model: ModelPath,
    budget: Annotated[
        float, typer.Option("--budget", "-b", help="The approximate time limit, in seconds.")
    ] = 60.0,
    records: Annotated[
        Path | None,
        typer.Option(
            "--records",
            help="The database (else that of `STEPWELL_TUNING`, or of the user).",
            show_default=False,
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="A symbolic size, as in `batch=64` (else 1); repeatable."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", help="The time limit of a candidate, in seconds.")
    ] = 20.0,
    *,
    options: ModelOptions,
) -> None:
    """Search for faster schedules of a model by measured runs, and record them.

    `stepwell tune model.onnx --budget 60`

    All commands, and `stepwell.compile`, then use them. Ctrl-C ends the search and keeps its
    results, from which the next search continues.
    """
    from ..tuning.search import Progress as Step
    from ..tuning.search import tune as tune_module

    module = options.load(model)
    with Progress(*_COLUMNS, console=err, transient=True) as bar:
        task = bar.add_task("tuning", total=budget, tried=0, best="1.00")

        def show(step: Step) -> None:
            about, best = f"@{step.kernel}", f"{step.best:.2f}"
            bar.update(task, completed=step.seconds, description=about, tried=step.tried, best=best)

        tuned = tune_module(
            module,
            budget,
            target=options.target,
            threads=options.threads,
            opt_level=options.level,
            sizes=parse_sizes(sizes or []),
            records=records,
            timeout_s=timeout,
            progress=show,
        )
    _print(tuned)


def _print(tuned: Tuned) -> None:
    """Print the schedules that were kept, and how much faster they are."""
    if tuned.kept:
        table = Table("kernel", "a call", "times the default", "schedule")
        for record in tuned.kept:
            taken = "-" if record.seconds is None else duration(record.seconds)
            table.add_row(record.kernel, taken, f"{record.ratio:.2f}", record.trace)
        out.print(table)
    ended = "stopped; " if tuned.stopped else ""
    print(f"{ended}{tuned.tried} schedules measured, {tuned.failed} of them failed")
    faster = f"a call takes {tuned.ratio:.2f} of the time" if tuned.kept else "none is faster"
    print(f"{faster}; recorded in {tuned.path}" if tuned.path else f"{faster}; not recorded")

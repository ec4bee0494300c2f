"""Time the compiled programs beside their peers, in one process with the runs interleaved.

    python benchmarks/run.py                     # everything, on one thread and on two
    python benchmarks/run.py --only MLP -t 1     # some cases
    python benchmarks/run.py --squares           # square products from 64 to 2048

Weights and data are read from the folder `STEPWELL_DATA`, by default `shared/data` beside the
repository. Peers that are not installed, and cases without data or without any peer, are reported
and skipped; `pip install '.[bench]'` installs all peers.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from cases import CASES, SQUARES, Case, Entry, LeftOutError, matmul
from chart import draw
from peers import OURS, Call, Compared, library_threads, missing
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import stepwell as sw
from stepwell.runtime.limits import Limits, measure_limits
from stepwell.tools.timing import Timing, duration, measure

# What is timed is compiled, whatever was compiled before.
os.environ["STEPWELL_CACHE"] = "off"


@dataclass(frozen=True)
class Result(Compared):
    """The measurements of one case, in seconds, and the figures derived from them."""

    case: str
    threads: int
    compile_seconds: float
    times: dict[str, Timing]
    gflops: float
    gbytes: float
    share: float
    """The fraction of the machine's limit, of multiply-adds or of memory bandwidth."""
    largest_difference: float
    goal: float | None


def run(name: str, entry: Entry, threads: int, limits: Limits) -> Result:
    """Compile and time one case.

    Raises:
        LeftOutError: if its data or all of its peers are missing.
        SystemExit: if the result of a peer differs.
    """
    case = entry.make()
    if not case.peers:
        raise LeftOutError("no peer that computes it is installed")
    start = time.perf_counter()
    exe = sw.compile(case.module, threads=threads)
    compiled = time.perf_counter() - start
    calls: dict[str, Call] = {OURS: lambda: exe(*case.inputs)}
    calls |= {peer: make(threads) for peer, make in case.peers.items()}
    expected = np.asarray(calls[OURS]())
    difference = 0.0
    for peer, call in calls.items():
        got = np.asarray(call())
        error = float(np.abs(got - expected).max() / max(1.0, np.abs(expected).max()))
        if not error <= entry.tolerance:
            raise SystemExit(f"{name}: {peer} differs by {error:.2g}")
        difference = max(difference, error)
    with library_threads(threads):
        times = measure(calls)
    return _result(name, entry, case, threads, compiled, times, difference, limits)


def _result(
    name: str,
    entry: Entry,
    case: Case,
    threads: int,
    compiled: float,
    times: dict[str, Timing],
    difference: float,
    limits: Limits,
) -> Result:
    seconds = times[OURS].median
    gflops, gbytes = case.flops / seconds / 1e9, case.moved / seconds / 1e9
    share = gflops / limits.gflops
    if case.limit == "memory":
        share = gbytes / limits.read(int(case.moved))
    goal = entry.goal and (entry.goal.one if threads == 1 else entry.goal.two)
    return Result(name, threads, compiled, times, gflops, gbytes, share, difference, goal)


def table(results: Sequence[Result]) -> Table:
    """The results as a table to read."""
    view = Table(
        "case",
        "threads",
        "compile",
        OURS,
        "best peer",
        "its time",
        "ratio",
        "goal",
        "rate",
        "limit",
    )
    for r in results:
        rate = f"{r.gflops:.0f} GFLOP/s" if r.gflops else f"{r.gbytes:.0f} GB/s"
        goal = "" if r.goal is None else f"{r.goal:.2f}"
        met = r.goal is None or r.ratio >= r.goal
        view.add_row(
            r.case,
            str(r.threads),
            duration(r.compile_seconds),
            _time(r.times[OURS]),
            r.best_peer,
            _time(r.times[r.best_peer]),
            f"{r.ratio:.2f}" if met else f"[red]{r.ratio:.2f}[/]",
            goal,
            rate,
            f"{r.share:.0%}",
        )
    return view


def markdown(results: Sequence[Result]) -> str:
    """The results as a table for `RESULTS.md`, with a column for each peer; times are medians
    (minima).
    """
    names = list(dict.fromkeys(peer for r in results for peer in r.times if peer != OURS))
    head = ["case", "compile", OURS, *names, "ratio to best", "goal", "rate", "of limit"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in results:
        times = [_time(r.times[name]) if name in r.times else "" for name in (OURS, *names)]
        rate = f"{r.gflops:.0f} GFLOP/s" if r.gflops else f"{r.gbytes:.0f} GB/s"
        goal = "" if r.goal is None else f"{r.goal:.2f}"
        cells = [
            r.case,
            duration(r.compile_seconds),
            *times,
            f"{r.ratio:.2f}",
            goal,
            rate,
            f"{r.share:.0%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _time(timing: Timing) -> str:
    return f"{duration(timing.median)} ({duration(timing.minimum)})"


def _stored(results: Sequence[Result], limits: dict[int, Limits]) -> dict[str, Any]:
    return {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "gflops": {n: limit.gflops for n, limit in limits.items()},
        },
        "missing": missing(),
        "results": [asdict(r) | {"best_peer": r.best_peer, "ratio": r.ratio} for r in results],
    }


def main(
    threads: Annotated[
        list[int] | None, typer.Option("--threads", "-t", help="threads, once for each number")
    ] = None,
    only: Annotated[str, typer.Option(help="only the cases with this text in their names")] = "",
    squares: Annotated[bool, typer.Option(help="square products instead of the cases")] = False,
    out: Annotated[
        Path | None, typer.Option(help="a folder for results.json, results.md and results.svg")
    ] = None,
) -> None:
    """Time the compiled programs beside their peers."""
    console = Console(width=170)
    entries: dict[str, Entry] = CASES
    if squares:
        entries = {f"matmul {n} x {n}": Entry(_square(n)) for n in SQUARES}
    entries = {name: entry for name, entry in entries.items() if only in name}
    if not entries:
        raise typer.BadParameter(f'no case has "{only}" in its name: {", ".join(CASES)}')
    if missing():
        console.print(f"not installed, left out: {', '.join(missing())}")
    results: list[Result] = []
    limits: dict[int, Limits] = {}
    with Progress(console=console, transient=True) as progress:
        counts = threads or [1, 2]
        task = progress.add_task("", total=len(entries) * len(counts))
        for count in counts:
            limits[count] = measure_limits(count)
            for name, entry in entries.items():
                progress.update(task, description=f"{name}, threads: {count}")
                try:
                    results.append(run(name, entry, count, limits[count]))
                except LeftOutError as error:
                    console.print(f"{name} is left out: {error}")
                progress.advance(task)
    console.print(table(results))
    for count, limit in limits.items():
        console.print(f"multiply-adds on registers, threads {count}: {limit.gflops:.0f} GFLOP/s")
    if out is not None:
        _write(out, results, limits)


def _square(size: int) -> Callable[[], Case]:
    return lambda: matmul(size)


def _write(out: Path, results: Sequence[Result], limits: dict[int, Limits]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(_stored(results, limits), indent=1) + "\n")
    parts = []
    for count in limits:
        parts.append(f"Threads: {count}\n\n" + markdown([r for r in results if r.threads == count]))
    (out / "results.md").write_text("\n\n".join(parts) + "\n")
    draw(results, out / "results.svg")


if __name__ == "__main__":
    typer.run(main)

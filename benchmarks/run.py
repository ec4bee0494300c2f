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
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import typer
from cases import CASES, SQUARES, Entry, matmul
from chart import draw
from harness import Result, collect, markdown, table, timed
from peers import OURS, Call, missing
from rich.console import Console

import stepwell as sw
from stepwell.runtime.limits import Limits, measure_limits
from stepwell.tools.timing import duration

# What is timed is compiled, whatever was compiled before.
os.environ["STEPWELL_CACHE"] = "off"


def run(name: str, entry: Entry, threads: int) -> Result:
    """Compile and time one case.

    Raises:
        LeftOutError: if its data or all of its peers are missing.
        SystemExit: if no peer has the same result.
    """
    case = entry.make()
    start = time.perf_counter()
    exe = sw.compile(case.module, threads=threads)
    compiled = time.perf_counter() - start
    calls: dict[str, Call] = {OURS: lambda: exe(*case.inputs)}
    calls |= {peer: make(threads) for peer, make in case.peers.items()}
    result = timed(name, calls, threads, entry.tolerance)
    seconds, limits = result.seconds(OURS), limits_of(threads)
    gflops, gbytes = case.flops / seconds / 1e9, case.moved / seconds / 1e9
    share = gflops / limits.gflops
    if case.limit == "memory":
        share = gbytes / limits.read(int(case.moved))
    goal = entry.goal and (entry.goal.one if threads == 1 else entry.goal.two)
    facts = {
        "threads": str(threads),
        "compile": duration(compiled),
        "goal": "" if goal is None else f"{goal:.2f}",
        "rate": f"{gflops:.0f} GFLOP/s" if gflops else f"{gbytes:.0f} GB/s",
        "of limit": f"{share:.0%}",
    }
    return replace(result, facts=facts, goal=goal)


@cache
def limits_of(threads: int) -> Limits:
    """The limits of this machine, measured anew."""
    return measure_limits(threads)


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
    console, counts = Console(width=200), threads or [1, 2]
    entries: dict[str, Entry] = CASES
    if squares:
        entries = {f"matmul {n} x {n}": Entry(partial(matmul, n)) for n in SQUARES}
    results = collect("case", entries, run, counts, only, console)
    console.print(table("case", results))
    for count in counts:
        rate = f"{limits_of(count).gflops:.0f} GFLOP/s"
        console.print(f"multiply-adds on registers, threads {count}: {rate}")
    if out is not None:
        _write(out, results, counts)


def _write(out: Path, results: Sequence[Result], counts: Sequence[int]) -> None:
    stored = {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "gflops": {count: limits_of(count).gflops for count in counts},
        },
        "missing": missing(),
        "results": [asdict(r) | {"best_peer": r.best_peer, "ratio": r.ratio} for r in results],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(stored, indent=1) + "\n")
    parts = [
        f"Threads: {count}\n\n" + markdown("case", [r for r in results if r.threads == count])
        for count in counts
    ]
    (out / "results.md").write_text("\n\n".join(parts) + "\n")
    draw(results, out / "results.svg")


if __name__ == "__main__":
    typer.run(main)

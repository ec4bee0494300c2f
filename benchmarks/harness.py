"""The parts that benchmarks with peers share: a case, its times, a table, a command line.

Results are compared before they are timed. All calls of a case are timed in one process, their
rounds interleaved; a ratio is the best peer's time over ours, of medians where nothing else is
said.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
import typer
from peers import OURS, Call, library_threads, missing
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import stepwell as sw
from stepwell.runtime.limits import known_limits
from stepwell.tools.timing import ROUNDS, Timing, duration, measure

NEARLY_AS_FAST = 1 / 1.3
"""A smaller ratio is marked, where a case has no other goal."""
Kind = TypeVar("Kind")


class LeftOutError(Exception):
    """A case cannot be timed here; the message is the reason."""


class Case(ABC):
    """A program, what it is called with, and the same in its peers."""

    tolerance: ClassVar[float] = 1e-5
    """The largest difference to a peer's result, relative to its largest element."""
    rounds: ClassVar[int] = ROUNDS

    @abstractmethod
    def module(self) -> sw.Module:
        """The program."""

    @abstractmethod
    def arrays(self) -> Sequence[np.ndarray]:
        """The inputs."""

    @abstractmethod
    def peers(self, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Call]:
        """The peers that are installed, each on the inputs."""

    def moved(self, arrays: Sequence[np.ndarray], result: np.ndarray) -> int:
        """The bytes that have to be read and written: all inputs and the result."""
        return result.nbytes + sum(array.nbytes for array in arrays)


@dataclass(frozen=True)
class Result:
    """The times of the compiled program and of its peers, in seconds.

    Attributes:
        case: its name.
        threads: those of each.
        times: by the names of those that took them.
        difference: the largest one between ours and a peer's result, relative to the largest
            element.
        missing: why some peers have no time.
        facts: what else the table shows, by the titles of its columns.
        goal: a smaller ratio is marked.
        by: what the ratio is of, "median" or "minimum".
    """

    case: str
    threads: int
    times: Mapping[str, Timing]
    difference: float = 0.0
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    goal: float | None = NEARLY_AS_FAST
    by: str = "median"

    @property
    def best_peer(self) -> str:
        """The peer with the lowest time."""
        return min((who for who in self.times if who != OURS), key=self.seconds)

    @property
    def ratio(self) -> float:
        """The best peer's time over ours."""
        return self.over(self.best_peer)

    def seconds(self, who: str) -> float:
        """The time that ratios are of."""
        return getattr(self.times[who], self.by)

    def over(self, peer: str) -> float:
        """A peer's time over ours."""
        return self.seconds(peer) / self.seconds(OURS)


def leading(result: Any) -> np.ndarray:
    """The first of several results."""
    return np.asarray(result[0] if isinstance(result, tuple | list) else result)


def difference(found: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, relative to the largest element of `other`."""
    if found.shape != other.shape:
        return float("inf")
    if np.array_equal(found, other):
        return 0.0
    return float(np.abs(found - other).max() / np.abs(other).max())


def timed(
    name: str,
    calls: Mapping[str, Call],
    threads: int,
    tolerance: float = Case.tolerance,
    measured: Callable[[Mapping[str, Call]], Mapping[str, Timing]] = measure,
) -> Result:
    """Compare the result of each peer with ours, and time those that have the same.

    Args:
        name: that of the case.
        calls: ours and those of the peers.
        threads: those that the BLAS of NumPy may take.
        tolerance: the largest difference to a peer's result, relative to its largest element.
        measured: times the calls.

    Raises:
        LeftOutError: if no peer is installed.
        SystemExit: if none has the same result.
    """
    first = {who: leading(call()) for who, call in calls.items()}
    ours = first.pop(OURS)
    if not first:
        raise LeftOutError("no peer that computes it is installed")
    errors = {who: difference(ours, other) for who, other in first.items()}
    wrong = [who for who, error in errors.items() if not error <= tolerance]
    if len(wrong) == len(errors):
        raise SystemExit(f"{name}: {', '.join(wrong)}: a different result")
    same = {who: call for who, call in calls.items() if who not in wrong}
    with library_threads(threads):
        times = measured(same)
    largest = max(error for who, error in errors.items() if who not in wrong)
    return Result(name, threads, times, largest, dict.fromkeys(wrong, "a different result"))


def processor_times(calls: Mapping[str, Call], rounds: int) -> dict[str, Timing]:
    """The processor time of each call, in turns: it says more on a machine that others use."""
    samples: dict[str, list[float]] = {who: [] for who in calls}
    for _ in range(rounds):
        for who, call in calls.items():
            start = time.process_time()
            call()
            samples[who].append(time.process_time() - start)
    return {who: Timing(min(times), median(times)) for who, times in samples.items()}


def run(name: str, case: Case, threads: int) -> Result:
    """Compile and time a case, and compare it with a read of as many bytes as it moves.

    Raises:
        LeftOutError: if no peer is installed.
        SystemExit: if none has the same result.
    """
    arrays = case.arrays()
    exe = sw.compile(case.module(), threads=threads)
    moved = case.moved(arrays, leading(exe(*arrays)))
    calls: dict[str, Call] = {OURS: lambda: exe(*arrays), **case.peers(arrays, threads)}
    result = timed(
        name, calls, threads, case.tolerance, lambda calls: measure(calls, rounds=case.rounds)
    )
    seconds = result.seconds(OURS)
    _, least = known_limits(threads).seconds(0, moved, moved)
    facts = {"GB/s": f"{moved / seconds / 1e9:.0f}", "of limit": f"{least / seconds:.0%}"}
    return replace(result, facts=facts)


def cells(kind: str, results: Sequence[Result]) -> list[list[str]]:
    """A table with its head; times are medians, and minima in parentheses."""
    facts = list(dict.fromkeys(title for r in results for title in r.facts))
    peers = list(dict.fromkeys(who for r in results for who in r.times if who != OURS))
    rows = [[kind, OURS, *facts, *peers, "ratio to best"]]
    for r in results:
        times = {who: f"{duration(t.median)} ({duration(t.minimum)})" for who, t in r.times.items()}
        rows.append(
            [
                *(r.case, times[OURS]),
                *(r.facts.get(title, "") for title in facts),
                *(times.get(peer, "") for peer in peers),
                f"{r.ratio:.2f}",
            ]
        )
    return rows


def table(kind: str, results: Sequence[Result]) -> Table:
    """The results as a table to read; `kind` is the title of the cases."""
    head, *rows = cells(kind, results)
    view = Table(*head)
    for r, row in zip(results, rows, strict=True):
        missed = r.goal is not None and r.ratio < r.goal
        view.add_row(*row[:-1], f"[red]{row[-1]}[/]" if missed else row[-1])
    notes = [f"{r.case}: {who} {why}" for r in results for who, why in r.missing.items()]
    view.caption = "\n".join(notes)
    return view


def markdown(kind: str, results: Sequence[Result]) -> str:
    """The results as a table for `RESULTS.md`."""
    head, *rows = cells(kind, results)
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def collect(
    kind: str,
    cases: Mapping[str, Kind],
    run: Callable[[str, Kind, int], Result],
    threads: Sequence[int],
    only: str,
    console: Console,
) -> list[Result]:
    """Run the cases with a text in their names, for each number of threads.

    Raises:
        typer.BadParameter: if there is none.
    """
    chosen = {name: case for name, case in cases.items() if only in name}
    if not chosen:
        raise typer.BadParameter(f'no {kind} has "{only}" in its name: {", ".join(cases)}')
    if missing():
        console.print(f"not installed, left out: {', '.join(missing())}")
    results: list[Result] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(threads) * len(chosen))
        for count in threads:
            for name, case in chosen.items():
                progress.update(task, description=f"{name}, threads: {count}")
                try:
                    results.append(run(name, case, count))
                except LeftOutError as error:
                    console.print(f"{name} is left out: {error}")
                progress.advance(task)
    return results


def command(
    kind: str,
    cases: Mapping[str, Kind],
    run: Callable[[str, Kind, int], Result],
) -> None:
    """The command line of a benchmark that prints one table.

    Args:
        kind: what a case is called.
        cases: by name.
        run: times one of them on a number of threads.
    """

    def main(
        threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 1,
        only: Annotated[str, typer.Option(help="only cases with this text in their names")] = "",
    ) -> None:
        """Print the table."""
        console = Console(width=160)
        results = collect(kind, cases, run, [threads], only, console)
        console.print(table(kind, results))

    typer.run(main)

"""The harness of all tables: a case and its peers, their times, a table, and its command line.

Results are compared before they are timed. All calls of a case are timed in one process, their
rounds interleaved; a ratio is the best peer's time over ours, of medians where nothing else is
said. A peer whose result differs has no time, and its cell says so.
"""

from __future__ import annotations

import argparse
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, ClassVar

import numpy as np
import rich.table
from peers import OURS, Call, library_threads, missing
from rich.console import Console
from rich.progress import track
from rich.text import Text

import stepwell as sw
from stepwell.runtime.limits import known_limits
from stepwell.tools.timing import ROUNDS, Timing, duration, measure

NEARLY_AS_FAST = 1 / 1.3
"""A smaller ratio is marked, where a case has no other goal."""
RATIO = "ratio to best"
Row = dict[str, str]
"""Cells by the titles of their columns, with the markup of rich."""


class LeftOutError(Exception):
    """A case cannot be measured here; the message is the reason."""


@dataclass(frozen=True)
class Table:
    """A table: what has a row in it, and how that is measured.

    Attributes:
        kind: the title of the cases.
        cases: by name.
        row: measures a case, given its name: a row, or several. Its keyword-only parameters are
            options of the command line; `threads` is that of one of the numbers that are given.
        threads: those numbers, where the command line has none.
        summary: what is said below the rows.
    """

    kind: str
    cases: Mapping[str, Any]
    row: Callable[..., Any]
    threads: Sequence[int] = (1,)
    summary: Callable[[Sequence[Row]], str] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of the command line, with their defaults."""
        parameters = inspect.signature(self.row).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def rows(self, only: str, given: Mapping[str, Any], console: Console) -> Iterator[Row]:
        """The rows of the cases with a text in their names, for each number of threads."""
        options = {name: given.get(name, default) for name, default in self.options.items()}
        counts = given.get("threads", self.threads) if "threads" in options else [None]
        chosen = {name: case for name, case in self.cases.items() if only in name}
        turns = [(count, name) for count in counts for name in chosen]
        for count, name in track(turns, console=console, transient=True):
            options |= {} if count is None else {"threads": count}
            ahead = {self.kind: name} | ({"threads": str(count)} if len(counts) > 1 else {})
            try:
                found = self.row(name, chosen[name], **options)
                for cells in [found] if isinstance(found, dict) else found:
                    yield ahead | cells
            except LeftOutError as reason:
                console.print(f"{name} is left out: {reason}")


def columns(rows: Sequence[Row]) -> list[str]:
    """The titles of all rows; one that only some rows have follows what it follows there."""
    found: list[str] = []
    for row in rows:
        place = 0
        for title in row:
            if title not in found:
                found.insert(place, title)
            place = found.index(title) + 1
    return found


def show(rows: Sequence[Row], markdown: bool, console: Console) -> None:
    """Print rows as a table to read, or as one for `RESULTS.md`."""
    titles = columns(rows)
    lines = [[row.get(title, "") for title in titles] for row in rows]
    if not markdown:
        view = rich.table.Table(*titles)
        for line in lines:
            view.add_row(*line)
        console.print(view)
        return
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for line in lines:
        print(f"| {' | '.join(Text.from_markup(cell).plain for cell in line)} |")


def command(tables: Sequence[Table], name: str, about: str, arguments: Sequence[str]) -> None:
    """Print tables, as a command line says.

    Args:
        tables: all of one module.
        name: that of the module.
        about: its docstring.
        arguments: those after the name.
    """
    parser = argparse.ArgumentParser(
        prog=f"run.py {name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="cases with this text in their names")
    parser.add_argument("--markdown", action="store_true", help="print tables of Markdown")
    for option, default in {k: v for table in tables for k, v in table.options.items()}.items():
        names = ["-t"] * (option == "threads") + [f"--{option}"]
        how: dict[str, Any] = {"type": type(default), "help": f"default: {default}"}
        if option == "threads":
            counts = " and ".join(map(str, tables[0].threads))
            how |= {"action": "append", "help": f"once for each number; default: {counts}"}
        elif isinstance(default, bool):
            how = {"action": "store_true"}
        parser.add_argument(*names, default=argparse.SUPPRESS, **how)
    given = vars(parser.parse_args(arguments))
    only, markdown = given.pop("only"), given.pop("markdown")
    chosen = [table for table in tables if any(only in case for case in table.cases)]
    if not chosen:
        cases = ", ".join(case for table in tables for case in table.cases)
        parser.error(f'no case has "{only}" in its name: {cases}')
    console = Console(width=200)
    if missing():
        console.print(f"not installed, left out: {', '.join(missing())}")
    for table in chosen:
        found: list[Row] = []
        try:
            found.extend(table.rows(only, given, console))
        finally:
            # What was measured before an error or an interrupt is not lost.
            if found:
                show(found, markdown, console)
        if table.summary is not None:
            console.print(table.summary(found))


class Case(ABC):
    """A program, what it is called with, and the same in its peers."""

    tolerance: ClassVar[float] = 1e-5
    """The largest difference to a peer's result, relative to its largest element."""

    @abstractmethod
    def module(self) -> sw.Module:
        """The program."""

    @abstractmethod
    def arrays(self) -> Sequence[Any]:
        """The inputs."""

    def peers(self, arrays: Sequence[Any], threads: int) -> dict[str, Call]:
        """The peers that are installed, each on the inputs."""
        return {}

    def moved(self, arrays: Sequence[Any], result: np.ndarray) -> int:
        """The bytes that have to be read and written: all inputs and the result."""
        return result.nbytes + sum(array.nbytes for array in arrays)


@dataclass(frozen=True)
class Result:
    """The times of the compiled program and of its peers.

    Attributes:
        times: by the names of those that took them.
        missing: why other peers have no time.
        by: what the ratio is of, "median" or "minimum".
    """

    times: Mapping[str, Timing]
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    by: str = "median"

    def seconds(self, who: str = OURS) -> float:
        """The time that ratios are of."""
        return getattr(self.times[who], self.by)

    def over(self, peer: str) -> float:
        """A peer's time over ours."""
        return self.seconds(peer) / self.seconds()

    @property
    def ratio(self) -> float:
        """The best peer's time over ours."""
        return min(self.over(who) for who in self.times if who != OURS)

    def row(self, facts: Row | None = None, goal: float | None = NEARLY_AS_FAST) -> Row:
        """Medians, with minima in parentheses, and facts after our time; a smaller ratio than
        the goal is marked."""
        times = {
            who: f"{duration(t.median)} ({duration(t.minimum)})" for who, t in self.times.items()
        }
        missed = goal is not None and self.ratio < goal
        ratio = f"[red]{self.ratio:.2f}[/]" if missed else f"{self.ratio:.2f}"
        return {OURS: times.pop(OURS), **(facts or {}), **times, **self.missing, RATIO: ratio}


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
    by: str = "median",
) -> Result:
    """Compare the result of each peer with ours, and time those that have the same.

    Args:
        name: that of the case.
        calls: ours and those of the peers.
        threads: those that the BLAS of NumPy may take.
        tolerance: the largest difference to a peer's result, relative to its largest element.
        measured: times the calls.
        by: what the ratio is of, "median" or "minimum".

    Raises:
        LeftOutError: if no peer is installed.
        SystemExit: if none has the same result.
    """
    first = {who: leading(call()) for who, call in calls.items()}
    ours = first.pop(OURS)
    if not first:
        raise LeftOutError("no peer that computes it is installed")
    wrong = [who for who, other in first.items() if not difference(ours, other) <= tolerance]
    if len(wrong) == len(first):
        raise SystemExit(f"{name}: {', '.join(wrong)}: a different result")
    with library_threads(threads):
        times = measured({who: call for who, call in calls.items() if who not in wrong})
    return Result(times, dict.fromkeys(wrong, "wrong result"), by)


def processor_times(
    calls: Mapping[str, Call], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[str, Timing]:
    """The processor time of each call, in turns: it says more on a machine that others use."""
    samples: dict[str, list[float]] = {who: [] for who in calls}
    for _ in range(rounds):
        for who, call in calls.items():
            start = clock()
            call()
            samples[who].append(clock() - start)
    return {who: Timing(min(times), median(times)) for who, times in samples.items()}


def run(name: str, case: Case, *, threads: int = 1, rounds: int = ROUNDS) -> Row:
    """Compile and time a case, and compare it with a read of as many bytes as it moves.

    Raises:
        LeftOutError: if no peer is installed.
        SystemExit: if none has the same result.
    """
    arrays = case.arrays()
    exe = sw.compile(case.module(), threads=threads)
    moved = case.moved(arrays, leading(exe(*arrays)))
    calls: dict[str, Call] = {OURS: lambda: exe(*arrays), **case.peers(arrays, threads)}
    result = timed(name, calls, threads, case.tolerance, partial(measure, rounds=rounds))
    _, least = known_limits(threads).seconds(0, moved, moved)
    seconds = result.seconds()
    facts = {"GB/s": f"{moved / seconds / 1e9:.0f}", "of limit": f"{least / seconds:.0%}"}
    return result.row(facts)

"""The harness of all tables: cases and their peers, times, a table, and its command line.

Results are compared before they are timed. All calls of a case are timed in one process, their
rounds interleaved; a ratio is the best peer's time over ours. A peer that refuses a model, or whose
result differs, has no time, and its cell says so.
"""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median
from typing import Any

import numpy as np
import rich.table
from onnx import ModelProto
from peers import OURS, Call, in_onnx, in_torch, library_threads, missing
from rich.console import Console
from rich.progress import track
from rich.text import Text
from scipy.sparse import csr_array

import stepwell as sw
from stepwell.runtime.limits import measure_limits
from stepwell.tools.timing import ROUND_SECONDS, ROUNDS, Timing, duration, measure

NEARLY_AS_FAST = 1 / 1.3
"""A smaller ratio is marked, where a case has no other goal."""
RATIO = "ratio to best"
limits = cache(measure_limits)
"""The limits of this machine, by the number of threads."""
Row = dict[str, str]
"""Cells by the titles of their columns, with the markup of rich."""


class LeftOutError(Exception):
    """A case cannot be measured here; the message is the reason."""


@dataclass(frozen=True)
class Case:
    """A program, what it is called with, and the same in its peers.

    Attributes:
        arrays: the inputs.
        proto: the program in ONNX.
        module: the program; by default that of `proto`.
        engines: those that take `proto`.
        torch: the program in PyTorch, given the module `torch`, the inputs and `weights`.
        weights: constants that a call reads, and that PyTorch gets as further arguments.
        others: makes calls in other peers for a number of threads, by their names, or says why
            there is none.
        tolerance: the largest difference to a peer's result, relative to its largest element.
        flops: the floating-point operations of a call; 0 where memory bounds it, None where neither
            says much.
        reads_all: whether a call reads all floats, or just as many as there are results.
        goals: the least ratios on one thread and on more.
        exact: computes the exact result, from which the distances of all results are shown.
    """

    arrays: Sequence[Any]
    proto: ModelProto | None = None
    module: sw.Module | None = None
    engines: Iterable[str] = ("onnxruntime",)
    torch: Callable[..., Any] | None = None
    weights: Sequence[Any] = ()
    others: Callable[[int], Mapping[str, Call | str]] = lambda threads: {}
    tolerance: float = 1e-5
    flops: float | None = None
    reads_all: bool = True
    goals: tuple[float | None, float | None] = (NEARLY_AS_FAST, NEARLY_AS_FAST)
    exact: Callable[[], np.ndarray] | None = None

    @cached_property
    def program(self) -> sw.Module:
        if self.module is not None:
            return self.module
        assert self.proto is not None
        return sw.from_onnx(self.proto)

    def peers(self, threads: int) -> dict[str, Call | str]:
        """The peers that are installed, each on the inputs, or why one refuses the program."""
        found: dict[str, Call | str] = {**self.others(threads)}
        found |= in_torch(self.torch, [*self.arrays, *self.weights], threads)
        if self.proto is not None:
            found |= in_onnx(self.proto, self.arrays, threads, self.engines)
        return found

    def moved(self, result: np.ndarray) -> int:
        """The bytes that have to be read and written."""
        parts = list[np.ndarray]()
        for x in [*self.arrays, *self.weights]:
            parts += (x.data, x.indices, x.indptr) if isinstance(x, csr_array) else (x,)
        floats = sum(part.nbytes for part in parts if part.dtype.kind == "f")
        others = sum(part.nbytes for part in parts) - floats
        return result.nbytes + others + (floats if self.reads_all else min(floats, result.nbytes))


Make = Callable[[], Case]


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
            except (LeftOutError, ModuleNotFoundError) as reason:
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
    """Print the tables of the module of this name and docstring, as a command line says."""
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


@dataclass(frozen=True)
class Result:
    """The times of the compiled program and of its peers.

    Attributes:
        exe: the compiled program.
        results: those of everyone.
        times: of everyone whose result is right.
        missing: why other peers have no time.
        facts: the processor times of the import and the compilation.
        by: what ratios are of, "median" or "minimum".
    """

    exe: sw.Executable
    results: Mapping[str, list[np.ndarray]]
    times: Mapping[str, Timing]
    missing: Mapping[str, str]
    facts: Row
    by: str

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


def arrays_of(result: Any) -> list[np.ndarray]:
    """One or several results."""
    return list(map(np.array, result if isinstance(result, tuple | list) else [result]))


def difference(found: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, relative to the largest element of `other`."""
    if found.shape != other.shape:
        return float("inf")
    if np.array_equal(found, other):
        return 0.0
    return float(np.abs(found - other).max() / np.abs(other).max())


def timed(
    name: str,
    case: Case,
    threads: int = 1,
    rounds: int = ROUNDS,
    seconds: float = ROUND_SECONDS,
    by: str = "median",
    clock: str = "elapsed",
) -> Result:
    """Compile a case, compare the result of each peer with ours, and time those that agree.

    Args:
        name: that of the case, for messages.
        case: the case.
        threads: how many threads each may take.
        rounds: how often each is timed, in turns.
        seconds: the time for it in a round.
        by: what ratios are of, "median" or "minimum".
        clock: "elapsed", or "processor" for that of single calls.

    Raises:
        LeftOutError: if no peer is installed.
        SystemExit: if none has the same result.
    """
    starts = [time.process_time()]
    for make in (lambda: case.program, lambda: sw.compile(case.program, threads=threads)):
        exe: Any = make()
        starts.append(time.process_time())
    peers = case.peers(threads)
    calls = {OURS: lambda: exe(*case.arrays)}
    calls |= {who: call for who, call in peers.items() if not isinstance(call, str)}
    refused = {who: reason for who, reason in peers.items() if isinstance(reason, str)}
    results = {who: arrays_of(call()) for who, call in calls.items()}
    if len(calls) == 1:
        raise LeftOutError("no peer that computes it is installed")
    # Of several results, some peers return the first one only.
    apart = {who: max(map(difference, results[OURS], others)) for who, others in results.items()}
    wrong = [who for who, difference in apart.items() if not difference <= case.tolerance]
    if len(wrong) == len(calls) - 1:
        raise SystemExit(f"{name}: {', '.join(wrong)}: a different result")
    calls = {who: call for who, call in calls.items() if who not in wrong}
    with library_threads(threads):
        if clock == "elapsed":
            times = measure(calls, rounds=rounds, seconds=seconds)
        else:
            times = processor_times(calls, rounds)
    start, read, end = starts
    facts = {} if case.module is not None else {"import": duration(read - start)}
    facts["compile"] = duration(end - read)
    missing = refused | dict.fromkeys(wrong, "wrong result")
    return Result(exe, results, times, missing, facts, by)


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


def run(
    name: str,
    make: Make,
    *,
    threads: int = 1,
    rounds: int = ROUNDS,
    seconds: float = ROUND_SECONDS,
    by: str = "median",
    clock: str = "elapsed",
) -> Row:
    """The row of a case: its compilation, its times, and its rate beside that of the machine."""
    case = make()
    result = timed(name, case, threads, rounds, seconds, by, clock)
    facts, goal = dict(result.facts), case.goals[threads > 1]
    if goal not in (None, NEARLY_AS_FAST):
        facts["goal"] = f"{goal:.2f}"
    if case.flops is not None:
        moved = case.moved(result.results[OURS][0])
        rate, unit = (case.flops, "GFLOP/s") if case.flops else (moved, "GB/s")
        least = limits(threads).seconds(int(case.flops), moved, moved)
        facts["rate"] = f"{rate / result.seconds() / 1e9:.0f} {unit}"
        facts["of limit"] = f"{(least[0] or least[1]) / result.seconds():.0%}"
    if case.exact is not None:
        exact = case.exact()
        errors = {who: difference(result.results[who][0], exact) for who in result.times}
        facts["error"] = f"{errors.pop(OURS):.0e}"
        facts["errors of peers"] = f"{min(errors.values()):.0e} to {max(errors.values()):.0e}"
    return result.row(facts, goal)

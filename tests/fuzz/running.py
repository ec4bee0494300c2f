"""Runs ranges of seeds in child processes, and counts what happened."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from .choices import Choices
from .comparing import Way, compare, graph_passes
from .nests import check_nest
from .operators import DERIVED
from .outcomes import DifferenceError, Outcome
from .programs import Case, random_case
from .tiles import check_tiles

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "tests.fuzz", "--work")
"""A child process, but for the range."""
SECONDS = 120
"""How long one module may take before it counts as hanging."""


def check_graph(seed: int) -> Outcome | None:
    """Compare the program of a seed with its machine code; None where the seed has none.

    Raises:
        DifferenceError: if anything differs.
    """
    case = _case("graph", seed)
    if case is None:
        return None
    return compare(case, Way.random(f"way {seed}", case.special))


def check_passes(seed: int) -> Outcome | None:
    """Compare the program of a seed with what some passes make of it.

    Raises:
        DifferenceError: if anything differs.
    """
    case = _case("passes", seed)
    if case is None:
        return None
    choices = Choices(f"passes of {seed}")
    steps = ",".join(choices.some(graph_passes(), 6))
    way = Way(before=steps, rounding="kept" if case.special else None)
    return compare(case, way, compiles=False)


def _case(level: str, seed: int) -> Case | None:
    """The program of a seed, which begins with each of the operators in turn."""
    return random_case(f"{level} {seed}", DERIVED[seed % len(DERIVED)])


def case_of(seed: int) -> tuple[Case, Way]:
    """The program of a seed, and how it is compiled.

    Raises:
        ValueError: if the seed has none.
    """
    case = _case("graph", seed)
    if case is None:
        raise ValueError(f"seed {seed} has no program")
    return case, Way.random(f"way {seed}", case.special)


LEVELS: dict[str, Callable[[int], Outcome | None]] = {
    "graph": check_graph,
    "passes": check_passes,
    "loop": check_nest,
    "rt": check_tiles,
}


@dataclass
class Summary:
    """What became of the modules of a range."""

    kinds: Counter[str] = field(default_factory=Counter)
    passes: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    found: list[tuple[int, str]] = field(default_factory=list)
    """The seeds of differences, and what differs."""

    def add(self, line: dict[str, object]) -> None:
        """Count what a child process reports of a seed."""
        kind, seed, text = str(line["kind"]), int(str(line["seed"])), str(line.get("text", ""))
        self.kinds[kind] += 1
        if kind == "different":
            self.found.append((seed, text))
        if kind == "refused":
            self.refusals[text] += 1
        for name in ("passes", "operations"):
            counts = line.get(name)
            if isinstance(counts, dict):
                getattr(self, name).update(counts)


def work(level: str, first: int, last: int) -> None:
    """Check the seeds of a range, and print a line for each: what a child process does."""
    os.environ["STEPWELL_CACHE"] = "off"
    gc.freeze()
    gc.set_threshold(50_000)  # IR is full of cycles, and programs are small
    for seed in range(first, last):
        print(json.dumps({"begin": seed}), flush=True)
        line: dict[str, object] = {"seed": seed}
        try:
            outcome = LEVELS[level](seed)
        except DifferenceError as error:
            line |= {"kind": "different", "text": str(error)}
        except Exception as error:  # whatever it is, it is a defect
            line |= {"kind": "different", "text": f"{type(error).__name__}: {error}"}
        else:
            line |= {"kind": "none"} if outcome is None else _reported(outcome)
        print(json.dumps(line), flush=True)


def _reported(outcome: Outcome) -> dict[str, object]:
    return {
        "kind": outcome.kind,
        "text": outcome.refusal,
        "passes": outcome.passes,
        "operations": outcome.operations,
    }


def run(
    level: str,
    first: int,
    last: int,
    *,
    minutes: float | None = None,
    report: Callable[[int, str], None] = lambda seed, text: None,
) -> tuple[Summary, int]:
    """Check the seeds of a range, or as many as there is time for.

    A seed whose process dies, or which takes longer than `SECONDS`, is a difference, after which a
    new process goes on.

    Returns:
        What became of them, and the first seed that was not checked.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    summary, seed = Summary(), first
    while seed < last and (end is None or time.monotonic() < end):
        for line in _lines(level, seed, last, end):
            seed = int(str(line["seed"])) + 1
            summary.add(line)
            if line["kind"] == "different":
                report(seed - 1, str(line["text"]))
    return summary, seed


def _lines(level: str, first: int, last: int, end: float | None) -> Iterator[dict[str, object]]:
    """What one child process says of seeds, until it ends or dies."""
    words = [*COMMAND, level, str(first), str(last)]
    child = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    lines: Queue[str] = Queue()
    reader = Thread(target=_read, args=(child, lines))
    reader.start()
    begun = first
    try:
        while end is None or time.monotonic() < end:
            try:
                text = lines.get(timeout=SECONDS)
            except Empty:
                yield {"seed": begun, "kind": "different", "text": f"takes over {SECONDS} s"}
                return
            if not text:
                break
            line = json.loads(text)
            begun = line.get("begin", begun)
            if "kind" in line:
                begun += 1
                yield line
        if end is not None and time.monotonic() >= end:
            return
        if begun < last:
            yield {"seed": begun, "kind": "different", "text": f"dies: {child.wait()}"}
    finally:
        child.kill()
        child.wait()
        reader.join()


def _read(child: subprocess.Popen[str], lines: Queue[str]) -> None:
    assert child.stdout is not None
    with child.stdout:
        for line in child.stdout:
            lines.put(line)
    lines.put("")

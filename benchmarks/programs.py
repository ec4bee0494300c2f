"""Programs of other tables, timed in turns with another version of the package.

    python benchmarks/run.py programs --against FOLDER             # everything
    python benchmarks/run.py programs --against FOLDER --changed   # those of other machine code

`stepwell` in that folder may be a link to a checkout of another commit. Each version runs in its
own process, and the processes take turns. A ratio is the minimum now over the minimum before: above
1 the program has become slower. Where a process keeps its arrays decides up to a third of the time
of some programs, so that a ratio above the limit is taken again over several pairs of processes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from statistics import geometric_mean

import moves
import operators
import squares
import symbolic_batch
from cases import CASES
from harness import Make, Row, Table
from sparse_products import GRAPHS, product
from turns import Worker, compared, turns, versions

import stepwell as sw
from stepwell.tools.timing import duration, measure

LARGEST_RATIO = 1.03
"""A program with a larger ratio is timed again, and then listed."""
PAIRS = 5
"""Pairs of new processes that time a program again."""
WIDTHS = (1, 7, 64, 256)
"""Some of the sparse products of `sparse_products.py`."""
CODE = "code of "
"""A question for the machine code of a program, not for the time of it."""
NAMES = re.compile(r"#.*|^\s*\.\w+.*|\.?\w*[A-Za-z]\w*_\w+|\.L\w+", re.M)
"""Text that is no instruction: comments, directives, the names of functions and labels."""
Program = tuple[Make, int]
"""The function that makes a case, and the number of threads."""


def programs() -> Iterator[tuple[str, Program]]:
    for threads in (1, 2):
        for name, make in CASES.items():
            yield f"{name}, {threads} threads", (make, threads)
    for name, make in {**squares.CASES, **moves.CASES, **operators.CASES}.items():
        yield name, (make, 1)
    for name, case in symbolic_batch.CASES.items():
        for batch in case.batches:
            yield f"{name}, any batch, {batch}", (case.of_any(batch), 1)
    for threads in (1, 2):
        for width in WIDTHS:
            for kind in GRAPHS:
                name = f"sparse product, {kind}, {width} columns, {threads} threads"
                yield name, (partial(product, kind, width), threads)


@lru_cache(maxsize=1)
def _call(name: str) -> Callable[[], object]:
    make, threads = PROGRAMS[name]
    case = make()
    exe = sw.compile(case.program, threads=threads, records=False)
    return partial(exe, *case.arrays)


def seconds(name: str) -> float:
    if name.startswith(CODE):
        make, threads = PROGRAMS[name.removeprefix(CODE)]
        exe = sw.compile(make().program, threads=threads)
        code = "\n".join(NAMES.sub("", exe.ir("asm")).split())
        return int.from_bytes(hashlib.sha256(code.encode()).digest()[:6])
    return measure({name: _call(name)}, rounds=1)[name].minimum


def row(
    name: str, program: Program, *, rounds: int = 9, against: str = "", changed: bool = False
) -> Row | Sequence[Row]:
    workers = versions("programs", against)
    if changed and len(set(map(min, turns(workers, CODE + name, 1)))) == 1:
        return []
    times = turns(workers, name, rounds)
    if min(times[-1]) > LARGEST_RATIO * min(times[0]):
        for _ in range(PAIRS):
            pair = [Worker("programs", folder) for folder in (against, "")]
            for column, more in zip(times, turns(pair, name, rounds), strict=True):
                column += more
            for worker in pair:
                worker.end()
    return compared(times, duration)


def summary(rows: Sequence[Row]) -> str:
    """How many programs were timed, their mean ratio, and those that are slower."""
    if not rows:
        return "no program was timed: all have the machine code that they had"
    ratios = {row["program"]: float(row.get("ratio", 1)) for row in rows}
    slower = [name for name, ratio in ratios.items() if ratio > LARGEST_RATIO]
    return (
        f"{len(rows)} of {len(PROGRAMS)} programs; geometric mean of the ratios "
        f"{geometric_mean(ratios.values()):.3f}\n"
        f"slower by more than {LARGEST_RATIO - 1:.0%}: {', '.join(slower) or 'none'}"
    )


PROGRAMS = dict(programs())
TABLES = [Table("program", PROGRAMS, row, summary=summary)]

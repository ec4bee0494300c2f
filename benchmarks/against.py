"""Every program of the other benchmarks, timed in turns with another version of the package.

    python benchmarks/against.py FOLDER                  # everything
    python benchmarks/against.py FOLDER --only Softmax   # some programs
    python benchmarks/against.py FOLDER --changed        # those of other machine code

`stepwell` in that folder may be a link to a checkout of another commit. Each version runs in its
own process, and the processes take turns. A ratio is the minimum now over the minimum before: above
1 the program has become slower. Where a process keeps its arrays decides up to a third of the time
of some programs, so that a ratio above the limit is taken again over several pairs of processes.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import symbolic_batch
from cases import CASES, SQUARES, matmul
from moves import MOVES
from operators import OPERATORS
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sparse_products import GRAPHS, Product
from turns import Worker, answer, turns

import stepwell as sw
from stepwell.tools.timing import duration, measure

ROUNDS = 9
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


@dataclass(frozen=True)
class Program:
    """A module, and the inputs of the timed call."""

    module: Callable[[], sw.Module]
    inputs: Callable[[], Sequence[Any]]
    threads: int = 1


def programs() -> Iterator[tuple[str, Program]]:
    """All programs by their names."""
    for threads in (1, 2):
        for name, entry in CASES.items():
            yield f"{name}, {threads} threads", _case(entry.make, threads)
    for size in SQUARES:
        yield f"matmul {size} x {size}", _case(partial(matmul, size), 1)
    for name, operator in {**MOVES, **OPERATORS}.items():
        yield name, Program(operator.module, operator.arrays)
    for name, case in symbolic_batch.CASES.items():
        for batch in case.batches:
            arrays = partial(_only, case.array, batch)
            yield f"{name}, any batch, {batch}", Program(partial(case.build, "n"), arrays)
    for threads in (1, 2):
        for width in WIDTHS:
            for kind in GRAPHS:
                product = Product(kind, width)
                name = f"sparse product, {kind}, {width} columns, {threads} threads"
                yield name, Program(product.module, product.arrays, threads)


def _only(make: Callable[..., Any], *arguments: int) -> list[Any]:
    return [make(*arguments)]


def _case(make: Callable[[], Any], threads: int) -> Program:
    made = cache(make)
    return Program(lambda: made().module, lambda: made().inputs, threads)


@lru_cache(maxsize=1)
def _call(name: str) -> Callable[[], object]:
    program = dict(programs())[name]
    exe = sw.compile(program.module(), threads=program.threads, records=False)
    return partial(exe, *program.inputs())


def seconds(name: str) -> float:
    """The seconds of a call of a program, or a number that stands for its machine code."""
    if name.startswith(CODE):
        program = dict(programs())[name.removeprefix(CODE)]
        exe = sw.compile(program.module(), threads=program.threads)
        code = "\n".join(NAMES.sub("", exe.ir("asm")).split())
        return int.from_bytes(hashlib.sha256(code.encode()).digest()[:6])
    return measure({name: _call(name)}, rounds=1)[name].minimum


def _least(folders: Sequence[Path | None], name: str, rounds: int) -> list[float]:
    """The minima of new processes."""
    workers = [Worker(__file__, folder) for folder in folders]
    least = list(map(min, turns(workers, name, rounds)))
    for worker in workers:
        worker.end()
    return least


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the other package is")
    parser.add_argument("--only", default="", help="only programs with this text in their names")
    parser.add_argument("--changed", action="store_true", help="only other machine code")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each version")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        answer(seconds)
        return
    if options.folder is None:
        parser.error("FOLDER is needed")
    folders: list[Path | None] = [options.folder, None]
    workers = [Worker(__file__, folder) for folder in folders]
    names = [name for name, _ in programs() if options.only in name]
    if options.changed:
        every = len(names)
        names = [name for name in names if len(set(map(min, turns(workers, CODE + name, 1)))) > 1]
        print(f"{every - len(names)} of {every} programs have the machine code that they had")
    table = Table("program", "before", "now", "ratio")
    ratios: list[float] = []
    slower: list[str] = []
    for name in track(names, transient=True):
        before, now = map(min, turns(workers, name, options.rounds))
        if now > LARGEST_RATIO * before:
            again = [_least(folders, name, options.rounds) for _ in range(PAIRS)]
            before, now = map(min, zip((before, now), *again, strict=True))
        ratios.append(now / before)
        table.add_row(name, duration(before), duration(now), f"{ratios[-1]:.3f}")
        slower += [name] if ratios[-1] > LARGEST_RATIO else []
    for worker in workers:
        worker.end()
    console = Console(width=110)
    console.print(table)
    console.print(f"{len(ratios)} programs, geometric mean {np.exp(np.mean(np.log(ratios))):.3f}")
    console.print(f"slower by more than {LARGEST_RATIO - 1:.0%}: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()

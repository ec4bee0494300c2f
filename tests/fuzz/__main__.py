"""Random modules, compiled in random ways and compared with the reference: `make fuzz`.

python -m tests.fuzz graph 0 2000          # the seeds of a range
python -m tests.fuzz all --minutes 10      # new seeds of all levels, as long as that
python -m tests.fuzz graph 17 --save name  # reduce the program of a seed, into the corpus
"""

from __future__ import annotations

import argparse

from .corpus import FOLDER, difference, reduced, write
from .record import Record
from .running import LEVELS, case_of, run, work

SHARES = {"graph": 0.15, "passes": 0.4, "loop": 0.35, "rt": 0.1}
"""The part of the time for each level: machine code takes the most for a module."""


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("level", choices=[*LEVELS, "all"], nargs="?", default="all")
    parser.add_argument("first", type=int, nargs="?")
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--record", action="store_true", help="add the ranges to the record")
    parser.add_argument("--save", metavar="NAME", help="of a file of the corpus")
    parser.add_argument("--work", nargs=3, metavar=("LEVEL", "FIRST", "LAST"), help="a child")
    given = parser.parse_args()
    if given.work:
        work(given.work[0], int(given.work[1]), int(given.work[2]))
        return
    if given.save:
        _save(given.first, given.save)
        return
    record = Record.read()
    levels = list(LEVELS) if given.level == "all" else [given.level]
    differences = 0
    for level in levels:
        first = record.next_seed(level) if given.first is None else given.first
        last = first + 10**9 if given.last is None else given.last
        minutes = given.minutes and given.minutes * (SHARES[level] if len(levels) > 1 else 1)
        summary, reached = run(level, first, last, minutes=minutes, report=_report)
        print(f"{level} {first}:{reached}", dict(summary.kinds))
        for text, count in summary.refusals.most_common(8):
            print(f"  refused {count} times: {text[:160]}")
        differences += len(summary.found)
        if given.record:
            record.add(level, first, reached, summary)
            record.write()
    if given.record:
        for name, count in record.rare().items():
            print(f"so far only {count} times: {name}")
    raise SystemExit(differences > 0)


def _save(seed: int, name: str) -> None:
    """Write what is left of the program of a seed that still differs."""
    case, way = case_of(seed)
    text = difference(case, way)
    if text is None:
        raise SystemExit(f"nothing differs for seed {seed}")
    path = FOLDER / f"{name}.mlir"
    write(path, reduced(case, way, 120), way, text)
    print(path)


def _report(seed: int, text: str) -> None:
    print(f"seed {seed}: {text[:600]}", flush=True)


if __name__ == "__main__":
    main()

"""Processes that take turns at timing, each with its own version of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median

RUN = Path(__file__).resolve().parent / "run.py"


class Worker:
    """A process that times programs by name, by the function `seconds` of a module.

    It imports `stepwell` from a folder, or this package.
    """

    def __init__(self, module: str, folder: str = "") -> None:
        path = [str(Path(folder).resolve())] if folder else []
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])
        }
        self._process = subprocess.Popen(
            [sys.executable, str(RUN), module, "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def seconds(self, name: str) -> float:
        """The time of one turn."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{name}: the process that times it has ended")
        return float(answer)

    def end(self) -> None:
        self._process.communicate()


@cache
def versions(module: str, against: str) -> list[Worker]:
    """The processes of a table: that of the package in another folder, if any, and of this one.

    They end with this process, which closes their inputs.
    """
    return [*([Worker(module, against)] if against else []), Worker(module)]


def turns(workers: Sequence[Worker], name: str, rounds: int) -> list[list[float]]:
    """The times of each worker, one after the other in each round."""
    times = [[worker.seconds(name) for worker in workers] for _ in range(rounds)]
    return [list(column) for column in zip(*times, strict=True)]


def compared(times: Sequence[Sequence[float]], shown: Callable[[float], str]) -> dict[str, str]:
    """The cells of the minima of `versions`: now alone, or before and now with their ratio."""
    if len(times) == 1:
        return {"now": shown(min(times[0]))}
    before, now = map(min, times)
    ratios = [b / a for a, b in zip(*times, strict=True)]
    return {
        "before": shown(before),
        "now": shown(now),
        "ratio": f"{now / before:.3f}",
        "median of the ratios": f"{median(ratios):.3f}",
    }


def answer(seconds: Callable[[str], float]) -> None:
    """Print the seconds of each program named on standard input, as a process of `Worker` does."""
    for line in sys.stdin:
        print(seconds(line.strip()), flush=True)


def in_a_process(
    code: str,
    *arguments: str,
    before: Callable[[], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[float]:
    """The numbers that a new process of Python prints, which finds the modules of this folder."""
    # As for users, modules are compiled to bytecode once.
    given = {**os.environ, **(environment or {})}
    given.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=RUN.parent,
        env=given,
        preexec_fn=before,
    )
    return [float(number) for number in done.stdout.split()]

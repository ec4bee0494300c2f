"""Processes that take turns at timing, each with its own version of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


class Worker:
    """A process that times programs by name.

    Args:
        script: run with `--work`, it calls `answer`.
        folder: the folder from which the process imports `stepwell`; None for this package.
    """

    def __init__(self, script: str, folder: Path | None = None) -> None:
        path = [] if folder is None else [str(folder.resolve())]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])
        }
        self._process = subprocess.Popen(
            [sys.executable, script, "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def seconds(self, name: str) -> float:
        """The time of one turn.

        Raises:
            SystemExit: if the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{name}: the process that times it has ended")
        return float(answer)

    def end(self) -> None:
        """Let the process end."""
        self._process.communicate()


def turns(workers: Sequence[Worker], name: str, rounds: int) -> list[list[float]]:
    """The times of each worker, one after the other in each round."""
    times = [[worker.seconds(name) for worker in workers] for _ in range(rounds)]
    return [list(column) for column in zip(*times, strict=True)]


def answer(seconds: Callable[[str], float]) -> None:
    """Print the seconds of each program named on standard input, as a process of `Worker` does."""
    for line in sys.stdin:
        print(seconds(line.strip()), flush=True)


def in_a_process(code: str, *arguments: str, **environment: str) -> list[float]:
    """The numbers that a new process of Python prints."""
    # As for users, modules are compiled to bytecode once.
    given = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"} | environment
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=given)
    return [float(number) for number in done.stdout.split()]

"""Processes that take turns at timing, each with its own version of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Worker:
    """A process that times programs by name.

    Args:
        script: run with `--work`, it answers each line of its input with a number of seconds.
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

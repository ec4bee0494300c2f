"""Plant mistakes in a copy of the sources, one at a time, and say which test notices each.

    python -m tests.breaks                      # all of them
    python -m tests.breaks --only tail          # those with this text in their meaning or file
    python -m tests.breaks -j 8

Each mistake states tests of `make test` that have to notice it, and only these run, until one
fails. A commit that changes replaced text anchors the mistake in the new text; none is dropped.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from .mistakes import Break
from .planted import BREAKS

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600
"""How long the tests of a mistake may take."""
_TIMES = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """The test that noticed a mistake, or the reason why there is none."""

    planted: Break
    noticed_by: str | None
    reason: str
    seconds: float


def copied(scratch: Path) -> Path:
    """A copy of the sources, which is imported as the package with `scratch` on the path."""
    root = scratch / "stepwell"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return root


@contextmanager
def planted(root: Path, mistake: Break) -> Iterator[None]:
    """Change a file in a copy of the sources, and change it back."""
    path = root / mistake.file
    text, before = path.read_text(encoding="utf-8"), path.stat().st_mtime
    if text.count(mistake.right) != 1:
        raise ValueError(f"{mistake.file} has {text.count(mistake.right)} times what to replace")
    path.write_text(text.replace(mistake.right, mistake.wrong), encoding="utf-8")
    # Bytecode is known by the time of its source in seconds, and its size.
    after = before + 2 + next(_TIMES)
    os.utime(path, (after, after))
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (before, before))


def tried(root: Path, mistake: Break) -> Outcome:
    """Run the tests of a mistake in a copy of the sources."""
    begin = time.monotonic()

    def outcome(noticed_by: str | None, reason: str = "") -> Outcome:
        return Outcome(mistake, noticed_by, reason, time.monotonic() - begin)

    environment = {**os.environ, "PYTHONPATH": str(root.parent)}
    try:
        with planted(root, mistake):
            for command, failure in commands(mistake.tests.split()):
                done = subprocess.run(
                    command,
                    cwd=root,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
                if done.returncode == 0:
                    continue
                failed = re.search(failure, done.stdout, re.MULTILINE)
                if done.returncode == 1 and failed:
                    return outcome(failed[1])
                printed = (done.stdout + done.stderr).strip()
                return outcome(None, f"its tests do not run: {printed[-400:]}")
    except ValueError as error:
        return outcome(None, str(error))
    except subprocess.TimeoutExpired:
        return outcome(None, f"its tests take more than {SECONDS} s")
    return outcome(None, "its tests pass")


def commands(tests: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """Commands that run tests, each with a pattern for the name of one that failed."""
    texts = [test for test in tests if test.endswith(".mlir")]
    if texts:
        lit = str(Path(sys.executable).with_name("lit"))
        yield [lit, "-q", "-j1", "--no-progress-bar", *texts], r"^  stepwell :: (\S+)"
    others = [test for test in tests if test not in texts]
    if others:
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-rfE", "-m", "not slow"]
        yield [*pytest, "-p", "no:cacheprovider", *others], r"^(?:FAILED|ERROR) (\S+)"


def main(
    only: Annotated[str, typer.Option(help="only those with this text in meaning or file")] = "",
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="at a time")] = 0,
) -> None:
    """Print a line for each mistake; the exit status is 1 unless all are noticed."""
    chosen = [one for one in BREAKS if only in one.meaning or only in one.file]
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(chosen)) or 1
    console = Console(width=None if sys.stdout.isatty() else 200)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as pool:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(copied(Path(scratch, str(number))))

        def try_one(mistake: Break) -> Outcome:
            root = copies.get()
            try:
                return tried(root, mistake)
            finally:
                copies.put(root)

        table = Table("mistake", "file", "noticed by", "seconds")
        missed = 0
        for one in pool.map(try_one, chosen):
            missed += one.noticed_by is None
            by = one.noticed_by or f"NOT NOTICED: {one.reason}"
            console.print(f"{one.planted.meaning}: {by}", highlight=False, markup=False)
            table.add_row(one.planted.meaning, one.planted.file, by, f"{one.seconds:.0f}")
    console.print(table)
    console.print(f"{len(chosen) - missed} of {len(chosen)} are noticed")
    if missed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)

"""Changed files of all kinds, each read and used in a process that may not do so badly.

    python -m tests.fuzz.mutants                          # 100 seeds of each kind
    python -m tests.fuzz.mutants --seeds 0:500            # of each
    python -m tests.fuzz.mutants --only tokens --seeds 17:18

A case is a kind of file and a seed. Reading it ends in a result or in one error of the project, and
using the result (compiling the program and calling it) too. What is found otherwise:

    signal      the process ends by a signal
    hang        a case takes more than `SECONDS` of the processor, or `PATIENCE` of time
    foreign     an exception that is not of the project, or an error that says it is internal
    growth      a process that has read `BATCH` files holds `GROWTH` more bytes than at first

No case may take more than `MEMORY` bytes beyond what the process has: what needs more is a foreign
MemoryError.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from .readers import ERRORS, FILE, KINDS, Kind

SECONDS = 10.0
PATIENCE = 120.0
MEMORY = 2 << 30
GROWTH = 128 << 20
BATCH = 50


@dataclass
class Summary:
    """What became of the cases of a kind."""

    cases: int = 0
    read: int = 0
    used: int = 0
    seconds: float = 0.0
    grown: int = 0
    found: list[str] = field(default_factory=list)

    def add(self, outcome: dict[str, Any]) -> None:
        """Count the outcome of a case."""
        self.cases += 1
        self.read += outcome["read"]
        self.used += outcome["used"]
        self.seconds = max(self.seconds, outcome["seconds"])
        if outcome["found"]:
            self.found.append(f"seed {outcome['seed']}: {outcome['found']}")
        elif outcome["seconds"] > SECONDS:
            self.found.append(f"seed {outcome['seed']}: hang, {outcome['seconds']:.1f} s")


def resident() -> int:
    """Bytes of memory in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def limit_memory() -> None:
    """Let the process take `MEMORY` bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    size = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


def case(kind: Kind, path: Path, data: bytes, seed: int) -> dict[str, Any]:
    """Change a file, read it and use what was read."""
    changed = path.with_stem("damaged")
    changed.write_bytes(kind.change(data, np.random.default_rng(seed)))
    start = time.process_time()
    outcome = {"seed": seed, "read": False, "used": False, "found": ""}
    try:
        content = kind.read(changed)
        outcome["read"] = True
        if kind.use is not None:
            kind.use(content)
            outcome["used"] = True
    except ERRORS as error:
        if "internal error" in str(error) or len(str(error)) > 4000:
            outcome["found"] = f"foreign, {str(error)[:2000]}"
    except BaseException:
        outcome["found"] = f"foreign, {traceback.format_exc()}"
    return {**outcome, "seconds": time.process_time() - start}


def read_all(kind: Kind, path: Path, seeds: range, tell: Callable[[dict[str, Any]], None]) -> None:
    """Read a file with the change of each seed, and tell what became of it."""
    warnings.simplefilter("ignore")
    gc.freeze()  # memory that the collector marks is copied
    limit_memory()
    data = path.read_bytes()
    first = resident()
    for seed in seeds:
        tell(case(kind, path, data, seed))
    gc.collect()
    tell({"grown": resident() - first})


def in_process(kind: Kind, path: Path, seeds: range) -> Iterator[dict[str, Any]]:
    """The outcomes of seeds, in a forked process; of one that it dies of, that it did."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with os.fdopen(write, "w") as pipe:
            read_all(kind, path, seeds, lambda one: print(json.dumps(one), file=pipe, flush=True))
            pipe.flush()
        os._exit(0)
    os.close(write)
    done = 0
    with os.fdopen(read, "rb", buffering=0) as pipe:
        for line in _lines(pipe.fileno()):
            outcome = json.loads(line)
            done += "seed" in outcome
            yield outcome
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if done < len(seeds):
        number = status & 127
        fact = "hang" if number == signal.SIGKILL else f"signal {number}, status {status}"
        seed = seeds[done]
        yield {"seed": seed, "read": False, "used": False, "found": fact, "seconds": 0.0}
        yield from in_process(kind, path, seeds[done + 1 :])


def _lines(pipe: int) -> Iterator[bytes]:
    """The lines that come through a pipe until it is closed, or nothing comes for too long."""
    rest = b""
    while select.select([pipe], [], [], PATIENCE)[0]:
        more = os.read(pipe, 1 << 16)
        if not more:
            return
        *lines, rest = (rest + more).split(b"\n")
        yield from lines


def summary(kind: Kind, folder: Path, seeds: range) -> Summary:
    """What becomes of a file of a kind with the changes of some seeds."""
    path = folder / f"{FILE}{kind.suffix}"
    kind.write(path)
    content = kind.read(path)
    if kind.use is not None:
        kind.use(content)
    result = Summary()
    for start in range(seeds.start, seeds.stop, BATCH):
        batch = range(start, min(start + BATCH, seeds.stop))
        for outcome in in_process(kind, path, batch):
            if "seed" in outcome:
                result.add(outcome)
            else:
                result.grown = max(result.grown, outcome["grown"])
                if outcome["grown"] > GROWTH:
                    result.found.append(f"seeds from {start}: growth, {outcome['grown']} bytes")
    return result


def main(
    seeds: Annotated[str, typer.Option(help="of each kind, as first:after the last")] = "0:100",
    only: Annotated[str, typer.Option(help="kinds with this in their names")] = "",
) -> None:
    """Print a line for each kind as it ends, with what was found before it."""
    first, last = map(int, seeds.split(":"))
    names = [name for name in KINDS if only in name]
    console, found, whole = Console(width=120), 0, np.zeros(3, int)
    _print_row(console, "kind", "cases", "read", "used", "longest", "grown", "found")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            one = summary(KINDS[name], Path(folder), range(first, last))
        numbers = one.cases, one.read, one.used
        whole += numbers
        found += len(one.found)
        for line in one.found:
            console.print(f"{name}, {line}", markup=False, highlight=False)
        grown = f"{one.grown / 2**20:.0f} MiB"
        _print_row(console, name, *numbers, f"{one.seconds:.2f} s", grown, len(one.found))
    _print_row(console, "all", *whole, "", "", found)
    if found:
        raise typer.Exit(1)


def _print_row(console: Console, name: str, *cells: object) -> None:
    text = f"{name:{max(map(len, KINDS))}}" + "".join(f"{cell!s:>9}" for cell in cells)
    console.print(text, markup=False, highlight=False)


if __name__ == "__main__":
    typer.run(main)

"""The worst times of calls: several callers of one program, beside busy processes.

A call that takes longer than 20 ms is a stall. The machine caused it if the caller, and the thread
of this process that it may have waited for, waited that long for a core in the meantime, according
to the system (`/proc/self/task/*/schedstat`). Other stalls are caused by the thread pool, or by the
GIL, which a caller takes again after each call: the rows of one thread, without a pool, tell one
from the other.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from harness import LeftOutError, Row, Table
from models import Weights, built

import stepwell as sw
from stepwell.tools.timing import duration

STALL = 0.02
"""Seconds."""
_TASKS = Path("/proc/self/task")


def model() -> sw.Module:
    """A layer and a softmax: two regions of tiles in each call."""
    weight = Weights().scaled(256, 256)
    return built(lambda b, x: b.softmax(b.dense(x, weight), axis=1), (256, 256))


def _spin() -> None:
    while True:
        pass


def _waited() -> dict[int, float]:
    """The seconds that each thread of this process has waited for a core."""
    found: dict[int, float] = {}
    for task in _TASKS.iterdir():
        try:
            found[int(task.name)] = int((task / "schedstat").read_text().split()[1]) / 1e9
        except OSError:
            continue  # the thread has ended
    return found


def _caused_by_machine(before: dict[int, float], after: dict[int, float]) -> float:
    """The seconds that this thread has waited for a core, plus the most of any other thread."""
    own = threading.get_native_id()
    waits = {task: after[task] - before.get(task, 0.0) for task in after}
    return waits.pop(own, 0.0) + max(waits.values(), default=0.0)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def stress(
    exe: sw.Executable, callers: int, calls: int
) -> tuple[list[float], list[tuple[float, float]]]:
    """The seconds of each call of several threads, and for each stall its seconds and those that
    the machine caused."""
    x = np.random.default_rng(1).standard_normal((256, 256), np.float32)
    expected = exe(x)
    times: list[float] = []
    stalls: list[tuple[float, float]] = []

    def caller() -> None:
        for _ in range(calls):
            before, start = _waited(), time.perf_counter()
            y = exe(x)
            seconds = time.perf_counter() - start
            times.append(seconds)
            if seconds > STALL:
                stalls.append((seconds, _caused_by_machine(before, _waited())))
            if not np.array_equal(y, expected):
                raise SystemExit("two calls differ")

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, stalls


@contextmanager
def busy(count: int) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def row(
    name: str, callers: int, *, threads: int = 1, calls: int = 5000, neighbours: int = 1
) -> Row:
    if not (_TASKS / str(os.getpid()) / "schedstat").exists():
        raise LeftOutError("this system does not count how long threads wait for a core")
    exe = sw.compile(model(), threads=threads)
    with busy(neighbours):
        stress(exe, callers, 100)
        gc.collect()
        before = _resident()
        times, stalls = stress(exe, callers, calls // callers)
        gc.collect()
    grown = max(0, _resident() - before)
    times.sort()
    return {
        "calls": str(len(times)),
        "median": duration(times[len(times) // 2]),
        "99 %": duration(times[len(times) * 99 // 100]),
        "longest": duration(times[-1]),
        "stalls": str(len(stalls)),
        "not the machine's": str(sum(seconds - waited > STALL for seconds, waited in stalls)),
        "grown": f"{grown / 1024:.0f} KiB",
    }


CORES = len(os.sched_getaffinity(0))
TABLES = [Table("callers", {"1": 1, "4": 4}, row, threads=(1, CORES, 2 * CORES))]

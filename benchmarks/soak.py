"""Random models, called for a long time from threads and forked processes, under signals.

    python benchmarks/run.py soak               # an hour
    python benchmarks/run.py soak --minutes 5

A round compiles a random model and compares its result with the reference. Then four threads call
it again and again, and each result must equal the first one bit for bit, while a timer interrupts
the process, forked processes make the same calls, and the next model is compiled. Some programs are
saved, loaded and called, and some get other weights and then their own again. The table shows what
the process held after each tenth of the time: a round that is over should leave nothing behind.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, Table
from scipy.sparse import csr_array, random_array

import stepwell as sw

CALLERS = 4
CALLS = 40
"""The calls of each thread in a round."""
CHILDREN = 2
"""The forked processes of a round."""
PATIENCE = 60
ROWS = (1, 2, 3, 5, 8, 17, 33)
"""Sizes of the symbolic dimension."""
TOLERANCE = 1e-4
DONE = ("rounds", "calls", "forks", "saved", "updated", "refused", "signals")

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Model:
    """A module, and what makes arguments for a size of its symbolic dimension."""

    module: sw.Module
    arguments: Callable[[np.random.Generator, int], Arguments]


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32)


def layers(rng: np.random.Generator) -> Model:
    """Dense layers with elementwise operators and reductions between them."""
    b = sw.Builder("main")
    width = int(rng.integers(1, 40))
    x = b.input("x", ("n", width), "f32")
    h, last = x, width
    for _ in range(rng.integers(1, 4)):
        after = int(rng.integers(1, 70))
        h = b.dense(h, floats(rng, after, last) / np.float32(last), bias=floats(rng, after))
        last = after
        functions = b.relu, b.tanh, b.sigmoid, b.exp, b.gelu
        h = functions[rng.integers(len(functions))](h * 0.5)
        if rng.integers(2):
            h = h - b.reduce(h, rng.choice(["mean", "max"]), axes=[1], keepdims=True)
    b.output(b.softmax(h, axis=1), name="y")
    return Model(b.module(), lambda rng, n: (floats(rng, n, width),))


def images(rng: np.random.Generator) -> Model:
    b = sw.Builder("main")
    channels, filters = (int(rng.integers(1, 20)) for _ in range(2))
    height, width = (int(rng.integers(5, 14)) for _ in range(2))
    x = b.input("x", ("n", channels, height, width), "f32")
    kernel = floats(rng, filters, channels, 3, 3) / np.float32(channels)
    h = b.relu(b.conv(x, kernel, bias=floats(rng, filters)))
    b.output(b.reduce(h, "mean", axes=[2, 3], keepdims=False), name="y")
    b.output(b.pool(h, "max", [2, 2], [2, 2]), name="z")
    return Model(b.module(), lambda rng, n: (floats(rng, n, channels, height, width),))


def graphs(rng: np.random.Generator) -> Model:
    b = sw.Builder("main")
    width, hidden = (int(rng.integers(1, 30)) for _ in range(2))
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    x = b.input("x", ("n", width), "f32")
    h = b.relu(b.spmm(a, b.dense(x, floats(rng, hidden, width))))
    b.output(b.log_softmax(b.spmm(a, h), axis=1), name="y")

    def arguments(rng: np.random.Generator, n: int) -> Arguments:
        matrix = random_array((n, n), density=0.3, rng=rng, dtype=np.float32)
        return csr_array(matrix), floats(rng, n, width)

    return Model(b.module(), arguments)


def selections(rng: np.random.Generator) -> Model:
    """Gathers by checked indices, and a result whose size depends on values."""
    b = sw.Builder("main")
    width, count = (int(rng.integers(1, 20)) for _ in range(2))
    x, i = b.input("x", ("n", width), "f32"), b.input("i", (count,), "i64")
    gathered = b.gather(x, i, axis=0)
    b.output(b.cumulative(gathered, "sum", 0), name="y")
    b.output(b.compress(x, b.greater(b.reduce(x, "sum", axes=[1], keepdims=False), 0.0), axis=0))
    return Model(b.module(), lambda rng, n: (floats(rng, n, width), rng.integers(-n, n, count)))


FAMILIES = (layers, images, graphs, selections)


class DifferenceError(Exception):
    """A result is not what it was, or a process ended as it should not."""


def several(result: Any) -> tuple[np.ndarray, ...]:
    return result if isinstance(result, tuple) else (result,)


def check_close(found: Any, expected: Any, what: str) -> None:
    for one, other in zip(several(found), several(expected), strict=True):
        if one.shape != other.shape or not np.allclose(one, other, TOLERANCE, TOLERANCE):
            raise DifferenceError(f"{what} differs from the reference")


def check_same(found: Any, expected: Any, what: str) -> None:
    pairs = zip(several(found), several(expected), strict=True)
    if not all(np.array_equal(one, other) for one, other in pairs):
        raise DifferenceError(f"{what} gives another result")


class Round:
    """A model, compiled, with arguments of some sizes and their results."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = self.rng = np.random.default_rng(seed)
        self.model = FAMILIES[rng.integers(len(FAMILIES))](rng)
        threads, level = int(rng.integers(1, 5)), int(rng.integers(0, 4))
        self.exe = sw.compile(self.model.module, threads=threads, opt_level=level)
        self.cases: list[tuple[Arguments, Any]] = []
        for n in rng.choice(ROWS, 3, replace=False):
            arguments = self.model.arguments(rng, int(n))
            result = self.exe(*arguments)
            check_close(result, self.model.module.run_reference(*arguments), "the program")
            self.cases.append((arguments, result))

    def call(self, exe: sw.Executable, calls: int, what: str) -> int:
        """Call with each of the arguments in turn; returns the number of calls."""
        for n in range(calls):
            arguments, expected = self.cases[n % len(self.cases)]
            check_same(exe(*arguments), expected, what)
        return calls

    def fork(self) -> int:
        """A process that makes the same calls."""
        child = os.fork()
        if child:
            return child
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        status = 1
        try:
            self.call(self.exe, CALLS, "a forked process")
            status = 0
        finally:
            os._exit(status)

    def refuse(self) -> int:
        """Wrong arguments end in an error, and leave the program as it was."""
        for arguments, _ in self.cases:
            wrong = [*arguments[:-1], arguments[-1].astype(np.complex64)]
            try:
                self.exe(*wrong)
            except sw.InputError:
                continue
            raise DifferenceError("wrong arguments are not refused")
        return len(self.cases)

    def save(self) -> None:
        """The program from a file gives the same results."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.stepwell"
            self.exe.save(path)
            self.call(sw.load(path), len(self.cases), "the saved program")

    def update(self) -> int:
        """Other weights, then the old ones again."""
        weights = self.model.module.weights
        old = {name: np.asarray(weights[name]) for name in weights}
        if not old:
            return 0
        other = self.exe.__copy__()
        other.update({name: np.flip(array).copy() for name, array in old.items()})
        other(*self.cases[0][0])
        other.update(old)
        self.call(other, len(self.cases), "the program with its weights put back")
        return 1


@contextmanager
def interrupted(counts: Counter[str]) -> Iterator[None]:
    """A timer interrupts the process every few milliseconds."""

    def handler(number: int, frame: object) -> None:
        counts["signals"] += 1

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def play(turn: Round, counts: Counter[str], pool: ThreadPoolExecutor) -> Round:
    callers: list[Future[int]] = [
        pool.submit(turn.call, turn.exe, CALLS, "a thread") for _ in range(CALLERS)
    ]
    children = [turn.fork() for _ in range(CHILDREN)]
    following = Round(turn.seed + 1)
    counts.update(calls=sum(caller.result() for caller in callers), forks=CHILDREN)
    for child in children:
        status = os.waitpid(child, 0)[1]
        if status:
            raise DifferenceError(f"a forked process ends with status {status}")
    counts.update(refused=turn.refuse(), rounds=1)
    if turn.seed % 4 == 0:
        turn.save()
        counts.update(saved=1)
    if turn.seed % 4 == 2:
        counts.update(updated=turn.update())
    return following


def held() -> tuple[int, int, int, int]:
    """Resident bytes, mappings, open files and threads of this process."""
    gc.collect()
    process = Path("/proc/self")
    pages = int((process / "statm").read_text().split()[1])
    mappings = (process / "maps").read_text().count("\n")
    files, threads = (len(list((process / name).iterdir())) for name in ("fd", "task"))
    return pages * os.sysconf("SC_PAGE_SIZE"), mappings, files, threads


def rows(name: str, _: None, *, minutes: float = 60.0, seed: int = 0) -> Iterator[Row]:
    """Run for so many minutes, from a seed; a row for each tenth, and what was done in the last."""
    counts, begin = Counter[str](), time.monotonic()
    following = Round(seed)
    with ThreadPoolExecutor(CALLERS) as pool, interrupted(counts):
        for tenth in range(1, 11):
            while time.monotonic() - begin < tenth * 6 * minutes:
                try:
                    following = play(following, counts, pool)
                except Exception as error:
                    fact = f"seed {following.seed}, or the one after it: {error!r}"
                    raise SystemExit(fact) from error
            resident, mappings, files, threads = held()
            yield {
                "minutes": f"{(time.monotonic() - begin) / 60:.1f}",
                "resident": f"{resident / 2**20:.1f} MiB",
                "mappings": str(mappings),
                "files": str(files),
                "threads": str(threads),
                **{name: str(counts[name]) for name in DONE},
            }


TABLES = [Table("minutes", {"all": None}, rows)]

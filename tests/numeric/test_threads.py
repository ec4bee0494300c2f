"""Programs on several threads: the same results, from any number of callers."""

from __future__ import annotations

import functools
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.target import default_threads, host
from stepwell.dialects.rt.abi import PARALLEL_TILES
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import cases, floats, restart, same

Apart = Callable[[Callable[[], object]], str]


def mlp() -> sw.Module:
    restart()
    b = sw.Builder("main")
    x = b.input("x", ("batch", 100), "f32")
    h = b.relu(b.dense(x, floats(130, 100)))
    b.output(b.softmax(b.dense(h, floats(33, 130))), name="y")
    return b.module()


@functools.cache
def compiled(threads: int) -> sw.Executable:
    return sw.compile(mlp(), threads=threads)


@pytest.mark.parametrize("threads", cases([2, 3, 8], [3]))
def test_the_number_of_threads_does_not_change_a_bit(threads: int) -> None:
    one, many = compiled(1), compiled(threads)
    for batch in (0, 1, 2, 7, 9, 10, 17, 64, 301):
        x = floats(batch, 100)
        same(many(x), one(x), f"{batch} rows")


@pytest.mark.parametrize("threads", [1, 2])
def test_operands_larger_than_a_cache(threads: int) -> None:
    """Their panels are copied by the thread that reads them."""
    x, y = floats(2, 401, 401)
    b = sw.Builder("main")
    b.output(b.matmul(b.input("x", x.shape, "f32"), b.input("y", y.shape, "f32")), name="z")
    exe = sw.compile(b.module(), threads=threads, target="x86-64-v3")
    assert "loop.local" in exe.ir("scheduled")
    # Sums of 401 products of about 1, some in another order.
    np.testing.assert_allclose(exe(x, y), x.astype(float) @ y, atol=2e-4)


def test_several_callers_at_once() -> None:
    exe = compiled(2)
    inputs = [floats(n + 1, 100) for n in range(40)]
    expected = [exe(x) for x in inputs]
    with ThreadPoolExecutor(4) as callers:
        same(list(callers.map(exe, inputs * 5)), expected * 5)


@pytest.mark.unguarded("slots are no larger than their distance")
@pytest.mark.parametrize("in_code", [True, False], ids=["compiled", "in Python"])
def test_another_thread_of_python_runs_during_a_call(in_code: bool) -> None:
    """Also where the interpreter never takes its lock away from a thread."""
    exe = compiled(1)
    call = exe if in_code else functools.partial(sw.Executable.__call__, exe)
    x = np.zeros((20_000, 100), np.float32)
    begin, ran = threading.Event(), list[bool]()

    def other() -> None:
        begin.wait()
        ran.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        begin.set()
        calls = 0
        while not ran and calls < 100:
            call(x)
            calls += 1
        seen = list(ran)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert seen


def test_thousands_of_calls_beside_a_busy_process(apart: Apart) -> None:
    """The same bits, and no thread and no memory more at the end than at the beginning."""
    exe = compiled(3)
    x = floats(200, 100)
    expected = exe(x)
    # Nobody makes calls before all four callers are there.
    together = threading.Barrier(4)

    def calls(count: int) -> bool:
        together.wait()
        return all(np.array_equal(exe(x), expected) for _ in range(count))

    def thousands() -> None:
        with ThreadPoolExecutor(4) as callers:
            assert all(callers.map(calls, [200] * 4))
            threads, bytes = _tasks(), _resident()
            assert all(callers.map(calls, [1000] * 4))
            assert _tasks() == threads
            # The results of these calls are 100 MB.
            assert _resident() - bytes < 10e6

    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        # Threads that other tests have left begin and end when they like.
        assert apart(thousands) == "works"
    finally:
        busy.kill()
        busy.wait()


def _tasks() -> int:
    """How many threads this process has, those of the pool included."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


def _resident() -> int:
    """How many bytes of memory this process has, or 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * mmap.PAGESIZE if statm.exists() else 0


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", 257, 100_000])
def test_a_wrong_number_of_threads(threads: object) -> None:
    with pytest.raises(sw.CompileError, match="compile: wrong threads, expected 1 to 256"):
        sw.compile(mlp(), threads=threads)


def test_the_environment_says_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", ("n", 100), "f32")))
    module = b.module()
    for said, threads in (("1", 1), ("3", 3), (" 2 ", 2)):
        monkeypatch.setenv("STEPWELL_NUM_THREADS", said)
        assert default_threads(host()) == threads
        text = Compilation.of(Request(module)).text("llvm")
        assert (PARALLEL_TILES in text) == (threads > 1)
    assert PARALLEL_TILES not in Compilation.of(Request(module, threads=1)).text("llvm")


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5", "\u0662", "100000", "9" * 9999])
def test_an_environment_that_says_no_number(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_NUM_THREADS", said)
    with pytest.raises(
        sw.TargetError, match="STEPWELL_NUM_THREADS: wrong number of threads, expected 1 to 256"
    ):
        sw.compile(mlp())


def test_without_it_there_is_a_thread_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_NUM_THREADS", "")
    assert default_threads(host()) == host().cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_threads_are_not_more_than_the_cores_that_the_process_may_run_on() -> None:
    script = """
import os
from stepwell.core.target import default_threads, host
host()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(default_threads(host()))
"""
    environment = {k: v for k, v in os.environ.items() if k != "STEPWELL_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.stdout, done.stderr) == ("1\n", "")

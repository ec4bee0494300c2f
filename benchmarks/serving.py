"""Models behind HTTP, beside onnxruntime: throughput, latency, cold start, memory, threads.

Servers are those of `served.py` (FastAPI under uvicorn), with one or two processes; `wrk` sends
requests of several batch sizes in turn, from another process on the same cores. The servers of a
table are up at the same time and take turns; figures are medians. "no model" answers at once: it is
what the server takes by itself. Needs the packages fastapi and uvicorn[standard], and wrk.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from deployed import MODELS
from harness import LeftOutError, Row, Table
from peers import OURS
from served import RUN_TIMES as CALLS

import stepwell as sw

HERE = Path(__file__).resolve().parent
SERVED = ("MLP", "GCN")
BATCHES = (1, 4, 16)
RUN_TIMES = tuple(CALLS)
SERVERS = ((1, "loop"), (1, "pool"), (2, "loop"))
"""Numbers of processes, and where their calls are made: see `served.py`."""
CONNECTIONS = 8
_FIRST_PORT = 8700
_HOLD = """
import sys
import numpy as np
from served import RUN_TIMES
call = RUN_TIMES[sys.argv[1]](sys.argv[2])
x = np.zeros((1, 3, 224, 224), np.float32)
for _ in range(3):
    call(x)
print("ready", flush=True)
sys.stdin.readline()
lines = open("/proc/self/smaps_rollup").read().splitlines()[1:]
facts = {line.split(":")[0]: int(line.split()[1]) for line in lines}
own = facts["Private_Clean"] + facts["Private_Dirty"]
print(own / 1e3, facts["Pss"] / 1e3, flush=True)
sys.stdin.readline()
"""
"""Loads ResNet-50, calls it, and prints the MB that are its own, and its part of shared ones."""


FILES = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FILES)


def file_of(name: str, run_time: str) -> Path:
    path = FILES / f"{name}.{'onnx' if run_time == 'onnxruntime' else 'stepwell'}"
    if not path.exists() and path.suffix == ".onnx":
        path.write_bytes(MODELS[name].proto().SerializeToString())
    if not path.exists():
        MODELS[name].compiled().save(path)
    return path


def bodies_of(name: str, inputs: Mapping[int, Sequence[np.ndarray]]) -> list[Path]:
    paths: list[Path] = []
    for batch, arrays in inputs.items():
        paths.append(FILES / f"{name}.{batch}")
        parts = [array.tobytes() for array in arrays]
        count = [np.int64(arrays[0].shape[1]).tobytes()] if name == "GCN" else []
        paths[-1].write_bytes(b"".join([*count, *parts]))
    return paths


class Server:
    """A server in processes of its own; `seconds` is the time to the first response."""

    def __init__(self, port: int, served: str, workers: int, body: bytes) -> None:
        self.url = f"http://127.0.0.1:{port}/predict"
        command = [sys.executable, "-m", "uvicorn", "served:application", "--factory"]
        command += ["--port", str(port), "--workers", str(workers), "--log-level", "error"]
        environment = os.environ | {"SERVED": served, "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        start = time.perf_counter()
        self._process = subprocess.Popen([*command, "--no-access-log"], cwd=HERE, env=environment)
        self.answer = self._first(body)
        self.seconds = time.perf_counter() - start

    def ask(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(self.url, body, headers)
        with urllib.request.urlopen(request) as response:
            return response.read()

    def load(self, bodies: Sequence[Path], seconds: int) -> list[float]:
        """Requests a second, and the percentiles 50 and 99 of latency in us."""
        script = ["-s", HERE / "wrk.lua", self.url, "--", *bodies]
        command = ["wrk", "-t", "1", "-c", CONNECTIONS, "-d", f"{seconds}s", *script]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        words = next(line for line in done.stdout.splitlines() if line.startswith("found")).split()
        count, took, middle, late, errors = map(float, words[1:])
        if errors or not count:
            raise SystemExit(f"{errors:.0f} of {count:.0f} requests failed")
        return [count / took, middle, late]

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()

    def _first(self, body: bytes) -> bytes:
        while self._process.poll() is None:
            try:
                return self.ask(body)
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.002)
        raise SystemExit("a server did not start")


def check(
    name: str, server: Server, bodies: Sequence[Path], expected: Sequence[np.ndarray]
) -> None:
    """Compare the responses to all requests with the results of direct calls."""
    for body, wanted in zip(bodies, expected, strict=True):
        found = np.frombuffer(server.ask(body.read_bytes()), np.float32).reshape(wanted.shape)
        if not np.allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max()):
            raise SystemExit(f"{name}: wrong results")


def served(
    name: str, case: tuple[str, int, str], *, seconds: int = 1, rounds: int = 3
) -> Iterator[Row]:
    if shutil.which("wrk") is None:
        raise LeftOutError("no wrk here, which makes requests (Debian's package wrk)")
    model, workers, where = case
    inputs = {batch: MODELS[model].inputs(batch) for batch in BATCHES}
    bodies = bodies_of(model, inputs)
    exe = sw.load(file_of(model, OURS))
    expected = [exe(*arrays) for arrays in inputs.values()]
    up: dict[str, Server] = {}
    with ExitStack() as stack:
        for port, run_time in enumerate(RUN_TIMES, _FIRST_PORT):
            what = ",".join([run_time, model, str(file_of(model, run_time)), where])
            up[run_time] = Server(port, what, workers, bodies[0].read_bytes())
            stack.callback(up[run_time].end)
            if run_time != "no model":
                check(run_time, up[run_time], bodies, expected)
        for server in up.values():
            server.load(bodies, 1)
        turns = [[s.load(bodies, seconds) for s in up.values()] for _ in range(rounds)]
    for (run_time, server), runs in zip(up.items(), zip(*turns, strict=True), strict=True):
        rate, middle, late = (median(column) for column in zip(*runs, strict=True))
        yield {
            "run time": run_time,
            "requests/s": f"{rate:.0f}",
            "50 %": f"{middle / 1e3:.2f} ms",
            "99 %": f"{late / 1e3:.2f} ms",
            "first answer": f"{server.seconds:.2f} s",
        }


def memory(name: str, run_time: str) -> Row:
    """The memory that is one process's alone, where two have loaded ResNet-50 and called it."""
    path = file_of("ResNet-50", run_time)
    command = [sys.executable, "-c", _HOLD, run_time, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": HERE}
    up: list[Any] = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in up:
        process.stdout.readline()
    facts: list[list[float]] = []
    for process in up:
        # Both are there while either is looked at.
        process.stdin.write("\n")
        process.stdin.flush()
        facts.append(list(map(float, process.stdout.readline().split())))
    for process in up:
        process.communicate()
    own, shares = zip(*facts, strict=True)
    return {"of each alone": f"{min(own):.0f} MB", "both": f"{sum(shares):.0f} MB"}


def rate(call: Callable[[], object], threads: int, seconds: float) -> float:
    """Calls a second of so many threads of Python."""
    counts = [0] * threads
    ready = threading.Barrier(threads + 1)
    stop = threading.Event()

    def work(number: int) -> None:
        ready.wait()
        while not stop.is_set():
            call()
            counts[number] += 1

    started = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    took = time.perf_counter() - start
    for thread in started:
        thread.join()
    return sum(counts) / took


def without_the_lock(name: str, case: tuple[str, int], *, rounds: int = 5) -> Iterator[Row]:
    """What two threads of Python do at a time, each calling a program for one thread."""
    model, batch = case
    inputs = MODELS[model].inputs(batch)
    calls = {who: partial(CALLS[who](str(file_of(model, who))), *inputs) for who in RUN_TIMES[1:]}
    turns = [[[rate(c, n, 0.25) for n in (1, 2)] for c in calls.values()] for _ in range(rounds)]
    for who, pairs in zip(calls, zip(*turns, strict=True), strict=True):
        one, two = (median(column) for column in zip(*pairs, strict=True))
        yield {
            "run time": who,
            "a call": f"{1e6 / one:.1f} us",
            "two threads": f"{two:.0f} calls/s",
            "ratio": f"{median(pair[1] / pair[0] for pair in pairs):.2f}",
        }


UP = {
    f"{model}, {workers} processes, calls in {where}": (model, workers, where)
    for model in SERVED
    for workers, where in SERVERS
}
DIRECT = {f"{model}, batch {batch}": (model, batch) for model in SERVED for batch in (1, 16, 256)}
TABLES = [
    Table("server", UP, served),
    Table("ResNet-50 in two processes", {who: who for who in RUN_TIMES[1:]}, memory),
    Table("model", DIRECT, without_the_lock),
]

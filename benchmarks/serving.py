"""Models behind HTTP, beside onnxruntime: throughput, latency, cold start, memory, threads.

    python benchmarks/serving.py
    python benchmarks/serving.py --only MLP --seconds 5

Servers are those of `served.py` (FastAPI under uvicorn), with one or two processes; `wrk` sends
requests of several batch sizes in turn, from another process on the same cores. The servers of a
table are up at the same time and take turns; figures are medians. "no model" answers at once: it is
what the server takes by itself. Needs the packages fastapi and uvicorn[standard], and wrk.
"""

from __future__ import annotations

import argparse
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from deployed import GCN, MLP, RESNET50, Deployed
from rich.console import Console
from rich.table import Table

import stepwell as sw

HERE = Path(__file__).resolve().parent
MODELS = {"MLP": MLP, "GCN": GCN}
BATCHES = (1, 4, 16)
RUN_TIMES = ("no model", "stepwell", "onnxruntime")
SERVERS = ((1, "loop"), (1, "pool"), (2, "loop"))
"""Numbers of processes, and where their calls are made: see `served.py`."""
CONNECTIONS = 8
ROUNDS = 3
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


@dataclass(frozen=True)
class Found:
    """What one run of `wrk` has found: requests a second, percentiles of latency in us."""

    rate: float
    middle: float
    late: float

    @staticmethod
    def of(runs: Sequence[Found]) -> Found:
        """The medians of several runs."""
        columns = zip(*((one.rate, one.middle, one.late) for one in runs), strict=True)
        return Found(*map(median, columns))


class Files:
    """The files of models, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def model(self, name: str, run_time: str, deployed: Deployed) -> Path:
        """The file of a model for a run time."""
        path = self.folder / f"{name}.{'onnx' if run_time == 'onnxruntime' else 'stepwell'}"
        if path.exists():
            return path
        if path.suffix == ".onnx":
            path.write_bytes(deployed.model().SerializeToString())
        else:
            deployed.compiled().save(path)
        return path

    def bodies(self, name: str, inputs: Mapping[int, Sequence[np.ndarray]]) -> list[Path]:
        """The bodies of requests with these inputs."""
        paths: list[Path] = []
        for batch, arrays in inputs.items():
            paths.append(self.folder / f"{name}.{batch}")
            parts = [array.tobytes() for array in arrays]
            count = [np.int64(arrays[0].shape[1]).tobytes()] if name == "GCN" else []
            paths[-1].write_bytes(b"".join([*count, *parts]))
        return paths


class Server:
    """A server in processes of its own.

    Attributes:
        seconds: the time from its start to the first response.
    """

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
        """The response to one request."""
        headers = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(self.url, body, headers)
        with urllib.request.urlopen(request) as response:
            return response.read()

    def load(self, bodies: Sequence[Path], seconds: int) -> Found:
        """The outcome of as many requests as are answered in so much time.

        Raises:
            SystemExit: if a request failed.
        """
        script = ["-s", HERE / "wrk.lua", self.url, "--", *bodies]
        command = ["wrk", "-t", "1", "-c", CONNECTIONS, "-d", f"{seconds}s", *script]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        words = next(line for line in done.stdout.splitlines() if line.startswith("found")).split()
        count, took, middle, late, errors = map(float, words[1:])
        if errors or not count:
            raise SystemExit(f"{errors:.0f} of {count:.0f} requests failed")
        return Found(count / took, middle, late)

    def end(self) -> None:
        """Stop it."""
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


@contextmanager
def servers(files: Files, name: str, workers: int, where: str) -> Iterator[dict[str, Server]]:
    """A server for each run time."""
    inputs = {batch: MODELS[name].inputs(batch) for batch in BATCHES}
    bodies = files.bodies(name, inputs)
    exe = sw.load(files.model(name, "stepwell", MODELS[name]))
    expected = [exe(*arrays) for arrays in inputs.values()]
    found: dict[str, Server] = {}
    with ExitStack() as stack:
        for number, run_time in enumerate(RUN_TIMES):
            path = files.model(name, run_time, MODELS[name])
            served = ",".join([run_time, name, str(path), where])
            port = _FIRST_PORT + number
            found[run_time] = Server(port, served, workers, bodies[0].read_bytes())
            stack.callback(found[run_time].end)
            if run_time != "no model":
                check(run_time, found[run_time], bodies, expected)
        yield found


def under_load(files: Files, names: Sequence[str], seconds: int) -> tuple[Table, Table]:
    """Throughput and latency of servers, and their cold start."""
    load = Table("model", "processes", "calls in", "run time", "requests/s", "50 %", "99 %")
    cold = Table("model", "processes", *RUN_TIMES)
    for name in names:
        starts: dict[int, dict[str, list[float]]] = {}
        for workers, where in SERVERS:
            bodies = [files.folder / f"{name}.{batch}" for batch in BATCHES]
            with servers(files, name, workers, where) as up:
                for run_time, server in up.items():
                    starts.setdefault(workers, {}).setdefault(run_time, []).append(server.seconds)
                    server.load(bodies, 1)
                rounds = [[s.load(bodies, seconds) for s in up.values()] for _ in range(ROUNDS)]
            for run_time, runs in zip(up, zip(*rounds, strict=True), strict=True):
                one = Found.of(runs)
                latencies = [f"{us / 1e3:.2f} ms" for us in (one.middle, one.late)]
                load.add_row(name, str(workers), where, run_time, f"{one.rate:.0f}", *latencies)
        for workers, found in starts.items():
            times = [f"{min(found[run_time]):.2f} s" for run_time in RUN_TIMES]
            cold.add_row(name, str(workers), *times)
    return load, cold


def memory(files: Files) -> Table:
    """The memory that is one process's alone, where two have loaded ResNet-50 and called it."""
    table = Table("ResNet-50 in two processes", "of each alone", "both")
    for run_time in RUN_TIMES[1:]:
        path = files.model("ResNet-50", run_time, RESNET50)
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
        table.add_row(run_time, f"{min(own):.0f} MB", f"{sum(shares):.0f} MB")
    return table


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


def without_the_lock(files: Files, names: Sequence[str], seconds: float = 0.25) -> Table:
    """What two threads of Python do at a time, each calling a program for one thread."""
    from served import onnxruntime

    table = Table("model", "batch", "run time", "a call", "two threads", "ratio")
    for name in names:
        calls = {
            "stepwell": sw.load(files.model(name, "stepwell", MODELS[name])),
            "onnxruntime": onnxruntime(str(files.model(name, "onnxruntime", MODELS[name]))),
        }
        for batch in (1, 16, 256):
            inputs = MODELS[name].inputs(batch)
            bound = {key: partial(call, *inputs) for key, call in calls.items()}
            turns = [
                [[rate(call, n, seconds) for n in (1, 2)] for call in bound.values()]
                for _ in range(2 * ROUNDS - 1)
            ]
            for key, pairs in zip(bound, zip(*turns, strict=True), strict=True):
                one, two = (median(column) for column in zip(*pairs, strict=True))
                ratio = median(pair[1] / pair[0] for pair in pairs)
                facts = [f"{1e6 / one:.1f} us", f"{two:.0f} calls/s", f"{ratio:.2f}"]
                table.add_row(name, str(batch), key, *facts)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=MODELS, help="this model, and no other")
    parser.add_argument("--seconds", type=int, default=1, help="the time of one run of wrk")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        parser.error("no wrk on this machine, which makes requests (Debian's package wrk)")
    names = options.only or list(MODELS)
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder))
        load, cold = under_load(files, names, options.seconds)
        for table in (load, cold, memory(files), without_the_lock(files, names)):
            console.print(table)


if __name__ == "__main__":
    main()

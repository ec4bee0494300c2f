"""A scheduler of Dask that is killed, and started again at its address."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import StepwellError
from stepwell.distributed import tasks
from stepwell.distributed.dask_engine import DaskEngine
from stepwell.distributed.distributing import distribute

from ..harness import package
from .parts import features, free_port, gcn, random_graph

dask: Any = package("distributed", "dask[distributed]")

GRAPH = random_graph(101, 400)
X = features(101)


@contextmanager
def command(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of Dask, which is killed at the end."""
    words = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    with open(folder / f"{arguments[0]}.log", "ab") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("share", [True, False])
def test_a_scheduler_that_is_killed_and_started_again(share: bool, tmp_path: Path) -> None:
    """One error; the same program runs again once Dask has connected to the new one."""

    class Killing(DaskEngine):
        victim: subprocess.Popen[bytes] | None = None

        def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
            if self.victim is not None and function in TASKS and arguments[1] == 1:
                self.victim.kill()
                self.victim = None
            return super().submit(function, *arguments, worker=worker)

    module, port = gcn(), f"{free_port()}"
    address, expected = f"tcp://127.0.0.1:{port}", module.run_reference(GRAPH.to_csr(), X)

    def start(stack: ExitStack) -> subprocess.Popen[bytes]:
        scheduler = command(tmp_path, "scheduler", "--port", port, "--host", "127.0.0.1")
        workers = "--nworkers", "2", "--nthreads", "1", "--memory-limit", "0"
        started = stack.enter_context(scheduler)
        stack.enter_context(command(tmp_path, "worker", address, *workers))
        return started

    with ExitStack() as stack:
        scheduler = start(stack)
        client = stack.enter_context(dask.Client(address, timeout=60))
        client.wait_for_workers(2, timeout=60)
        engine = Killing(client, share=share)
        found = distribute(module, sw.partition(GRAPH, 4), engine, opt_level=0)
        np.testing.assert_allclose(found(X), expected, rtol=1e-5, atol=1e-5)
        engine.victim = scheduler
        with pytest.raises(StepwellError, match="the scheduler of the Dask cluster is lost"):
            found(X)
        start(stack)
        connected = time.monotonic() + 120
        while client.status != "running" and time.monotonic() < connected:
            time.sleep(0.1)
        client.wait_for_workers(2, timeout=60)
        np.testing.assert_allclose(found(X), expected, rtol=1e-5, atol=1e-5)


TASKS = tasks.start, tasks.finish, tasks.compute

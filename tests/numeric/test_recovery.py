"""Programs on the parts of a graph whose workers end: parts are computed again, never in part."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import StepwellError
from stepwell.distributed import tasks
from stepwell.distributed.distributing import Distributed, distribute
from stepwell.distributed.engines import LocalEngine, Worker, lost
from stepwell.distributed.report import Machine
from stepwell.distributed.storage import folders
from stepwell.distributed.storage.blocks import PartBlock

from ..harness import cases, close
from .dying import dying
from .parts import features, gcn, pools, random_graph

GRAPH, MODULE, X = random_graph(101, 400), gcn(), features(101)
STAGES = tasks.start, tasks.finish, tasks.compute


@pytest.fixture(scope="module")
def known() -> Any:
    """A program on four parts, which is compiled once."""
    with LocalEngine(1) as engine:
        yield distribute(MODULE, sw.partition(GRAPH, 4), engine)


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    return MODULE.run_reference(GRAPH.to_csr(), X)


def on(known: Distributed, engine: LocalEngine, folder: Path | None, tries: int = 3) -> Distributed:
    """The same program on another engine."""
    parts = known.plan.program, known.stages, known.plan.partition, engine, Machine()
    return Distributed(*parts, None if folder is None else str(folder), tries)


def host_of_thread() -> str:
    """The host of two workers; or of the program, which is none of theirs."""
    name, number, worker = threading.current_thread().name.partition("stepwell-")
    return f"host {int(worker) // 2}" if number else name


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", host_of_thread)


class Pairs(LocalEngine):
    """Threads of which two are on a host each; some end when they have run a function.

    Args:
        ends: for each function that is the last one of a worker, its stage and the worker.
    """

    def __init__(self, *ends: tuple[Callable[..., Any], int | None, str]) -> None:
        super().__init__(4)
        self.in_memory = False
        self._ends, self._gone, self._last = list(ends), set[str](), list[tuple[Any, str]]()

    def workers(self) -> Sequence[Worker]:
        return [
            Worker(w.name, f"host {int(w.name) // 2}")
            for w in super().workers()
            if w.name not in self._gone
        ]

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        handle = super().submit(function, *arguments, worker=worker)
        for end in self._ends:
            stages = (None, arguments[1]) if function in STAGES else (None,)
            if function is end[0] and end[1] in stages and worker == end[2]:
                self._last.append((handle, worker))
        return handle

    def get(self, handle: Any) -> Any:
        result = super().get(handle)
        for last, worker in self._last:
            if last is handle:
                self._gone.add(worker)
                raise lost(worker)
        return result


ENDS = [(stage, worker) for stage in (0, 2) for worker in "0123"]


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("end", cases(ENDS, [(0, "1"), (2, "2")]), ids=str)
def test_one_of_two_workers_of_a_host(
    known: Distributed,
    wanted: np.ndarray,
    end: tuple[int, str],
    tmp_path: Path,
) -> None:
    """Its parts go to the other one, which has their files."""
    (stage, worker), function = end, tasks.compute if end[0] == 0 else None
    # Parts 1 and 2 read rows of another host, which travel.
    with Pairs(*((one, stage, worker) for one in STAGES if function in (None, one))) as engine:
        found = on(known, engine, tmp_path)
        close(found(X), wanted)
        assert found.traffic.lost == [worker]
        assert found.traffic.exchanged == found.report().exchanged


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("stage", [1, 2])
def test_both_workers_of_a_host(
    known: Distributed, wanted: np.ndarray, stage: int, tmp_path: Path
) -> None:
    """Its parts begin anew elsewhere."""
    with Pairs(*((one, stage, worker) for one in STAGES for worker in "23")) as engine:
        found = on(known, engine, tmp_path)
        close(found(X), wanted)
        assert sorted(found.traffic.lost) == ["2", "3"]
        assert found.traffic.exchanged == found.report().exchanged


class Again(Pairs):
    """One more worker ends when it has computed a stage again; that is one more try."""

    def get(self, handle: Any) -> Any:
        if self._gone == {"2", "3"}:
            self._ends.append((tasks.compute, 0, "0"))
        return super().get(handle)


@pytest.mark.usefixtures("hosts")
def test_a_worker_ends_while_others_are_made_up_for(
    known: Distributed, wanted: np.ndarray, tmp_path: Path
) -> None:
    ends = [(one, 2, worker) for one in STAGES for worker in "23"]
    with Again(*ends) as engine:
        found = on(known, engine, tmp_path)
        close(found(X), wanted)
        assert sorted(found.traffic.lost) == ["0", "2", "3"]


@pytest.mark.usefixtures("hosts")
def test_a_worker_ends_while_results_are_collected(
    known: Distributed, wanted: np.ndarray, tmp_path: Path
) -> None:
    ends = [(tasks.array_of_block, None, worker) for worker in "01"]
    with Pairs(*ends) as engine:
        found = on(known, engine, tmp_path)
        close(found(X), wanted)
        assert sorted(found.traffic.lost) == ["0", "1"]


@pytest.mark.usefixtures("hosts")
def test_a_worker_ends_while_results_are_combined(tmp_path: Path) -> None:
    """Those over all nodes."""
    module = pools()
    with Pairs((tasks.array_of_block, None, "1")) as engine:
        partition = sw.partition(GRAPH, 4)
        found = distribute(module, partition, engine, folder=tmp_path, opt_level=0)
        close(found(X), module.run_reference(GRAPH.to_csr(), X))
        assert found.traffic.lost == ["1"]


@pytest.mark.usefixtures("hosts")
def test_files_that_cannot_be_removed(
    known: Distributed, wanted: np.ndarray, tmp_path: Path
) -> None:
    """A worker that ends then does not undo a result, nor hide why there is none."""
    ends = [(folders.remove_folder, None, worker) for worker in "0123"]
    with Pairs(*ends) as engine:
        close(on(known, engine, tmp_path)(X), wanted)
    message = r"workers ended 1 times in stage 1, expected at most 0 times \(tries\), got 1"
    with (
        Pairs(*ends, *((one, 1, "1") for one in STAGES)) as engine,
        pytest.raises(StepwellError, match=message),
    ):
        on(known, engine, tmp_path, 0)(X)


class Removing(LocalEngine):
    """Threads that do not share; a file of the first part is removed before a stage."""

    def __init__(self, stage: int) -> None:
        super().__init__(2)
        self.in_memory = self.shares = False
        self._stage: int | None = stage

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        if function in STAGES and arguments[1] == self._stage:
            self._stage = None
            given = [block for block in arguments[4].values() if isinstance(block, PartBlock)]
            os.unlink(given[0].path)
        return super().submit(function, *arguments, worker=worker)


@pytest.mark.parametrize("stage", [0, 2])
def test_a_file_that_is_gone(
    known: Distributed, wanted: np.ndarray, stage: int, tmp_path: Path
) -> None:
    """All parts begin anew, as the values that they were made of are removed."""
    with Removing(stage) as engine:
        found = on(known, engine, tmp_path)
        close(found(X), wanted)
        assert found.traffic.exchanged == found.report().exchanged


@dataclass(frozen=True)
class Given:
    """A value on a worker, until that is started again."""

    value: object
    life: int


class Restarting(LocalEngine):
    """Workers that are started again under their names, and then have nothing."""

    life = 0
    knows = False

    def put(self, value: object, worker: str) -> Any:
        return Given(super().put(value, worker), self.life)

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        given = [a.value if isinstance(a, Given) else a for a in arguments]
        if all(self._has(one) for one in arguments):
            return super().submit(function, *given, worker=worker)
        handle: Future[Any] = Future()
        handle.set_exception(lost(worker))
        return handle

    def _has(self, handle: object) -> bool:
        return not isinstance(handle, Given) or handle.life == self.life

    def holds(self, handle: Any) -> bool:
        return not self.knows or self._has(handle)


@pytest.mark.parametrize("knows", [False, True])
def test_workers_that_are_started_again(
    known: Distributed, wanted: np.ndarray, knows: bool
) -> None:
    """They are given the stages and the parts again: at once if the engine knows."""
    engine = Restarting(2)
    engine.knows = knows
    with engine:
        found = on(known, engine, None)
        close(found(X), wanted)
        engine.life += 1
        close(found(X), wanted)
        assert sorted(found.traffic.lost) == ([] if knows else ["0", "1"])


class Dying(LocalEngine):
    """Processes; one dies in the middle of a stage, once."""

    stage: int | None = None
    died: str = ""

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        if function in STAGES and arguments[1] == self.stage:
            self.stage, self.died = None, worker
            return super().submit(dying, function, *arguments, worker=worker)
        return super().submit(function, *arguments, worker=worker)


def die_in(
    known: Distributed, wanted: np.ndarray, share: bool, stages: Sequence[int], folder: Path
) -> None:
    """Assert that results are right if a process dies in the middle of each of some stages."""
    with Dying(2, processes=True) as engine:
        engine.shares = share
        found = on(known, engine, folder)
        for stage in stages:
            engine.stage = stage
            close(found(X), wanted)
            assert found.traffic.lost == [engine.died]
            assert found.traffic.exchanged == found.report().exchanged
            assert sum(found.traffic.shared if share else found.traffic.sent) > 0
        close(found(X), wanted)
        assert found.traffic.lost == []


def test_a_process_dies_in_a_stage(known: Distributed, wanted: np.ndarray, tmp_path: Path) -> None:
    """It has written half of its rows into a ring, and something else into the rest."""
    die_in(known, wanted, True, [1], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("share", [True, False])
def test_a_process_dies_in_each_stage(
    known: Distributed, wanted: np.ndarray, share: bool, tmp_path: Path
) -> None:
    """Also where halos travel."""
    die_in(known, wanted, share, range(3), tmp_path)


def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    """Also if that is killed, and cannot end them."""
    (tmp_path / "program.py").write_text(
        "import os, time\n"
        "from stepwell.distributed.engines import LocalEngine\n"
        "if __name__ == '__main__':\n"
        "    engine = LocalEngine(1, processes=True)\n"
        "    print(engine.get(engine.submit(os.getpid, worker='0')), flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, str(tmp_path / "program.py")]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **given) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert _is_running(worker)
        parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + 20
    while _is_running(worker) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _is_running(worker)


def _is_running(process: int) -> bool:
    """Whether a process is there, and not only waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False

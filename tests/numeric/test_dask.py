"""Programs on the parts of a graph, and batches, on Dask clusters."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import StepwellError
from stepwell.distributed import dask_engine, tasks
from stepwell.distributed.dask_engine import DaskEngine
from stepwell.distributed.distributing import distribute
from stepwell.distributed.engines import WorkerLostError
from stepwell.distributed.storage import blocks

from ..harness import cases, close, package
from .dying import dying
from .parts import attention, features, free_port, gcn, random_graph, weights

dask: Any = package("distributed", "dask[distributed]")
config: Any = package("dask.config", "dask[distributed]")

GRAPH = random_graph(101, 400)
X = features(101)


def wanted(module: sw.Module) -> np.ndarray:
    return module.run_reference(GRAPH.to_csr(), X)


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    """Sums are in another order."""
    close(found, expected)


def cluster(**options: Any) -> Any:
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": ":0", **options}
    return dask.LocalCluster(worker_dashboard_address=None, **options)


@pytest.fixture(scope="module")
def threads() -> Iterator[Any]:
    """Workers that are threads of this process."""
    with cluster(processes=False) as made, dask.Client(made) as client:
        yield client


@pytest.mark.parametrize("share", cases([True, False], [True]))
def test_as_one_program(threads: Any, share: bool) -> None:
    """Workers of one host share maps, unless sharing is off."""
    module = gcn()
    found = distribute(module, sw.partition(GRAPH, 5), DaskEngine(threads, share=share))
    assert_near(found(X), wanted(module))
    assert found.traffic.exchanged == found.report().exchanged
    assert found.traffic.sent == ([0, 0, 0] if share else found.report().exchanged)
    assert found.report().costs[1][0].bound in ("compute", "memory", "network")


def kept_maps(client: Any) -> int:
    """How many files the first worker keeps mapped."""
    (worker, *_) = client.scheduler_info()["workers"]
    return client.run(lambda: len(blocks._maps), workers=[worker])[worker]


@pytest.mark.parametrize("limit", [0, "4KiB"])
def test_workers_keep_maps(limit: int | str, all_tests: bool) -> None:
    """They do as far as their memory allows, and until the program is closed."""
    module = gcn()
    memory = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause")}
    with (
        config.set({**memory, "distributed.worker.memory.terminate": False}),
        cluster(n_workers=1, processes=all_tests, memory_limit=limit) as made,
        dask.Client(made) as client,
    ):
        found = distribute(module, sw.partition(GRAPH, 5), DaskEngine(client))
        for x in (X, -X):
            assert_near(found(x), module.run_reference(GRAPH.to_csr(), x))
            assert (kept_maps(client) > 0) == (limit == 0)
        found.close()
        end = time.monotonic() + 30
        while kept_maps(client) and time.monotonic() < end:
            time.sleep(0.01)
        assert not kept_maps(client)


class Busy:
    """A client whose worker lets some transfers time out."""

    status = "running"

    def __init__(self, times: int, error: Exception, *workers: str) -> None:
        self.left, self.error, self.known = times, error, dict.fromkeys(workers, 1)

    def scatter(self, values: list[object], **options: Any) -> list[object]:
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return values

    def nthreads(self) -> dict[str, int]:
        return self.known


@pytest.mark.parametrize("error", [TimeoutError("No valid workers found"), OSError("Timed out")])
def test_a_busy_worker_has_not_ended(error: Exception) -> None:
    """Nor has one that Dask has paused; it is asked again."""
    assert DaskEngine(Busy(2, error, "a")).put(7, "a").future == 7
    message = 'worker "a" takes no data; it is paused for want of memory'
    with pytest.raises(StepwellError, match=message) as found:
        DaskEngine(Busy(3, error, "a")).put(7, "a")
    assert not isinstance(found.value, WorkerLostError)
    for client in (Busy(1, error, "b"), Busy(1, ValueError("none"), "a")):
        with pytest.raises(WorkerLostError, match='worker "a" ended before its work did'):
            DaskEngine(client).put(7, "a")


class Paused:
    """A client with paused workers, which run something for some time."""

    status = "running"

    def __init__(self, runs: int, **workers: str) -> None:
        self.left, self.known, self.scheduler = runs, workers, self

    def sync(self, function: Callable[[], Any]) -> Any:
        return function()

    def identity(self) -> dict[str, Any]:
        return {
            "workers": {
                a: {"status": s, "nthreads": 1, "memory_limit": 0} for a, s in self.known.items()
            }
        }

    def call_stack(self) -> dict[str, object]:
        self.left -= 1
        return {"a": {"stack": "f"}} if self.left >= 0 else {"a": {}}

    def result(self, timeout: float) -> None:
        raise TimeoutError

    def done(self) -> bool:
        return False


def test_paused_workers_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, unless they run something; parts of one go to others."""
    times = itertools.count(0.0, 20.0)
    monkeypatch.setattr(dask_engine, "monotonic", lambda: next(times))
    message = "all 1 workers of the Dask cluster are paused; their memory is used up"
    client = Paused(5, a="paused")
    with pytest.raises(StepwellError, match=message):
        DaskEngine(client).get(dask_engine._Task(client, "a"))
    assert client.left == -1
    engine = DaskEngine(client)
    assert engine.workers() == []
    with pytest.raises(StepwellError, match=message):
        engine.workers()
    for others in ({"a": "paused", "b": "running"}, {"b": "running"}, {"b": "paused"}):
        client = Paused(0, **others)
        with pytest.raises(WorkerLostError, match='worker "a" ended before its work did'):
            DaskEngine(client).get(dask_engine._Task(client, "a"))


@pytest.mark.slow
def test_paused_workers_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one go to the others."""

    def pause(dask_worker: Any) -> None:
        dask_worker.status = dask.Status.paused

    monkeypatch.setattr(dask_engine, "_PAUSE", 1.0)
    module = gcn()
    options = {"processes": False, "memory_limit": 0}
    with cluster(n_workers=2, **options) as made, dask.Client(made) as client:
        found = distribute(module, sw.partition(GRAPH, 2), DaskEngine(client), opt_level=0)
        client.run(pause, workers=[min(client.nthreads())])
        assert_near(found(X), wanted(module))
        client.run(pause)
        with pytest.raises(StepwellError, match="all 2 workers of the Dask cluster are paused"):
            found(X)


@pytest.mark.slow
def test_functions_are_not_moved() -> None:
    """To a worker that has nothing to do, nor if their own one ends."""
    with cluster(n_workers=2, processes=False) as made, dask.Client(made) as client:
        engine, (one, _) = DaskEngine(client), sorted(client.nthreads())
        handles = [engine.submit(_address, worker=one) for _ in range(40)]
        assert {engine.get(handle) for handle in handles} == {one}
        client.retire_workers([one])
        with pytest.raises(WorkerLostError, match="ended before its work did"):
            engine.get(engine.submit(_address, worker=one))


def _address() -> str:
    time.sleep(0.02)
    return dask.get_worker().address


@pytest.mark.slow
def test_a_lost_scheduler_is_an_error() -> None:
    """No result, and no wait for ever."""

    class Closing(DaskEngine):
        def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
            if function is tasks.compute and arguments[1] == 2:
                self.client.sync(made.scheduler.close)
            return super().submit(function, *arguments, worker=worker)

    with cluster(processes=False, n_workers=1) as made, dask.Client(made) as client:
        found = distribute(gcn(), sw.partition(GRAPH, 2), Closing(client), opt_level=0)
        with pytest.raises(StepwellError, match="the scheduler of the Dask cluster is lost"):
            found(X)


@pytest.mark.parametrize("error", [TimeoutError, KeyError])
def test_errors_of_the_function(threads: Any, error: type[Exception]) -> None:
    """Those that Dask also waits with are not taken for its own."""
    engine = DaskEngine(threads)
    worker = engine.workers()[0].name
    with pytest.raises(error, match="of the function"):
        engine.get(engine.submit(_fails, error, worker=worker))


def _fails(error: type[Exception]) -> None:
    raise error("of the function")


@pytest.mark.slow
@pytest.mark.parametrize("fixed", [False, True])
def test_workers_that_are_restarted(fixed: bool) -> None:
    """The next call gives them what they need again, also under the same address."""
    module = gcn()
    port = {"worker_port": free_port()} if fixed else {}
    with cluster(n_workers=1, **port) as made, dask.Client(made) as client:
        found = distribute(module, sw.partition(GRAPH, 2), DaskEngine(client), opt_level=0)
        before = set(client.nthreads())
        for _ in range(2):
            assert_near(found(X), wanted(module))
            assert found.traffic.lost == []
            client.restart()
        assert (set(client.nthreads()) == before) == fixed


@pytest.mark.slow
@pytest.mark.parametrize("share", [True, False])
def test_a_process_dies_in_each_stage(share: bool) -> None:
    """It has written half of its rows, and something else into the rest."""
    module = gcn()
    expected = wanted(module)
    with cluster() as made, dask.Client(made) as client:
        engine = Dying(client, share=share)
        found = distribute(module, sw.partition(GRAPH, 5), engine)
        for stage in range(3):
            engine.stage = stage
            assert_near(found(X), expected)
            # Where rows travel, a worker that waits for those of another may be named, too.
            assert engine.died in found.traffic.lost
            assert len(found.traffic.lost) == 1 or not share
            assert found.traffic.exchanged == found.report().exchanged


class Dying(DaskEngine):
    """One of its processes dies in the middle of a stage, once."""

    stage: int | None = None
    died = ""

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        if function in TASKS and arguments[1] == self.stage:
            self.stage, self.died = None, worker
            return super().submit(dying, function, *arguments, worker=worker)
        return super().submit(function, *arguments, worker=worker)


TASKS = tasks.start, tasks.finish, tasks.compute


class Killing(DaskEngine):
    """Kills a worker in the middle of a stage, once."""

    stage: int | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        handle = super().submit(function, *arguments, worker=worker)
        if function in TASKS and arguments[1] == self.stage:
            self.stage = None
            os.kill(self.client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
        return handle


@pytest.mark.slow
@pytest.mark.parametrize("share", [True, False])
def test_killed_workers(share: bool) -> None:
    """In each stage one of the processes is killed: the result is the same."""
    module = gcn()
    expected = wanted(module)
    with cluster() as made, dask.Client(made) as client:
        engine = Killing(client, share=share)
        found = distribute(module, sw.partition(GRAPH, 5), engine)
        for stage in (None, 0, 1, 2):
            engine.stage = stage
            assert_near(found(X), expected)
            assert found.traffic.exchanged == found.report().exchanged


@pytest.mark.slow
def test_halos_travel_from_worker_to_worker() -> None:
    """As many bytes as the report says, which the scheduler does not see."""
    module, graph, x = attention(), random_graph(3000, 9000), features(3000)
    with cluster(n_workers=2) as made, dask.Client(made) as client:
        found = distribute(module, sw.partition(graph, 2), DaskEngine(client, share=False))
        assert_near(found(x), module.run_reference(graph.to_csr(), x))
        assert found.traffic.sent == found.report().exchanged
        assert _travelled(client) == pytest.approx(sum(found.traffic.sent), rel=0.05)


def test_halos_travel_while_rows_are_computed(
    threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that need no halo: `start` ends after the last transfer."""
    start = tasks.start

    def slow(*arguments: Any) -> tasks.Made:
        made = start(*arguments)
        time.sleep(1.0)
        dask.get_worker().start_ended = time.time()
        return made

    def is_before(dask_worker: Any) -> bool:
        *_, one, other = dask_worker.transfer_incoming_log
        return max(one["stop"], other["stop"]) < dask_worker.start_ended

    module, graph, x = gcn(), random_graph(3000, 9000), features(3000)
    found = distribute(module, sw.partition(graph, 3), DaskEngine(threads, share=False))
    monkeypatch.setattr(tasks, "start", slow)
    assert_near(found(x), module.run_reference(graph.to_csr(), x))
    assert set(threads.run(is_before).values()) == {True}


def _travelled(client: Any) -> int:
    """What workers have received of each other, headers included."""

    def received(dask_worker: Any) -> int:
        return sum(one["total"] for one in dask_worker.transfer_incoming_log)

    return sum(client.run(received).values())


@pytest.fixture(scope="module")
def mlp() -> tuple[sw.Executable, Callable[[np.ndarray], np.ndarray]]:
    """A program on batches of images of two channels, and the same in NumPy."""
    w = weights(18, 5)
    b = sw.Builder("main")
    x = b.input("x", ("batch", 2, 3, 3), "f32")
    b.output(b.relu(b.matmul(b.reshape(x, [-1, 18]), b.constant(w, "w"))), name="y")
    exe = sw.compile(b.module(), threads=1, opt_level=0)
    return exe, lambda x: np.maximum(x.reshape(len(x), 18) @ w, 0)


not_on_the_client = pytest.mark.filterwarnings(
    "ignore:Running on a single-machine scheduler:UserWarning"
)
"""Dask 2025.1 warns of a client of the process, which other tests may have left open."""


@not_on_the_client
def test_batches_of_an_array(mlp: Any) -> None:
    """Blocks of several sizes, one of them cut along a channel; nothing runs before it has to."""
    import dask.array as da

    exe, wanted = mlp
    x = weights(11, 2, 3, 3)
    y = exe.map(da.from_array(x, chunks=((4, 4, 3), (1, 1), 3, 3)))
    assert y.chunks == ((4, 4, 3), (5,))
    assert y.dtype == np.float32
    assert_near(y.compute(scheduler="threads"), wanted(x))
    assert_near(exe.map(da.from_array(x, chunks=5))[2:7].compute(scheduler="sync"), wanted(x)[2:7])


@not_on_the_client
def test_batches_of_a_convolution() -> None:
    """A CNN on images, whose blocks are cut along rows and columns as well."""
    import dask.array as da

    w, head = weights(4, 3, 3, 3), weights(4, 5)
    b = sw.Builder("main")
    x = b.input("x", ("batch", 3, 9, 7), "f32")
    y = b.relu(b.conv(x, b.constant(w, "w"), strides=[2, 1]))
    b.output(b.matmul(b.reduce(y, "mean", [2, 3], False), b.constant(head, "head")), name="y")
    module, x = b.module(), weights(7, 3, 9, 7)
    exe = sw.compile(module, threads=1)
    for chunks in (3, (2, 3, 5, 4), (7, 1, 9, 7)):
        y = exe.map(da.from_array(x, chunks=chunks))
        assert y.shape == (7, 5)
        assert_near(y.compute(scheduler="threads"), module.run_reference(x))


def test_batches_one_after_the_other(mlp: Any) -> None:
    exe, wanted = mlp
    x = weights(6, 2, 3, 3)
    for found, batch in zip(exe.map([x[:2], x[2:]]), (x[:2], x[2:]), strict=True):
        assert_near(found, wanted(batch))


def test_what_is_no_batch(mlp: Any) -> None:
    import dask.array as da

    exe, _ = mlp
    with pytest.raises(sw.InputError, match=r"map: not batches, expected an array of Dask, or an"):
        exe.map(7)
    for wrong in (da.zeros((4, 2, 3, 4), dtype="f4"), da.zeros((4, 2, 3, 3), dtype="f8")):
        with pytest.raises(sw.InputError, match=r"map: batches do not fit, expected f32 .*, got"):
            exe.map(wrong)
    b = sw.Builder("main")
    b.output(b.reduce(b.input("x", ("batch", 2), "f32"), "sum", [0]), name="y")
    with pytest.raises(sw.InputError, match="map: argument and result do not have one row for"):
        sw.compile(b.module(), opt_level=0).map(da.zeros((4, 2), dtype="f4"))
    b = sw.Builder("main")
    b.output(b.input("x", ("n", 2), "f32") + b.input("y", ("n", 2), "f32"), name="z")
    with pytest.raises(sw.InputError, match="map: not one input and one result, expected 1 and 1"):
        sw.compile(b.module(), opt_level=0).map(da.zeros((4, 2), dtype="f4"))


@pytest.mark.slow
def test_batches_on_a_cluster(mlp: Any) -> None:
    """Processes load the program once."""
    import dask.array as da

    exe, wanted = mlp
    x = weights(40, 2, 3, 3)
    with cluster(n_workers=2) as made, dask.Client(made):
        assert_near(exe.map(da.from_array(x, chunks=7)).compute(), wanted(x))

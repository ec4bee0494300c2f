"""Programs on the parts of a graph, in threads and processes of this machine."""

from __future__ import annotations

import gc
import operator
import os
import shutil
import signal
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.core.errors import CompileError, InputError, StepwellError
from stepwell.core.progress import ProgressStep, followed
from stepwell.dialects.graph.attrs import ReduceKind
from stepwell.distributed import tasks
from stepwell.distributed.combining import combined
from stepwell.distributed.distributing import Distributed, distribute
from stepwell.distributed.engines import LocalEngine, Worker, lost
from stepwell.distributed.partition import Partition
from stepwell.distributed.report import Machine
from stepwell.distributed.storage import blocks
from stepwell.distributed.storage.blocks import PartBlock
from stepwell.distributed.storage.rows import MappedRows, gather, scatter
from stepwell.frontends import gnn

from ..harness import RNG, cases, close
from .parts import attention, features, gcn, module_of, pools, random_graph, weights


def expected(module: sw.Module, graph: gnn.Graph, *inputs: np.ndarray) -> np.ndarray:
    return module.run_reference(graph.to_csr(), *inputs)


def assert_near(found: np.ndarray, wanted: np.ndarray) -> None:
    """Sums are in another order."""
    close(found, wanted)


@pytest.fixture(scope="module")
def program() -> Any:
    """A program on parts that share the memory of this process, its graph and arguments."""
    graph, module = random_graph(101, 400), gcn()
    with LocalEngine(2) as engine:
        yield distribute(module, sw.partition(graph, 4), engine), module, graph


def test_as_one_program(program: Any) -> None:
    found, module, graph = program
    x = features(101)
    wanted, out = expected(module, graph, x), np.zeros((101, 3), np.float32)
    assert_near(found(x), wanted)
    assert found(x, out=out) is out
    assert_near(out, wanted)
    assert np.array_equal(found(x), out)


def test_progress(program: Any) -> None:
    found, *_ = program
    steps = list[ProgressStep]()
    with followed(steps.append):
        found(features(101))
    count = len(found.stages)
    stages = [f"stage {number + 1} of {count}" for number in range(count)]
    texts = ["loading arguments", *stages, "collecting results"]
    assert list(dict.fromkeys(step.text for step in steps)) == texts
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert {step.total for step in steps} == {count + 2}
    assert steps[2].note == "1 of 4 parts"


def test_labels_order_nodes_anew(program: Any) -> None:
    """Parts that are no ranges, one of them empty, and one node alone."""
    _, module, _ = program
    for nodes, edges, labels in ((31, 90, np.arange(31) % 3 * 2), (1, 0, np.array([0]))):
        graph, x = random_graph(nodes, edges), features(nodes)
        found = distribute(module, sw.partition(graph, 5, by=labels), opt_level=0)(x)
        assert_near(found, expected(module, graph, x))


def test_attention_of_all_rows_at_once() -> None:
    graph, module = random_graph(57, 200), attention()
    found = distribute(module, sw.partition(graph, 3), threads_of(1))
    assert_near(found(features(57)), expected(module, graph, features(57)))
    assert [stage.whole for stage in found.plan.program.stages] == [False, True]


def test_scores_are_shared_or_computed_again(program: Any) -> None:
    """Those of an attention, for the halo, by what sending them costs."""
    module, partition, engine = attention(), sw.partition(random_graph(57, 200), 3), threads_of(1)
    shared = distribute(module, partition, engine, opt_level=0)
    sent = distribute(module, partition, engine, machine=Machine(), opt_level=0)
    assert [len(one.plan.schedule.exchanged) for one in (shared, sent)] == [2, 1]
    # Under MPI all rows travel.
    far = shared.over_network
    assert far.explain() == sent.over_network.explain()
    assert far.report().exchanged == sent.report().exchanged
    assert "network" in far.report().costs[1][0].seconds
    assert program[0].over_network.stages == program[0].stages
    assert_near(sent(features(57)), shared(features(57)))


def threads_of(count: int) -> LocalEngine:
    return LocalEngine(count)


def test_bytes_are_those_of_the_report(program: Any) -> None:
    found, _, graph = program
    found(features(101))
    matrix, bounds = graph.to_csr(), found.plan.partition.bounds
    halo = sum(
        len(set(matrix[a:b].indices.tolist()) - set(range(a, b)))
        for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    )
    assert found.report().exchanged == [0, halo * 5 * 4, halo * 3 * 4]
    assert found.traffic.exchanged == found.report().exchanged
    assert found.traffic.sent == [0, 0, 0]
    text = found.explain()
    assert "stage 1: " in text
    assert "balance" in text
    assert found.report().seconds > 0
    assert all(0 < balance <= 1 for balance in found.report().balance)
    assert {cost.bound for cost in found.report().costs[1]} <= {"compute", "memory"}


@pytest.mark.parametrize(("folder", "is_there"), [("/dev/shm", False), ("/tmp/x", True)])
def test_a_disk_that_bounds_is_named(program: Any, folder: str, is_there: bool) -> None:
    """Where files are on one, and it is slow: each value is read and written once."""
    known, slow = program[0], Machine(disk=1)
    parts = known.plan.program, known.stages, known.plan.partition
    with LocalEngine(1, processes=True) as engine:
        report = Distributed(*parts, engine, slow, folder, 3).report()
    with LocalEngine(1) as engine:
        assert (
            "disk" not in Distributed(*parts, engine, slow, folder, 3).report().costs[1][0].seconds
        )
    assert ({cost.bound for cost in report.costs[1]} == {"disk"}) == is_there
    if is_there:
        cost = report.costs[2][0]
        # Two powers of the degree and three numbers of each node, and of the halo, become three.
        assert cost.seconds["disk"] == 4 * (cost.rows * (2 + 3 + 3) + cost.halo * 3)
    assert ("disk" in str(report)) == is_there


def test_arguments_of_all_parts_and_several_results() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    x, scale = b.input("x", ("n", 4), "f32"), b.input("scale", (4,), "f32")
    y = b.aggregate(a, x * scale, kind="max")
    b.output(y, name="y")
    b.output(b.reduce(y * x, "sum", [1], False), name="z")
    module, graph = b.module(), random_graph(23, 70)
    x, scale = weights(23, 4), weights(4)
    found = distribute(module, sw.partition(graph, 3), threads_of(2))
    for result, wanted in zip(found(x, scale), expected(module, graph, x, scale), strict=True):
        assert_near(result, wanted)


@pytest.mark.parametrize(
    ("nodes", "labels"), [(101, "rows"), (31, np.arange(31) % 3 * 2), (1, np.array([3]))]
)
def test_results_over_all_nodes(nodes: int, labels: Any) -> None:
    """Parts combine theirs, empty ones aside; NaN stays."""
    graph, module, x = random_graph(nodes, 4 * nodes), pools(), features(nodes)
    with LocalEngine(2) as engine:
        found = distribute(module, sw.partition(graph, 5, by=labels), engine, opt_level=0)
        for scale in (1, -1, np.nan):
            wanted = expected(module, graph, x * np.float32(scale))
            for result, value in zip(found(x * np.float32(scale)), wanted, strict=True):
                assert_near(result, value)


def test_results_of_types() -> None:
    """As a reduction of all computes them."""
    small = np.array([3, -4], np.int8), np.array([125, 1], np.int8), np.array([9, 9], np.int8)
    assert combined(ReduceKind.SUM, small, (1, 2, 0)).tolist() == [-128, -3]
    assert combined(ReduceKind.MIN, small, (0, 2, 1)).tolist() == [9, 1]
    half = [np.array(60000, np.float16)] * 3
    assert combined(ReduceKind.MEAN, half, (1, 7, 4)) == np.float16(60000)
    assert combined(ReduceKind.PROD, half, (0, 0, 0)).dtype == np.float16


def test_halos_and_rings_agree(program: Any) -> None:
    """Entries are added up in the same order."""
    known, x = program[0], features(101)
    with LocalEngine(2) as engine:
        engine.shares = False
        apart = on(known, engine)
        assert np.array_equal(apart(x), known(x))
        assert apart.traffic.sent == known.traffic.shared == known.report().exchanged


def test_arguments_on_disk(program: Any, tmp_path: Path) -> None:
    found, module, graph = program
    x = features(101)
    np.save(tmp_path / "x.npy", x)

    class Rows:
        shape, dtype = x.shape, x.dtype

        def read(self, rows: np.ndarray) -> np.ndarray:
            return x[rows]

    for source in (str(tmp_path / "x.npy"), tmp_path / "x.npy", Rows(), sp.coo_matrix(x)):
        assert_near(found(source), expected(module, graph, x))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((), r"distribute: wrong number of inputs, expected 1 \(features\), and no graph, got 0"),
        ((features(100),), r'input "features": wrong array, expected float32 \(101, 6\), got'),
        ((features(101).astype(np.float64),), "expected float32 .*, got float64"),
        (([1.0],), 'no rows for input "features", expected an array, a path .*, got list'),
        (("/nowhere.npy",), "nowhere.npy"),
    ],
)
def test_wrong_arguments(program: Any, inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        program[0](*inputs)


def test_wrong_results(program: Any) -> None:
    locked = np.zeros((101, 3), np.float32)
    locked.flags.writeable = False
    for out, message in (
        (np.zeros((101, 3)), r"wrong array, expected float32 \(101, 3"),
        ([0.0], "not an array, expected float32 .*, got list"),
        (locked, "read-only"),
    ):
        with pytest.raises(InputError, match=f'output "output": {message}'):
            program[0](features(101), out=out)
    with pytest.raises(
        InputError, match=r"call: wrong out, expected a tuple of 1 \(output\), got 2"
    ):
        program[0](features(101), out=(None, None))


def test_other_symbolic_sizes_are_refused() -> None:
    b = sw.Builder("main")
    graph = b.input("graph", sw.SparseSpec(("nodes", "nodes"), "f32", "edges"))
    b.output(b.spmm(graph, b.input("x", ("nodes", "k"), "f32")), name="y")
    message = '"x" has the symbolic size "k", expected numbers, or "nodes" and "edges" of the graph'
    with pytest.raises(sw.CompileError, match=f"distribute: {message}"):
        sw.distribute(b.module(), sw.partition(random_graph(5, 9), 2))


def test_what_cannot_be_distributed() -> None:
    part = sw.partition(random_graph(5, 9), 2)
    fixed = gnn.Sequential(gnn.GCNConv(weights(6, 2))).to_module(
        gnn.GraphSpec(5), sw.TensorSpec((5, 6))
    )
    with pytest.raises(CompileError, match="distribute: the number of nodes is fixed"):
        distribute(fixed, part)
    with pytest.raises(InputError, match="distribute: not a partition, expected stepwell"):
        distribute(fixed, random_graph(5, 9))
    with pytest.raises(CompileError, match="distribute: not a module"):
        distribute("gcn", part)
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), "f32", "e"))
    x = b.input("x", ("n", 4), "f32")
    b.output(b.aggregate(a, b.cumulative(x, "sum", 0)), name="y")
    with pytest.raises(CompileError, match=r"graph\.cumulative: it combines slices of all nodes"):
        distribute(b.module(), part)
    sparse = gnn.Sequential(gnn.GCNConv(weights(6, 2))).to_module(
        gnn.GraphSpec(), sw.SparseSpec((None, 6))
    )
    message = 'argument "features" is a second sparse matrix, expected a program of sw.TensorSpec'
    with pytest.raises(CompileError, match=f"distribute: {message}"):
        distribute(sparse, part)
    with pytest.raises(CompileError, match=f"out_of_core: {message}"):
        sw.out_of_core(sparse, part)


def of_edges(layer: gnn.Layer, **options: Any) -> sw.Module:
    spec = gnn.EdgeListSpec(**options)
    return gnn.Sequential(layer).to_module(spec, sw.TensorSpec((None, 6)))


@pytest.mark.parametrize("weighted", cases([False, True], [True]))
def test_a_partition_is_an_edge_list(weighted: bool) -> None:
    """In the place of the list, its weights included; repeated edges stay several."""
    ends = RNG.integers(0, 40, (2, 150))
    values = np.linspace(0.5, 2, 150, dtype=np.float32) if weighted else None
    module, x = of_edges(gnn.GCNConv(weights(6, 3)), weighted=weighted), features(40)
    given = [(ends, values)] if weighted else [ends]
    partition = sw.partition(given, 3, num_nodes=40)
    found = distribute(module, partition, threads_of(1), opt_level=0)
    assert [spec.name for spec in found.inputs] == ["features"]
    inputs = (ends, values, x) if weighted else (ends, x)
    assert_near(found(x), module.run_reference(*inputs))
    if weighted:
        message = "the edges of the partition have weights, expected none, or weighted=True"
        for make, name in ((distribute, "distribute"), (sw.out_of_core, "out_of_core")):
            with pytest.raises(InputError, match=f"{name}: {message}"):
                make(of_edges(gnn.GCNConv(weights(6, 3))), partition)


def lists(build: Callable[..., Any]) -> sw.Module:
    """A program of the sources and targets of edges, the list, features and weights."""
    b = sw.Builder("main")
    e, x, w = b.input("e", (2, "e"), "i64"), b.input("x", ("n", 3)), b.input("w", ("e",))
    ends = [b.reshape(b.slice(e, [n, 0], [n + 1, 2**63 - 1]), [-1]) for n in range(2)]
    b.output(build(b, *ends, x, w), name="y")
    return b.module()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: of_edges(gnn.GATConv(weights(4, 6), weights(1, 2, 2), weights(1, 2, 2))),
            "the program adds self loops to an edge list",
        ),
        (
            lambda: lists(lambda b, s, t, x, w: b.spmm(b.csr_from_edges(s, t, (x, x))[0], x)),
            "the rows of the matrix are not the targets of an edge list that is an argument",
        ),
        (
            lambda: lists(
                lambda b, s, t, x, w: b.spmm(b.csr_from_edges(t, s, (x, x), w * w)[0], x)
            ),
            "the weights of edges are computed",
        ),
        (
            lambda: lists(
                lambda b, s, t, x, w: (
                    b.spmm(b.csr_from_edges(t, s, (x, x), w)[0], x) + b.reduce(w, "sum", [0])
                )
            ),
            'argument "w" is used by edges in the order of the list',
        ),
        (
            lambda: lists(
                lambda b, s, t, x, w: b.spmm(
                    b.csr_from_edges(t, s, (x, x))[0],
                    b.spmm(b.csr_from_edges(s, t, (x, x))[0], x),
                )
            ),
            "the program sorts several edge lists",
        ),
    ],
)
def test_edge_lists_of_other_kinds(make: Callable[[], sw.Module], message: str) -> None:
    expected = r"expected edges that are sorted .* of gnn\.EdgeListSpec\(\); or use gnn\.GraphSpec"
    with pytest.raises(CompileError, match=f"distribute: {message}, {expected}"):
        distribute(make(), sw.partition(random_graph(5, 9), 2))


def test_memory_is_used_again(program: Any) -> None:
    """Results of a later call are not those of an earlier one, also after an error."""
    _, module, graph = program
    x = features(101)
    with LocalEngine(2) as engine:
        found = distribute(module, sw.partition(graph, 4), engine)
        first = found(x)
        kept = {id(block) for spares in found._room._spares.values() for block in spares}
        second = found(-x)
        assert kept == {id(block) for spares in found._room._spares.values() for block in spares}
        assert_near(first, expected(module, graph, x))
        assert_near(second, expected(module, graph, -x))
        found.close()
        assert not found._room._spares
        assert_near(found(x), first)


def test_processes_drop_values_with_their_handles() -> None:
    with LocalEngine(1, processes=True) as engine:
        lane = engine._lanes["0"]
        kept, dropped = engine.put([1, 2], "0"), engine.put([3], "0")
        assert engine.get(engine.submit(operator.add, kept, dropped, worker="0")) == [1, 2, 3]
        assert len(lane._known) == 2
        del dropped
        assert engine.get(engine.submit(len, kept, worker="0")) == 2
        assert lane._known == {kept.key}


@pytest.mark.parametrize("arguments", [{"workers": 0}, {"threads": True}, {"workers": "2"}])
def test_wrong_workers(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"LocalEngine: wrong (workers|threads), expected 1 or"):
        LocalEngine(**arguments)


def on(
    known: Distributed,
    engine: LocalEngine,
    tries: int = 3,
    folder: str = "",
    partition: Partition | None = None,
) -> Distributed:
    """The same program on another engine, or on the parts of another graph."""
    parts = (
        known.plan.program,
        known.stages,
        partition or known.plan.partition,
        engine,
        Machine(),
    )
    return Distributed(*parts, folder or None, tries)


def test_a_closed_engine_runs_nothing(program: Any) -> None:
    known, _, graph = program
    with LocalEngine(1) as engine:
        found = on(known, engine)
    for call in (
        lambda: found(features(graph.num_nodes)),
        lambda: engine.submit(len, "", worker="0"),
    ):
        with pytest.raises(sw.StepwellError, match=r"^LocalEngine: it has been closed$"):
            call()


def test_threads_of_its_own() -> None:
    """They end with the program, whether it is closed or forgotten, and if there is none."""
    module, before = module_of(gnn.GCNConv(weights(6, 2))), threading.enumerate()
    partition = sw.partition(random_graph(31, 90), 2)
    found = distribute(module, partition, opt_level=0)
    wanted = found(features(31))
    assert len(threading.enumerate()) > len(before)
    found.close()
    assert threading.enumerate() == before
    with pytest.raises(sw.StepwellError, match="LocalEngine: it has been closed"):
        found(features(31))
    found = distribute(module, partition, opt_level=0)
    assert np.array_equal(found(features(31)), wanted)
    del found
    gc.collect()
    assert threading.enumerate() == before
    with pytest.raises(CompileError, match="not a module"):
        distribute("gcn", partition)
    assert threading.enumerate() == before


@pytest.mark.parametrize("processes", [False, True])
def test_what_a_worker_was_given_is_forgotten(processes: bool) -> None:
    """Though no other function comes."""
    with LocalEngine(1, processes=processes) as engine:
        array = np.zeros(3)
        seen = weakref.ref(array)
        handle = engine.submit(operator.neg, array, worker="0")
        assert engine.get(handle).shape == (3,)
        end = time.monotonic() + 10
        del array
        while seen() is not None and time.monotonic() < end:
            time.sleep(0.01)
        assert seen() is None


def test_parts_are_opened_once(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in each call, where all of their arrays would be checked."""
    found, x = program[0], features(101)
    wanted = found(x)

    def opened(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Partition, "__getitem__", opened)
    assert np.array_equal(found(x), wanted)


def test_a_partition_that_is_replaced(program: Any, tmp_path: Path) -> None:
    """Workers do not take the parts that they have for those of another in the same folder."""
    known, module, _ = program
    x, folder = features(101), tmp_path / "parts"
    with LocalEngine(2) as engine:
        for seed in (0, 1):
            graph = random_graph(101, 400, seed)
            shutil.rmtree(folder, ignore_errors=True)
            partition = sw.partition(graph, 2, out=folder)
            assert partition.key == Partition.load(folder).key != ""
            found = on(known, engine, partition=partition)
            assert_near(found(x), expected(module, graph, x))
        shutil.rmtree(folder)
        sw.partition(random_graph(101, 400, 1), 2, out=folder)
        found = on(known, engine, partition=partition)
        tasks._opened.cache_clear()
        message = r"distribute: .*parts has another partition now; load it anew"
        with pytest.raises(InputError, match=message):
            found(x)
    assert sw.partition(graph, 2).key == ""


def test_more_nodes_than_columns(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix of 32 bits has no columns for all nodes of a ring; parts have halos then."""
    known, x = program[0], features(101)

    class Seeing(LocalEngine):
        def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
            rings.add(arguments[2].ring)
            return super().submit(function, *arguments, worker=worker)

    for limit in (1024, 1023):
        rings = set[int | None]()
        monkeypatch.setattr("stepwell.distributed.values._COLUMNS", limit)
        with Seeing(2) as engine:
            assert np.array_equal(on(known, engine)(x), known(x))
        assert rings == {1024 if limit == 1024 else None}


class Losing(LocalEngine):
    """Loses the results of a function, the first times."""

    def __init__(self, function: Callable[..., Any], stage: int, times: int) -> None:
        super().__init__(2)
        self.left, self._stage, self._function = times, stage, function
        self._doomed: list[Any] = []

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        handle = super().submit(function, *arguments, worker=worker)
        if function is self._function and arguments[1] == self._stage and self.left:
            self.left -= 1
            self._doomed.append(handle)
        return handle

    def get(self, handle: Any) -> Any:
        if any(handle is one for one in self._doomed):
            raise lost("1")
        return super().get(handle)


def test_a_lost_stage_runs_again(program: Any) -> None:
    known, module, graph = program
    for stage in range(3):
        with Losing(tasks.compute, stage, 2) as engine:
            found = on(known, engine, 2)
            assert_near(found(features(101)), expected(module, graph, features(101)))
            assert found.traffic.lost == ["1"]
            assert found.traffic.exchanged == found.report().exchanged


def test_too_many_losses_are_an_error(program: Any) -> None:
    with Losing(tasks.compute, 1, 100) as engine:
        found = on(program[0], engine, 2)
        message = r"workers ended 3 times in stage 1, expected at most 2 times \(tries\), got 1"
        with pytest.raises(StepwellError, match=message):
            found(features(101))


class Hosts(LocalEngine):
    """Threads that are hosts of their own: none reads the files of another."""

    def __init__(self, count: int, fails: int | None = None) -> None:
        super().__init__(count)
        self.in_memory = False
        self._fails, self._gone, self._doomed = fails, set[str](), list[Any]()

    def workers(self) -> Sequence[Worker]:
        return [
            Worker(w.name, f"stepwell-{w.name}", 1)
            for w in super().workers()
            if w.name not in self._gone
        ]

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        handle = super().submit(function, *arguments, worker=worker)
        if function is tasks.finish and arguments[1] == self._fails and worker == "1":
            self._doomed.append(handle)
        return handle

    def get(self, handle: Any) -> Any:
        result = super().get(handle)
        if any(handle is one for one in self._doomed):
            self._gone.add("1")
            raise lost("1")
        return result


class Moving(Losing):
    """Threads whose host is another one once a stage has been lost."""

    def __init__(self, stage: int) -> None:
        super().__init__(tasks.compute, stage, 1)
        self.in_memory = False
        self.rings: list[int | None] = []

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        if function is tasks.compute:
            self.rings.append(arguments[2].ring)
        return super().submit(function, *arguments, worker=worker)

    def workers(self) -> Sequence[Worker]:
        host = blocks.hostname() if self.left else "another"
        return [Worker(worker.name, host) for worker in super().workers()]


@pytest.mark.parametrize("stage", [0, 2])
def test_another_host_has_no_rings(program: Any, stage: int, tmp_path: Path) -> None:
    """The run begins anew there."""
    known, module, graph = program
    engine = Moving(stage)
    with engine:
        found = on(known, engine, folder=str(tmp_path))
        assert_near(found(features(101)), expected(module, graph, features(101)))
        assert found.traffic.lost == ["1"]
    assert None not in engine.rings[: 4 * stage + 4]
    assert set(engine.rings[4 * stage + 4 :]) == {None}


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host of a thread is its name."""
    monkeypatch.setattr(socket, "gethostname", lambda: threading.current_thread().name)


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("fails", cases([None, 1, 2], [None, 1]))
def test_several_hosts(program: Any, fails: int | None, tmp_path: Path) -> None:
    """Halos travel; if a host is gone, its parts are computed again from their arguments."""
    known, module, graph = program
    with Hosts(3, fails) as engine:
        found = on(known, engine, folder=str(tmp_path))
        assert_near(found(features(101)), expected(module, graph, features(101)))
        assert found.traffic.lost == ([] if fails is None else ["1"])
        if fails is None:
            # Two of the four parts are on one host.
            assert 0 < sum(found.traffic.shared) < sum(found.traffic.sent)
            assert found.traffic.exchanged == found.report().exchanged
    assert not any(tmp_path.iterdir())


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StepwellError, match=r"y\.npy.*No space left on device"):
        PartBlock.create(str(tmp_path), "y", (3, 4), np.dtype(np.float32))
    assert not any(tmp_path.iterdir())


def test_a_truncated_map(tmp_path: Path) -> None:
    block = PartBlock.create(str(tmp_path), "y", (1000, 4), np.dtype(np.float32))
    block.open(write=True)[...] = 1
    assert block.open().sum() == 4000
    os.truncate(block.path, 5000)
    with pytest.raises(StepwellError, match=r"y\.npy: truncated, expected 16128 bytes, got 5000"):
        block.open()
    block.remove()
    with pytest.raises(blocks.BlockLostError, match=r"y\.npy is on .*, or not there any more"):
        block.open()


def test_a_truncated_map_that_is_kept(tmp_path: Path) -> None:
    """It is opened once, and looked at each time."""
    block = PartBlock.create(str(tmp_path), "y", (1000, 4), np.dtype(np.float32), kept=True)
    assert not block.open().flags.writeable
    array = block.open(write=True)
    assert block.open() is array
    os.truncate(block.path, 16_000)
    with pytest.raises(StepwellError, match=r"y\.npy: truncated, expected 16128 bytes, got 16000"):
        block.open()
    block.remove()
    with pytest.raises(blocks.BlockLostError, match="not there any more"):
        block.open()
    other = PartBlock.create(str(tmp_path), "z", (3,), np.dtype(np.float32), kept=True)
    assert other.open(write=True).shape == (3,)
    assert list(blocks._maps) == [other.path]


def test_rows_of_other_layouts() -> None:
    """One at a time where a row is not in one piece; none that is not there."""
    x, places = weights(4, 6), np.array([2, 0, 3])
    for out in (np.zeros((5, 6), np.float32), np.zeros((6, 5), np.float32).T):
        scatter(x[:3], places, out)
        assert np.array_equal(out[places], x[:3])
        assert not out[[1, 4]].any()
    scatter(x[:0], places[:0], np.zeros((0, 6), np.float32))
    assert np.array_equal(gather(MappedRows(x), places), x[places])
    with pytest.raises(InputError, match="no such row, expected 0 to 3, got -1 to 1"):
        gather(MappedRows(x), places - 1 - (places == 3))


def test_empty_blocks(tmp_path: Path) -> None:
    block = PartBlock.create(str(tmp_path), "y", (0, 4), np.dtype(np.float32))
    assert block.open(write=True).shape == (0, 4)


def test_no_folder(program: Any) -> None:
    with LocalEngine(1, processes=True) as engine:
        found = on(program[0], engine, folder="/nowhere")
        with pytest.raises(StepwellError, match="cannot create a folder in /nowhere"):
            found(features(101))


class Killing(LocalEngine):
    """Kills a process in the middle of a stage, once."""

    stage: int | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        if function is tasks.compute and arguments[1] == self.stage:
            self.stage = None
            os.kill(self.get(super().submit(os.getpid, worker=worker)), signal.SIGKILL)
        return super().submit(function, *arguments, worker=worker)


@pytest.mark.slow
def test_processes(program: Any, tmp_path: Path) -> None:
    """They read each other's results from maps; one is killed in each stage."""
    _, module, graph = program
    x = features(101)
    wanted = expected(module, graph, x)
    sw.partition(graph, 4, out=tmp_path / "parts")
    with Killing(2, processes=True) as engine:
        found = distribute(module, Partition.load(tmp_path / "parts"), engine, folder=tmp_path)
        for stage in (None, 0, 1, 2):
            engine.stage = stage
            assert_near(found(x), wanted)
            assert len(found.traffic.lost) == (stage is not None)
            assert found.traffic.exchanged == found.report().exchanged
        assert_near(found(-x), expected(module, graph, -x))
        # Files are used again, until the program is closed.
        files = set(tmp_path.glob("stepwell-*/*.npy"))
        assert_near(found(x), wanted)
        assert set(tmp_path.glob("stepwell-*/*.npy")) == files
        found.close()
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]

"""Programs whose features and results are in files: tiles, resumption, and what may go wrong."""

from __future__ import annotations

import errno
import functools
import itertools
import json
import math
import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.core.progress import ProgressStep, followed
from stepwell.distributed.out_of_core import OutOfCore
from stepwell.distributed.partition import Partition
from stepwell.distributed.report import Machine
from stepwell.distributed.storage.columns import KeptColumns, TileColumns, nodes_of, referenced
from stepwell.distributed.tile_run import TileRun
from stepwell.distributed.tiles import tiles
from stepwell.frontends import gnn

from ..harness import RNG, cases, floats, package

NODES, WIDTH = 300, 12


def small(*shape: int) -> np.ndarray:
    return floats(*shape) * np.float32(0.3)


def edges() -> np.ndarray:
    """With hubs, self loops, repeated edges, and nodes without any."""
    ends = RNG.integers(0, NODES - 20, (2, 2000))
    ends[:, :200] = np.minimum(ends[:, :200], 4)
    return ends


ENDS, X = edges(), small(NODES, WIDTH)
MODELS = {
    "gcn": gnn.Sequential(
        gnn.GCNConv(small(WIDTH, 8), small(8)), gnn.ReLU(), gnn.GCNConv(small(8, 16))
    ),
    "sage": gnn.Sequential(
        gnn.SAGEConv(small(8, WIDTH), small(8), small(8, WIDTH)),
        gnn.ReLU(),
        gnn.SAGEConv(small(7, 8), small(7), small(7, 8), aggr="max"),
    ),
    "gat": gnn.Sequential(
        gnn.GATConv(small(8, WIDTH), small(1, 2, 4), small(1, 2, 4)),
        gnn.ReLU(),
        gnn.GATConv(small(6, 8), small(1, 1, 6), small(1, 1, 6)),
    ),
}


@functools.cache
def module(model: str) -> sw.Module:
    return MODELS[model].to_module(
        gnn.GraphSpec(indptr_dtype="i64"), sw.TensorSpec((None, WIDTH)), name=model
    )


@functools.cache
def expected(model: str) -> np.ndarray:
    exe = sw.compile(module(model), threads=1)
    return exe(sw.partition(ENDS, 1, num_nodes=NODES)[0], X)


@pytest.fixture(scope="module")
def partition() -> Partition:
    return sw.partition(ENDS, 3, by=RNG.integers(0, 3, NODES), num_nodes=NODES)


@pytest.fixture(scope="module")
def sage(partition: Partition) -> OutOfCore:
    """In several tiles of each part."""
    return sw.out_of_core(module("sage"), partition, 12_000, threads=1)


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    return expected("sage")


class Features:
    """Rows that are read, with what was read."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.read_rows: list[np.ndarray] = []

    def read(self, rows: np.ndarray) -> np.ndarray:
        assert np.all(np.diff(rows) >= 0)
        self.read_rows.append(rows)
        return self.array[rows]


class Visits:
    """Counts tiles, and interrupts a run before it visits one more than allowed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count, self.allowed = 0, 1_000_000
        run_tile = TileRun._run_tile

        def counted(*arguments: Any) -> None:
            if self.count == self.allowed:
                raise KeyboardInterrupt
            self.count += 1
            run_tile(*arguments)

        patch.setattr(TileRun, "_run_tile", counted)

    def during(self, call: Callable[[], None], allowed: int = 1_000_000) -> int:
        """How many tiles a call visits, which is interrupted before it visits more than allowed."""
        self.count, self.allowed = 0, allowed
        try:
            call()
        except KeyboardInterrupt:
            assert self.count == allowed
        else:
            assert self.count < allowed
        self.allowed = 1_000_000
        return self.count


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    return Visits(monkeypatch)


@pytest.mark.parametrize(
    "case",
    cases([*itertools.product(MODELS, [1, 1 << 40])], [("sage", 1), ("gcn", 1 << 40)]),
    ids=str,
)
def test_results_are_those_of_one_call(
    case: tuple[str, int],
    tmp_path: Path,
    partition: Partition,
    monkeypatch: pytest.MonkeyPatch,
    all_tests: bool,
) -> None:
    """Whether memory holds all files, or direct I/O reads and writes them."""
    model, limit = case
    monkeypatch.setattr("stepwell.distributed.out_of_core.memory_limit", lambda: limit)
    np.save(tmp_path / "x.npy", X)
    exes = list[OutOfCore]()
    if all_tests or limit == 1:
        exes.append(sw.out_of_core(module(model), partition, 20_000, threads=1))
    if all_tests or limit > 1:
        # More than any machine has: what is not needed is not allocated.
        whole = sw.partition(ENDS, 1, num_nodes=NODES)
        exes.append(sw.out_of_core(module(model), whole, "100 TiB", threads=2))
    for exe in exes:
        exe(tmp_path / "x.npy", out=tmp_path / "y.npy")
        found = np.load(tmp_path / "y.npy")
        np.testing.assert_allclose(found, expected(model), rtol=1e-5, atol=1e-5)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.npy"]


def test_the_report_is_what_a_run_reads(
    sage: OutOfCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of each stage, and its tiles, which are found without features."""
    read: list[int] = []
    gathered = TileRun._gather

    def counted(*given: Any) -> Any:
        found = gathered(*given)
        read[-1] += found.nbytes
        return found

    monkeypatch.setattr(TileRun, "_gather", counted)
    run_stage = TileRun._run_stage
    monkeypatch.setattr(
        TileRun, "_run_stage", lambda *given: (read.append(0), run_stage(*given))[1]
    )
    sage(X, out=tmp_path / "y.npy")
    report, entries = sage.report(Machine(disk=1)), len(ENDS[0])
    # Beside the graph: columns of 32 bits and row pointers of 64, without weights.
    graph = 4 * entries + 8 * NODES
    assert report.read == [read[0], read[1] + graph, read[2] + graph]
    # A product to aggregate, and one of the own row; the second layer narrows 8 features to 7.
    assert report.written == [4 * NODES * width for width in (8 + 8, 8 + 7, 7)]
    for stage, visited in zip(report.costs, (0, entries, entries), strict=True):
        assert sum(cost.entries for cost in stage) == visited
        assert sum(cost.rows for cost in stage) == NODES
        assert {cost.bound for cost in stage} == {"disk"}
        ends = dict.fromkeys(range(3), 0)
        for cost in stage:
            assert cost.first == ends[cost.part]
            ends[cost.part] += cost.rows
    assert report.seconds > sum(report.read)
    text = sage.explain()
    assert f"stage 0: {len(report.costs[0])} tiles, " in text
    assert text.count("disk") == sum(map(len, report.costs))


@pytest.mark.parametrize("model", cases([*MODELS], ["gat"]))
def test_rows_are_kept_where_there_is_room(
    model: str, partition: Partition, visits: Visits, tmp_path: Path
) -> None:
    """Those that entries refer to are read once, and others for their own tile."""
    exe, y = sw.out_of_core(module(model), partition, 40_000, threads=1), tmp_path / "y.npy"
    assert visits.during(lambda: exe(X, out=y)) > 3 * len(exe.stages)
    np.testing.assert_allclose(np.load(y), expected(model), rtol=1e-5, atol=1e-5)
    for stage, costs in zip(exe.stages, exe.report().costs, strict=True):
        widths = [math.prod(s.shape[1:]) for s in stage.inputs if s.shape != ("nodes", "columns")]
        graph = 4 * sum(cost.entries for cost in costs) + 8 * NODES
        assert sum(cost.read for cost in costs) <= graph + 4 * NODES * sum(widths)


def test_features_of_a_sparse_matrix(sage: OutOfCore, wanted: np.ndarray, tmp_path: Path) -> None:
    """Beside an edge list, whose place the partition takes."""
    sage(sp.csr_array(X), out=tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-6)
    module = MODELS["sage"].to_module(gnn.EdgeListSpec(), sw.TensorSpec((None, WIDTH)))
    whole = sw.partition(ENDS, 1, num_nodes=NODES)
    sw.out_of_core(module, whole, opt_level=0)(X, out=tmp_path / "z.npy")
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), wanted, rtol=1e-5, atol=1e-6)


def test_rows_are_read_in_order(sage: OutOfCore, wanted: np.ndarray, tmp_path: Path) -> None:
    features, y = Features(X), np.empty_like(wanted)
    sage(features, out=y, folder=tmp_path / "work")
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)
    # A sample first, and then each row once.
    np.testing.assert_array_equal(np.sort(np.concatenate(features.read_rows[1:])), np.arange(NODES))
    assert len(features.read_rows) > 1 + 3
    assert not (tmp_path / "work").exists()


def test_a_folder_on_another_disk(sage: OutOfCore, wanted: np.ndarray, tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        sage(X, out=tmp_path / "y.npy", folder=Path(folder) / "work")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["y.npy"]


def test_results_in_parquet(sage: OutOfCore, wanted: np.ndarray, tmp_path: Path) -> None:
    parquet = package("pyarrow.parquet")
    sage(X, out=tmp_path / "y.parquet")
    (column,) = parquet.read_table(tmp_path / "y.parquet").columns
    np.testing.assert_allclose(np.array(column.to_pylist()), wanted, rtol=1e-5, atol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["y.parquet"]


def test_an_interrupted_run_continues(
    sage: OutOfCore, visits: Visits, wanted: np.ndarray, tmp_path: Path
) -> None:
    every = visits.during(lambda: sage(X, out=tmp_path / "y.npy"))
    assert every > 4 * len(sage.stages)
    resumed = lambda: sage(X, out=tmp_path / "z.npy")  # noqa: E731
    finished = []
    for allowed in (1, every - 1):
        visits.during(resumed, allowed)
        assert not (tmp_path / "z.npy").exists()
        state = json.loads((tmp_path / "z.npy.work" / "state.json").read_text())
        finished.append(state["finished"])
    assert finished == [0, len(sage.stages) - 1]
    assert 1 < visits.during(resumed) < every / 2
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), np.load(tmp_path / "y.npy"))
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), wanted, rtol=1e-5, atol=1e-6)


def test_other_features_begin_anew(sage: OutOfCore, visits: Visits, tmp_path: Path) -> None:
    every = visits.during(lambda: sage(2 * X, out=tmp_path / "z.npy"))
    visits.during(lambda: sage(X, out=tmp_path / "y.npy"), every - 1)
    assert visits.during(lambda: sage(2 * X, out=tmp_path / "y.npy")) == every
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.load(tmp_path / "z.npy"))


def test_other_features_that_begin_alike(
    sage: OutOfCore, visits: Visits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One number is another: of a file its date is, and of an array in memory a hash."""
    monkeypatch.setattr("stepwell.distributed.storage.work._SAMPLE", 2)
    other, path, y = X.copy(), tmp_path / "x.npy", tmp_path / "y.npy"
    other[7, 3] += 1
    np.save(path, X)
    every = visits.during(lambda: sage(path, out=y))
    visits.during(lambda: sage(path, out=y), every - 1)
    assert visits.during(lambda: sage(path, out=y)) < every
    visits.during(lambda: sage(path, out=y), every - 1)
    os.utime(path, ns=(1, 1))
    assert visits.during(lambda: sage(path, out=y)) == every
    visits.during(lambda: sage(X, out=y), every - 1)
    assert visits.during(lambda: sage(other, out=y)) == every
    visits.during(lambda: sage(Features(X), out=y), every - 1)
    assert visits.during(lambda: sage(Features(other), out=y)) == every


def test_another_partition_begins_anew(visits: Visits, tmp_path: Path) -> None:
    """A folder that was partitioned again may have other weights of edges."""

    folder, z = tmp_path / "parts", tmp_path / "z.npy"

    def compiled() -> OutOfCore:
        sw.partition(ENDS, 2, out=folder, num_nodes=NODES)
        return sw.out_of_core(
            module("sage"), Partition.load(folder), 20_000, threads=1, opt_level=0
        )

    exe = compiled()
    every = visits.during(lambda: exe(X, out=tmp_path / "y.npy"))
    visits.during(lambda: exe(X, out=z), every - 1)
    shutil.rmtree(folder)
    other = compiled()
    assert visits.during(lambda: other(X, out=z)) == every


class Versioned(Features):
    """Rows that say when they are others."""

    version: object = "1"


def test_rows_with_a_version_continue(
    sage: OutOfCore, visits: Visits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("stepwell.distributed.storage.work._SAMPLE", 2)
    features, y = Versioned(X), tmp_path / "y.npy"
    every = visits.during(lambda: sage(features, out=y))
    visits.during(lambda: sage(features, out=y), every - 1)
    assert visits.during(lambda: sage(Versioned(X), out=y)) < every
    visits.during(lambda: sage(features, out=y), every - 1)
    features.version = "2"
    assert visits.during(lambda: sage(features, out=y)) == every
    features.version = 3
    message = r'the version of input "features" is no text, expected str or None, got int'
    with pytest.raises(sw.InputError, match=message):
        sage(features, out=y)
    # As with an attribute that is None, nothing is known of it.
    features.version = None
    visits.during(lambda: sage(features, out=y), every - 1)
    assert visits.during(lambda: sage(features, out=y)) == every


def test_maps_of_files_continue(
    sage: OutOfCore, visits: Visits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those to read; the numbers of others count, and those of large ones are not known."""
    monkeypatch.setattr("stepwell.distributed.storage.work._SAMPLE", 2)
    path, other, y = tmp_path / "x.npy", tmp_path / "other.npy", tmp_path / "y.npy"
    twice = np.stack([X, X])
    twice[1, 7, 3] += 1
    np.save(path, twice)
    every = visits.during(lambda: sage(X, out=y))

    def visited_again(first: np.ndarray, second: np.ndarray) -> bool:
        visits.during(lambda: sage(first, out=y), every - 1)
        return visits.during(lambda: sage(second, out=y)) == every

    def maps(mode: Any = "r") -> Any:
        return np.load(path, mmap_mode=mode)

    assert not visited_again(maps("r+")[0], maps("r+")[0])
    monkeypatch.setattr("stepwell.distributed.storage.work._SMALL", 0)
    assert not visited_again(maps()[0], maps()[0])
    assert not visited_again(maps()[1], np.asarray(maps())[1][:])
    assert visited_again(maps()[0], maps()[1])
    assert visited_again(maps("r+")[0], maps("r+")[0])
    assert visited_again(maps("c")[0], maps("c")[0])
    gone = maps()[0]
    path.rename(other)
    assert visited_again(gone, gone)
    other.rename(path)
    visits.during(lambda: sage(maps()[0], out=y), every - 1)
    os.utime(path, ns=(1, 1))
    assert visits.during(lambda: sage(maps()[0], out=y)) == every


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, OutOfCore]:
    """A folder with features and parts, and a program on these."""
    folder = tmp_path_factory.mktemp("on_disk")
    np.save(folder / "x.npy", X)
    partition = sw.partition(ENDS, 3, num_nodes=NODES, out=folder / "parts")
    return folder, sw.out_of_core(module("sage"), partition, 12_000, threads=1)


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("x.npy", 0),
        *((f"parts/{n}.npy", 1) for n in ("part1.indices", "part0.indptr", "part0.halo", "order")),
    ],
)
def test_files_that_are_truncated_between_stages(
    on_disk: tuple[Path, OutOfCore],
    wanted: np.ndarray,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    stage: int,
) -> None:
    """Features and the graph are maps; the next call with whole files continues."""
    folder, exe = on_disk
    path, run_stage = folder / name, TileRun._run_stage
    data, status = path.read_bytes(), path.stat()

    def truncating(run: TileRun, number: int, *arguments: Any) -> None:
        if number == stage:
            os.truncate(path, 8)
        run_stage(run, number, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(TileRun, "_run_stage", truncating)
        message = rf"partition: cannot read .*{name}: truncated, expected {len(data)} bytes, got 8"
        with pytest.raises(sw.InputError, match=message):
            exe(folder / "x.npy", out=tmp_path / "y.npy")
    assert not (tmp_path / "y.npy").exists()
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    exe(folder / "x.npy", out=tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-6)


def test_damaged_values_are_one_error(sage: OutOfCore, visits: Visits, tmp_path: Path) -> None:
    """A run whose files are truncated between two starts."""
    every = visits.during(lambda: sage(X, out=tmp_path / "y.npy"))
    (tmp_path / "y.npy").unlink()
    visits.during(lambda: sage(X, out=tmp_path / "y.npy"), every - 1)
    work = tmp_path / "y.npy.work"
    for file in work.glob("*.npy"):
        file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(sw.InputError, match=r"partition: cannot read .*\.npy: .* less data than"):
        sage(X, out=tmp_path / "y.npy")
    for file in work.glob("*.npy"):
        np.save(file, np.zeros((3, 4), np.float32))
    with pytest.raises(sw.InputError, match=r"cannot read .*: another array, expected .*, got "):
        sage(X, out=tmp_path / "y.npy")
    (work / "state.json").write_text("{}")
    with pytest.raises(sw.InputError, match=r"cannot read .*state\.json: not the state of a run"):
        sage(X, out=tmp_path / "y.npy")
    (work / "state.json").unlink()
    with pytest.raises(sw.InputError, match=r"y\.npy\.work is not the folder of a run"):
        sage(X, out=tmp_path / "y.npy")
    assert not (tmp_path / "y.npy").exists()


def test_a_full_disk_is_one_error(sage: OutOfCore, wanted: np.ndarray, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(sw.InputError, match=r"partition: cannot write .*: File too large"):
            sage(X, out=tmp_path / "y.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.MonkeyPatch.context() as patch:
        # Room is reserved before a file is mapped.
        patch.setattr("os.posix_fallocate", no_space)
        with pytest.raises(sw.InputError, match=r"partition: cannot write .*: No space left"):
            sage(X, out=tmp_path / "y.npy")
    assert not (tmp_path / "y.npy").exists()
    sage(X, out=tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-6)


def no_space(*arguments: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_progress(
    sage: OutOfCore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is reported, and shown to those who ask only."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    steps = list[ProgressStep]()
    with followed(steps.append):
        sage(X, out=tmp_path / "y.npy")
    assert capsys.readouterr().err == ""
    stages = len(sage.stages)
    assert list(dict.fromkeys(step.text for step in steps)) == [
        f"stage {n + 1} of {stages}" for n in range(stages)
    ]
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[-1] == steps[-1].total == stages * ENDS.shape[1]
    assert all(step.note.endswith(" M entries/s") for step in steps)


class Wrong(Features):
    """What returns other rows than it promises."""

    def read(self, rows: np.ndarray) -> np.ndarray:
        return self.array[rows][:, 1:]


class Broken(Features):
    """A medium that cannot be read."""

    def read(self, rows: np.ndarray) -> np.ndarray:
        raise OSError("input/output error")


MISTAKES: list[tuple[Callable[[], tuple[Any, ...]], dict[str, Any], str]] = [
    (
        lambda: (),
        {},
        r"out_of_core: wrong number of inputs, expected 1 \(.*\), and no",
    ),
    (lambda: (X[1:],), {}, r'input "features": wrong array, expected float32 \(300, 12\), got'),
    (lambda: (X.astype("f8"),), {}, r'input "features": wrong array, .*, got float64 \(300, 12\)'),
    (lambda: (3,), {}, 'partition: no rows for input "features", expected an array, .* got int'),
    (lambda: ("none.npy",), {}, r"partition: cannot read none\.npy: No such file"),
    (lambda: (X,), {"out": "y.txt"}, 'partition: no place for result "output", .* got y.txt'),
    (lambda: (X,), {"out": 3}, 'partition: no place for result "output", .* got int'),
    (lambda: (X,), {"out": np.zeros(3)}, "out_of_core: results in arrays need a folder"),
    (lambda: (Wrong(X),), {}, r"partition: wrong rows 0 to .*, expected .* got .* of float32"),
    (lambda: (Broken(X),), {}, r"partition: cannot read rows 0 to .*: input/output error"),
]


@pytest.mark.parametrize(("inputs", "options", "message"), MISTAKES)
def test_mistakes_are_one_error(
    sage: OutOfCore,
    tmp_path: Path,
    inputs: Callable[[], tuple[Any, ...]],
    options: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(sw.InputError, match=f"^{message}"):
        sage(*inputs(), **{"out": tmp_path / "y.npy", **options})
    assert not (tmp_path / "y.npy").exists()


def test_arrays_for_results_have_their_shape(sage: OutOfCore, tmp_path: Path) -> None:
    message = r'partition: wrong array for result "output", expected float32 \(300, 7\), got'
    with pytest.raises(sw.InputError, match=message):
        sage(X, out=np.zeros((300, 8), np.float32), folder=tmp_path / "work")


def test_wrong_options(partition: Partition, sage: OutOfCore, tmp_path: Path) -> None:
    for memory in ("4 GB", 0, -1, None, "a lot"):
        with pytest.raises(sw.InputError, match=r"out_of_core: wrong memory, expected"):
            sw.out_of_core(module("sage"), partition, memory)
    with pytest.raises(sw.InputError, match=r"out_of_core: not a partition, .* got list"):
        sw.out_of_core(module("sage"), [])
    exe = sw.out_of_core(module("sage"), partition, 3000, threads=1, opt_level=0)
    message = r"partition: row \d+ does not fit into memory, expected at most .*, got "
    with pytest.raises(sw.InputError, match=message):
        exe(X, out=tmp_path / "y.npy")


def test_results_over_all_nodes(partition: Partition, visits: Visits, tmp_path: Path) -> None:
    """Tiles combine theirs; a run that was interrupted takes them from its folder."""
    b = sw.Builder("main")
    a, x = b.input("a", sw.SparseSpec(("n", "n"), indptr_dtype="i64")), b.input("x", ("n", WIDTH))
    y = b.spmm(a, x)
    mean = b.reduce(y, "mean", [0], True)
    b.output(b.spmm(a, b.tanh(y - mean)), name="nodes")
    b.output(b.relu(mean), name="mean")
    b.output(b.reduce(y, "max", [0, 1], False), name="max")
    b.output(b.exp(b.constant(small(3), "z")), name="constant")
    module, paths = b.module(), [tmp_path / f"{n}.npy" for n in range(4)]
    exe = sw.out_of_core(module, partition, 40_000, threads=1)
    wanted = module.run_reference(sw.partition(ENDS, 1, num_nodes=NODES)[0].to_csr(), X)
    every = visits.during(lambda: exe(X, out=paths))
    for _ in range(2):
        for path, value in zip(paths, wanted, strict=True):
            np.testing.assert_allclose(np.load(path), value, rtol=1e-4, atol=1e-5)
            path.unlink()
        visits.during(lambda: exe(X, out=paths), every - 1)
        assert visits.during(lambda: exe(X, out=paths)) < every


def test_programs_of_other_kinds(partition: Partition) -> None:
    def built(build: Callable[[sw.Builder, Any, Any], Any]) -> sw.Module:
        b = sw.Builder("main")
        a, x = b.input("a", sw.SparseSpec(("n", "n"), nnz="e")), b.input("x", ("n", 3))
        b.output(b.spmm(a, x), name="y")
        b.output(build(b, a, x), name="v")
        return b.module()

    wrong: list[tuple[Callable[[sw.Builder, Any, Any], Any], str]] = [
        (
            lambda b, a, x: b.aggregate(a, x, b.input("z", ("e",))),
            'argument "z" is neither of nodes nor the same for all',
        ),
    ]
    for build, message in wrong:
        with pytest.raises(sw.UnsupportedError, match=f"out_of_core: {message}"):
            sw.out_of_core(built(build), partition)
    with pytest.raises(sw.CompileError, match="a result has a slice for each edge"):
        sw.out_of_core(built(lambda b, a, x: b.entries(a)), partition)


@pytest.mark.parametrize("rows_first", [False, True])
def test_tiles_are_the_part(rows_first: bool) -> None:
    for part in sw.partition(ENDS, 2, num_nodes=NODES):
        dense, end = part.matrix.toarray(), 0
        columns = TileColumns(part, rows_first)
        found = list(tiles(columns, "f32", lambda r, c, e: r + c + e, 300))
        assert len(found) > 3
        for tile in found:
            assert tile.first == end
            end = tile.end
            assert tile.end - tile.first + len(tile.columns) + tile.matrix.nnz <= 300
            whole = np.zeros((tile.end - tile.first, dense.shape[1]), np.float32)
            whole[:, tile.columns] = tile.matrix.toarray()
            np.testing.assert_array_equal(whole, dense[tile.first : tile.end])
            if rows_first:
                own = np.arange(tile.first, tile.end)
                np.testing.assert_array_equal(tile.columns[: len(own)], own)
        assert end == part.num_rows


@pytest.mark.parametrize("rows_first", [False, True])
def test_tiles_share_the_columns_that_are_kept(rows_first: bool) -> None:
    """A tile's own rows come before them, and its entries refer to these, as self loops do."""
    parts = list(sw.partition(ENDS, 2, num_nodes=NODES))
    kept = referenced(parts, NODES)
    assert kept is not None
    every = np.concatenate([nodes_of(part, np.unique(part.indices)) for part in parts])
    np.testing.assert_array_equal(kept, np.unique(every))
    assert referenced(parts, len(kept) - 1) is None
    for part in parts:
        cost = lambda r, c, e: r + c + e  # noqa: E731
        columns = KeptColumns(part, rows_first, kept)
        found = list(tiles(columns, "f32", cost, len(kept) + 300))
        assert len(found) > 3
        dense = np.zeros((part.num_rows, NODES), np.float32)
        dense[:, nodes_of(part, np.arange(part.matrix.shape[1]))] = part.matrix.toarray()
        for tile in found:
            own = nodes_of(part, tile.columns)
            first = part.rows[0] + np.arange(tile.first, tile.end) if rows_first else []
            np.testing.assert_array_equal(own, first)
            matrix, whole = tile.matrix.toarray(), np.zeros((tile.matrix.shape[0], NODES))
            whole[:, kept] = matrix[:, len(own) :]
            assert not whole[:, own].any()
            whole[:, own] = matrix[:, : len(own)]
            np.testing.assert_array_equal(whole, dense[tile.first : tile.end])


@pytest.mark.parametrize("nodes_first", [False, True])
def test_rows_without_entries_are_few_tiles(nodes_first: bool) -> None:
    """Those of a bipartite graph follow each other; a tile has many of them."""
    users, items, budget = 3000, 1000, 30_000
    ends = np.stack([RNG.integers(0, users, 4000), RNG.integers(users, users + items, 4000)])
    ends = ends if nodes_first else users + items - 1 - ends
    (part,) = sw.partition(ends, 1, num_nodes=users + items)
    cost = lambda r, c, e: 64 * r + 64 * c + 8 * e  # noqa: E731
    found = list(tiles(TileColumns(part, rows_first=False), "f32", cost, budget))
    assert [tile.first for tile in found[1:]] == [tile.end for tile in found[:-1]]
    spent = [cost(t.end - t.first, len(t.columns), t.matrix.nnz) for t in found]
    assert max(spent) <= budget
    # Halves are at worst as good as a third of the whole.
    assert len(found) <= 3 * sum(spent) / budget

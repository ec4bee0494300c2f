"""Runs out of core whose results are taken over in several steps, or whose folder is shared."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.distributed.out_of_core import OutOfCore
from stepwell.distributed.storage import results
from stepwell.distributed.storage.work import WorkFolder
from stepwell.distributed.tile_run import TileRun

from ..harness import RNG, floats, package

NODES = 50
X, ENDS = floats(NODES, 4), RNG.integers(0, NODES, (2, 200))
NAMES = "y.npy", "again.npy", "z.npy", "x.npy"


@pytest.fixture(scope="module", params=["rows", "labels"])
def several(request: pytest.FixtureRequest) -> OutOfCore:
    """Results that are one value, and one that later stages read and the argument itself."""
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "n"), indptr_dtype="i64"))
    x = b.input("x", ("n", 4))
    y = b.spmm(a, x)
    b.output(b.relu(y), name="y")
    b.output(b.relu(y), name="again")
    b.output(b.spmm(a, b.relu(y)), name="z")
    b.output(x, name="x")
    by = "rows" if request.param == "rows" else RNG.permutation(NODES) % 2
    partition = sw.partition(ENDS, 2, by=by, num_nodes=NODES)
    return sw.out_of_core(b.module(), partition, 100_000, threads=1, opt_level=0)


def expected() -> list[np.ndarray]:
    matrix = sw.partition(ENDS, 1, num_nodes=NODES)[0].to_csr()
    y = np.maximum(matrix @ X, 0)
    return [y, y, matrix @ y, X]


def assert_complete(folder: Path) -> None:
    for name, value in zip(NAMES, expected(), strict=True):
        np.testing.assert_allclose(np.load(folder / name), value, rtol=1e-5, atol=1e-5)
    assert {path.name for path in folder.iterdir()} == set(NAMES)
    assert {(folder / name).stat().st_nlink for name in NAMES} == {1}


def no_links(*arguments: Any) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("failing", range(4))
@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        pytest.param(OSError(errno.ENOSPC, "full"), marks=pytest.mark.slow),
    ],
)
def test_a_run_continues_that_ended_as_results_were_taken_over(
    several: OutOfCore, tmp_path: Path, failing: int, links: bool, error: BaseException
) -> None:
    """Before one of them, or after it has appeared."""
    paths = [tmp_path / name for name in NAMES]
    for after in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, failing, after, error)
            if not links:
                patch.setattr(os, "link", no_links)
            with pytest.raises((KeyboardInterrupt, sw.InputError)):
                several(X, out=paths)
        with pytest.MonkeyPatch.context() as patch:
            if not links:
                patch.setattr(os, "link", no_links)
            patch.setattr(TileRun, "_run_stage", None)
            several(X, out=paths)
        assert_complete(tmp_path)


def fail_at(patch: pytest.MonkeyPatch, number: int, after: bool, error: BaseException) -> None:
    """Let the taking over of a result fail: before, or after it has appeared."""
    counts = iter(range(100))
    name = results._name

    def failing(file: Path, path: Path) -> None:
        fails = next(counts) == number
        if fails and not after:
            raise error
        name(file, path)
        if fails:
            raise error

    patch.setattr(results, "_name", failing)


def test_a_result_that_has_appeared_stays(several: OutOfCore, tmp_path: Path) -> None:
    """A run with other arguments in the folder of an interrupted one does not write to it."""
    first, second = ([tmp_path / f"{n}{name}" for name in NAMES] for n in range(2))
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, 3, False, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            several(X, out=first, folder=tmp_path / "work")
    several(2 * X, out=second, folder=tmp_path / "work")
    for number, value in enumerate(expected()[:3]):
        np.testing.assert_allclose(np.load(first[number]), value, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(np.load(second[number]), 2 * value, rtol=1e-5, atol=1e-5)


def test_a_result_on_a_full_disk_is_taken_over_later(several: OutOfCore, tmp_path: Path) -> None:
    package("pyarrow")
    paths = [tmp_path / name for name in NAMES]
    paths[2] = tmp_path / "z.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "write_parquet", no_links)
        with pytest.raises(sw.InputError, match=r"partition: cannot write .*z\.parquet: "):
            several(X, out=paths)
    several(X, out=paths)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)


HOLDER = """
import sys, time
from pathlib import Path
from stepwell.distributed.storage.work import WorkFolder
work = WorkFolder(Path(sys.argv[1]), "key")
print("held", flush=True)
time.sleep(60)
"""


def test_a_folder_is_one_runs(several: OutOfCore, tmp_path: Path) -> None:
    """Of this process or another, until that has ended, however it ends."""
    paths, folder = [tmp_path / name for name in NAMES], tmp_path / "y.npy.work"
    message = r"y\.npy\.work is in use, expected one run at a time, got another run is using it"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(sw.InputError, match=message):
            several(X, out=paths)
        holder.kill()
    work = WorkFolder(folder, "key")
    with pytest.raises(sw.InputError, match=message):
        several(X, out=paths)
    work.close()
    several(X, out=paths)
    assert_complete(tmp_path)


def test_a_run_that_fails_releases_its_folder(several: OutOfCore, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mine").touch()
    paths = [tmp_path / name for name in NAMES]
    for _ in range(2):
        with pytest.raises(sw.InputError, match="work is not the folder of a run"):
            several(X, out=paths, folder=tmp_path / "work")
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["mine"]

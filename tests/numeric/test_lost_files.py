"""Programs on parts whose disk fills up, or whose files are truncated."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.distributed import tasks
from stepwell.distributed.distributing import Distributed, distribute
from stepwell.distributed.engines import LocalEngine
from stepwell.distributed.report import Machine

from .parts import features, gcn, random_graph

GRAPH, X = random_graph(101, 400), features(101)
ALLOCATE = os.posix_fallocate


class Files(LocalEngine):
    """Threads whose values are in files; `hook` is called before each function is submitted."""

    def __init__(self, shares: bool = True) -> None:
        super().__init__(2)
        self.in_memory, self.shares = False, shares
        self.hook: Callable[[Callable[..., Any], tuple[Any, ...]], None] = lambda *_: None
        self._submitted: list[Future[Any]] = []

    def __enter__(self) -> Files:
        return self

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        self.hook(function, arguments)
        self._submitted.append(super().submit(function, *arguments, worker=worker))
        return self._submitted[-1]

    def settle(self) -> None:
        """Wait for what was submitted, so that no file is in the middle of being made."""
        wait(self._submitted)


@pytest.fixture(scope="module")
def known() -> Any:
    """A program, and its results."""
    module = gcn()
    with LocalEngine(1) as engine:
        made = distribute(module, sw.partition(GRAPH, 3), engine, opt_level=0)
        yield made, module.run_reference(GRAPH.to_csr(), X)


def on(known: Distributed, engine: LocalEngine, folder: Path) -> Distributed:
    """The same program on another engine."""
    parts = known.plan.program, known.stages, known.plan.partition
    return Distributed(*parts, engine, Machine(), str(folder), 3)


def assert_works(program: Distributed, wanted: np.ndarray, folder: Path) -> None:
    """The next call does, and leaves nothing behind once the program is closed."""
    np.testing.assert_allclose(program(X), wanted, rtol=1e-5, atol=1e-5)
    program.close()
    assert not any(folder.iterdir())


def failure(program: Distributed) -> str | None:
    """The error of a call."""
    try:
        program(X)
    except sw.InputError as error:
        return str(error)
    return None


def fail_at(number: int) -> Callable[..., None]:
    """What allocates files, but for one of them."""
    counts = iter(range(1000))

    def allocate(*arguments: int) -> None:
        if next(counts) == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        ALLOCATE(*arguments)

    return allocate


@pytest.mark.parametrize("shares", [True, False])
def test_a_disk_that_fills_up(
    known: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: bool
) -> None:
    """At each of the files that a run allocates."""
    message = r"^partition: cannot write .*: No space left on device"
    with Files(shares) as engine:
        program, failures = on(known[0], engine, tmp_path), 0
        monkeypatch.setattr(os, "posix_fallocate", fail_at(0))
        while (found := failure(program)) is not None:
            assert re.match(message, found)
            assert not any(tmp_path.iterdir())
            failures += 1
            monkeypatch.setattr(os, "posix_fallocate", fail_at(failures))
        # One for each part and value, or each value.
        assert failures >= (3 if shares else 9)
        program.close()
        monkeypatch.undo()
        assert_works(program, known[1], tmp_path)


def fill(number: int) -> None:
    """Let a file of this process not be allocated."""
    os.posix_fallocate = fail_at(number)


@pytest.mark.slow
def test_a_disk_that_fills_up_for_processes(known: Any, tmp_path: Path) -> None:
    with LocalEngine(2, processes=True) as engine:
        program = on(known[0], engine, tmp_path)
        for number in range(2):
            engine.get(engine.submit(fill, number, worker="1"))
            message = r"^partition: cannot write .*: No space left on device"
            with pytest.raises(sw.InputError, match=message):
                program(X)
            assert not any(tmp_path.iterdir())
        assert_works(program, known[1], tmp_path)


@pytest.mark.parametrize("stage", range(3))
@pytest.mark.parametrize("shares", [True, False])
def test_files_that_are_truncated_between_stages(
    known: Any, tmp_path: Path, shares: bool, stage: int
) -> None:
    """In the first call, and in one that uses files again."""
    work = tasks.start, tasks.finish, tasks.compute

    def truncate(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        if function in work and arguments[1] == stage:
            engine.settle()
            for path in tmp_path.glob("stepwell-*/*"):
                if path.name != "lock":
                    os.truncate(path, min(9, path.stat().st_size))

    with Files(shares) as engine:
        program = on(known[0], engine, tmp_path)
        for again in (False, True):
            engine.hook = lambda *_: None
            if again:
                program(X)
            engine.hook = truncate
            message = r"^distribute: .*: truncated, expected \d+ bytes, got \d$"
            with pytest.raises(sw.InputError, match=message):
                program(X)
            assert not any(tmp_path.iterdir())
        engine.hook = lambda *_: None
        assert_works(program, known[1], tmp_path)


def test_features_that_are_truncated(known: Any, tmp_path: Path) -> None:
    """Before a call, and between the call and the worker that reads them."""
    path, folder = tmp_path / "x.npy", tmp_path / "files"
    folder.mkdir()
    np.save(path, X)
    data = path.read_bytes()

    def truncate(function: Callable[..., Any], _: tuple[Any, ...]) -> None:
        if function is tasks.load:
            os.truncate(path, 500)

    with Files() as engine:
        program = on(known[0], engine, folder)
        message = r"^partition: cannot read .*x\.npy: "
        path.write_bytes(data[:-4])
        with pytest.raises(sw.InputError, match=message):
            program(path)
        path.write_bytes(data)
        engine.hook = truncate
        with pytest.raises(sw.InputError, match=message):
            program(path)
        assert not any(folder.iterdir())
        engine.hook = lambda *_: None
        path.write_bytes(data)
        np.testing.assert_allclose(program(path), known[1], rtol=1e-5, atol=1e-5)

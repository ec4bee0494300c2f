"""Compilation pauses the collector of the process, and leaves it as it was found."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Iterator

import pytest

import stepwell as sw
from stepwell.core.collector import without_collector


@pytest.fixture(params=[True, False], ids=["enabled", "disabled"])
def enabled(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def _module() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (2, 3), "f32")), name="y")
    return b.module()


class _Watching(sw.PassHook):
    def __init__(self) -> None:
        self.found: list[bool] = []

    def after_pass(self, ctx: object, op: object) -> None:
        self.found.append(gc.isenabled())


class _RefusedError(Exception):
    pass


class _Refusing(sw.PassHook):
    def before_pass(self, ctx: object, op: object) -> None:
        raise _RefusedError


def test_compile_pauses_the_collector_and_leaves_it_as_it_was(enabled: bool) -> None:
    watching = _Watching()
    sw.compile(_module(), hooks=[watching])
    assert watching.found
    assert not any(watching.found)
    assert gc.isenabled() == enabled


def test_a_failed_compilation_leaves_the_collector_as_it_was(enabled: bool) -> None:
    with pytest.raises(_RefusedError):
        sw.compile(_module(), hooks=[_Refusing()])
    assert gc.isenabled() == enabled


def test_the_collector_stays_paused_until_the_last_of_two_threads_is_done(enabled: bool) -> None:
    begun, finished = threading.Event(), threading.Event()

    def outlasted() -> None:
        with without_collector():
            begun.set()
            finished.wait()

    other = threading.Thread(target=outlasted)
    other.start()
    begun.wait()
    with without_collector():
        finished.set()
        other.join()
        assert not gc.isenabled()
    assert gc.isenabled() == enabled


def test_the_child_of_a_fork_leaves_the_contexts_of_other_threads(enabled: bool) -> None:
    inside, end = threading.Event(), threading.Event()

    def other() -> None:
        with without_collector():
            inside.set()
            end.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, about forks of processes with threads
        child = os.fork()
    if not child:
        with without_collector():
            paused = not gc.isenabled()
        os._exit(0 if paused and gc.isenabled() == enabled else 1)
    status = os.waitpid(child, 0)[1]
    end.set()
    thread.join()
    assert status == 0
    assert gc.isenabled() == enabled

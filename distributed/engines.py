"""Engines: where functions of one part run, and their results stay.

An engine is four verbs: `workers`, `put`, `submit` and `get`. `LocalEngine` runs them in threads or
processes of this machine; `stepwell.distributed.dask_engine` has one for clusters.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any, Self

from ..core.errors import InputError, StepwellError, explain
from .storage.blocks import hostname


class WorkerLostError(StepwellError):
    """A worker ended before its function did; `worker` is its name."""

    worker: str = ""


@dataclass(frozen=True)
class Worker:
    """A place where functions run.

    Attributes:
        name: its name.
        host: the host that it is on; workers of one host can map the same files.
        threads: how many threads a function may use.
        mapped: how many bytes of files that are used again it may keep mapped.
    """

    name: str
    host: str
    threads: int = 1
    mapped: float = 0


class Engine(ABC):
    """Where functions run. A handle stands for a result, which stays where it was computed.

    Attributes:
        in_memory: whether all workers share the memory of this process.
        shares: whether workers of one host read each other's results from maps.
        reuses: whether files are written again by later stages and calls. A function must then run
            on the worker that it was submitted to, or be lost.
    """

    in_memory = False
    shares = True
    reuses = False

    @abstractmethod
    def workers(self) -> Sequence[Worker]:
        """The workers that are there now.

        Raises:
            StepwellError: if the engine has been closed, or is lost.
        """

    @abstractmethod
    def put(self, value: object, worker: str) -> Any:
        """A handle of a value, which is copied to a worker."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        """A handle of the result of a function that runs on a worker.

        The function is one at the top level of a module. Arguments may be handles, of which the
        function gets the results; those of other workers travel from worker to worker.
        """

    @abstractmethod
    def get(self, handle: Any) -> Any:
        """The result that a handle stands for, once it is there.

        Raises:
            WorkerLostError: if the worker ended before.
            Exception: what the function has raised.
        """

    def holds(self, handle: Any) -> bool:
        """Whether what a handle stands for may still be there.

        It is not if its worker has been started again since, under the same name.
        """
        return True

    def close(self) -> None:  # noqa: B027, as most have nothing to end
        """End what the engine has started; programs on it can no longer be called."""


@dataclass(frozen=True, eq=False)
class _Stored:
    """A value that `LocalEngine.put` has copied to a worker."""

    value: object
    key: str


class LocalEngine(Engine):
    """Runs functions in threads or processes of this machine.

    Processes share results through files that they map, which they read and write as memory.

    Args:
        workers: how many.
        processes: whether they are processes, of which each has a Python interpreter of its own.
            A script that starts them needs ``if __name__ == "__main__":``.
        threads: how many threads a function may use.

    Raises:
        InputError: if `workers` or `threads` is below 1.
    """

    reuses = True

    def __init__(self, workers: int = 1, *, processes: bool = False, threads: int = 1) -> None:
        for name, number in (("workers", workers), ("threads", threads)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                fact = f"wrong {name}"
                raise InputError(explain("LocalEngine", fact, expected="1 or more", got=number))
        self.in_memory = not processes
        self._threads = threads
        self._stored: weakref.WeakValueDictionary[str, _Stored] = weakref.WeakValueDictionary()
        self._lanes = {f"{n}": _Lane(f"{n}", processes, self._stored) for n in range(workers)}
        self._numbers = iter(range(2**62))
        self._is_closed = False

    def workers(self) -> Sequence[Worker]:
        """The workers, all on this host.

        Raises:
            StepwellError: if the engine has been closed.
        """
        self._require_open()
        return [Worker(name, hostname(), self._threads, math.inf) for name in self._lanes]

    def put(self, value: object, worker: str) -> Any:
        """A handle of a value, which processes get a copy of once, and drop with the handle."""
        if self.in_memory:
            return value
        stored = _Stored(value, str(next(self._numbers)))
        self._stored[stored.key] = stored
        return stored

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Future[Any]:
        """A handle of the result of a function. A worker runs its functions in order.

        Raises:
            StepwellError: if the engine has been closed.
        """
        self._require_open()
        return self._lanes[worker].submit(function, arguments)

    def get(self, handle: Any) -> Any:
        """The result, once it is there."""
        if isinstance(handle, _Stored):
            return handle.value
        return handle.result() if isinstance(handle, Future) else handle

    def close(self) -> None:
        """End the workers; programs on them can no longer be called."""
        self._is_closed = True
        for lane in self._lanes.values():
            lane.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise StepwellError(explain("LocalEngine", "it has been closed"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Lane:
    """One worker: a thread that waits for arguments, and runs functions itself or in a process."""

    def __init__(self, name: str, process: bool, stored: Container[str]) -> None:
        self.name, self._process, self._stored = name, process, stored
        self._pool: Executor | None = None
        self._known: set[str] = set()
        self._tasks: queue.SimpleQueue[tuple[Callable[..., Any], Sequence[Any], Future[Any]] | None]
        self._tasks = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"stepwell-{name}")
        self._thread.start()

    def submit(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._tasks.put((function, arguments, future))
        return future

    def close(self) -> None:
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._do(*task)
            # It would live until the next one comes, and its arguments and result with it.
            del task
        if self._pool is not None:
            self._pool.shutdown()

    def _do(
        self, function: Callable[..., Any], arguments: Sequence[Any], future: Future[Any]
    ) -> None:
        try:
            future.set_result(self._result(function, arguments))
        except BaseException as error:
            future.set_exception(error)

    def _result(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        given = [a.result() if isinstance(a, Future) else a for a in arguments]
        if not self._process:
            return function(*(a.value if isinstance(a, _Stored) else a for a in given))
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_parent)
            self._pool, self._known = pool, set()
        try:
            if dropped := {key for key in self._known if key not in self._stored}:
                self._pool.submit(_drop, dropped).result()
                self._known -= dropped
            for value in given:
                if isinstance(value, _Stored) and value.key not in self._known:
                    self._pool.submit(_store, value.key, value.value).result()
                    self._known.add(value.key)
            named = [_Key(v.key) if isinstance(v, _Stored) else v for v in given]
            return self._pool.submit(_call, function, named).result()
        except BrokenProcessPool as error:
            self._pool = None
            raise lost(self.name) from error


def lost(worker: str) -> WorkerLostError:
    """The error of a worker that has ended."""
    error = WorkerLostError(explain("distribute", f'worker "{worker}" ended before its work did'))
    error.worker = worker
    return error


@dataclass(frozen=True)
class _Key:
    """In a worker process: a value that it has been given."""

    key: str


def _end_with_parent() -> None:
    """End this worker process when the process that started it ends, however that ends.

    One that is killed does not close the pipe from which its worker takes functions.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_wait_for, args=(parent,), daemon=True).start()


def _wait_for(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


_VALUES: dict[str, object] = {}
"""In a worker process: the values that it has been given."""


def _store(key: str, value: object) -> None:
    _VALUES[key] = value


def _drop(keys: Iterable[str]) -> None:
    for key in keys:
        _VALUES.pop(key, None)


def _call(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    return function(*(_VALUES[a.key] if isinstance(a, _Key) else a for a in arguments))

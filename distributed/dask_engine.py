"""`DaskEngine`: functions of parts on the workers of a Dask cluster (`stepwell[dask]`)."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from time import monotonic
from typing import Any

from ..core.errors import StepwellError, explain
from .engines import Engine, Worker, lost
from .storage.blocks import hostname

_TRIES = 3
"""How often data is sent to a worker that is there; Dask waits for half a minute each time."""
_PATIENCE = 1.0
"""The seconds after which a wait looks whether the scheduler is still there."""
_MAPPED = 0.4
"""The part of a worker's memory that may be kept mapped; Dask begins to write to disk at 0.6."""
_GONE = "cancelled", "lost"
"""The states of futures whose results are nowhere."""
_PAUSE = 30.0
"""The seconds for which all workers may be paused."""


@dataclass(frozen=True, eq=False)
class _Task:
    """The future of a function, and the worker that it was submitted to."""

    future: Any
    worker: str


class DaskEngine(Engine):
    """Runs functions on the workers of a Dask cluster.

    Results stay on the workers. Rows of a halo travel from worker to worker as the dependencies of
    tasks, not through the scheduler; workers of one host read them from maps.

    Args:
        client: a `dask.distributed.Client`.
        share: whether workers of one host read each other's results from maps. False sends them,
            as between hosts.
    """

    reuses = True

    def __init__(self, client: Any, *, share: bool = True) -> None:
        self.client, self.shares = client, share
        self._hosts: dict[str, str] = {}
        self._numbers = itertools.count()
        self._paused: dict[str, float] = {}
        """The times at which workers were found to be paused."""

    def workers(self) -> Sequence[Worker]:
        """The workers of the cluster, by address, without those that Dask has paused.

        Raises:
            StepwellError: if the scheduler is lost, or all workers stay paused.
        """
        self._require_scheduler()
        try:
            running, paused = self._known()
            if paused and not running:
                self._require_some(paused)
            if new := [address for address in running if address not in self._hosts]:
                # One that has just ended does not answer.
                self._hosts |= self.client.run(hostname, workers=new, on_error="ignore")
        except (OSError, CancelledError) as error:
            raise _scheduler_lost() from error
        return [
            Worker(address, self._hosts[address], one["nthreads"], _mapped(one["memory_limit"]))
            for address, one in sorted(running.items())
            if address in self._hosts
        ]

    def _known(self) -> tuple[dict[str, Any], dict[str, float]]:
        """What the scheduler knows of the workers that run, and since when others are paused."""
        # What `scheduler_info` returns may be a copy in the client without workers.
        known = self.client.sync(self.client.scheduler.identity)["workers"]
        running = {a: one for a, one in known.items() if one["status"] == "running"}
        now = monotonic()
        self._paused = {a: self._paused.get(a, now) for a in known if a not in running}
        return running, self._paused

    def _require_some(self, paused: Mapping[str, float]) -> None:
        """Raise `StepwellError` if all workers have been paused for a while."""
        if monotonic() - max(paused.values()) > _PAUSE:
            self._paused = {}
            fact = f"all {len(paused)} workers of the Dask cluster are paused"
            hint = "their memory is used up (memory_limit of Dask)"
            raise StepwellError(explain("distribute", fact, hint=hint))

    def put(self, value: object, worker: str) -> Any:
        """A handle of a value, which is sent to a worker.

        Raises:
            WorkerLostError: if the worker has ended.
            StepwellError: if the scheduler is lost, or the worker is there and takes no data: it is
                paused, or too busy to answer.
        """
        for _ in range(_TRIES):
            self._require_scheduler()
            try:
                return _Task(self._scattered(value, worker), worker)
            except (CancelledError, ValueError, KeyError) as error:
                self._require_scheduler()
                raise lost(worker) from error
            except OSError as error:
                # So end connections, and waits for a worker that is paused or busy.
                self._require_scheduler()
                if not self._is_there(worker):
                    raise lost(worker) from error
        fact = f'worker "{worker}" takes no data'
        hint = "it is paused for want of memory (memory_limit of Dask), or too busy to answer"
        raise StepwellError(explain("distribute", fact, hint=hint))

    def _is_there(self, worker: str) -> bool:
        """Whether the scheduler knows a worker."""
        try:
            return worker in self.client.nthreads()
        except (OSError, CancelledError) as error:
            raise _scheduler_lost() from error

    def _scattered(self, value: object, worker: str) -> Any:
        """The future of a value that goes to a worker, not by way of the scheduler."""
        return self.client.scatter([value], workers=[worker], hash=False, direct=True)[0]

    def submit(self, function: Callable[..., Any], *arguments: Any, worker: str) -> Any:
        """A handle of the result of a function.

        It runs there or not at all: one that Dask has moved would write what the other one, which
        may not have ended, still writes. If the worker is gone, `get` says so.
        """
        self._require_scheduler()
        given = [a.future if isinstance(a, _Task) else a for a in arguments]
        # What is submitted within a tenth of a second is equal to Dask, and runs in any order:
        # a worker would compute before it packs what others wait for.
        options = {"workers": [worker], "pure": False, "priority": -next(self._numbers)}
        return _Task(self.client.submit(function, *given, **options), worker)

    def get(self, handle: Any) -> Any:
        """The result, once it is there.

        Raises:
            WorkerLostError: if the worker ended before, or is paused and does not begin.
            StepwellError: if the scheduler is lost, or all workers are paused.
        """
        if not isinstance(handle, _Task):
            return handle
        # A room of the sources has the same name, and is what type checkers find.
        killed = importlib.import_module("distributed").KilledWorker
        while True:
            try:
                return handle.future.result(timeout=_PATIENCE)
            except TimeoutError:
                if handle.future.status == "error":
                    # It may be what the function itself has raised.
                    return handle.future.result()
                self._require_scheduler()
                self._require_progress(handle)
            except (CancelledError, asyncio.CancelledError, killed, UnboundLocalError) as error:
                # The last is how Dask's wait ends if it is cancelled meanwhile.
                if isinstance(error, UnboundLocalError) and handle.future.status == "error":
                    raise
                self._require_scheduler()
                raise lost(handle.worker) from error

    def holds(self, handle: Any) -> bool:
        """Whether a result may still be there: not after `client.restart()`, for example."""
        return not isinstance(handle, _Task) or handle.future.status not in _GONE

    def _require_progress(self, handle: _Task) -> None:
        """Raise an error if the worker of a function is gone, or paused and runs nothing."""
        try:
            running, paused = self._known()
            if handle.worker in running or handle.future.done():
                return
            if handle.worker in paused:
                if monotonic() - paused[handle.worker] <= _PAUSE:
                    return
                if self.client.call_stack().get(handle.worker):
                    return
        except (OSError, CancelledError) as error:
            raise _scheduler_lost() from error
        if paused and not running:
            self._require_some(paused)
        raise lost(handle.worker)

    def _require_scheduler(self) -> None:
        if self.client.status != "running":
            raise _scheduler_lost()


def _mapped(limit: int | None) -> float:
    """The bytes that a worker may keep mapped. Dask counts them, though workers share them."""
    return limit * _MAPPED if limit else math.inf


def _scheduler_lost() -> StepwellError:
    return StepwellError(explain("distribute", "the scheduler of the Dask cluster is lost"))

"""Which worker of an engine computes each part of a graph, and which workers have ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from ..core.errors import StepwellError, explain
from ..core.logs import logger
from .engines import Engine, Worker, WorkerLostError
from .storage.blocks import hostname

_LOG = logger("distributed")

_WAITS, _WAIT = 60, 0.5
"""How often to look for workers if all have ended, and the seconds in between."""


class Assignment:
    """The workers of the parts of a run. Before `update` no part has one.

    Args:
        engine: where the workers are.
        parts: how many parts there are.
        lost: where to list the workers that end.
    """

    def __init__(self, engine: Engine, parts: int, lost: list[str]) -> None:
        self._engine, self._parts, self._lost = engine, parts, lost
        self._workers: dict[int, Worker] = {}
        self._hosts: dict[str, None] = {}
        self._ended: set[str] = set()
        """The workers that have ended since the last update."""

    def __getitem__(self, part: int) -> Worker:
        return self._workers[part]

    @property
    def workers(self) -> Sequence[Worker]:
        """The worker of each part."""
        return [self._workers[part] for part in range(self._parts)]

    @property
    def hosts(self) -> Sequence[str]:
        """The host of the worker of each part."""
        return [worker.host for worker in self.workers]

    @property
    def used_hosts(self) -> Sequence[str]:
        """All hosts that have computed a part."""
        return list(self._hosts)

    def is_here(self) -> bool:
        """Whether all parts are on this host."""
        return all(host == hostname() for host in self.hosts)

    def are_near(self, *parts: int) -> bool:
        """Whether some parts are on one host."""
        return len({self[part].host for part in parts}) == 1

    def end(self, error: WorkerLostError) -> None:
        """Note that a worker has ended."""
        self._ended.add(error.worker)
        if error.worker not in self._lost:
            self._lost.append(error.worker)
            _LOG.warning("worker %s ended: its parts are computed elsewhere", error.worker)

    def update(self) -> set[str]:
        """Give each part without a worker one: in order, or of the host that has its values.

        Returns:
            The names of the workers that are there, and were at the last update.

        Raises:
            StepwellError: if there are none.
        """
        alive = self._alive()
        held = Counter(worker for worker in self._workers.values() if worker in alive)
        for part in range(self._parts):
            old = self._workers.get(part)
            if old in alive:
                continue
            worker = alive[part * len(alive) // self._parts]
            if old is not None:
                near = [one for one in alive if one.host == old.host]
                worker = min(near or alive, key=lambda one: held[one])
            self._workers[part] = worker
            self._hosts[worker.host] = None
            held[worker] += 1
        kept = {worker.name for worker in alive} - self._ended
        self._ended.clear()
        return kept

    def _alive(self) -> list[Worker]:
        """The workers; waits for one if all have ended, as a cluster may start them again.

        Raises:
            StepwellError: if none comes.
        """
        for _ in range(_WAITS):
            if alive := list(self._engine.workers()):
                return alive
            time.sleep(_WAIT)
        raise StepwellError(explain("distribute", "there are no workers"))

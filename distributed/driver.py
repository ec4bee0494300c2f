"""One run of a program on the parts of a graph: what is submitted when, and what if a worker ends.

Each stage runs on all parts before the next one begins. A part begins with the rows that need no
other part; meanwhile rows of its halo travel, or are read from maps. The results of a stage are
files that outlive the worker that wrote them. A part whose worker ends goes to another one of the
same host, which computes it again from there; a part that goes to another host begins anew with
the arguments of the program.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..core.errors import InputError, StepwellError, explain
from ..core.progress import report
from . import tasks
from .assignment import Assignment
from .combining import combined
from .engines import WorkerLostError
from .placement import Placement, Room
from .schedule import ExchangeSchedule, Traffic
from .storage import folders
from .storage.blocks import BlockLostError, hostname
from .storage.rings import has_rings
from .storage.rows import scatter
from .tasks import Halo, Made, Setting
from .values import Values

_LARGE = 1 << 22
"""The bytes that are copied in several threads."""

Item = TypeVar("Item")


class Run:
    """A run.

    Args:
        placement: the program and the parts, on the workers of an engine.
        room: where values are.
        whole: the arguments that are the same for all parts, by name.
        schedule: what is exchanged.
        tries: how often workers may end in a stage before it is an error.
    """

    def __init__(
        self,
        placement: Placement,
        room: Room,
        whole: Mapping[str, Any],
        schedule: ExchangeSchedule,
        tries: int,
    ) -> None:
        self.placement, self.room = placement, room
        self.engine, self.partition = placement.engine, placement.partition
        self.job, self.schedule, self.tries = placement.program, schedule, tries
        self.setting = Setting(whole, room.place(), hostname())
        self.traffic = Traffic()
        self.values = Values(placement, room, schedule)
        self.assignment = Assignment(self.engine, len(self.partition), self.traffic.lost)
        self._inputs: Mapping[str, Any] = {}
        self._settings: dict[str, Any] = {}
        self._moved: list[dict[int, Made]] = []
        """For each stage what it has made of each part."""
        self._is_complete = False

    def run(self, inputs: Mapping[str, Any]) -> None:
        """Run all stages.

        Args:
            inputs: the arguments with a row for each node, by name.

        Raises:
            StepwellError: if workers end too often, or a disk is full.
        """
        self._inputs = inputs
        self._assign()
        near = has_rings() and self.engine.shares and self.assignment.is_here()
        kept = self.room.has_maps(self.assignment.workers, near)
        ring = self.values.ring_rows() if near else None
        self.setting = replace(self.setting, kept=kept, ring=ring)
        report("loading arguments", 0, self._steps)
        self._repeat("the arguments", -1, tuple(inputs), self._load)
        for number, stage in enumerate(self.job.stages):
            self._moved.append({})
            self.traffic.sent.append(0)
            self.traffic.shared.append(0)
            step = partial(self._run_stage, number)
            self._repeat(f"stage {number}", number, stage.results, step)
            self._free(number)
        self._is_complete = True

    def collect(self, value: str, result: np.ndarray, of_rows: bool) -> None:
        """Write a value into an array, in the original order of nodes.

        Args:
            value: the name of the value.
            result: the array.
            of_rows: whether the value has a row for each node; else it is the same in all parts.

        Raises:
            StepwellError: if workers end too often.
        """
        report("collecting results", self._steps - 1, self._steps)
        if not of_rows and value in self.setting.whole:
            result[...] = self.setting.whole[value]
            return
        step = partial(self._collect, value, result, of_rows)
        self._repeat(f'result "{value}"', len(self.job.stages), (), step)

    def _collect(
        self, value: str, result: np.ndarray, of_rows: bool, _: Iterable[int]
    ) -> list[int]:
        """Write a value into an array; returns the parts that failed."""
        failed: list[int] = []

        def put(part: int) -> None:
            with self._noting(part, failed):
                nodes, order = self.partition.nodes(part), self.placement.order(part)
                rows = self._array(part, value, len(nodes))
                if order is None:
                    scatter(rows, nodes, result)
                else:
                    first = int(nodes[order[0]])
                    np.take(rows, order, axis=0, out=result[first:][: len(nodes)], mode="clip")

        if of_rows:
            _at_once(put, range(len(self.partition)), result.nbytes)
        else:
            with self._noting(0, failed):
                result[...] = self._array(0, value)
        return failed

    @property
    def _steps(self) -> int:
        """The steps that are reported: arguments, stages and results."""
        return len(self.job.stages) + 2

    def _array(self, part: int, value: str, count: int | None = None) -> np.ndarray:
        """A value of a part on this machine, or the first rows of it."""
        block = self.values.of[part][value]
        try:
            return tasks.array_of_block(block, count)
        except BlockLostError:
            worker = self.assignment[part].name
            handle = self.engine.submit(tasks.array_of_block, block, count, worker=worker)
            return self.engine.get(handle)

    def _run_stage(self, number: int, parts: Iterable[int]) -> list[int]:
        """Run a stage on some parts, and combine what it makes; returns those that failed."""
        return self._attempt(number, parts) or self._combine(number)

    def _combine(self, number: int) -> list[int]:
        """Combine the results of a stage over the nodes of the parts to those over all nodes.

        Returns the parts that failed.
        """
        found: dict[str, np.ndarray] = {}
        failed: list[int] = []
        counts = np.diff(self.partition.bounds).tolist()
        for value in self.job.stages[number].results:
            if value in self.schedule.combined:
                partials: list[np.ndarray] = []
                for part in range(len(self.partition)):
                    with self._noting(part, failed):
                        partials.append(self._array(part, value))
                if failed:
                    return failed
                found[value] = combined(self.schedule.combined[value], partials, counts)
        if found:
            self.setting = replace(self.setting, whole={**self.setting.whole, **found})
            self._settings.clear()
        return failed

    def close(self) -> None:
        """Remove the files of the run, or keep them for the next one."""
        place, alone = self.setting.place, self.assignment.used_hosts == [hostname()]
        if self.room.is_kept and self._is_complete and alone and not self.traffic.lost:
            self.values.give(self.schedule.specs)
            return
        self.room.clear()
        if place is None or alone:
            return
        # What is wrong now has no effect on results, and must not hide why there are none.
        with suppress(StepwellError, OSError):
            elsewhere = {w.host: w.name for w in self.engine.workers() if w.host != hostname()}
            for host in elsewhere.keys() & set(self.assignment.used_hosts):
                with suppress(StepwellError, OSError):
                    remove = partial(self.engine.submit, folders.remove_folder, place)
                    self.engine.get(remove(worker=elsewhere[host]))

    def _assign(self) -> None:
        """Give each part without a worker one, and forget what was on those that have ended."""
        kept = self.assignment.update()
        self.placement.forget_all_but(kept)
        self.room.forget_all_but(kept)
        self._settings.clear()

    def _shared(self, part: int) -> tuple[Any, Any]:
        """What all tasks share, and a part of the graph, on its worker."""
        worker = self.assignment[part].name
        if self.setting.kept:
            self.room.keep_maps(worker)
        setting: Any = self.setting
        if self.setting.whole:
            if worker not in self._settings:
                self._settings[worker] = self.engine.put(self.setting, worker)
            setting = self._settings[worker]
        return setting, self.placement.source(part, worker)

    def _load(self, parts: Iterable[int]) -> list[int]:
        """Bring the arguments of the program to the workers; returns the parts that failed."""
        self.values.make_rings(self._inputs, self.setting)
        pending: list[tuple[int, str, Any]] = []
        failed: list[int] = []
        here: list[tuple[int, str, Any]] = []
        for part in parts:
            for name, value in self._inputs.items():
                if _is_held(value) and self.assignment[part].host == hostname():
                    here.append((part, name, value))
                    continue
                with self._noting(part, failed):
                    pending.append((part, name, self._loading(part, name, value)))
        size = sum(math.prod(value.shape) * value.dtype.itemsize for _, _, value in here)
        with self._settling([handle for _, _, handle in pending]):
            _at_once(self._load_here, here, size)
            for part, name, handle in pending:
                with self._noting(part, failed):
                    self.values.of[part][name] = self.engine.get(handle)
        return failed

    def _load_here(self, given: tuple[int, str, Any]) -> None:
        """Write rows of an argument in this process."""
        part, name, value = given
        source, nodes = self.placement.here(part), self.partition.nodes(part)
        exchanged, spare = name in self.schedule.exchanged, self.values.spare(part, name)
        block = tasks.load(self.setting, source, nodes, value, exchanged, spare)
        self.values.of[part][name] = block

    def _loading(self, part: int, name: str, value: Any) -> Any:
        """The handle of rows of an argument, which a worker reads or is sent."""
        worker, rows = self.assignment[part].name, self.partition.nodes(part)
        source = (value[rows],) if _is_held(value) else value
        given, exchanged = self.engine.put(source, worker), name in self.schedule.exchanged
        arguments = *self._shared(part), rows, given, exchanged, self.values.spare(part, name)
        return self.engine.submit(tasks.load, *arguments, worker=worker)

    def _repeat(
        self,
        what: str,
        number: int,
        made: Collection[str],
        step: Callable[[Sequence[int]], Sequence[int]],
    ) -> None:
        """Do a step for all parts, and again for those that lack what it makes if it fails.

        Args:
            what: the name of the step.
            number: that of the stage; -1 for the arguments, those of all stages for results.
            made: the values that it makes.
            step: takes parts, and returns those that failed.

        Raises:
            StepwellError: if workers end too often.
        """
        for attempt in range(self.tries + 1):
            if attempt and self._restore(number, made):
                continue
            if not step(self.values.lacking(made, self.assignment.hosts)):
                return
        fact = f"workers ended {self.tries + 1} times in {what}"
        expected, got = f"at most {self.tries} times (tries)", ", ".join(self.traffic.lost)
        raise StepwellError(explain("distribute", fact, expected=expected, got=got))

    @contextmanager
    def _noting(self, part: int, failed: list[int]) -> Iterator[None]:
        """Note that a part has failed because a worker ended, or its files are gone."""
        try:
            yield
        except BlockLostError as error:
            failed.append(part)
            self.values.missing.add(error.path)
        except WorkerLostError as error:
            failed.append(part)
            self.assignment.end(error)

    @contextmanager
    def _settling(self, handles: Sequence[Any]) -> Iterator[None]:
        """Wait for the functions of all parts if one fails, as they may create files meanwhile."""
        try:
            yield
        except InputError:
            for handle in handles:
                try:
                    self.engine.get(handle)
                except (InputError, BlockLostError):
                    continue
                except StepwellError:
                    # A worker has ended, or runs nothing.
                    break
            raise

    def _attempt(self, number: int, parts: Iterable[int]) -> list[int]:
        """Run a stage on some parts; returns those that failed."""
        received, failed = self.schedule.received[number], list[int]()
        # All parts run again if one does.
        self.values.make_rings(self.job.stages[number].results, self.setting)
        halos: dict[int, Sequence[Any]] = {}
        for part in parts:
            with self._noting(part, failed):
                halos[part] = self._halos(part, received)
        handles: dict[int, Any] = {}
        for part, given in halos.items():
            with self._noting(part, failed):
                handles[part] = self._submit(number, part, given)
        text = f"stage {number + 1} of {len(self.job.stages)}"
        with self._settling(list(handles.values())):
            for done, (part, handle) in enumerate(handles.items()):
                share, note = done / len(handles), f"{done} of {len(handles)} parts"
                report(text, 1 + number + share, self._steps, note)
                with self._noting(part, failed):
                    made: Made = self.engine.get(handle)
                    # Packed rows are freed with their handles, and not before they have arrived.
                    del halos[part]
                    self.values.of[part].update(made.blocks)
                    self._moved[number][part] = made
        # A part that has run again counts once.
        counted = self._moved[number].values()
        self.traffic.sent[number] = sum(made.sent for made in counted)
        self.traffic.shared[number] = sum(made.shared for made in counted)
        return failed

    def _submit(self, number: int, part: int, halos: Sequence[Any]) -> Any:
        """Submit a stage on a part."""
        worker, stage = self.assignment[part].name, self.job.stages[number]
        submit = partial(self.engine.submit, worker=worker)
        blocks = {name: b for name, b in self.values.of[part].items() if name in stage.needed}
        setting, source = self._shared(part)
        shared = self.placement.job(worker), number, setting, source, blocks
        found = {name: self.values.spare(part, name) for name in stage.results}
        spares = {name: block for name, block in found.items() if block is not None}
        received = list(self.schedule.received[number])
        near = [halo for halo in halos if isinstance(halo, Halo)]
        if len(near) == len(halos):
            return submit(tasks.compute, *shared, spares, received, *near)
        made = submit(tasks.start, *shared, spares)
        # A task of its own, as what `finish` depends on would travel once `start` has ended.
        packed = [halo for halo in halos if not isinstance(halo, Halo)]
        arrived = submit(tasks.receive, source, blocks, received, *packed)
        return submit(tasks.finish, *shared, made, received, arrived, *near)

    def _halos(self, part: int, values: Sequence[str]) -> list[Any]:
        """Where a part gets its halo from: maps of this host, or rows that travel."""
        if not values or self.setting.ring is not None:
            return []
        owners, bounds = self.placement.here(part).open().owners, self.partition.bounds
        found: list[Any] = []
        for owner in np.flatnonzero(np.diff(owners)).tolist():
            blocks = {value: self.values.of[owner][value] for value in values}
            if self.engine.shares and self.assignment.are_near(owner, part):
                found.append(Halo(owner, int(bounds[owner]), blocks))
                continue
            worker = self.assignment[owner].name
            source = self.placement.source(owner, worker)
            arguments = source, part, list(values), blocks
            found.append(self.engine.submit(tasks.pack, *arguments, worker=worker))
        return found

    def _restore(self, number: int, made: Iterable[str]) -> Sequence[int]:
        """Give parts of ended workers others; those whose values are elsewhere begin anew.

        Args:
            number: the stage that runs next.
            made: the values that it makes.

        Returns:
            The parts that failed because a worker ended meanwhile.
        """
        self._assign()
        self.room.forget()
        self.values.forget_missing()
        if self.setting.ring is not None:
            # A worker that is lost may still write to the old rings, so all begin new ones.
            self.values.forget(made, range(len(self.partition)))
            if not self.assignment.is_here():
                # Another host has no rings.
                self.setting = replace(self.setting, ring=None)
                self.values.forget_all()
        stages = self.job.stages[: max(number, 0)]
        earlier = [*(self._inputs if number >= 0 else ()), *(n for s in stages for n in s.results)]
        gone = self.values.lacking(set(earlier) - self.values.freed, self.assignment.hosts)
        if gone and (self.values.freed or self.setting.ring is not None):
            # Nobody has what one part could be computed from, or its place is in a ring of all.
            gone = list(range(len(self.partition)))
            self.values.freed.clear()
        self.values.forget(earlier, gone)
        steps = [self._load, *(partial(self._attempt, n) for n in range(len(stages)))]
        return next((failed for step in steps if gone and (failed := step(gone))), [])

    def _free(self, number: int) -> None:
        """Remove what no later stage reads.

        With several hosts all stays: if one is gone, its parts are computed again from the values
        that others have.
        """
        if len(self.assignment.used_hosts) > 1:
            return
        last = self.schedule.last_use
        self.values.free([name for name in last if last[name] <= number])


def _is_held(argument: Any) -> bool:
    """Whether an argument is in the memory of this process, as an array or a sparse matrix."""
    from scipy.sparse import issparse

    return isinstance(argument, np.ndarray) or issparse(argument)


def _at_once(work: Callable[[Item], None], items: Sequence[Item], size: int) -> None:
    """Do some work for each item, in several threads if it concerns many bytes."""
    if size < _LARGE:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(work, items):
            pass

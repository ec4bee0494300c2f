"""`run_on_ranks`: a program on the parts of a graph under MPI (`stepwell[mpi]`), a part a rank.

All ranks call it, each with the rows of its own part. Halos travel by `MPI_Ialltoallv`, straight
into the place where the stage reads them, while rows that need no halo are computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..core.errors import InputError, explain
from . import tasks
from .combining import combined
from .distributing import Distributed
from .partition import Part
from .schedule import Traffic
from .storage.blocks import PartBlock
from .tasks import Job, Made, PartSource, Setting


def run_on_ranks(program: Distributed, communicator: Any, *inputs: Any) -> tuple[np.ndarray, ...]:
    """Run a program on as many ranks as the graph has parts.

    Args:
        program: the same on all ranks, from `stepwell.distribute`.
        communicator: an `mpi4py.MPI.Comm`. All its ranks call this.
        inputs: the arguments of the program, without the graph. One with a row for each node is
            the array of all nodes, a sparse matrix, the path of an `.npy` file, or an object with
            `read(rows)`; each rank reads the rows of its part. Others are the same on all ranks.

    Returns:
        The results: those with a row for each node have the rows of the part of this rank, whose
        numbers are ``partition.nodes(rank)``. `program.traffic` counts what the rank received, and
        ``program.over_network.report()`` predicts it.

    Raises:
        InputError: if the arguments do not fit, or ranks and parts differ in number; all ranks
            raise it if one does.
    """
    runs: list[_Rank] = []

    def begin() -> None:
        runs.append(_Rank(program, communicator, inputs))

    _together(communicator, begin)
    return runs[0].run()


def _together(communicator: Any, step: Any) -> None:
    """Run a step on each rank; where one fails, all do, so that none waits for ever.

    Raises:
        Exception: the error of this rank, or an `InputError` with that of another.
    """
    error: Exception | None = None
    try:
        step()
    except Exception as found:
        error = found
    errors = communicator.allgather(None if error is None else str(error))
    if error is not None:
        raise error
    for rank, text in enumerate(errors):
        if text is not None:
            raise InputError(explain("distribute", f"rank {rank}: {text}"))


class _Rank:
    """The part of one rank."""

    def __init__(self, program: Distributed, communicator: Any, inputs: Sequence[Any]) -> None:
        self.program, self.communicator = program, communicator
        self.plan = plan = program.over_network.plan
        partition, rank = plan.partition, communicator.Get_rank()
        if communicator.Get_size() != len(partition):
            fact, got = "ranks and parts differ in number", f"{communicator.Get_size()} ranks"
            raise InputError(explain("distribute", fact, expected=len(partition), got=got))
        rows, whole = plan.checked(inputs)
        self.schedule = plan.schedule
        self.part: Part = partition[rank]
        self.source = PartSource(rank, None, self.part)
        self.job: Job = plan.job(in_memory=True)
        self.setting = Setting(whole)
        self.blocks: dict[str, PartBlock] = {}
        for name, value in rows.items():
            exchanged = name in self.schedule.exchanged
            nodes = partition.nodes(rank)
            self.blocks[name] = tasks.load(self.setting, self.source, nodes, value, exchanged)

    def run(self) -> tuple[np.ndarray, ...]:
        """Run all stages."""
        traffic = self.program.traffic = Traffic()
        for number in range(len(self.job.stages)):
            packed: list[_Exchange] = []
            _together(self.communicator, partial(self._pack, number, packed))
            _together(self.communicator, partial(self._stage, number, packed, traffic))
            self._combine(number)
            self._free(number)
        return tuple(self._result(value) for _, value in self.plan.program.outputs)

    def _result(self, value: str) -> np.ndarray:
        if value in self.setting.whole:
            return self.setting.whole[value]
        array, of_rows = self.blocks[value].open(), self.plan.program.is_of_rows(value)
        return array[: self.part.num_rows] if of_rows else array

    def _combine(self, number: int) -> None:
        """Combine the results of a stage over the nodes of the ranks to those over all nodes."""
        for value in self.job.stages[number].results:
            if value in self.schedule.combined:
                partials = self.communicator.allgather(self.blocks[value].open())
                counts = np.diff(self.plan.partition.bounds).tolist()
                result = combined(self.schedule.combined[value], partials, counts)
                whole = {**self.setting.whole, value: result}
                self.setting = replace(self.setting, whole=whole)

    def _pack(self, number: int, packed: list[_Exchange]) -> None:
        """Copy the rows that other parts need of what is exchanged before a stage."""
        for value in self.schedule.received[number]:
            packed.append(_Exchange(self.part, self.blocks[value].open(write=True)))

    def _stage(self, number: int, packed: Sequence[_Exchange], traffic: Traffic) -> None:
        """Run a stage while the halo travels, and then the rows that need it."""
        for one in packed:
            one.begin(self.communicator)
        given = self.job, number, self.setting, self.source, self.blocks
        if self.job.stages[number].reads_halo:
            made = tasks.start(*given, {})
            for one in packed:
                one.end()
            tasks.finish(*given, made, (), Made())
        else:
            made = tasks.compute(*given, {}, ())
        self.blocks.update(made.blocks)
        traffic.shared.append(0)
        traffic.sent.append(sum(one.halo.nbytes for one in packed))

    def _free(self, number: int) -> None:
        """Forget what no later stage reads."""
        last = self.schedule.last_use
        self.blocks = {n: b for n, b in self.blocks.items() if last.get(n, -1) > number}


class _Exchange:
    """The exchange of one value.

    The halo is sorted by the part that owns it, and so by the rank that sends it.
    """

    def __init__(self, part: Part, array: np.ndarray) -> None:
        own, self.halo = array[: part.num_rows], array[part.num_rows :]
        self._packed = np.take(own, np.concatenate([np.empty(0, np.int32), *part.sends]), axis=0)
        self._sent = _layout([len(rows) for rows in part.sends])
        self._received = _layout(np.diff(part.owners).tolist())
        self._width = own.dtype.itemsize * math.prod(own.shape[1:])

    def begin(self, communicator: Any) -> None:
        """Send what is packed, and receive the halo."""
        from mpi4py import MPI  # pyright: ignore[reportMissingImports]

        # Counts of rows, as those of bytes may be too large for MPI.
        self._row = MPI.BYTE.Create_contiguous(self._width).Commit()
        sent, received = (
            (self._packed, self._sent, self._row),
            (self.halo, self._received, self._row),
        )
        self._request = communicator.Ialltoallv(list(sent), list(received))

    def end(self) -> None:
        """Wait for the halo."""
        self._request.Wait()
        self._row.Free()


def _layout(counts: Sequence[int]) -> tuple[list[int], list[int]]:
    """The numbers of rows for each rank, and where they begin."""
    return list(counts), np.concatenate([[0], np.cumsum(counts)])[:-1].astype(int).tolist()

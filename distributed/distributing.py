"""`distribute`: a program that runs on the parts of a graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..compiler import compile
from ..core.errors import InputError, explain
from ..core.module import Module
from ..core.specs import ValueSpec
from ..runtime.executable import Executable
from .blocks import hostname
from .driver import Run, Traffic
from .engines import Engine, LocalEngine
from .partition import Partition
from .placement import Placement, Room
from .plan import Plan
from .program import SplitProgram, split
from .report import Machine, Report, report


def distribute(
    module: Module,
    partition: Partition,
    engine: Engine | None = None,
    *,
    machine: Machine | None = None,
    folder: str | os.PathLike[str] | None = None,
    tries: int = 3,
    **options: Any,
) -> Distributed:
    """A program that runs on the parts of a graph, each where its rows are.

    It is cut where it needs rows of other parts (`graph-split-at-halo`), and its stages are
    compiled. See `docs/large-graphs.md`.

    Args:
        module: the program. One of its arguments is the graph, of a symbolic number of nodes, as
            that of ``gnn.GraphSpec()``.
        partition: the graph in parts.
        engine: where it runs; by default one thread for each core of this machine.
        machine: what it runs on, for choices of what to send and for `explain`.
        folder: where files of a run lie on each host; by default in memory, or on disk if they are
            larger than half of it. They are removed at the end of the run.
        tries: how often workers may end in a stage before it is an error.
        options: those of `stepwell.compile`, for each stage.

    Raises:
        CompileError: if the program has no graph, has results that are not of nodes, or combines
            nodes in another way than along its edges; the error names the operator.
    """
    if not isinstance(partition, Partition):
        fact, got = "not a partition", type(partition).__name__
        expected = "stepwell.partition(...)"
        raise InputError(explain("distribute", fact, expected=expected, got=got))
    chosen = engine or LocalEngine(os.cpu_count() or 1)
    assumed = machine or Machine()
    # What parts of this host exchange is neither sent nor copied.
    near = machine is None and _are_near(chosen)
    program = split(module, 0 if near else assumed.flops_per_byte_sent)
    threads = min((worker.threads for worker in chosen.workers()), default=1)
    stages = [compile(s.module, threads=threads, **options) for s in program.stages]
    place = None if folder is None else os.fspath(folder)
    return Distributed(program, stages, partition, chosen, assumed, place, tries)


def _are_near(engine: Engine) -> bool:
    """Whether workers share what they exchange with each other and this process."""
    return engine.shares and {worker.host for worker in engine.workers()} == {hostname()}


class Distributed:
    """A program on the parts of a graph. Call it with its arguments, in order, without the graph.

    An argument with a row for each node is an array, the path of an `.npy` file that workers can
    read, a sparse matrix, or an object with `shape`, `dtype` and ``read(rows)``; rows of a matrix
    are dense as they are read. Nodes are in their original order, in arguments as in results.
    Other arguments are arrays, which all parts get.

    Attributes:
        plan: its stages, compiled, and the partition.
        traffic: what the last call has moved between parts.
    """

    def __init__(
        self,
        program: SplitProgram,
        stages: Sequence[Executable],
        partition: Partition,
        engine: Engine,
        machine: Machine,
        folder: str | None,
        tries: int,
    ) -> None:
        self.plan = Plan(program, stages, partition)
        self._machine, self._tries = machine, tries
        job = self.plan.job(engine.in_memory)
        self._placement = Placement(engine, job, partition)
        self._is_near = _are_near(engine)
        self._room = Room(engine, folder, self.plan.bytes(self._is_near))
        self.traffic = Traffic()

    @property
    def inputs(self) -> list[ValueSpec]:
        """The arguments, in order: those of the program without the graph."""
        return self.plan.inputs

    @property
    def outputs(self) -> list[ValueSpec]:
        """The results, in order."""
        return self.plan.outputs

    @property
    def stages(self) -> list[Executable]:
        """The compiled stages, in order."""
        return list(self.plan.stages)

    @property
    def module(self) -> Module:
        """The program after `graph-split-at-halo`."""
        return self.plan.program.module

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Run the program.

        Args:
            inputs: its arguments.
            out: the array for the result, such as a memory map; of several results, a tuple.

        Raises:
            InputError: if the arguments do not fit.
            StepwellError: if workers end too often, or a disk is full. There are no partial
                results, but `out` may have been written to.
        """
        plan = self.plan
        rows, whole = plan.checked(inputs)
        results = plan.results(out)
        run = Run(self._placement, self._room, whole, plan.schedule, self._tries)
        self.traffic = run.traffic
        try:
            run.run(rows)
            for (_, value), result in zip(plan.program.outputs, results, strict=True):
                run.collect(value, result, plan.program.is_of_rows(value))
        finally:
            run.close()
        return results[0] if len(results) == 1 else tuple(results)

    def close(self) -> None:
        """Free the memory and the files that it keeps for its next call."""
        self._room.clear()

    def explain(self) -> str:
        """For each stage and part the rows, entries, halo and bytes, and what bounds its time."""
        return str(self.report())

    def report(self) -> Report:
        """What `explain` prints, as numbers."""
        where = self._is_near, self._room.is_on_disk
        return report(self.plan.program, self.plan.partition, self._machine, *where)

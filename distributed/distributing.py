"""`distribute`: a program that runs on the parts of a graph."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ..api.compiler import compile
from ..core.boundary.specs import ValueSpec
from ..core.errors import InputError, explain
from ..core.ir.module import Module
from ..runtime.executable import Executable
from .driver import Run
from .engines import Engine, LocalEngine
from .partition import Partition
from .placement import Placement, Room
from .plan import Plan
from .program import SplitProgram, split
from .report import Machine, Report, report
from .schedule import Traffic
from .storage.blocks import hostname


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
        engine: where it runs; by default one thread for each core of this machine, until the
            program is closed or collected.
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
    chosen, assumed = engine or LocalEngine(os.cpu_count() or 1), machine or Machine()
    with ExitStack() as failing:
        if engine is None:
            failing.callback(chosen.close)
        # What parts of this host exchange is neither sent nor copied.
        near = machine is None and _are_near(chosen)
        threads = min((worker.threads for worker in chosen.workers()), default=1)

        def compiled(program: SplitProgram) -> list[Executable]:
            return [compile(s.module, threads=threads, **options) for s in program.stages]

        def far() -> tuple[SplitProgram, Sequence[Executable]]:
            other = split(module, assumed.flops_per_byte_sent)
            is_same = str(other.module) == str(program.module)
            return other, stages if is_same else compiled(other)

        program = split(module, 0 if near else assumed.flops_per_byte_sent)
        stages = compiled(program)
        place = None if folder is None else os.fspath(folder)
        given = program, stages, partition, chosen, assumed, place, tries
        made = Distributed(*given, far=far if near else None, owns=engine is None)
        failing.pop_all()
    return made


def _are_near(engine: Engine) -> bool:
    """Whether workers share what they exchange with each other and this process."""
    return engine.shares and {worker.host for worker in engine.workers()} == {hostname()}


class Distributed:
    """A program on the parts of a graph. Call it with its arguments, in order, without the graph.

    An argument with a row for each node is an array, the path of an `.npy` file that workers can
    read, a sparse matrix, or an object with `shape`, `dtype` and ``read(rows)``; rows of a matrix
    are dense as they are read. Nodes are in their original order, in arguments as in results.
    Other arguments are arrays, which all parts get.

    Args:
        program: the program, cut.
        stages: its stages, compiled.
        partition: the graph.
        engine: where it runs.
        machine: what it runs on.
        folder: where files lie; None for a place of its own choice.
        tries: how often workers may end in a stage.
        far: cuts and compiles the program by the price of a network, if that of `program` is
            another.
        owns: whether the engine ends with the program.

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
        *,
        far: Callable[[], tuple[SplitProgram, Sequence[Executable]]] | None = None,
        owns: bool = False,
    ) -> None:
        self.plan = Plan(program, stages, partition)
        self._machine, self._tries, self._far = machine, tries, far
        self._given = engine, machine, folder, tries
        self._end: Callable[[], object] = lambda: None
        if owns:
            end = self._end = weakref.finalize(self, engine.close)
            # At exit threads need not finish what they do.
            end.atexit = False
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

    @functools.cached_property
    def over_network(self) -> Distributed:
        """The program as `run_on_ranks` runs it: halos travel, whatever the engine does.

        What is sent and what is computed again is decided by the price of the network, for which
        it is compiled again if this one is for workers that share what they exchange.
        """
        program, stages = self._far() if self._far else (self.plan.program, self.plan.stages)
        made = Distributed(program, stages, self.plan.partition, *self._given)
        made._is_near = False
        return made

    def close(self) -> None:
        """Free the memory and the files that it keeps for its next call.

        Without an engine that it was given, its threads end, and it can no longer be called.
        """
        self._room.clear()
        self._end()

    def explain(self) -> str:
        """For each stage and part the rows, entries, halo and bytes, and what bounds its time."""
        return str(self.report())

    def report(self) -> Report:
        """What `explain` prints, as numbers."""
        where = self._is_near, self._room.is_on_disk
        return report(self.plan.program, self.plan.partition, self._machine, *where)

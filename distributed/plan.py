"""`Plan`: a split program, compiled, and a partition: what a run needs wherever it runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from ..core.errors import InputError, explain
from ..runtime.executable import Executable
from ..runtime.results import given
from .arguments import arguments_of
from .partition import Partition
from .program import SplitProgram
from .schedule import ExchangeSchedule
from .storage.rows import Sparse
from .tasks import Job, StageCode


class Plan:
    """A program on the parts of a graph.

    Args:
        program: its stages.
        stages: the same, compiled.
        partition: the graph.

    Raises:
        CompileError: if a second argument is sparse.
        InputError: if the graph has weights that the program has no use for.
    """

    def __init__(
        self, program: SplitProgram, stages: Sequence[Executable], partition: Partition
    ) -> None:
        self.program, self.stages, self.partition = program, list(stages), partition
        program.check_graph("distribute", partition)
        program.refuse_sparse("distribute")

    @property
    def inputs(self) -> list[ValueSpec]:
        """The arguments, in order: those of the program without the graph."""
        return [spec for spec in self.program.inputs if spec.name != self.program.graph]

    @property
    def outputs(self) -> list[ValueSpec]:
        """The results, in order."""
        return [spec for spec, _ in self.program.outputs]

    @functools.cached_property
    def schedule(self) -> ExchangeSchedule:
        """What is exchanged, and how long it is needed."""
        return ExchangeSchedule(
            [stage.received for stage in self.program.stages],
            {value: self.program.last_use(value) for value in self.program.specs},
            self.program.combined,
            self.program.specs,
        )

    def job(self, in_memory: bool) -> Job:
        """What workers need to run the stages.

        Args:
            in_memory: whether they run in this process.
        """
        exchanged = self.schedule.exchanged
        programs = self.stages if in_memory else self._saved
        codes = tuple(
            StageCode(
                program,
                tuple((i.value, i.halo) for i in stage.inputs),
                stage.results,
                tuple(self.program.specs[name] for name in stage.results),
                frozenset(stage.results) & exchanged,
                stage.whole or any(name in self.program.combined for name in stage.results),
            )
            for program, stage in zip(programs, self.program.stages, strict=True)
        )
        sizes, graph = self.program.sizes, self.program.graph
        return Job(codes, graph, sizes.nodes, sizes.columns, sizes.edges)

    @functools.cached_property
    def _saved(self) -> list[bytes]:
        """The stages, as what other processes load."""
        return [exe.__reduce__()[1][0] for exe in self.stages]

    def checked(self, inputs: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments with a row for each node, by name, and the others.

        Raises:
            InputError: if they do not fit.
        """
        found = arguments_of("distribute", self.program, self.partition, self.inputs, inputs)
        rows: dict[str, Any] = {}
        whole: dict[str, Any] = {}
        for name, value in zip(found, inputs, strict=True):
            if self.program.is_of_rows(name):
                given = found[name]
                # Other processes open what has rows: they are sent the argument itself.
                rows[name] = given.matrix if isinstance(given, Sparse) else value
            else:
                whole[name] = found[name]
        return rows, whole

    def results(self, out: Any) -> list[np.ndarray]:
        """The arrays for the results.

        Raises:
            InputError: if those given are not one for each, or have another shape or dtype.
        """
        found: list[np.ndarray] = []
        sizes = self._sizes
        for spec, array in zip(self.outputs, given(self.outputs, out), strict=True):
            dtype = dtype_named(spec.dtype)
            shape = tuple(n if isinstance(n, int) else sizes[n] for n in spec.shape)
            if array is None:
                array = np.empty(shape, dtype)
            subject, expected = f'output "{spec.name}"', f"{dtype} {shape}"
            if not isinstance(array, np.ndarray):
                got = type(array).__name__
                raise InputError(explain(subject, "not an array", expected=expected, got=got))
            if array.shape != shape or array.dtype != dtype:
                got = f"{array.dtype} {array.shape}"
                raise InputError(explain(subject, "wrong array", expected=expected, got=got))
            if not array.flags.writeable:
                raise InputError(explain(subject, "read-only"))
            found.append(array)
        return found

    def bytes(self, near: bool) -> int:
        """The bytes that values take at most during a run.

        Args:
            near: whether all parts are on one host: they have no halos of their own, and what is
                not needed any more makes room for values of the same kind.
        """
        program, stages = self.program, range(-1, len(self.program.stages))
        made = {name: n for n, stage in enumerate(program.stages) for name in stage.results}
        lives: dict[tuple[int, bool], list[range]] = {}
        for name, spec in program.specs.items():
            if spec.format is None:
                key = self._bytes_of(name, spec, near), name in self.schedule.exchanged
                life = range(made.get(name, -1), program.last_use(name) + 1)
                lives.setdefault(key, []).append(life if near else stages)
        return sum(
            size * max(sum(stage in life for life in own) for stage in stages)
            for (size, _), own in lives.items()
        )

    def _bytes_of(self, value: str, spec: ValueSpec, near: bool) -> int:
        """The bytes of a value of all parts."""
        sizes = self._sizes
        if value in self.schedule.exchanged and not near:
            sizes[self.program.sizes.nodes] += self._counts[1]
        count = math.prod(n if isinstance(n, int) else sizes.get(n, 1) for n in spec.shape)
        return count * dtype_named(spec.dtype).itemsize

    @functools.cached_property
    def _counts(self) -> tuple[int, int]:
        """The stored entries of all parts, and the nodes in their halos."""
        # Each part is opened, and its arrays are checked.
        counts = [(part.num_entries, len(part.halo)) for part in self.partition]
        return sum(entries for entries, _ in counts), sum(halo for _, halo in counts)

    @property
    def _sizes(self) -> dict[str, int]:
        """The sizes of the whole graph, by name."""
        sizes = self.program.sizes
        return {sizes.nodes: self.partition.num_nodes, sizes.edges: self._counts[0]}

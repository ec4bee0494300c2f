"""`out_of_core`: a program on a graph whose features and results are larger than memory."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ..api.compiler import compile
from ..core.boundary.arrays import is_integer
from ..core.boundary.specs import ValueSpec
from ..core.errors import InputError, UnsupportedError, explain
from ..core.ir.module import Module
from ..core.target import available_cores, stated_threads
from ..runtime.executable import Executable
from .arguments import arguments_of
from .partition import Partition
from .program import SplitProgram, split
from .report import Machine, TileReport
from .storage.pages import memory_limit
from .storage.results import ResultPlace, result_of
from .storage.rows import MappedRows, Rows
from .storage.work import WorkFolder, key_of
from .tile_run import TileRun
from .tiling import Tiling

_UNITS = {"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}


def out_of_core(
    module: Module,
    partition: Partition,
    memory: str | int = "4GiB",
    *,
    threads: int | None = None,
    **options: Any,
) -> OutOfCore:
    """A program on a graph whose features and results are larger than memory.

    It is cut where it needs rows of neighbours (`graph-split-at-halo`). Each stage visits tiles of
    rows. The rows that a tile needs are read once, in the order in which they are stored, and what
    a stage makes is written to files, which later stages read. See `docs/large-graphs.md`.

    Args:
        module: the program. One of its arguments is the graph, of a symbolic number of nodes, as
            that of ``gnn.GraphSpec()``.
        partition: the graph. It may have any number of parts, one included.
        memory: what a tile may take, as "4GiB", "500MiB" or a number of bytes, with eight bytes for
            each column of a part. The program itself comes on top.
        threads: as for `stepwell.compile`; twice as many read and write files.
        options: the other ones of `stepwell.compile`, for each stage.

    Raises:
        CompileError: if the program has no graph, or combines nodes in another way than along its
            edges; the error names the operator.
        InputError: if an argument is wrong.
    """
    if not isinstance(partition, Partition):
        got = type(partition).__name__
        raise InputError(explain("out_of_core", "not a partition", expected="a Partition", got=got))
    budget = _bytes(memory)
    program = split(module)
    program.check_graph("out_of_core", partition)
    program.refuse_sparse("out_of_core")
    for spec in program.inputs:
        if program.is_of_entries(spec.name):
            fact = f'argument "{spec.name}" is neither of nodes nor the same for all'
            raise UnsupportedError(explain("out_of_core", fact))
    stages = [compile(stage.module, threads=threads, **options) for stage in program.stages]
    count = threads or stated_threads() or available_cores()
    return OutOfCore(program, stages, partition, budget, count)


def _bytes(memory: str | int) -> int:
    if is_integer(memory) and memory > 0:
        return int(memory)
    match = (
        re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]iB)", memory) if isinstance(memory, str) else None
    )
    if match is None:
        expected = '"4GiB" or a number of bytes'
        raise InputError(
            explain("out_of_core", "wrong memory", expected=expected, got=repr(memory))
        )
    return int(float(match[1]) * (1 << _UNITS[match[2]]))


class OutOfCore:
    """A program that runs out of core, made by `stepwell.out_of_core`.

    Call it with the arguments of the program, in order, without the graph. An argument with a row
    for each node is an array, the path of a `.npy` file, a sparse matrix, whose rows are dense as
    they are read, or an object with `shape`, `dtype` and ``read(rows)``, which returns the rows of
    some numbers (int64, ascending). Others are arrays. Nodes are in their original order, in
    arguments as in results.
    """

    def __init__(
        self,
        program: SplitProgram,
        stages: Sequence[Executable],
        partition: Partition,
        memory: int,
        threads: int,
    ) -> None:
        self._program, self._stages, self._partition = program, tuple(stages), partition
        self._memory, self._threads = memory, threads

    @property
    def inputs(self) -> list[ValueSpec]:
        """The arguments, in order: those of the program without the graph."""
        return [spec for spec in self._program.inputs if spec.name != self._program.graph]

    @property
    def outputs(self) -> list[ValueSpec]:
        """The results, in order."""
        return [spec for spec, _ in self._program.outputs]

    @property
    def stages(self) -> list[Executable]:
        """The compiled stages, in order."""
        return list(self._stages)

    @property
    def module(self) -> Module:
        """The program after `graph-split-at-halo`."""
        return self._program.module

    def __call__(
        self,
        *inputs: Any,
        out: Any,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Run the program.

        A run that was interrupted and is started again with the same program, partition and
        arguments continues after the last stage that it had finished.

        Args:
            inputs: its arguments.
            out: the path of the result: a `.npy` file, or `.parquet` (`stepwell[parquet]`), which
                appears once it is complete; or an array to fill, such as a memory map. Of several
                results, a sequence.
            folder: for intermediate results, which take a row for each node; by default beside the
                first path of `out`. It is removed after the run.

        Raises:
            InputError: if an argument does not fit, a file is damaged, a disk has too little room,
                or a row does not fit into memory.
        """
        program = self._program
        given = arguments_of("out_of_core", self._program, self._partition, self.inputs, inputs)
        # Where each result goes.
        several = len(self.outputs) > 1
        places = list(out) if several and isinstance(out, Sequence | tuple) else [out]
        if len(places) != len(self.outputs) or (isinstance(out, str) and several):
            fact = "wrong number of results"
            raise InputError(
                explain("out_of_core", fact, expected=len(self.outputs), got=len(places))
            )
        targets = [
            result_of(spec.name, value) for spec, value in zip(self.outputs, places, strict=True)
        ]
        rows = {n: v for n, v in given.items() if isinstance(v, Rows)}
        whole = {n: v for n, v in given.items() if isinstance(v, np.ndarray)}
        text, weights = program.module.text(), program.module.weights
        place = Path(folder) if folder is not None else _beside(targets)
        # Whether memory holds the files as well; else the page cache would only cost time.
        direct = self._memory + self._tiling.file_bytes(rows) > memory_limit()
        for own in rows.values():
            if direct and isinstance(own, MappedRows):
                own.use_direct_io()
        key = key_of(text, weights, self._partition, rows, whole)
        with closing(WorkFolder(place, key)) as work, ThreadPoolExecutor(2 * self._threads) as pool:
            run = TileRun(self._tiling, self._partition, rows, whole, work, pool, direct)
            run.run()
            for (_, value), target in zip(program.outputs, targets, strict=True):
                run.deliver(value, target)
            work.remove()

    @functools.cached_property
    def _tiling(self) -> Tiling:
        return Tiling(self._program, self._stages, self._partition, self._memory)

    def explain(self, machine: Machine | None = None) -> str:
        """For each stage and tile the rows, entries, columns and bytes, and what bounds its time.

        Args:
            machine: what it runs on; by default that of `report.Machine`.

        Raises:
            InputError: if a row does not fit into memory.
        """
        return str(self.report(machine))

    def report(self, machine: Machine | None = None) -> TileReport:
        """What `explain` prints, as numbers."""
        return self._tiling.report(machine or Machine())


def _beside(targets: Sequence[ResultPlace]) -> Path:
    paths = [target.path for target in targets if target.path is not None]
    if not paths:
        fact = "results in arrays need a folder for intermediate results"
        raise InputError(explain("out_of_core", fact, expected="folder="))
    return paths[0].with_name(paths[0].name + ".work")

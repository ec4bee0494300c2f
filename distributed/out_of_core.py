"""`out_of_core`: a program on a graph whose features and results are larger than memory."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler import compile
from ..core.arrays import is_integer
from ..core.dims import Dim
from ..core.dtype_names import dtype_named
from ..core.errors import InputError, UnsupportedError, explain
from ..core.module import Module
from ..core.specs import ValueSpec
from ..core.target import available_cores, stated_threads
from ..dialects.graph.attrs import ReduceKind
from ..runtime.executable import Executable
from .arguments import arguments_of
from .buffers import Buffers
from .combining import combined
from .new_files import NewRows
from .pages import memory_limit
from .partition import Part, Partition
from .program import SplitProgram, Stage, split
from .progress import Visits
from .report import Machine, TileReport
from .results import Result, result_of
from .rows import Mapped, Rows, gather, row_bytes
from .tiles import Tile
from .tiling import Tiling
from .work import Work, key_of

_NUMBERS = 32
"""The bytes for the numbers of a row that is written in another order."""
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
        memory: what a tile may take, as "4GiB", "500MiB" or a number of bytes. The program itself
            and a few bytes for each column of a part come on top.
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
        targets = self._targets(out)
        rows = {n: v for n, v in given.items() if isinstance(v, Rows)}
        whole = {n: v for n, v in given.items() if isinstance(v, np.ndarray)}
        text, weights = program.module.text(), program.module.weights
        place = Path(folder) if folder is not None else _beside(targets)
        key = key_of(text, weights, self._partition, rows, whole)
        with closing(Work(place, key)) as work, ThreadPoolExecutor(2 * self._threads) as pool:
            run = _Run(self._tiling, self._partition, rows, whole, work, pool)
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

    def _targets(self, out: Any) -> list[Result]:
        several = len(self.outputs) > 1
        given = list(out) if several and isinstance(out, Sequence | tuple) else [out]
        if len(given) != len(self.outputs) or (isinstance(out, str) and several):
            fact = "wrong number of results"
            raise InputError(
                explain("out_of_core", fact, expected=len(self.outputs), got=len(given))
            )
        return [
            result_of(spec.name, value) for spec, value in zip(self.outputs, given, strict=True)
        ]


def _beside(targets: Sequence[Result]) -> Path:
    paths = [target.path for target in targets if target.path is not None]
    if not paths:
        fact = "results in arrays need a folder for intermediate results"
        raise InputError(explain("out_of_core", fact, expected="folder="))
    return paths[0].with_name(paths[0].name + ".work")


class _Run:
    """A run: values by name, and the stages that make them."""

    def __init__(
        self,
        tiling: Tiling,
        partition: Partition,
        rows: Mapping[str, Rows],
        whole: Mapping[str, np.ndarray],
        work: Work,
        pool: Executor,
    ) -> None:
        program = self._program = tiling.program
        self._tiling, self._partition = tiling, partition
        self._rows, self._whole, self._work, self._pool = rows, dict(whole), work, pool
        count = max(len(stage.inputs) + len(stage.results) for stage in program.stages)
        self._buffers = Buffers(tiling.arrays, count)
        self._first_entries = np.cumsum([0, *(part.num_entries for part in tiling.parts)])
        self.entries = tiling.entries
        """The number of entries that each stage visits."""
        read = {i.value for stage in program.stages for i in stage.inputs}
        self._original = {value for _, value in program.outputs if value not in read}
        """The values whose rows are stored in the original order of nodes."""
        results = {name for stage in program.stages for name in stage.results}
        size = sum(row_bytes(own) * own.shape[0] for own in rows.values())
        for shape, dtype in map(self._layout, filter(self._is_sliced, results)):
            size += math.prod(shape) * dtype.itemsize
        self._direct = tiling.memory + size > memory_limit()
        """Whether to use direct I/O, as memory does not hold the files as well."""
        for own in rows.values():
            if self._direct and isinstance(own, Mapped):
                own.use_direct_io()

    def run(self) -> None:
        """Run what is left of the stages."""
        visits = Visits(len(self._tiling.stages), self.entries)
        pairs = zip(self._program.stages, self._tiling.stages, strict=True)
        for number, (stage, exe) in enumerate(pairs):
            if number < self._work.finished:
                visits.skip(number)
                self._read_whole(number)
                continue
            self._run_stage(number, stage, exe, visits)
            self._work.finish(number + 1)
            for value in self._program.specs:
                if value not in self._rows and self._program.last_use(value) == number:
                    self._work.discard(value)

    def _run_stage(self, number: int, stage: Stage, exe: Executable, visits: Visits) -> None:
        made = {
            name: self._work.create(name, *self._layout(name), self._direct)
            for name in stage.results
            if self._is_sliced(name)
        }
        partial = {name: _Partial() for name in stage.results if name not in made}
        for part, tile in self._tiling.of(number):
            self._buffers.begin(self._tiling.room(number, part, tile))
            self._run_tile(stage, exe, part, tile, made, partial)
            visits.add(number, tile.matrix.nnz)
            # Freed before there is another one.
            del tile
        exe._loaded.frames.trim()
        for rows in made.values():
            rows.flush()
        for name, found in partial.items():
            self._whole[name] = found.result(self._program.combined.get(name))
            self._work.write(name, self._whole[name])

    def _is_sliced(self, value: str) -> bool:
        """Whether tiles have different slices of a value."""
        return self._program.is_of_rows(value) or self._program.is_of_entries(value)

    def _read_whole(self, number: int) -> None:
        """Read what a finished stage has made of which tiles have no slices."""
        for name in self._program.stages[number].results:
            if not self._is_sliced(name) and self._program.last_use(name) >= self._work.finished:
                self._whole[name] = self._stored(name)

    def _run_tile(
        self,
        stage: Stage,
        exe: Executable,
        part: Part,
        tile: Tile,
        made: Mapping[str, NewRows],
        partial: Mapping[str, _Partial],
    ) -> None:
        arguments = [
            tile.matrix
            if i.value == self._program.graph
            else self._read_columns(i.value, part, tile)
            if i.halo
            else self._read_rows(i.value, part, tile)
            for i in stage.inputs
        ]
        places = {name: self._place(name, part, tile) for name in made}
        targets = [
            self._buffer(made[name], places[name]) if name in made else None
            for name in stage.results
        ]
        results = exe(*arguments, out=tuple(targets))
        results = results if isinstance(results, tuple) else (results,)
        for name, result in zip(stage.results, results, strict=True):
            if name in partial:
                partial[name].add(result, tile.end - tile.first)
            elif isinstance(place := places[name], slice):
                made[name].write(place.start, result, self._pool)
            else:
                made[name].scatter(result, place, self._pool)

    def _buffer(self, rows: NewRows, place: slice | np.ndarray) -> np.ndarray:
        """A buffer for rows that are going to be written."""
        is_range = isinstance(place, slice)
        count, first = (place.stop - place.start, place.start) if is_range else (len(place), 0)
        return self._buffers.take((count, *rows.shape[1:]), rows.dtype, rows.place(first))

    def _layout(self, value: str) -> tuple[tuple[int, ...], Any]:
        spec = self._program.specs[value]
        shape = tuple(Dim.parse(str(size)).evaluate(self._tiling.sizes) for size in spec.shape)
        return shape, dtype_named(spec.dtype)

    def _stored(self, value: str) -> np.ndarray:
        return self._work.open(value, *self._layout(value))

    def _place(self, value: str, part: Part, tile: Tile) -> slice | np.ndarray:
        """Where the rows of a tile are in a stored value."""
        if self._program.is_of_entries(value):
            base = int(self._first_entries[part.index])
            return slice(base + int(part.indptr[tile.first]), base + int(part.indptr[tile.end]))
        if value in self._original and self._partition.order is not None:
            return self._partition.nodes(part.index)[tile.first : tile.end]
        return slice(part.rows[0] + tile.first, part.rows[0] + tile.end)

    def _read_rows(self, value: str, part: Part, tile: Tile) -> np.ndarray:
        if value in self._whole:
            return self._whole[value]
        if self._program.is_of_entries(value):
            return self._stored(value)[self._place(value, part, tile)]
        return self._gather(value, np.arange(tile.first, tile.end) + part.rows[0])

    def _read_columns(self, value: str, part: Part, tile: Tile) -> np.ndarray:
        wanted = tile.columns + part.rows[0]
        others = tile.columns >= part.num_rows
        wanted[others] = part.halo[tile.columns[others] - part.num_rows]
        return self._gather(value, wanted)

    def _gather(self, value: str, wanted: np.ndarray) -> np.ndarray:
        """The rows of nodes, by their numbers in the order of the partition."""
        if value in self._rows:
            rows, order = self._rows[value], self._partition.order
            wanted = wanted if order is None else order[wanted]
        else:
            rows = Mapped(self._stored(value), named=True)
            if self._direct:
                rows.use_direct_io()
        array = self._buffers.take((len(wanted), *rows.shape[1:]), rows.dtype)
        return gather(rows, wanted, array, self._pool)

    def deliver(self, value: str, target: Result) -> None:
        """Hand over a result in the original order of nodes."""
        if value in self._original or not self._program.is_of_rows(value):
            target.take(self._stored(value), self._work.path(value))
            return
        copy = self._work.create("result", *self._layout(value), self._direct)
        order = self._partition.order
        length = max(1, self._buffers.size // (copy.place(1) - copy.place(0) + _NUMBERS))
        for first in range(0, copy.shape[0], length):
            numbers = np.arange(first, min(first + length, copy.shape[0]))
            self._buffers.begin(self._buffers.size)
            found = self._gather(value, numbers)
            copy.scatter(found, numbers if order is None else order[numbers], self._pool)
        copy.flush()
        target.take(self._work.open("result", *self._layout(value)), self._work.path("result"))


class _Partial:
    """The results of tiles of which none has rows of its own."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []
        self._counts: list[int] = []

    def add(self, array: np.ndarray, rows: int) -> None:
        """Note the result of a tile."""
        self._arrays.append(array)
        self._counts.append(rows)

    def result(self, kind: ReduceKind | None) -> np.ndarray:
        """The result over all nodes; without a kind that of each tile is the one of all."""
        if kind is None:
            return self._arrays[-1]
        return combined(kind, self._arrays, self._counts)

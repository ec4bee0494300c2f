"""One run of a program on a graph that is larger than memory: tile by tile, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor

import numpy as np

from ..dialects.graph.attrs import ReduceKind
from ..runtime.executable import Executable
from .combining import combined
from .partition import Part, Partition
from .program import PartStage
from .progress import Visits
from .storage.buffers import KeptRows, TileBuffers
from .storage.columns import nodes_of
from .storage.new_files import NewRows
from .storage.results import ResultPlace
from .storage.rows import MappedRows, Rows, gather
from .storage.work import WorkFolder
from .tiles import Tile
from .tiling import Tiling

_NUMBERS = 32
"""The bytes for the numbers of a row that is written in another order."""


class TileRun:
    """A run: values by name, and the stages that make them.

    Args:
        tiling: the program and its tiles.
        partition: the graph.
        rows: the arguments with a row for each node, by name.
        whole: the others.
        work: the folder of the run.
        pool: threads that read and write files.
        direct: whether to use direct I/O.
    """

    def __init__(
        self,
        tiling: Tiling,
        partition: Partition,
        rows: Mapping[str, Rows],
        whole: Mapping[str, np.ndarray],
        work: WorkFolder,
        pool: Executor,
        direct: bool,
    ) -> None:
        program = self._program = tiling.program
        self._tiling, self._partition = tiling, partition
        self._rows, self._whole, self._work, self._pool = rows, dict(whole), work, pool
        self._direct = direct
        count = max(len(stage.inputs) + len(stage.results) for stage in program.stages)
        self._buffers = TileBuffers(tiling.arrays, count)
        self._first_entries = np.cumsum([0, *(part.num_entries for part in tiling.parts)])
        read = {i.value for stage in program.stages for i in stage.inputs}
        self._original = {value for _, value in program.outputs if value not in read}
        """The values whose rows are stored in the original order of nodes."""

    def run(self) -> None:
        """Run what is left of the stages."""
        visits = Visits(len(self._tiling.stages), self._tiling.entries)
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

    def _run_stage(self, number: int, stage: PartStage, exe: Executable, visits: Visits) -> None:
        made = {
            name: self._work.create(name, *self._tiling.layout(name), self._direct)
            for name in stage.results
            if self._tiling.is_sliced(name)
        }
        partial = {name: _Partial() for name in stage.results if name not in made}
        nodes = self._tiling.kept(number)
        kept = {} if nodes is None else {n: self._keep(n, nodes) for n in stage.along_edges}
        for part, tile in self._tiling.of(number):
            room = self._tiling.room(number, part, tile)
            self._buffers.begin(room - sum(k.size(len(tile.columns)) for k in kept.values()))
            self._run_tile(stage, exe, part, tile, kept, made, partial)
            visits.add(number, int(part.indptr[tile.end] - part.indptr[tile.first]))
            # Freed before there is another one.
            del tile
        exe._loaded.frames.trim()
        for rows in made.values():
            rows.flush()
        for name, found in partial.items():
            self._whole[name] = found.result(self._program.combined.get(name))
            self._work.write(name, self._whole[name])

    def _read_whole(self, number: int) -> None:
        """Read what a finished stage has made of which tiles have no slices."""
        for name in self._program.stages[number].results:
            if (
                not self._tiling.is_sliced(name)
                and self._program.last_use(name) >= self._work.finished
            ):
                self._whole[name] = self._stored(name)

    def _run_tile(
        self,
        stage: PartStage,
        exe: Executable,
        part: Part,
        tile: Tile,
        kept: Mapping[str, KeptRows],
        made: Mapping[str, NewRows],
        partial: Mapping[str, _Partial],
    ) -> None:
        columns = {n: self._read_columns(n, part, tile, kept.get(n)) for n in stage.along_edges}
        arguments = [
            tile.matrix
            if i.value == self._program.graph
            else columns[i.value]
            if i.halo
            else columns[i.value][: tile.end - tile.first]
            if stage.includes_rows(i)
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

    def _stored(self, value: str) -> np.ndarray:
        return self._work.open(value, *self._tiling.layout(value))

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

    def _keep(self, value: str, nodes: np.ndarray) -> KeptRows:
        """The rows of nodes that all tiles need."""
        rows, most = self._source(value), max(part.num_rows for part in self._tiling.parts)
        kept = KeptRows((len(nodes), *rows.shape[1:]), rows.dtype, most)
        self._gather(value, nodes, kept.rows)
        return kept

    def _read_columns(
        self, value: str, part: Part, tile: Tile, kept: KeptRows | None
    ) -> np.ndarray:
        """The rows of the columns of a tile, the last of which may be kept."""
        nodes = nodes_of(part, tile.columns)
        if kept is None:
            return self._gather(value, nodes)
        array = kept.behind(len(nodes))
        self._gather(value, nodes, array[: len(nodes)])
        return array

    def _source(self, value: str) -> Rows:
        """What has the rows of a value."""
        if value in self._rows:
            return self._rows[value]
        rows = MappedRows(self._stored(value), named=True)
        if self._direct:
            rows.use_direct_io()
        return rows

    def _gather(
        self, value: str, wanted: np.ndarray, array: np.ndarray | None = None
    ) -> np.ndarray:
        """The rows of nodes, by their numbers in the order of the partition."""
        rows, order = self._source(value), self._partition.order
        if value in self._rows and order is not None:
            wanted = order[wanted]
        if array is None:
            array = self._buffers.take((len(wanted), *rows.shape[1:]), rows.dtype)
        return gather(rows, wanted, array, self._pool)

    def deliver(self, value: str, target: ResultPlace) -> None:
        """Hand over a result in the original order of nodes."""
        if value in self._original or not self._program.is_of_rows(value):
            target.take(self._stored(value), self._work.path(value))
            return
        layout = self._tiling.layout(value)
        copy = self._work.create("result", *layout, self._direct)
        order = self._partition.order
        length = max(1, self._buffers.size // (copy.place(1) - copy.place(0) + _NUMBERS))
        for first in range(0, copy.shape[0], length):
            numbers = np.arange(first, min(first + length, copy.shape[0]))
            self._buffers.begin(self._buffers.size)
            found = self._gather(value, numbers)
            copy.scatter(found, numbers if order is None else order[numbers], self._pool)
        copy.flush()
        target.take(self._work.open("result", *layout), self._work.path("result"))


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

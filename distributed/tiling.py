"""The tiles of a program that runs out of core: what they are, and what they cost."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.algebra.dims import Dim, product
from ..core.dtype_names import dtype_named
from ..runtime.executable import Executable
from .partition import Part, Partition
from .program import SplitProgram, StageInput
from .report import Machine, StageWork, TileCost, TileReport
from .storage.columns import KeptColumns, NoColumns, TileColumns, referenced
from .storage.rows import Rows, check_files, row_bytes
from .tiles import Cost, Tile, tiles

_EXTRA = 56
"""Bytes for each column of a tile: its number, and memory to find and sort it."""
_COLUMN = 8
"""Those for each column of a part, to find the columns of a tile."""
_KEPT = 0.75
"""The part of the budget that rows may take that are kept for all tiles of a stage."""


class Tiling:
    """The tiles of all stages of a program.

    Args:
        program: the program.
        stages: its stages, compiled.
        partition: the graph.
        memory: the bytes that a tile may take.
    """

    def __init__(
        self,
        program: SplitProgram,
        stages: Sequence[Executable],
        partition: Partition,
        memory: int,
    ) -> None:
        self.program, self.stages, self.memory = program, tuple(stages), memory
        self.parts = list(partition)
        self.entries = sum(part.num_entries for part in self.parts)
        """The number of entries that each stage visits."""
        own = program.sizes
        self.sizes = {own.nodes: partition.num_nodes, own.edges: self.entries}
        """The sizes of the whole graph, by name."""
        self._order = partition.order
        self._dtype = program.specs[program.graph].dtype

    def is_sliced(self, value: str) -> bool:
        """Whether tiles have different slices of a value."""
        return self.program.is_of_rows(value) or self.program.is_of_entries(value)

    def layout(self, value: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The shape and dtype of a value of the whole graph."""
        spec = self.program.specs[value]
        shape = tuple(Dim.parse(str(size)).evaluate(self.sizes) for size in spec.shape)
        return shape, dtype_named(spec.dtype)

    def file_bytes(self, rows: Mapping[str, Rows]) -> int:
        """The bytes of all files of a run: its arguments `rows`, and what stages make."""
        results = {name for stage in self.program.stages for name in stage.results}
        made = [self.layout(name) for name in results if self.is_sliced(name)]
        return sum(row_bytes(own) * own.shape[0] for own in rows.values()) + sum(
            math.prod(shape) * dtype.itemsize for shape, dtype in made
        )

    def of(self, number: int) -> Iterator[tuple[Part, Tile]]:
        """The tiles of a stage, in order, with the parts whose rows they have.

        Raises:
            InputError: if a row does not fit into memory, or a file has been truncated.
        """
        stage, kept = self.program.stages[number], self.kept(number)
        for part in filter(lambda part: part.num_rows, self.parts):
            if StageInput(self.program.graph) not in stage.inputs:
                columns = NoColumns(part)
            elif kept is None:
                columns = TileColumns(part, stage.whole)
            else:
                columns = KeptColumns(part, stage.whole, kept)
            for tile in tiles(columns, self._dtype, self._cost(number), self._budget(part)):
                check_files(self._order)
                yield part, tile
                # Freed before there is another one.
                del tile

    def kept(self, number: int) -> np.ndarray | None:
        """The nodes whose rows are kept for all tiles of a stage, int64, ascending; None if none.

        They are all that entries refer to, if there is room for them.

        Raises:
            InputError: if a file has been truncated.
        """
        nodes = self._referenced if self.program.stages[number].along_edges else None
        if nodes is None:
            return None
        room = _KEPT * min(map(self._budget, self.parts))
        return nodes if self._cost(number)(0, len(nodes), 0) <= room else None

    @functools.cached_property
    def _referenced(self) -> np.ndarray | None:
        return referenced(self.parts, self.memory // _EXTRA)

    def _cost(self, number: int) -> Cost:
        """What a tile of a stage takes."""
        exe = self.stages[number]

        def cost(rows: int, columns: int, entries: int) -> int:
            sizes = self._sizes_of(rows, columns, entries)
            return self._arrays(exe, sizes) + self._others(exe, sizes)

        return cost

    @functools.cached_property
    def arrays(self) -> int:
        """The bytes that the arguments and results of a tile take at most."""
        whole = [
            self._sizes_of(part.num_rows, part.num_rows + len(part.halo), part.num_entries)
            for part in self.parts
        ]
        largest = max(self._arrays(exe, sizes) for exe in self.stages for sizes in whole)
        return min(self.memory, largest)

    def room(self, number: int, part: Part, tile: Tile) -> int:
        """The bytes of the budget that the arguments and results of a tile may take."""
        sizes = self._sizes_of(tile.end - tile.first, tile.matrix.shape[1], tile.matrix.nnz)
        return self._budget(part) - self._others(self.stages[number], sizes)

    def _budget(self, part: Part) -> int:
        return self.memory - _COLUMN * (part.num_rows + len(part.halo))

    def _sizes_of(self, rows: int, columns: int, entries: int) -> dict[str, int]:
        """The sizes in a call of a stage, by name."""
        own = self.program.sizes
        return {**self.sizes, own.nodes: rows, own.columns: columns, own.edges: entries}

    def _arrays(self, exe: Executable, sizes: Mapping[str, int]) -> int:
        """The bytes of the dense arguments and results of a call."""
        signature = exe._loaded.signature
        specs = [
            (argument.spec.dtype, argument.shape)
            for argument in signature.arguments
            if argument.entries is None
        ]
        outputs = zip(signature.outputs, signature.largest_shapes, strict=True)
        specs += [(spec.dtype, shape) for spec, shape in outputs]
        return sum(
            product(shape).evaluate(sizes) * dtype_named(dtype).itemsize for dtype, shape in specs
        )

    def _others(self, exe: Executable, sizes: Mapping[str, int]) -> int:
        """Those of what else a call takes: its arena, the matrix, and numbers of its columns."""
        own, item = self.program.sizes, dtype_named(self._dtype).itemsize
        matrix = 8 * sizes[own.nodes] + (4 + item) * sizes[own.edges]
        arena = exe._loaded.signature.arena.evaluate(sizes)
        return arena + matrix + _EXTRA * sizes[own.columns]

    def report(self, machine: Machine) -> TileReport:
        """The costs of all tiles, which are found as a run finds them; features are not read."""
        return TileReport(
            tuple(map(functools.partial(self._costs, machine), range(len(self.stages))))
        )

    def _costs(self, machine: Machine, number: int) -> tuple[TileCost, ...]:
        """Those of the tiles of a stage."""
        kept = self.kept(number)
        work = StageWork(self.program, self.program.stages[number])
        pending = 0 if kept is None else len(kept)
        """The rows that are kept, and read before the first tile."""
        costs = []
        for part, tile in self.of(number):
            costs.append(
                work.cost_of_tile(number, part, tile, len(tile.columns) + pending, machine)
            )
            pending = 0
        return tuple(costs)

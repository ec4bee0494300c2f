"""The tiles of a program that runs out of core: what they are, and what they cost."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from ..core.dims import product
from ..core.dtype_names import dtype_named
from ..runtime.executable import Executable
from .partition import Part, Partition
from .program import SplitProgram
from .report import Machine, StageWork, TileReport
from .rows import check_files
from .tiles import Tile, tiles

_EXTRA = 56
"""Bytes for each column of a tile: its number, and memory to find and sort it."""
_COLUMN = 5
"""Those for each column of a part, to find the columns of a tile."""


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

    def of(self, number: int) -> Iterator[tuple[Part, Tile]]:
        """The tiles of a stage, in order, with the parts whose rows they have.

        Raises:
            InputError: if a row does not fit into memory, or a file has been truncated.
        """
        whole, exe = self.program.stages[number].whole, self.stages[number]

        def cost(rows: int, columns: int, entries: int) -> int:
            sizes = self._sizes_of(rows, columns, entries)
            return self._arrays(exe, sizes) + self._others(exe, sizes)

        for part in filter(lambda part: part.num_rows, self.parts):
            for tile in tiles(part, self._dtype, cost, self._budget(part), whole):
                check_files(self._order)
                yield part, tile
                # Freed before there is another one.
                del tile

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
        sizes = self._sizes_of(tile.end - tile.first, len(tile.columns), tile.matrix.nnz)
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
            tuple(
                tuple(
                    StageWork(self.program, stage).cost_of_tile(number, part, tile, machine)
                    for part, tile in self.of(number)
                )
                for number, stage in enumerate(self.program.stages)
            )
        )

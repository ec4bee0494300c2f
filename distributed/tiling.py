"""The tiles of a program that runs out of core: what they are, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..core.dims import Dim, product
from ..core.dtype_names import dtype_named
from ..runtime.executable import Executable
from .partition import Part, Partition
from .program import SplitProgram
from .report import Machine, StageWork, TileReport
from .rows import check_files
from .tiles import Tile, tiles

_EXTRA = 24
"""Bytes for each column of a tile: its number, and memory to find it."""
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
        whole, cost = self.program.stages[number].whole, self._cost(self.stages[number])
        for part in filter(lambda part: part.num_rows, self.parts):
            budget = self.memory - _COLUMN * (part.num_rows + len(part.halo))
            for tile in tiles(part, self._dtype, cost, budget, whole):
                check_files(self._order)
                yield part, tile

    def _cost(self, exe: Executable) -> Callable[[int, int, int], int]:
        """The bytes of a call of a stage, by the sizes of a tile."""
        signature, own = exe._loaded.signature, self.program.sizes
        item = dtype_named(self._dtype).itemsize
        dense = [signature.arena]
        for argument in signature.arguments:
            if argument.entries is None:
                size = Dim.of(dtype_named(argument.spec.dtype).itemsize)
                dense.append(product(argument.shape) * size)
        for spec, shape in zip(signature.outputs, signature.largest_shapes, strict=True):
            dense.append(product(shape) * Dim.of(dtype_named(spec.dtype).itemsize))

        def cost(rows: int, columns: int, entries: int) -> int:
            sizes = {**self.sizes, own.nodes: rows, own.columns: columns, own.edges: entries}
            matrix = 8 * rows + (4 + item) * entries
            return sum(dim.evaluate(sizes) for dim in dense) + matrix + _EXTRA * columns

        return cost

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

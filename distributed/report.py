"""What a program on parts or tiles costs: rows, entries and bytes of each, and what bounds it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..core.algebra.dims import Dim, scaled
from ..core.dtype_names import dtype_named
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.sizes.shapes import SymbolicShapes
from .partition import Part, Partition
from .program import PartStage, SplitProgram, StageInput
from .tiles import Tile


@dataclass(frozen=True)
class Machine:
    """What a part runs on, in the units of each second; by default one core, and 10 Gbit Ethernet.

    Attributes:
        flops: operations on numbers.
        memory: bytes that are read from memory, or written.
        network: bytes that travel to a part, or from it.
        latency: the seconds that a message takes besides.
        disk: bytes that are read from disk, or written.
    """

    flops: float = 50e9
    memory: float = 10e9
    network: float = 1.25e9
    latency: float = 50e-6
    disk: float = 1e9

    @property
    def flops_per_byte_sent(self) -> int:
        """The operations in the time in which a byte travels."""
        return max(1, round(self.flops / self.network))


@dataclass(frozen=True)
class Timed:
    """Something that takes time.

    Attributes:
        seconds: the time for each of compute, memory, disk and network on a machine.
    """

    seconds: dict[str, float] = field(kw_only=True)

    @property
    def bound(self) -> str:
        """What takes the most time: compute, memory, disk or network."""
        return max(self.seconds, key=lambda name: self.seconds[name])


@dataclass(frozen=True)
class StageCost(Timed):
    """What a stage costs on a part.

    Attributes:
        stage: the number of the stage.
        part: the number of the part.
        rows: the nodes of the part.
        entries: the stored entries of its rows.
        halo: the nodes of other parts that it reads.
        received: the bytes of the halo.
        sent: the bytes that other parts need of it.
        moved: the bytes that it reads from memory and writes.
        flops: the operations on numbers.
    """

    stage: int
    part: int
    rows: int
    entries: int
    halo: int
    received: int
    sent: int
    moved: int
    flops: int

    @property
    def time(self) -> float:
        """The seconds of the part. The halo travels while rows are computed."""
        return max(self.seconds.values())


@dataclass(frozen=True)
class Report:
    """The costs of all stages on all parts.

    Attributes:
        costs: for each stage those of each part.
    """

    costs: tuple[tuple[StageCost, ...], ...]

    @property
    def exchanged(self) -> list[int]:
        """For each stage the bytes of halos of all parts."""
        return [sum(cost.received for cost in stage) for stage in self.costs]

    @property
    def balance(self) -> list[float]:
        """For each stage the mean time of a part over the longest: 1 if all take as long."""
        return [
            sum(c.time for c in stage) / (len(stage) * max(c.time for c in stage) or 1)
            for stage in self.costs
        ]

    @property
    def seconds(self) -> float:
        """The time of a call: in each stage that of the slowest part."""
        return sum(max(cost.time for cost in stage) for stage in self.costs)

    def __str__(self) -> str:
        head = "part", "rows", "entries", "halo", "received", "sent", "moved", "time", "bound"
        lines: list[str] = []
        for number, stage in enumerate(self.costs):
            balance = self.balance[number]
            total = scaled(self.exchanged[number], "B")
            lines.append(f"stage {number}: {total} exchanged, balance {balance:.2f}")
            lines.append(_line(*head))
            for cost in stage:
                moved = (scaled(n, "B") for n in (cost.received, cost.sent, cost.moved))
                counts = cost.part, cost.rows, cost.entries, cost.halo
                lines.append(_line(*counts, *moved, f"{cost.time * 1e3:.3g} ms", cost.bound))
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class TileCost(Timed):
    """What a stage costs on a tile, out of core.

    Attributes:
        stage: the number of the stage.
        part: the number of the part.
        first: the first row of the tile in the part.
        rows: the nodes of the tile.
        entries: the stored entries of its rows.
        columns: the nodes whose rows it reads.
        read: the bytes of files that it reads: the graph, arguments and results of stages.
        written: the bytes of results.
        moved: the bytes that it reads from memory and writes.
        flops: the operations on numbers.
    """

    stage: int
    part: int
    first: int
    rows: int
    entries: int
    columns: int
    read: int
    written: int
    moved: int
    flops: int

    @property
    def time(self) -> float:
        """The seconds of the tile: it is read, computed and written, one after the other."""
        compute, memory = (self.seconds[name] for name in ("compute", "memory"))
        return max(compute, memory) + self.seconds["disk"]


@dataclass(frozen=True)
class TileReport:
    """The costs of all stages on all tiles.

    Attributes:
        costs: for each stage those of each tile.
    """

    costs: tuple[tuple[TileCost, ...], ...]

    @property
    def read(self) -> list[int]:
        """For each stage the bytes that are read from files."""
        return [sum(cost.read for cost in stage) for stage in self.costs]

    @property
    def written(self) -> list[int]:
        """For each stage the bytes that are written to files."""
        return [sum(cost.written for cost in stage) for stage in self.costs]

    @property
    def seconds(self) -> float:
        """The time of a call."""
        return sum(cost.time for stage in self.costs for cost in stage)

    def __str__(self) -> str:
        head = "part", "first", "rows", "entries", "columns", "read", "written", "time", "bound"
        lines: list[str] = []
        for number, stage in enumerate(self.costs):
            read, written = (scaled(n[number], "B") for n in (self.read, self.written))
            lines.append(f"stage {number}: {len(stage)} tiles, {read} read, {written} written")
            lines.append(_line(*head))
            for cost in stage:
                moved = (scaled(n, "B") for n in (cost.read, cost.written))
                counts = cost.part, cost.first, cost.rows, cost.entries, cost.columns
                lines.append(_line(*counts, *moved, f"{cost.time * 1e3:.3g} ms", cost.bound))
        return "\n".join(lines) + "\n"


def report(
    program: SplitProgram,
    partition: Partition,
    machine: Machine,
    near: bool,
    on_disk: bool = False,
) -> Report:
    """The costs of a program on the parts of a graph.

    Args:
        program: the program.
        partition: the graph.
        machine: what each part runs on.
        near: whether parts share what they exchange: it is neither copied nor sent.
        on_disk: whether values are in files on a disk.
    """
    parts = list(partition)
    costs = []
    for number, stage in enumerate(program.stages):
        work = StageWork(program, stage)
        costs.append(tuple(work.cost(number, part, machine, near, on_disk) for part in parts))
    return Report(tuple(costs))


@dataclass(frozen=True)
class Size:
    """The numbers of rows, columns and entries of a part or a tile."""

    rows: int
    columns: int
    entries: int

    @staticmethod
    def of(part: Part) -> Size:
        """That of a part."""
        return Size(part.num_rows, part.num_rows + len(part.halo), part.num_entries)


class StageWork:
    """What a stage takes, in sizes of a part or a tile."""

    def __init__(self, program: SplitProgram, stage: PartStage) -> None:
        self.program, self.stage = program, stage
        function = stage.module.main
        shapes = SymbolicShapes(function)
        ops = [op for op in function.body.block.ops if isinstance(op, GraphOp)]
        self.flops = sum((op.flops(shapes) or Dim.of(0) for op in ops), Dim.of(0))
        self.width = sum(self._row(value) for value in stage.received)
        """The bytes of what is exchanged before the stage, for one node."""

    def cost(
        self, number: int, part: Part, machine: Machine, near: bool, on_disk: bool
    ) -> StageCost:
        halo, size = len(part.halo), Size.of(part)
        received = halo * self.width
        sent = sum(len(rows) for rows in part.sends) * self.width
        flops = self._at(size, self.flops)
        moved = self._moved(size) + (0 if near else 2 * received)
        messages = sum(len(rows) > 0 for rows in part.sends) if self.width else 0
        seconds = {"compute": flops / machine.flops, "memory": moved / machine.memory}
        if on_disk:
            seconds["disk"] = (self._stored(size) + received) / machine.disk
        if not near:
            travel = max(received, sent) / machine.network + messages * machine.latency
            seconds["network"] = travel
        sizes = size.rows, size.entries, halo
        counts = received, sent, moved, flops
        return StageCost(number, part.index, *sizes, *counts, seconds=seconds)

    def cost_of_tile(
        self, number: int, part: Part, tile: Tile, columns: int, machine: Machine
    ) -> TileCost:
        """What it costs on a tile, whose graph, arguments and results are in files.

        Args:
            number: the number of the stage.
            part: the part that has the tile.
            tile: the tile.
            columns: the number of columns of which rows are read for it.
            machine: what it runs on.
        """
        size = Size(tile.end - tile.first, tile.matrix.shape[1], tile.matrix.nnz)
        graph = 4 if part.values is None else 4 + part.values.itemsize
        read = self._read(size, columns)
        if StageInput(self.program.graph) in self.stage.inputs:
            read += graph * size.entries + 8 * size.rows
        written = sum(self._sliced(size, name) for name in self.stage.results)
        flops, moved = self._at(size, self.flops), self._moved(size)
        seconds = {"compute": flops / machine.flops, "memory": moved / machine.memory}
        seconds["disk"] = (read + written) / machine.disk
        sizes, counts = (size.rows, size.entries, size.columns), (read, written, moved, flops)
        return TileCost(number, part.index, tile.first, *sizes, *counts, seconds=seconds)

    def _row(self, value: str) -> int:
        """The bytes of a value for one node."""
        spec = self.program.specs[value]
        sizes = [size for size in spec.shape[1:] if isinstance(size, int)]
        return math.prod(sizes) * dtype_named(spec.dtype).itemsize

    def _at(self, size: Size, count: Dim) -> int:
        known = self._known(size)
        return count.evaluate({name: known.get(name, 1) for name in count.symbols})

    def _moved(self, size: Size) -> int:
        """The bytes of arguments and results; a row that entries refer to is read for each."""
        total = 0
        for given in self.stage.inputs:
            if given.value == self.program.graph:
                # The rows of the graph in memory, with weights of f32.
                total += size.entries * 8 + size.rows * 8
            elif given.halo:
                total += size.entries * self._row(given.value)
            else:
                total += self._size(size, given.value)
        return total + self._results(size)

    def _stored(self, size: Size) -> int:
        """The bytes of the arguments and results for the nodes and entries of a part."""
        read = {i.value: None for i in self.stage.inputs if i.value != self.program.graph}
        return sum(self._size(size, name) for name in read) + self._results(size)

    def _read(self, size: Size, columns: int) -> int:
        """The bytes of arguments that are read for a tile, the graph aside."""
        return sum(
            columns * self._row(i.value) if i.halo else self._sliced(size, i.value)
            for i in self.stage.inputs
            if i.value != self.program.graph and not self.stage.includes_rows(i)
        )

    def _sliced(self, size: Size, value: str) -> int:
        """The bytes of a value of a tile; 0 if it is the same for all."""
        of_tile = self.program.is_of_rows(value) or self.program.is_of_entries(value)
        return self._size(size, value) if of_tile else 0

    def _results(self, size: Size) -> int:
        """The bytes of the results."""
        return sum(self._size(size, name) for name in self.stage.results)

    def _known(self, size: Size) -> dict[str, int]:
        sizes = self.program.sizes
        known = {sizes.nodes: size.rows, sizes.edges: size.entries}
        return known | {sizes.columns: size.columns}

    def _size(self, size: Size, value: str) -> int:
        spec, known = self.program.specs[value], self._known(size)
        count = math.prod(n if isinstance(n, int) else known.get(n, 1) for n in spec.shape)
        return count * dtype_named(spec.dtype).itemsize


def _line(*texts: object) -> str:
    return "  ".join(f"{text:>9}" for text in texts)

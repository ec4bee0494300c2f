"""What a program on parts costs: rows, entries, halo and bytes of each part, what bounds it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core.dims import Dim
from ..core.dtype_names import dtype_named
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.shapes import SymbolicShapes
from .partition import Part, Partition
from .program import SplitProgram, Stage


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
class Cost:
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
        seconds: the time for each of them on a machine, by name.
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
    seconds: dict[str, float]

    @property
    def bound(self) -> str:
        """What takes the most time: compute, memory, disk or network."""
        return max(self.seconds, key=lambda name: self.seconds[name])

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

    costs: tuple[tuple[Cost, ...], ...]

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
            total = _scaled(self.exchanged[number], "B")
            lines.append(f"stage {number}: {total} exchanged, balance {balance:.2f}")
            lines.append("  ".join(f"{name:>9}" for name in head))
            lines += [
                "  ".join(
                    f"{text:>9}"
                    for text in (
                        cost.part,
                        cost.rows,
                        cost.entries,
                        cost.halo,
                        _scaled(cost.received, "B"),
                        _scaled(cost.sent, "B"),
                        _scaled(cost.moved, "B"),
                        f"{cost.time * 1e3:.3g} ms",
                        cost.bound,
                    )
                )
                for cost in stage
            ]
        return "\n".join(lines) + "\n"


def report(
    program: SplitProgram,
    partition: Partition,
    machine: Machine,
    in_memory: bool,
    on_disk: bool = False,
) -> Report:
    """The costs of a program on the parts of a graph.

    Args:
        program: the program.
        partition: the graph.
        machine: what each part runs on.
        in_memory: whether halos are copied in memory, and travel on no network.
        on_disk: whether values are in files on a disk.
    """
    parts = list(partition)
    costs = []
    for number, stage in enumerate(program.stages):
        work = _Work(program, stage)
        costs.append(tuple(work.cost(number, part, machine, in_memory, on_disk) for part in parts))
    return Report(tuple(costs))


class _Work:
    """What a stage takes, in sizes of a part."""

    def __init__(self, program: SplitProgram, stage: Stage) -> None:
        self.program, self.stage = program, stage
        function = stage.module.main
        shapes = SymbolicShapes(function)
        ops = [op for op in function.body.block.ops if isinstance(op, GraphOp)]
        self.flops = sum((op.flops(shapes) or Dim.of(0) for op in ops), Dim.of(0))
        self.width = sum(self._row(value) for value in stage.received)
        """The bytes of what is exchanged before the stage, for one node."""

    def cost(
        self, number: int, part: Part, machine: Machine, in_memory: bool, on_disk: bool
    ) -> Cost:
        halo = len(part.halo)
        received = halo * self.width
        sent = sum(len(rows) for rows in part.sends) * self.width
        flops = self._at(part, self.flops)
        moved = self._moved(part) + 2 * received
        messages = sum(len(rows) > 0 for rows in part.sends) if self.width else 0
        seconds = {"compute": flops / machine.flops, "memory": moved / machine.memory}
        if on_disk:
            seconds["disk"] = (self._stored(part) + received) / machine.disk
        if not in_memory:
            travel = max(received, sent) / machine.network + messages * machine.latency
            seconds["network"] = travel
        sizes = part.num_rows, part.num_entries, halo
        return Cost(number, part.index, *sizes, received, sent, moved, flops, seconds)

    def _row(self, value: str) -> int:
        """The bytes of a value for one node."""
        spec = self.program.specs[value]
        sizes = [size for size in spec.shape[1:] if isinstance(size, int)]
        return math.prod(sizes) * dtype_named(spec.dtype).itemsize

    def _at(self, part: Part, count: Dim) -> int:
        sizes = self.program.sizes
        known = {sizes.nodes: part.num_rows, sizes.edges: part.num_entries}
        known[sizes.columns] = part.num_rows + len(part.halo)
        return count.evaluate({name: known.get(name, 1) for name in count.symbols})

    def _moved(self, part: Part) -> int:
        """The bytes of arguments and results; a row that entries refer to is read for each."""
        total = 0
        for given in self.stage.inputs:
            if given.value == self.program.graph:
                total += part.num_entries * 8 + part.num_rows * 8
            elif given.halo:
                total += part.num_entries * self._row(given.value)
            else:
                total += self._size(part, given.value)
        return total + sum(self._size(part, name) for name in self.stage.results)

    def _stored(self, part: Part) -> int:
        """The bytes of the arguments and results for the nodes and entries of a part."""
        read = {i.value: None for i in self.stage.inputs if i.value != self.program.graph}
        return sum(self._size(part, name) for name in (*read, *self.stage.results))

    def _size(self, part: Part, value: str) -> int:
        spec, sizes = self.program.specs[value], self.program.sizes
        known = {sizes.nodes: part.num_rows, sizes.edges: part.num_entries}
        count = math.prod(n if isinstance(n, int) else known.get(n, 1) for n in spec.shape)
        return count * dtype_named(spec.dtype).itemsize


def _scaled(count: int, unit: str) -> str:
    """A count with a prefix of the SI."""
    for size, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.3g} {prefix}{unit}"
    return f"{count} {unit}"

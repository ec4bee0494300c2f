"""The threads of a grid, executing a kernel.

A register is an array with an element for each thread of some blocks. Threads that are at the same
instruction execute it together, those at the lowest one first: so threads that have diverged meet
where their ways join. Threads at a barrier, or another instruction for all threads of a block or a
warp, wait until these are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from ...core.errors import EmulationError, explain
from .counters import LineCounters
from .memory import FaultError, GlobalMemory, Region
from .races import Accessors
from .text import PtxInstruction, PtxKernel

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Shape:
    """The sizes of a grid and its blocks, along x, y and z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @cached_property
    def threads(self) -> int:
        """The threads of a block."""
        return int(np.prod(self.block))

    @cached_property
    def blocks(self) -> int:
        """The blocks of the grid."""
        return int(np.prod(self.grid))

    @cached_property
    def warps(self) -> int:
        """The warps of a block, the last of which may have fewer than 32 threads."""
        return -(-self.threads // 32)


def coordinates(number: Any, sizes: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """The coordinates of the thread or block with a number."""
    x, y, _ = sizes
    return number % x, number // x % y, number // (x * y)


@dataclass
class Register:
    """The bits of a register in each thread, in which threads they are defined, and why not."""

    bits: Array
    defined: Array | None
    reason: tuple[str, PtxInstruction] | None = None


@dataclass(frozen=True)
class Undefined:
    """A value that is not defined in some of the threads that execute an instruction.

    Attributes:
        at: in which of them.
        fact: what has not been written.
        op: the first instruction that read it.
    """

    at: Array
    fact: str
    op: PtxInstruction

    def among(self, chosen: Array) -> Undefined | None:
        """The same of some of the threads; None if it is defined there."""
        at = self.at & chosen
        return replace(self, at=at) if at.any() else None


def joined(found: Iterable[Undefined | None]) -> Undefined | None:
    """The undefined threads of a value that several others determine: those of any of them.

    The reason is that of the first thread.
    """
    known = [one for one in found if one is not None]
    if not known:
        return None
    first = min(known, key=lambda one: int(one.at.argmax()))
    return replace(first, at=np.logical_or.reduce([one.at for one in known]))


Action = Callable[["Threads", Array], None]
"""What an instruction does for some threads, by their numbers in the batch."""


@dataclass(frozen=True)
class PtxStep:
    """An instruction, decoded.

    `act` is called for the threads whose guard holds. `gathers` is "block" or "warp" if it waits
    for their threads, and `members` gives the lanes of a warp that have to be there. `jump` is the
    number of the instruction that it jumps to, -1 for the end of the thread.
    """

    op: PtxInstruction
    row: LineCounters
    act: Action | None = None
    jump: int | None = None
    gathers: str | None = None
    members: Callable[[Threads, Array], Array] | None = None


@dataclass
class Threads:
    """Some blocks of a launch, with all of their state."""

    kernel: PtxKernel
    shape: Shape
    first: int
    """The number of their first block."""
    blocks: int
    memory: GlobalMemory
    spaces: dict[str, Region]
    parameters: Array
    registers: dict[str, Register] = field(default_factory=dict[str, Register])
    waiting: dict[int, Array] = field(default_factory=dict[int, Array])
    """The threads that wait at an instruction."""
    copies: list[tuple[Array, Array, list[Array]]] = field(
        default_factory=list[tuple[Array, Array, list[Array]]]
    )
    """Asynchronous copies: their threads, the numbers of their groups, and the granules."""
    steps: int = 0

    def __post_init__(self) -> None:
        threads = self.shape.threads
        self.count = self.blocks * threads
        numbers = np.arange(self.count)
        self.block, self.thread = numbers // threads, numbers % threads
        self.lane = self.thread % 32
        self.warp = self.block * self.shape.warps + self.thread // 32
        self.number = (numbers + self.first * threads).astype(np.int32)
        self.grid_warp = self.warp + self.first * self.shape.warps
        self.barriers = np.zeros(self.count, np.int32)
        self.syncs = np.zeros(self.count, np.int32)
        self.committed = np.zeros(self.count, np.int32)

    def accessors(self, lanes: Array) -> Accessors:
        """Threads as the detection of races sees them."""
        return Accessors(
            self.number[lanes],
            self.grid_warp[lanes],
            self.barriers[lanes],
            self.syncs[lanes],
            self.shape.threads,
            self.shape.warps,
        )

    def run(self, code: list[PtxStep], most_steps: int) -> None:
        """Execute all threads to their ends.

        Raises:
            EmulationError: if one does what it must not.
        """
        groups: dict[int, Array] = {0: np.arange(self.count)}
        with np.errstate(all="ignore"):
            while groups or self.waiting:
                if not groups:
                    self._stuck(code)
                at = min(groups)
                lanes = groups.pop(at)
                for there, moved in self._step(code, at, lanes, most_steps):
                    if there >= 0 and len(moved):
                        known = groups.get(there)
                        groups[there] = moved if known is None else _merged(known, moved)

    def _step(
        self, code: list[PtxStep], at: int, lanes: Array, most_steps: int
    ) -> list[tuple[int, Array]]:
        """Execute an instruction; the threads that go on, by the instruction that is next."""
        if at >= len(code):
            return []
        step = code[at]
        self.steps += 1
        if self.steps > most_steps:
            fact = f"the kernel has not ended after {most_steps} steps"
            raise self.error(step.op, FaultError("endless", fact, 0), lanes)
        active = lanes
        if step.op.guard is not None:
            name, negated = step.op.guard
            active = lanes[self.read(name, step.op, lanes) != negated]
        if step.gathers is not None:
            return self._gather(step, at, lanes, active)
        self._count(step.row, lanes, active)
        if step.jump is None:
            self._act(step, active)
            return [(at + 1, lanes)]
        if len(active) == len(lanes):
            return [(step.jump, lanes)]
        stay = np.setdiff1d(lanes, active, assume_unique=True)
        step.row.diverged += len(np.intersect1d(self.warp[active], self.warp[stay]))
        return [(step.jump, active), (at + 1, stay)]

    def _act(self, step: PtxStep, active: Array) -> None:
        if not len(active) or step.act is None:
            return
        try:
            step.act(self, active)
        except FaultError as fault:
            raise self.error(step.op, fault, active) from None

    def _gather(
        self, step: PtxStep, at: int, lanes: Array, active: Array
    ) -> list[tuple[int, Array]]:
        """Let threads wait for others, and execute what all are there for."""
        moved = [(at + 1, np.setdiff1d(lanes, active, assume_unique=True))]
        known = self.waiting.pop(at, None)
        active = active if known is None else _merged(known, active)
        there = self._complete(step, active)
        if not there.all():
            self.waiting[at] = active[~there]
            active = active[there]
        self._count(step.row, active, active)
        self._act(step, active)
        if step.gathers == "block":
            self.barriers[active] += 1
        moved.append((at + 1, active))
        return moved

    def _complete(self, step: PtxStep, lanes: Array) -> Array:
        """Whether all threads are there that each one waits for."""
        if step.gathers == "block":
            present = np.bincount(self.block[lanes], minlength=self.blocks)
            return present[self.block[lanes]] == self.shape.threads
        assert step.members is not None
        members = step.members(self, lanes).astype(np.uint32)
        return (members & ~self.present(lanes)) == 0

    def present(self, lanes: Array) -> Array:
        """For each of some threads, a bit for each of them in its warp."""
        bits = np.zeros(self.blocks * self.shape.warps, np.uint32)
        np.bitwise_or.at(bits, self.warp[lanes], np.uint32(1) << self.lane[lanes].astype(np.uint32))
        return bits[self.warp[lanes]]

    def whole_warps(self, lanes: Array) -> Array:
        """For each of some threads, a bit for each thread that its warp has."""
        sizes = np.minimum(32, self.shape.threads - self.thread[lanes] // 32 * 32)
        return ((np.uint64(1) << sizes.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)

    def _stuck(self, code: list[PtxStep]) -> None:
        """Report threads that wait for others, which do not come.

        Raises:
            EmulationError: always.
        """
        at, lanes = min(self.waiting.items())
        step, unit = code[at], self.block if code[at].gathers == "block" else self.warp
        there = int((unit[lanes] == unit[lanes[0]]).sum())
        most = self.shape.threads
        if step.gathers == "warp":
            most = int(np.bitwise_count(self.whole_warps(lanes[:1])[0]))
        fact = f"{there} of the {most} threads of a {step.gathers} wait here for the others"
        raise self.error(step.op, FaultError("barrier", fact, 0), lanes)

    def _count(self, row: LineCounters, lanes: Array, active: Array) -> None:
        row.threads += len(active)
        if len(lanes) == self.count:
            row.warps += self.blocks * self.shape.warps
        elif len(lanes):
            warp = self.warp[lanes]
            row.warps += int((warp[1:] != warp[:-1]).sum()) + 1

    def read(self, name: str, op: PtxInstruction, lanes: Array) -> Array:
        """The bits of a register.

        Raises:
            EmulationError: if they are not defined in a thread.
        """
        if (found := self.undefined(name, op, lanes)) is not None:
            self.refuse(found, lanes)
        return self.bits(name, lanes)

    def bits(self, name: str, lanes: Array) -> Array:
        """The bits of a register, whether or not they are defined."""
        found = self.registers.get(name)
        if found is None:
            width = self.kernel.width(name)
            return np.zeros(len(lanes), bool if width == 1 else f"u{width // 8}")
        return found.bits if len(lanes) == self.count else found.bits[lanes]

    def undefined(self, name: str, op: PtxInstruction, lanes: Array) -> Undefined | None:
        """Where a register that an instruction reads is not defined; None if it is everywhere."""
        found = self.registers.get(name)
        if found is not None and (found.defined is None or found.defined[lanes].all()):
            return None
        where = np.ones(len(lanes), bool) if found is None else _not(found.defined, lanes)
        fact, reader = (found and found.reason) or (f"register {name} has not been written", op)
        return Undefined(where, fact, reader)

    def refuse(self, found: Undefined, lanes: Array) -> NoReturn:
        """Report that something depends on what is not defined.

        Raises:
            EmulationError: always.
        """
        fault = FaultError("uninitialised", found.fact, int(found.at.argmax()))
        raise self.error(found.op, fault, lanes)

    def write(self, name: str, bits: Array, lanes: Array) -> None:
        """Write to a register."""
        found = self.registers.get(name)
        if len(lanes) == self.count:
            # Never in place: `bits` gives views.
            self.registers[name] = Register(np.array(bits), None)
            return
        if found is None:
            known = np.zeros(self.count, bool)
            found = self.registers[name] = Register(np.zeros(self.count, bits.dtype), known)
        found.bits[lanes] = bits
        if found.defined is not None:
            found.defined[lanes] = True
            if found.defined.all():
                found.defined = found.reason = None

    def undefine(self, name: str, lanes: Array, found: Undefined) -> None:
        """Note that what has been written to a register is not defined in some threads."""
        register = self.registers[name]
        if register.defined is None:
            register.defined = np.ones(self.count, bool)
        register.defined[lanes[found.at]] = False
        register.reason = found.fact, found.op

    def error(self, op: PtxInstruction, fault: FaultError, lanes: Array) -> EmulationError:
        """The error for what one of the threads that execute an instruction did."""
        n = int(lanes[min(fault.at, len(lanes) - 1)])
        block = coordinates(int(self.block[n]) + self.first, self.shape.grid)
        thread = coordinates(int(self.thread[n]), self.shape.block)
        who = f"thread {thread} of block {block}"
        subject = f"{self.kernel.name}: {fault.kind}"
        message = explain(subject, f"{fault.fact}, in {who}", origin=op.origin)
        return EmulationError(message, fault.kind, op.line, op.source, block, thread)


def _not(defined: Array | None, lanes: Array) -> Array:
    return np.zeros(len(lanes), bool) if defined is None else ~defined[lanes]


def _merged(a: Array, b: Array) -> Array:
    """The threads of two groups, ascending."""
    if a[-1] < b[0]:
        return np.concatenate([a, b])
    return np.sort(np.concatenate([a, b]))

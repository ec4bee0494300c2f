"""Memory as compiled code sees it: addresses and their contents.

A pointer holds its allocation: an access beyond it is an error even if another allocation follows.
Addresses are those of the NumPy arrays that hold the bytes.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.interpreter import Interpreter
from xdsl.ir import Operation

from ...core.errors import CompileError, explain
from ...core.ir.provenance import origin
from ..ptx.residence import Residence


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Bytes that may be read and written, and their address."""

    bytes: np.ndarray
    address: int


@dataclass(frozen=True, slots=True)
class Pointer:
    """A position in, or outside of, an allocation; without one, a bare address."""

    allocation: Allocation | None
    offset: int

    @property
    def address(self) -> int:
        """The address as a number."""
        return self.offset + (self.allocation.address if self.allocation else 0)

    def moved(self, bytes: int) -> Pointer:
        """The pointer plus an offset in bytes."""
        return Pointer(self.allocation, self.offset + bytes)


@dataclass
class Memory:
    """The allocations that one run may access.

    Attributes:
        variables: the addresses of the module's variables that have been accessed.
        residence: what of it a device has, and has alone.
        on_device: whether a kernel of a device is running.
    """

    _allocations: list[Allocation] = field(default_factory=list[Allocation])
    variables: dict[Operation, Pointer] = field(default_factory=dict[Operation, Pointer])
    residence: Residence = field(default_factory=Residence)
    on_device: bool = False

    def add(self, array: np.ndarray) -> Pointer:
        """Allow access to a contiguous array, and return a pointer to it.

        For an array inside an existing allocation, it points into that allocation.
        """
        address = array.ctypes.data
        known = self.find(address)
        if known.allocation is not None and array.nbytes:
            return known
        raw = array.reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
        allocation = Allocation(raw, address)
        bisect.insort(self._allocations, allocation, key=lambda known: known.address)
        return Pointer(allocation, 0)

    def remove(self, pointer: Pointer) -> None:
        """Allow no access to an allocation any more, and make its contents undefined."""
        assert pointer.allocation is not None
        pointer.allocation.bytes[:] = 255
        self._allocations = [a for a in self._allocations if a is not pointer.allocation]

    def find(self, address: int) -> Pointer:
        """The pointer for an address."""
        at = bisect.bisect_right(self._allocations, address, key=lambda known: known.address)
        if at:
            known = self._allocations[at - 1]
            if address - known.address < known.bytes.size:
                return Pointer(known, address - known.address)
        return Pointer(None, address)


def at(op: Operation, pointer: Pointer, dtype: np.dtype[Any], count: int = 1) -> np.ndarray:
    """The elements at a pointer, as a view.

    Raises:
        CompileError: if one of them is outside of the allocation of the pointer.
    """
    allocation, offset, size = pointer.allocation, pointer.offset, count * dtype.itemsize
    if allocation is None:
        raise CompileError(
            explain(op.name, "points to nothing", got=hex(offset), origin=origin(op))
        )
    if not 0 <= offset <= allocation.bytes.size - size:
        raise CompileError(
            explain(
                op.name,
                f"{size} bytes are outside of the buffer",
                expected=f"0 <= offset <= {allocation.bytes.size - size}",
                got=offset,
                origin=origin(op),
            )
        )
    return allocation.bytes[offset : offset + size].view(dtype)


class MemoryInterpreter(Interpreter):
    """An interpreter whose values may be addresses of a memory.

    `watchers` are the listeners to more than the operations that call functions.
    """

    memory: Memory
    watchers: tuple[Interpreter.Listener, ...] = ()


def memory_of(interpreter: Interpreter) -> Memory:
    """The memory of an interpreter."""
    assert isinstance(interpreter, MemoryInterpreter), "only a machine has memory"
    return interpreter.memory


def watchers_of(interpreter: Interpreter) -> tuple[Interpreter.Listener, ...]:
    """The listeners that are notified of each operation."""
    assert isinstance(interpreter, MemoryInterpreter), "only a machine has watchers"
    return interpreter.watchers

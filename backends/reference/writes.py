"""The operation that last wrote each byte, in one call of a function or kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.interpreter import PythonValues
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from ...core.errors import UnsupportedError, explain
from .listeners import CallListener, JointListener
from .memory import Pointer

MOST = 1 << 21
"""Operations that are watched: they take some seconds."""

Memory = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The bytes of an argument, their last known values, and the number of the last write to each."""


class Writes(CallListener, JointListener):
    """Watches one call. What runs in several iterations together is one write.

    Args:
        function: the name of the function.
        time: the number of the call, from 1.

    Raises:
        UnsupportedError: if the call takes more than `MOST` operations.
    """

    def __init__(self, function: str, time: int) -> None:
        self._function, self._left = function, time
        self._watched: list[Memory | None] | None = None
        self._writers: list[Operation] = []
        self._begun: tuple[Operation | None, PythonValues] = None, ()
        """The operation that began last, with its operands."""
        self._done, self._count = False, 0

    def will_call(self, name: str, args: PythonValues) -> None:
        """Start watching, if this is the call."""
        if name != self._function:
            return
        self._left -= 1
        if self._left == 0:
            self._watched = [_memory(arg) for arg in args]

    def did_call(self, name: str) -> None:
        """Stop watching, if this was the call."""
        if name == self._function and self._watched is not None:
            self._done = True

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        """Note what the operation may write to."""
        self._begun = op, args

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        """Record the bytes that an operation without results has changed."""
        if self._watched is None or self._done:
            return
        self._count += 1
        if self._count > MOST:
            fact = f"the call takes more than {MOST} operations"
            raise UnsupportedError(explain(f"@{self._function}", fact))
        if op.results or op.regions:
            return
        if op.has_trait(IsTerminator):
            return
        begun, args = self._begun
        for memory in self._watched:
            # An operation that calls others ends after these, whose operands were noted since.
            if memory is None or (begun is op and not any(_shares(arg, memory[0]) for arg in args)):
                continue
            now, before, writer = memory
            changed = _changed(now, before)
            if changed.size:
                before[changed] = now[changed]
                writer[changed] = len(self._writers)
        self._writers.append(op)

    def numbers(self, place: int, count: int, itemsize: int) -> np.ndarray:
        """The number of the last write to each element of an argument, -1 for none.

        Args:
            place: the argument, counted backwards from the last one, -1.
            count: the number of elements.
            itemsize: the size of an element in bytes.
        """
        watched = self._watched or []
        memory = watched[place] if -place <= len(watched) else None
        if memory is None or memory[2].size < count * itemsize:
            return np.full(count, -1)
        return memory[2][: count * itemsize].reshape(count, itemsize).max(axis=1)

    def operation(self, number: int) -> Operation | None:
        """The operation of a write."""
        return self._writers[number] if number >= 0 else None


def _shares(value: Any, watched: np.ndarray) -> bool:
    """Whether an operand may be memory with some of the watched bytes."""
    if isinstance(value, Pointer):
        return value.allocation is None or np.may_share_memory(value.allocation.bytes, watched)
    return isinstance(value, np.ndarray) and np.may_share_memory(value, watched)


def _changed(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Where bytes differ. They are compared as words, because most are equal."""
    whole = now.size // 8 * 8
    words = now[:whole].view(np.uint64) != before[:whole].view(np.uint64)
    places = (8 * np.flatnonzero(words)[:, None] + np.arange(8)).reshape(-1)
    places = np.concatenate([places, np.arange(whole, now.size)])
    return places[now[places] != before[places]]


def _memory(value: Any) -> Memory | None:
    if isinstance(value, Pointer) and value.allocation is not None:
        now = value.allocation.bytes[value.offset :]
    elif isinstance(value, np.ndarray) and value.flags.c_contiguous:
        now = value.reshape(-1).view(np.uint8)
    else:
        return None
    return now, now.copy(), np.full(now.size, -1)

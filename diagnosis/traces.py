"""Intermediate values of a run, kept to be compared with those of another run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import func, llvm
from xdsl.interpreter import PythonValues
from xdsl.ir import Operation

from ..backends.reference.listeners import CallingOperations
from ..backends.reference.memory import Pointer
from ..core.boundary.labels import unlabelled
from ..core.dtype_names import as_buffer
from ..core.ir.provenance import names
from ..dialects.graph.ops import CallDpsOp
from ..dialects.rt import ops as rt

if TYPE_CHECKING:
    from ..runtime.executable import Executable

Key = int | tuple[str, int] | tuple[tuple[str, ...], int]
"""A value of a run: the number of a result; a function, or the nodes of an operator, and which of
its calls or operators it is."""


@dataclass(frozen=True)
class Contents:
    """An array after a call that may have written to it."""

    values: np.ndarray
    before: np.ndarray | None = None
    """The bytes before the call, as one vector; None for a result, which has no value before."""

    def changed(self, count: int) -> np.ndarray:
        """For each of the first `count` elements whether the call changed it."""
        if self.before is None:
            return np.ones(count, np.bool_)
        after, itemsize = _bytes(self.values), self.values.dtype.itemsize
        different = after != self.before[: after.size]
        return different.reshape(-1, itemsize).any(axis=1)[:count]

    def viewed(self, dtype: np.dtype[Any], count: int) -> Contents:
        """The first elements, at most `count`, if they are of another type."""
        size = min(self.values.nbytes // dtype.itemsize, count) * dtype.itemsize
        return replace(self, values=_bytes(self.values)[:size].view(dtype))


@dataclass
class Trace:
    """Intermediate values of a run: by calls of functions, and by operators of the model."""

    results: tuple[np.ndarray, ...] = ()
    calls: dict[tuple[str, int], tuple[Operation, list[Contents]]] = field(
        default_factory=dict[tuple[str, int], tuple[Operation, list[Contents]]]
    )
    operators: dict[tuple[tuple[str, ...], int], tuple[Operation, list[np.ndarray]]] = field(
        default_factory=dict[tuple[tuple[str, ...], int], tuple[Operation, list[np.ndarray]]]
    )
    _times: Counter[object] = field(default_factory=Counter[object])

    def called(self, op: Operation, name: str, contents: Sequence[Contents]) -> None:
        """Keep what a call has written: results, or the arrays that it was given."""
        self._times[name] += 1
        self.calls[name, self._times[name]] = op, list(contents)

    def clear(self) -> None:
        """Forget what has run."""
        for kept in (self.calls, self.operators, self._times):
            kept.clear()

    def next_call(self, name: str) -> tuple[str, int]:
        """The name and the number of the next call of a function."""
        return name, self._times[name] + 1

    def arrays(self, name: str, time: int) -> list[np.ndarray]:
        """What a call has written, nothing if there was no such call."""
        _, contents = self.calls.get((name, time), (None, []))
        return [part.values for part in contents]

    def observe(self, op: Operation, results: Sequence[Any]) -> None:
        """Keep the results of an operation of the graph level."""
        arrays = [dense(result) for result in results]
        if isinstance(op, func.CallOp | CallDpsOp):
            contents = [Contents(as_buffer(array).copy()) for array in arrays]
            self.called(op, op.callee.root_reference.data, contents)
        elif key := names(op):
            self._times[key] += 1
            self.operators[key, self._times[key]] = op, arrays

    def keep_types(self, before: Trace) -> None:
        """Restore the types that arrays had before a pass turned them into bytes at an address."""
        for key, (op, arrays) in self.calls.items():
            _, known = before.calls.get(key, (op, []))
            for place in range(-1, -1 - min(len(arrays), len(known)), -1):
                array, typed = arrays[place].values, known[place].values
                if array.dtype == np.uint8 != typed.dtype and array.size >= typed.nbytes:
                    arrays[place] = arrays[place].viewed(typed.dtype, typed.size)


class CallTracer(CallingOperations):
    """Keeps the arrays that functions on buffers write.

    Args:
        trace: where they are kept.
        known: a run of which to keep the same calls, and of each of them as many of the last
            arrays and bytes; None to keep all.
    """

    def __init__(self, trace: Trace, known: Trace | None = None) -> None:
        self._trace, self._known = trace, known
        self._open: list[list[tuple[np.ndarray, np.ndarray]]] = []
        """Of each running call the memory that it can write to, and its bytes before."""

    def begins(self) -> None:
        self._trace.clear()
        self._open.clear()

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        memories = [memory for arg in args if (memory := _memory(arg)) is not None]
        if self._known is not None:
            memories = _like(memories, self._known.arrays(*self._trace.next_call(_callee(op))))
        self._open.append([(memory, _bytes(memory.copy())) for memory in memories])

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        written, name = self._open.pop(), _callee(op)
        if name and not results:
            contents = [Contents(memory.copy(), before) for memory, before in written]
            self._trace.called(op, name, contents)


def _callee(op: Operation) -> str:
    """The name of the function that is called, "" for one that has none."""
    assert isinstance(op, rt.CallOp | func.CallOp | llvm.CallOp)
    return op.callee.root_reference.data if op.callee is not None else ""


def _like(memories: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The last arrays, as many as are known; of bytes at an address, as many as are known."""
    last = memories[len(memories) - len(known) :] if len(known) <= len(memories) else []
    pairs = zip(last, known, strict=True) if last else ()
    return [
        memory[: array.nbytes] if memory.dtype == np.uint8 else memory for memory, array in pairs
    ]


def _memory(value: Any) -> np.ndarray | None:
    """The memory that a function can write to: a buffer, or the bytes from an address on."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Pointer) and value.allocation is not None:
        return value.allocation.bytes[value.offset :]
    return None


def _bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def dense(value: Any) -> np.ndarray:
    """A result as an array; for a sparse matrix, its stored values."""
    return value if isinstance(value, np.ndarray) else np.asarray(getattr(value, "data", value))


def results_of(program: Executable, inputs: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """The results of a call as a tuple, with the numbers of strings."""
    found = program(*inputs)
    several = found if isinstance(found, tuple) else (found,)
    return tuple(unlabelled(program.outputs, several))

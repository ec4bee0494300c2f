"""Intermediate values of a run, kept to be compared with those of another run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import func, llvm
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from ..backends.reference.memory import Pointer
from ..core.provenance import names
from ..dialects.graph.ops import CallDpsOp
from ..dialects.rt import ops as rt


@dataclass
class Trace:
    """Intermediate values of a run: by calls of functions, and by operators of the model."""

    results: tuple[np.ndarray, ...] = ()
    calls: dict[tuple[str, int], tuple[Operation, list[np.ndarray]]] = field(
        default_factory=dict[tuple[str, int], tuple[Operation, list[np.ndarray]]]
    )
    operators: dict[tuple[tuple[str, ...], int], tuple[Operation, list[np.ndarray]]] = field(
        default_factory=dict[tuple[tuple[str, ...], int], tuple[Operation, list[np.ndarray]]]
    )
    _times: Counter[object] = field(default_factory=Counter[object])

    def called(self, op: Operation, name: str, arrays: Sequence[np.ndarray]) -> None:
        """Keep the results of a call: the last of the arrays."""
        self._times[name] += 1
        self.calls[name, self._times[name]] = op, [array.copy() for array in arrays]

    def observe(self, op: Operation, results: Sequence[Any]) -> None:
        """Keep the results of an operation of the graph level."""
        arrays = [dense(result) for result in results]
        if isinstance(op, func.CallOp | CallDpsOp):
            self.called(op, op.callee.root_reference.data, arrays)
        elif key := names(op):
            self._times[key] += 1
            self.operators[key, self._times[key]] = op, arrays

    def keep_types(self, before: Trace) -> None:
        """Restore the types that arrays had before a pass turned them into bytes at an address."""
        for key, (op, arrays) in self.calls.items():
            _, known = before.calls.get(key, (op, []))
            for place in range(-1, -1 - min(len(arrays), len(known)), -1):
                array, typed = arrays[place], known[place]
                if array.dtype == np.uint8 != typed.dtype and array.size >= typed.nbytes:
                    arrays[place] = array[: typed.nbytes].view(typed.dtype)


class Calls(Interpreter.Listener):
    """Keeps the arrays that functions on buffers write."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._open: list[PythonValues] = []

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        if isinstance(op, rt.CallOp | func.CallOp | llvm.CallOp):
            self._open.append(args)

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        if not isinstance(op, rt.CallOp | func.CallOp | llvm.CallOp):
            return
        args = self._open.pop()
        if op.callee is not None and not results:
            arrays = [memory for arg in args if (memory := _memory(arg)) is not None]
            self._trace.called(op, op.callee.root_reference.data, arrays)


def _memory(value: Any) -> np.ndarray | None:
    """The memory that a function can write to: a buffer, or the bytes from an address on."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Pointer) and value.allocation is not None:
        return value.allocation.bytes[value.offset :]
    return None


def dense(value: Any) -> np.ndarray:
    """A result as an array; for a sparse matrix, its stored values."""
    return value if isinstance(value, np.ndarray) else np.asarray(getattr(value, "data", value))

"""The semantics of dialect `rt`: the context of a call, and its early end."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation

from ...core.boundary.indices import fault_of, outside, outside_from_front, wrong_offset
from ...core.dtype_names import as_buffer
from ...core.errors import CompileError, explain
from ...core.ir.provenance import origin
from ...core.ir.typed import function_around, memref_type
from ...dialects.rt import ops as rt
from .lockstep import Lockstep
from .memory import Pointer, memory_of
from .numbers import dtype_of


@dataclass(frozen=True)
class RuntimeContext:
    """The value of an `!rt.context`: the tables of the program, and the words of the frame."""

    pointer: Pointer
    words: np.ndarray
    arena: np.ndarray
    constants: Sequence[np.ndarray]
    functions: Sequence[Callable[[Any], int]]
    iterations: tuple[int, ...] = ()
    """The numbers of the iterations that are running, the innermost first."""


class CallEnds(Exception):  # noqa: N818 (it is not an error)
    """The call ends with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _fail(op: Operation, context: RuntimeContext, details: Sequence[int]) -> CallEnds:
    """End the call at a failing operation: the status is its number among those that can fail."""
    context.words[rt.Word.DETAILS : rt.Word.DETAILS + len(details)] = details
    around = context.iterations[: rt.ITERATION_WORDS]
    context.words[rt.Word.ITERATIONS : rt.Word.ITERATIONS + len(around)] = around
    function = function_around(op)
    assert function is not None
    return CallEnds(rt.failing_operations(function).index(cast(rt.FailingOp, op)) + 1)


def _check_place(op: Operation, fact: str, what: str, place: int, count: int) -> None:
    """Check that one of `count` places, which messages call `what`, is there.

    Raises:
        CompileError: saying the fact, if it is not.
    """
    if not 0 <= place < count:
        expected, where = f"0 <= {what} < {count}", origin(op)
        raise CompileError(explain(op.name, fact, expected=expected, got=place, origin=where))


def _entry(op: rt.ConstantOp | rt.CallPackedOp, table: Sequence[Any]) -> Any:
    """The entry of a table in the slot of an operation."""
    slot = op.slot.value.data
    if slot < len(table):
        return table[slot]
    fact, expected = "there is no such slot", f"below {len(table)}"
    raise CompileError(explain(op.name, fact, expected=expected, got=slot, origin=origin(op)))


@register_impls
class RtFunctions(InterpreterFunctions):
    """Implementations of `rt` for xDSL's interpreter."""

    def __init__(self, lockstep: Lockstep) -> None:
        self._lockstep = lockstep

    @impl(rt.ConstantOp)
    def run_constant(
        self, interpreter: Interpreter, op: rt.ConstantOp, args: PythonValues
    ) -> PythonValues:
        """A constant of the program."""
        (context,) = args
        kind = memref_type(op.result)
        array = as_buffer(_entry(op, context.constants))
        if array.shape != kind.get_shape() or array.dtype != dtype_of(kind.element_type):
            got = f"{array.dtype} {array.shape}"
            fact = "the constant does not fit"
            raise CompileError(explain(op.name, fact, expected=kind, got=got, origin=origin(op)))
        return (array,)

    @impl(rt.ArenaOp)
    def run_arena(
        self, interpreter: Interpreter, op: rt.ArenaOp, args: PythonValues
    ) -> PythonValues:
        """The memory of the call, in which every float was NaN when it began."""
        context, size = args[0], int(args[1])
        words = context.words
        if words[rt.Word.ARENA_BYTES] < size:
            words[rt.Word.DETAILS] = size + (size // 2 if op.growing is not None else 0)
            raise CallEnds(rt.ARENA_TOO_SMALL)
        return (context.arena[:size],)

    @impl(rt.IterationOp)
    def run_iteration(
        self, interpreter: Interpreter, op: rt.IterationOp, args: PythonValues
    ) -> PythonValues:
        """The context with the number of an iteration."""
        context, number = args
        return (replace(context, iterations=(int(number), *context.iterations)),)

    @impl(rt.SliceOp)
    def run_slice(
        self, interpreter: Interpreter, op: rt.SliceOp, args: PythonValues
    ) -> PythonValues:
        """A part of a buffer."""
        buffer, index = args
        _check_place(op, "index is outside of the buffer", "index", index, len(buffer))
        return (buffer[int(index), ...],)

    @impl(rt.ShuffleOp)
    def run_shuffle(
        self, interpreter: Interpreter, op: rt.ShuffleOp, args: PythonValues
    ) -> PythonValues:
        """The element of another thread."""
        parts, thread = args
        _check_place(op, "no such thread", "thread", thread, len(parts))
        return (parts[int(thread)],)

    @impl(rt.CopyAsyncOp)
    def run_copy_async(
        self, interpreter: Interpreter, op: rt.CopyAsyncOp, args: PythonValues
    ) -> PythonValues:
        """Copy at once."""
        source, target = args[0], args[1 + len(op.indices)]
        parts = list[np.ndarray]()
        for buffer, indices in ((source, args[1:]), (target, args[2 + len(op.indices) :])):
            first = 0
            for number, size in zip(indices, buffer.shape, strict=False):
                _check_place(op, "index is outside of the buffer", "index", number, size)
                first = first * size + int(number)
            last, size = first + op.count - 1, buffer.size
            _check_place(op, "it ends outside of the buffer", "place", last, size)
            parts.append(buffer.reshape(-1)[first : last + 1])
        parts[1][...] = parts[0]
        return ()

    @impl(rt.CallOp)
    def run_call(self, interpreter: Interpreter, op: rt.CallOp, args: PythonValues) -> PythonValues:
        """Call a kernel, on the memory of the device if it runs there."""
        if op.writes is None:
            return interpreter.call_op(op.callee, args)
        memory = memory_of(interpreter)
        first = len(args) - op.writes.value.data
        for number, buffer in enumerate(args[:first]):
            if isinstance(buffer, np.ndarray) and not memory.residence.is_on_device(*_span(buffer)):
                fact = f"argument {number} of {op.callee} was not copied to the device"
                raise CompileError(explain(op.name, fact, origin=origin(op)))
        memory.on_device = True
        try:
            results = interpreter.call_op(op.callee, args)
        finally:
            memory.on_device = False
        for buffer in args[first:]:
            memory.residence.written_by_device(*_span(buffer))
        return results

    @impl(rt.ToDeviceOp)
    def run_to_device(
        self, interpreter: Interpreter, op: rt.ToDeviceOp, args: PythonValues
    ) -> PythonValues:
        """Note that both have a buffer: they share their memory here."""
        check_host_reads(interpreter, op, args)
        memory_of(interpreter).residence.copied(*_span(args[0]))
        return ()

    @impl(rt.ToHostOp)
    def run_to_host(
        self, interpreter: Interpreter, op: rt.ToHostOp, args: PythonValues
    ) -> PythonValues:
        """Note that both have a buffer."""
        memory_of(interpreter).residence.copied(*_span(args[0]))
        return ()

    @impl(rt.CallPackedOp)
    def run_call_packed(
        self, interpreter: Interpreter, op: rt.CallPackedOp, args: PythonValues
    ) -> PythonValues:
        """Call a registered function."""
        context, *buffers = args
        words: list[int] = []
        for buffer in buffers:
            words += (
                [buffer.ctypes.data, *buffer.shape] if isinstance(buffer, np.ndarray) else [buffer]
            )
        array = np.array(words or [0], np.int64)
        if call_words(_entry(op, context.functions), array):
            raise _fail(op, context, ())
        return ()

    @impl(rt.CheckOp)
    def run_check(
        self, interpreter: Interpreter, op: rt.CheckOp, args: PythonValues
    ) -> PythonValues:
        """End the call if a condition does not hold."""
        context, condition, *details = args
        if not condition:
            raise _fail(op, context, details)
        return ()

    @impl(rt.CheckCsrOp)
    def run_check_csr(
        self, interpreter: Interpreter, op: rt.CheckCsrOp, args: PythonValues
    ) -> PythonValues:
        """End the call if a matrix is malformed."""
        context, indptr, indices, columns = args
        fault = fault_of(indptr, indices, int(columns))
        if fault is not None:
            raise _fail(op, context, fault)
        return ()

    @impl(rt.CheckIndexOp)
    def run_check_index(
        self, interpreter: Interpreter, op: rt.CheckIndexOp, args: PythonValues
    ) -> PythonValues:
        """End the call if an index is out of range."""
        context, indices, extent = args
        find = outside_from_front if op.from_front else outside
        fault = find(indices, int(extent))
        if fault is not None:
            raise _fail(op, context, fault)
        return ()

    @impl(rt.CheckOffsetsOp)
    def run_check_offsets(
        self, interpreter: Interpreter, op: rt.CheckOffsetsOp, args: PythonValues
    ) -> PythonValues:
        """End the call if an offset is out of range, or above the next one."""
        context, offsets, extent = args
        fault = wrong_offset(offsets, int(extent))
        if fault is not None:
            raise _fail(op, context, fault)
        return ()

    @impl(rt.ParallelTilesOp)
    def run_parallel_tiles(
        self, interpreter: Interpreter, op: rt.ParallelTilesOp, args: PythonValues
    ) -> PythonValues:
        """Run the tiles, whose order is unspecified."""
        if self._lockstep.run(interpreter, op):
            return ()
        count, *captured = args
        for tile in reversed(range(int(count))):
            interpreter.run_ssacfg_region(op.body, (tile, *captured), op.name)
        return ()

    @impl(rt.CallTilesOp)
    def run_call_tiles(
        self, interpreter: Interpreter, op: rt.CallTilesOp, args: PythonValues
    ) -> PythonValues:
        """Call a function for each tile, in unspecified order."""
        count, *arguments = args
        for tile in reversed(range(int(count))):
            interpreter.call_op(op.callee, (tile, *arguments))
        return ()

    @impl(rt.BarrierOp)
    def run_barrier(
        self, interpreter: Interpreter, op: rt.BarrierOp, args: PythonValues
    ) -> PythonValues:
        """Do nothing: ranges of threads run one after the other."""
        return ()

    @impl(rt.ClockOp)
    def run_clock(
        self, interpreter: Interpreter, op: rt.ClockOp, args: PythonValues
    ) -> PythonValues:
        """Read the clock."""
        return (np.int64(time.monotonic_ns()),)

    @impl(rt.RecordOp)
    def run_record(
        self, interpreter: Interpreter, op: rt.RecordOp, args: PythonValues
    ) -> PythonValues:
        """Add to a row of the table."""
        since, times = args
        times[op.row.value.data] += time.monotonic_ns() - since, 1
        return ()

    @impl_terminator(rt.YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: rt.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """End a tile."""
        return ReturnedValues(()), ()


def check_host_reads(interpreter: Interpreter, op: Operation, buffers: Iterable[Any]) -> None:
    """Check that the host has what it reads.

    Raises:
        CompileError: if a kernel of a device has written it, and it was not copied.
    """
    residence = memory_of(interpreter).residence
    for buffer in buffers:
        if isinstance(buffer, np.ndarray) and residence.is_stale(*_span(buffer)):
            fact = "the host reads what only the device has"
            raise CompileError(explain(op.name, fact, hint="rt.to_host", origin=origin(op)))


def note_host_writes(interpreter: Interpreter, buffers: Iterable[Any]) -> None:
    """Note that the host has written to buffers."""
    for buffer in buffers:
        if isinstance(buffer, np.ndarray):
            memory_of(interpreter).residence.written_by_host(*_span(buffer))


def _span(buffer: np.ndarray) -> tuple[int, int]:
    """The address of a buffer, and its bytes."""
    return buffer.ctypes.data, buffer.nbytes


def call_words(function: Callable[[Any], int], words: np.ndarray) -> int:
    """Call a registered function as compiled code does: with the address of an array of words."""
    return function(words.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)))

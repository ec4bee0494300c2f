"""Programs on buffers that are interpreted, but called like compiled ones.

Calls use the same frames and memory as compiled code: checks, results and errors are those of an
`Executable`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.interpreter import Interpreter
from xdsl.ir import Attribute

from ..backends.llvm.boundary.plan import ARGUMENTS
from ..backends.reference.listeners import CallingOperations
from ..backends.reference.machine import ReferenceMachine, call
from ..backends.reference.memory import Memory
from ..backends.reference.numbers import unknown
from ..backends.reference.remembered import Remembered
from ..backends.reference.rt import CallEnds, RuntimeContext, check_host_reads
from ..core.dtypes import dtype_of, element_type_of
from ..core.errors import CompileError, explain
from ..core.ir.module import Module
from ..core.ir.symbols import find_symbol
from ..dialects.program import is_on_buffers
from ..dialects.rt.abi import Word
from .executable import Executable
from .functions import callback, guarded
from .loaded import ENTRY_TYPE, Loaded, Program
from .lowered import Lowered, lowered
from .plan import frame_size


def run(module: Module, inputs: Sequence[object]) -> Any:
    """The results of a module at a stage that is IR, operation by operation: see `Module.run`.

    Raises:
        CompileError: if it makes an invalid access.
        InputError: if the inputs do not fit.
    """
    if not is_on_buffers(module.program):
        return module.run_reference(*inputs)
    return interpreted(module.op, lowered(module))(*inputs)


def interpreted(
    module: ModuleOp,
    program: Lowered,
    listeners: Sequence[Interpreter.Listener] = (),
    natives: Mapping[str, Callable[..., Any]] = {},
    remembered: Remembered | None = None,
) -> Executable:
    """An executable that runs a module operation by operation.

    Args:
        module: the program at stage `buffers`, `loops` or `llvm`, or between these stages.
        program: its interface and constants.
        listeners: notified of each operation that runs.
        natives: machine code for functions of stage `llvm`, by name.
        remembered: results of earlier runs.
    """
    functions = tuple(map(callback, program.interface.functions))
    entry = ENTRY_TYPE(
        guarded(_InterpretedRun(module, program, functions, listeners, natives, remembered))
    )
    address = ctypes.cast(entry, ctypes.c_void_p).value or 0
    made = Program(program.interface, program.constants, functions, address, entry)
    return Executable(Loaded(made))


class _InterpretedRun:
    """Runs a frame like compiled code."""

    def __init__(
        self,
        module: ModuleOp,
        program: Lowered,
        functions: Sequence[Any],
        listeners: Sequence[Interpreter.Listener],
        natives: Mapping[str, Callable[..., Any]],
        remembered: Remembered | None,
    ) -> None:
        function = find_symbol(module, program.name)
        if function is None:
            raise CompileError(explain("module", f"there is no function @{program.name}"))
        self.module, self.program, self.function = module, program, function
        self.functions = functions
        self.listeners, self.natives, self.remembered = tuple(listeners), natives, remembered

    def __call__(self, address: int) -> int:
        machine = ReferenceMachine(self.module, self.natives, self.remembered)
        machine.listen(self.listeners)
        for listener in self.listeners:
            if isinstance(listener, CallingOperations):
                listener.begins()
        signature = self.program.interface.signature
        size = frame_size(signature)
        words = _view(address, (size,), np.dtype(np.int64))
        arena = self._add_tables(machine.memory, words)
        tables = self.program.constants, self.functions
        context = RuntimeContext(machine.memory.add(words), words, arena.view(np.int8), *tables)
        taken = iter(words[ARGUMENTS:])
        flat = isinstance(self.function, llvm.FuncOp)
        arguments: list[Any] = [context.pointer if flat else context]
        arrays: list[np.ndarray] = []
        for kind in self.program.buffers:
            arguments += _argument(kind, taken, machine.memory, flat, arrays)
        # Invalidate the results, the last arrays, except those that are also inputs.
        first = len(arrays) - len(signature.outputs) - bool(signature.computed)
        for array in arrays[first:]:
            if not any(np.may_share_memory(array, given) for given in arrays[:first]):
                array[...] = unknown((), element_type_of(array.dtype))
        try:
            (status,) = call(machine, self.function, arguments)
        except CallEnds as end:
            return end.status
        if not status:
            check_host_reads(machine, self.function, arrays[first:])
        return int(status)

    def _add_tables(self, memory: Memory, words: np.ndarray) -> np.ndarray:
        """Allow access to everything that the context points to; returns the arena."""
        for word, table in (
            (Word.CONSTANTS, self.program.constants),
            (Word.FUNCTIONS, self.functions),
        ):
            memory.add(_view(int(words[word]), (len(table),), np.dtype(np.int64)))
        for array in self.program.constants:
            memory.add(array)
            memory.residence.copied(array.ctypes.data, array.nbytes)
        arena = _view(int(words[Word.ARENA]), (int(words[Word.ARENA_BYTES]),), np.dtype(np.uint8))
        arena.fill(255)  # every float is NaN until it is written
        memory.add(arena)
        return arena


def _argument(
    kind: Attribute, words: Iterator[Any], memory: Memory, flat: bool, arrays: list[np.ndarray]
) -> list[Any]:
    """The arguments for a type: a buffer (its address and symbolic sizes if `flat`) or a number.

    The array of a buffer is also appended to `arrays`.
    """
    if not isinstance(kind, MemRefType):
        return [next(words) if flat else int(next(words))]
    address = int(next(words))
    declared = kind.get_shape()
    symbolic = [next(words) for size in declared if size == DYNAMIC_INDEX]
    sizes = iter(symbolic)
    shape = tuple(int(next(sizes)) if n == DYNAMIC_INDEX else n for n in declared)
    array = _view(address, shape, dtype_of(kind.element_type))
    arrays.append(array)
    pointer = memory.add(array)
    return [pointer, *symbolic] if flat else [array]


def _view(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """The memory at an address as an array."""
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    raw = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, cast(Any, raw))

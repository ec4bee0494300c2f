"""The semantics of the LLVM dialect: functions, control flow, addresses and lanes.

An address is a `Pointer`, which bounds the accesses through it.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    IntegerAttr,
    MemRefType,
    SymbolRefAttr,
    VectorType,
)
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    Successor,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Attribute, Operation

from ...core.errors import UnsupportedError, explain
from ...core.instructions import of_intrinsic
from ...core.ir.provenance import origin
from ...core.ir.symbols import find_symbol
from ...core.ir.typed import vector_type
from ...dialects.program import KERNEL, kernel_arguments, launched_arguments
from ...dialects.rt import ops as rt
from ...dialects.upstream import ops as upstream
from ...dialects.x86vector import SCALE
from .instructions import computed, scaled
from .memory import Pointer, at, memory_of
from .numbers import (
    LIBM,
    Compute,
    Meaning,
    dtype_of,
    fixed,
    of_operation,
    shape_of,
    shape_with,
    typed,
    unknown,
)
from .rt import call_words

_WORD = np.dtype(np.int64)


@dataclass(frozen=True)
class FunctionAddress:
    """The address of a function of the module."""

    name: SymbolRefAttr


def _size_of(kind: Attribute) -> int:
    if isinstance(kind, llvm.LLVMPointerType):
        return _WORD.itemsize
    (lanes,) = shape_of(kind) or (1,)
    return lanes * dtype_of(kind).itemsize


def call_external(interpreter: Interpreter, op: llvm.FuncOp, args: PythonValues) -> PythonValues:
    """Call a function of the run time or of the C library: one without a body.

    Raises:
        UnsupportedError: if it is neither.
    """
    name = op.sym_name.data
    if name == rt.PARALLEL_TILES:
        return _run_tiles(interpreter, *args)
    if name == rt.LAUNCH:
        return _launch(interpreter, op, *args)
    if name in (rt.TO_DEVICE, rt.TO_HOST):
        return ()
    if name in (rt.THREAD, rt.THREADS):
        return (np.int64(name == rt.THREADS),)
    if name == rt.BARRIER:
        return ()
    if name == rt.COPY:
        byte, (target, source) = np.dtype(np.uint8), args
        at(op, target, byte, rt.COPIED_BYTES)[...] = at(op, source, byte, rt.COPIED_BYTES)
        return ()
    if name == rt.SHUFFLE:
        return (at(op, args[0], np.dtype(np.int32))[0],)
    if name == rt.SYSTEM_CLOCK:
        at(op, args[1], _WORD, 2)[:] = divmod(time.clock_gettime_ns(int(args[0])), 10**9)
        return (np.int32(0),)
    if name == rt.SYSTEM_ALLOCATE:
        return (memory_of(interpreter).add(np.full(int(args[1]), 255, np.uint8)),)
    if name == rt.SYSTEM_FREE:
        memory_of(interpreter).remove(args[0])
        return ()
    function = LIBM.get(name) or LIBM.get(name.removesuffix("f"))
    if function is None:
        raise UnsupportedError(explain(op.name, f"there is no body for @{name}"))
    return (typed(function(*args), op.function_type.output),)


def call_native(native: Callable[..., Any], op: llvm.FuncOp, args: PythonValues) -> PythonValues:
    """Call machine code for a function, which sees memory at the same addresses."""
    result = native(*(_plain(arg) for arg in args))
    return () if result is None else (typed(result, op.function_type.output),)


def _plain(value: Any) -> Any:
    """A value as an argument of a C function."""
    if isinstance(value, Pointer):
        return value.address
    return value.item() if isinstance(value, np.generic) else value


@register_impls
class LlvmFunctions(InterpreterFunctions):
    """Implementations of `llvm` for xDSL's interpreter, except arithmetic."""

    @impl(llvm.CallOp)
    def run_call(
        self, interpreter: Interpreter, op: llvm.CallOp, args: PythonValues
    ) -> PythonValues:
        """Call a function by its name, or a registered one by its address."""
        if op.callee is not None:
            return interpreter.call_op(op.callee, args)
        # A registered function, by its address in the context.
        function, words = args
        if words.allocation is None:
            raise UnsupportedError(explain(op.name, "points to nothing", origin=origin(op)))
        called: Callable[[Any], int] = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)
        )(function.address)
        status = call_words(called, words.allocation.bytes[words.offset :])
        return (typed(status, op.results[0].type),)

    @impl_terminator(llvm.ReturnOp)
    def run_return(
        self, interpreter: Interpreter, op: llvm.ReturnOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """End a function."""
        return ReturnedValues(args), ()

    @impl_terminator(llvm.BrOp)
    def run_branch(
        self, interpreter: Interpreter, op: llvm.BrOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """Branch to a block."""
        return Successor(op.successor, args), ()

    @impl_terminator(llvm.CondBrOp)
    def run_conditional_branch(
        self, interpreter: Interpreter, op: llvm.CondBrOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """Branch to one of two blocks."""
        if args[0]:
            return Successor(op.then_block, interpreter.get_values(op.then_arguments)), ()
        return Successor(op.else_block, interpreter.get_values(op.else_arguments)), ()

    @impl(llvm.AddressOfOp)
    def run_address_of(
        self, interpreter: Interpreter, op: llvm.AddressOfOp, args: PythonValues
    ) -> PythonValues:
        """The address of a function, or of a variable."""
        found = find_symbol(op, op.global_name)
        if not isinstance(found, llvm.GlobalOp):
            return (FunctionAddress(op.global_name),)
        memory = memory_of(interpreter)
        if found not in memory.variables:
            value = found.value.value.data if isinstance(found.value, IntegerAttr) else 0
            memory.variables[found] = memory.add(np.array([value], dtype_of(found.global_type)))
        return (memory.variables[found],)

    @impl(llvm.AllocaOp)
    def run_alloca(
        self, interpreter: Interpreter, op: llvm.AllocaOp, args: PythonValues
    ) -> PythonValues:
        """Memory in which every float is NaN."""
        size = int(args[0]) * _size_of(op.elem_type)
        return (memory_of(interpreter).add(np.full(size, 255, np.uint8)),)

    @impl(llvm.LoadOp)
    def run_load(
        self, interpreter: Interpreter, op: llvm.LoadOp, args: PythonValues
    ) -> PythonValues:
        """Read an address."""
        (address,) = at(op, args[0], _WORD)
        return (memory_of(interpreter).find(int(address)),)

    @impl(llvm.CallIntrinsicOp)
    def run_intrinsic(
        self, interpreter: Interpreter, op: llvm.CallIntrinsicOp, args: PythonValues
    ) -> PythonValues:
        """Copy bytes, or compute an instruction; prefetches do nothing."""
        if op.intrin.data == "llvm.prefetch.p0":
            return ()
        if op.intrin.data == SCALE:
            return (scaled(op, args),)
        if (instruction := of_intrinsic(op.intrin.data)) is not None:
            return (computed(instruction, args),)
        if op.intrin.data != "llvm.memcpy.p0.p0.i64":
            raise UnsupportedError(explain(op.name, "cannot be run", got=op.intrin.data))
        target, source, size, _ = args
        if size:
            byte = np.dtype(np.uint8)
            at(op, target, byte, int(size))[...] = at(op, source, byte, int(size))
        return ()


def loads_address(op: Operation) -> bool:
    """Whether an operation loads an address, for which it needs the memory."""
    is_load = isinstance(op, llvm.LoadOp)
    return is_load and isinstance(op.dereferenced_value.type, llvm.LLVMPointerType)


def _load(op: llvm.LoadOp) -> Compute:
    """Read a number or a vector."""
    kind = op.dereferenced_value.type
    dtype, (count,) = dtype_of(kind), shape_of(kind) or (1,)
    if isinstance(kind, VectorType):
        return lambda pointer: at(op, pointer, dtype, count).copy()
    return lambda pointer: at(op, pointer, dtype)[0]


def _store(op: llvm.StoreOp) -> Compute:
    """Write a number, an address or a vector."""
    kind = op.value.type
    is_address = isinstance(kind, llvm.LLVMPointerType)
    dtype, (count,) = _WORD if is_address else dtype_of(kind), shape_of(kind) or (1,)

    def compute(value: Any, pointer: Pointer) -> None:
        at(op, pointer, dtype, count)[...] = value.address if is_address else value

    return compute


def _element_pointer(op: upstream.GEPOp) -> Compute:
    """The address of an element, or one for each lane of an index."""
    (index,) = op.rawConstantIndices.get_values()
    size = _size_of(op.elem_type)
    if index != llvm.GEP_USE_SSA_VAL:
        return lambda pointer: pointer.moved(index * size)
    if isinstance(op.result.type, VectorType):
        return lambda pointer, lanes: np.array(
            [pointer.moved(int(n) * size) for n in lanes], object
        )
    return lambda pointer, number: pointer.moved(int(number) * size)


def _neighbours(pointer: Pointer, lanes: np.ndarray) -> list[Pointer]:
    return [pointer.moved(lane * lanes.itemsize) for lane in range(lanes.size)]


def _gathered(
    op: Operation, places: Sequence[Pointer], mask: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    """The elements in the lanes that a mask enables, those of `rest` in the others."""
    result = rest.copy()
    for lane, allowed in enumerate(mask):
        if allowed:
            result[lane] = at(op, places[lane], rest.dtype)[0]
    return result


def _masked_load(
    op: upstream.MaskedLoadOp, pointer: Pointer, mask: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    """Read the contiguous elements that the mask enables."""
    return _gathered(op, _neighbours(pointer, rest), mask, rest)


def _masked_store(
    op: upstream.MaskedStoreOp, value: np.ndarray, pointer: Pointer, mask: np.ndarray
) -> None:
    """Write the contiguous elements that the mask enables."""
    for place, number, allowed in zip(_neighbours(pointer, value), value, mask, strict=True):
        if allowed:
            at(op, place, value.dtype)[0] = number


def _insert_value(op: llvm.InsertValueOp) -> Compute:
    """Replace a member of a structure."""
    (number,) = op.position.get_values()
    return lambda structure, value: (*structure[:number], value, *structure[number + 1 :])


def _extract_value(op: llvm.ExtractValueOp) -> Compute:
    """A member of a structure."""
    (number,) = op.position.get_values()
    return lambda structure: structure[number]


def _insert_element(op: llvm.InsertElementOp) -> Compute:
    """Replace a lane."""

    def compute(target: np.ndarray, value: Any, lane: Any) -> np.ndarray:
        result = target.copy()
        result[int(lane)] = value
        return result

    return compute


def _shuffle(op: llvm.ShuffleVectorOp) -> Compute:
    """Lanes of two concatenated vectors; -1 is an undefined lane."""
    lanes = np.array(op.mask.get_values())
    nowhere, first = lanes < 0, vector_type(op.v1).element_count()
    if (lanes < first).all() and not nowhere.any():
        return lambda one, other: one[lanes]
    rest = unknown(lanes.shape, vector_type(op.results[0]).element_type)
    if not nowhere.any():
        return lambda one, other: np.concatenate((one, other))[lanes]
    return lambda one, other: np.where(nowhere, rest, np.concatenate((one, other))[lanes])


def _poison(op: upstream.PoisonOp) -> Compute:
    """An undefined value."""
    kind = op.res.type
    if isinstance(kind, llvm.LLVMStructType):
        return fixed((None,) * len(kind.types))
    return fixed(unknown(shape_of(kind), kind)[()])


COMPUTATIONS: Mapping[type[Operation], Meaning] = {
    llvm.ExtractValueOp: _extract_value,
    llvm.InsertElementOp: _insert_element,
    llvm.InsertValueOp: _insert_value,
    llvm.LoadOp: _load,
    llvm.PtrToIntOp: lambda op: lambda pointer: typed(pointer.address, op.results[0].type),
    llvm.ShuffleVectorOp: _shuffle,
    llvm.StoreOp: _store,
    upstream.ExtractElementOp: lambda op: lambda value, lane: value[int(lane)],
    upstream.GEPOp: _element_pointer,
    upstream.MaskedGatherOp: of_operation(_gathered),
    upstream.MaskedLoadOp: of_operation(_masked_load),
    upstream.MaskedStoreOp: of_operation(_masked_store),
    upstream.PoisonOp: _poison,
}
"""Operations whose results depend on their operands alone."""


def _run_tiles(
    interpreter: Interpreter,
    body: FunctionAddress,
    context: Pointer,
    count: int,
    threads: int,
    order: int,
) -> PythonValues:
    """Run tiles, whose order is unspecified."""
    for tile in reversed(range(int(count))):
        interpreter.call_op(body.name, (context, np.int64(tile)))
    return ()


def _launch(
    interpreter: Interpreter, op: llvm.FuncOp, number: int, words: Pointer, count: int
) -> PythonValues:
    """Run the threads of a kernel, a function of `llvm` or `func`, in unspecified order."""
    kernels = [one for one in interpreter.module.ops if KERNEL in one.attributes]
    kernel = kernels[int(number)]
    memory, arguments = memory_of(interpreter), list[Any]()
    source = (at(op, words.moved(8 * place), _WORD)[0] for place in itertools.count())
    for kind, first, sizes in launched_arguments(kernel_arguments(kernel), source):
        if not isinstance(kind, MemRefType):
            value = np.array([first]).view(np.uint8)[: dtype_of(kind).itemsize]
            arguments.append(typed(value.view(dtype_of(kind))[0], kind))
            continue
        pointer = memory.find(int(first))
        if isinstance(kernel, llvm.FuncOp):
            arguments += [pointer, *sizes]
            continue
        shape, dtype = shape_with(kind, iter(sizes)), dtype_of(kind.element_type)
        elements = at(op, pointer, dtype, prod(shape)) if prod(shape) else np.empty(0, dtype)
        arguments.append(elements.reshape(shape))
    for thread in reversed(range(int(count))):
        tile = np.int64(thread) if isinstance(kernel, llvm.FuncOp) else thread
        interpreter.call_op(kernel, (tile, *arguments))
    return ()

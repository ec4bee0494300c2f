"""The semantics of `memref`, and of the casts between buffers and addresses.

A buffer is a contiguous NumPy array of its shape. A new allocation holds NaN (for integers a large
odd number) until it is filled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import llvm, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    IndexType,
    IntegerType,
    MemRefType,
    UnrealizedConversionCastOp,
    VectorType,
)
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    impl,
    register_impls,
)
from xdsl.ir import Attribute, Operation

from ...core.errors import CompileError, UnsupportedError, explain
from ...core.ir.provenance import origin
from ...core.ir.typed import memref_type
from ...dialects.rt import ops as rt
from ...dialects.upstream import ops as upstream
from .loop import outside
from .memory import Pointer, at, memory_of
from .numbers import Meaning, dtype_of, of_operation, plain, shape_with, typed, unknown


def place(op: Operation, buffer: np.ndarray, indices: Sequence[Any]) -> tuple[int, ...]:
    """The index of an element.

    Raises:
        CompileError: if it is out of bounds.
    """
    index = tuple(map(int, indices))
    for dim, (number, size) in enumerate(zip(index, buffer.shape, strict=True)):
        if not 0 <= number < size:
            raise outside(op, dim, number, size)
    return index


def _load(op: memref.LoadOp, buffer: np.ndarray, *indices: Any) -> Any:
    """Read an element."""
    return buffer[place(op, buffer, indices)]


def _store(op: memref.StoreOp, value: Any, buffer: np.ndarray, *indices: Any) -> None:
    """Write an element."""
    buffer[place(op, buffer, indices)] = value


def _allocate(op: memref.AllocaOp | memref.AllocOp, *sizes: Any) -> np.ndarray:
    """Allocate an uninitialised buffer."""
    kind = memref_type(op.memref)
    return unknown(shape_with(kind, iter(sizes)), kind.element_type)


def _deallocate(op: memref.DeallocOp, buffer: np.ndarray) -> None:
    """Make the contents of a buffer undefined."""
    buffer[...] = unknown(buffer.shape, memref_type(op.memref).element_type)


def _view(op: memref.ViewOp, raw: np.ndarray, shift: Any, *sizes: Any) -> np.ndarray:
    """Bytes as a buffer of another type."""
    return _part(op, raw, int(shift), shape_with(op.result.type, iter(sizes)))


def _cast(op: memref.CastOp, buffer: np.ndarray) -> np.ndarray:
    """The same buffer, with more or fewer static sizes in its type."""
    sizes = memref_type(op.results[0]).get_shape()
    if any(n not in (DYNAMIC_INDEX, m) for n, m in zip(sizes, buffer.shape, strict=True)):
        fact, got = "wrong shape", buffer.shape
        raise CompileError(explain(op.name, fact, expected=sizes, got=got, origin=origin(op)))
    return buffer


def _reinterpret(op: upstream.ReinterpretCastOp, buffer: np.ndarray, *dynamic: Any) -> np.ndarray:
    """A contiguous part of a buffer in another shape."""
    numbers = iter(dynamic)
    (offset,) = op.static_offsets.get_values()
    first = int(next(numbers)) if offset == DYNAMIC_INDEX else offset
    shape = shape_with(op.result.type, numbers)
    return _part(op, buffer.reshape(-1).view(np.uint8), first * buffer.itemsize, shape)


def _copy(op: memref.CopyOp, source: np.ndarray, target: np.ndarray) -> None:
    """Copy all elements."""
    if source.shape != target.shape:
        fact, expected, got = "shapes differ", target.shape, source.shape
        raise CompileError(explain(op.name, fact, expected=expected, got=got, origin=origin(op)))
    target[...] = source


COMPUTATIONS: Mapping[type[Operation], Meaning] = {
    memref.AllocOp: of_operation(_allocate),
    memref.AllocaOp: of_operation(_allocate),
    memref.CastOp: of_operation(_cast),
    memref.CollapseShapeOp: plain(lambda buffer: buffer.reshape(-1)),
    memref.CopyOp: of_operation(_copy),
    memref.DeallocOp: of_operation(_deallocate),
    memref.DimOp: plain(lambda buffer, dim: buffer.shape[dim]),
    memref.LoadOp: of_operation(_load),
    memref.StoreOp: of_operation(_store),
    memref.ViewOp: of_operation(_view),
    upstream.PrefetchOp: plain(lambda *hint: None),
    upstream.ReinterpretCastOp: of_operation(_reinterpret),
}
"""Operations whose results depend on their operands alone."""


@register_impls
class BufferFunctions(InterpreterFunctions):
    """Implementations of casts between buffers and addresses for xDSL's interpreter."""

    @impl(UnrealizedConversionCastOp)
    def run_conversion(
        self, interpreter: Interpreter, op: UnrealizedConversionCastOp, args: PythonValues
    ) -> PythonValues:
        """A value converted between dialects of a partially converted module."""
        sources = [operand.type for operand in op.operands]
        targets = [result.type for result in op.results]
        if len(targets) == 1 and isinstance(targets[0], MemRefType):
            address, *sizes = args
            return (_buffer(op, address, targets[0], sizes),)
        if len(sources) == 1 and isinstance(sources[0], MemRefType):
            (buffer,) = args
            symbolic = zip(buffer.shape, sources[0].get_shape(), strict=True)
            sizes = [np.int64(size) for size, known in symbolic if known == DYNAMIC_INDEX]
            return (memory_of(interpreter).add(buffer), *sizes)
        if len(sources) == len(targets) == 1:
            return (_converted(op, args[0], sources[0], targets[0]),)
        raise UnsupportedError(explain(op.name, "cannot be run", origin=origin(op)))


def _part(op: memref.ViewOp | upstream.ReinterpretCastOp, raw: Any, first: int, shape: Any) -> Any:
    """Some bytes as a buffer."""
    kind = memref_type(op.result)
    dtype = dtype_of(kind.element_type)
    size = math.prod(shape) * dtype.itemsize
    raw = raw.view(np.uint8)
    if not 0 <= first <= raw.size - size:
        expected = f"0 <= offset <= {raw.size - size}"
        fact = f"{size} bytes are outside of the buffer"
        raise CompileError(explain(op.name, fact, expected=expected, got=first, origin=origin(op)))
    return raw[first : first + size].view(dtype).reshape(shape)


def _buffer(op: Operation, address: Pointer, kind: MemRefType, sizes: Sequence[Any]) -> np.ndarray:
    """The memory at an address as a buffer.

    A cast is not an access: if there are too few bytes, as before an arena has grown, the result is
    a buffer of undefined values.
    """
    shape, dtype = shape_with(kind, iter(sizes)), dtype_of(kind.element_type)
    allocation, size = address.allocation, math.prod(shape) * dtype.itemsize
    if allocation is None or not 0 <= address.offset <= allocation.bytes.size - size:
        return unknown(shape, kind.element_type)
    return at(op, address, dtype, math.prod(shape)).reshape(shape)


def _converted(op: Operation, value: Any, source: Attribute, target: Attribute) -> Any:
    if isinstance(source, rt.ContextType) and isinstance(target, llvm.LLVMPointerType):
        return value.pointer
    elements = [k.element_type if isinstance(k, VectorType) else k for k in (source, target)]
    if BFloat16Type() in elements:
        return np.asarray(value).view(dtype_of(target))[()]
    if all(isinstance(kind, IndexType | IntegerType) for kind in elements):
        return typed(value, target)
    if source == target:
        return value
    raise UnsupportedError(explain(op.name, "cannot be run", got=source, origin=origin(op)))

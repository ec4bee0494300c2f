"""The semantics of `memref`, and of the casts between buffers and addresses.

A buffer is a contiguous NumPy array of its shape. A new allocation holds NaN (for integers a large
odd number) until it is filled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

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
from ...core.provenance import origin
from ...core.typed import memref_type
from ...dialects.rt import ops as rt
from ...dialects.upstream import ops as upstream
from .loop import outside
from .memory import Pointer, at, memory_of
from .numbers import dtype_of, shape_with, typed, unknown


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


@register_impls
class BufferFunctions(InterpreterFunctions):
    """Implementations of `memref` and casts for xDSL's interpreter."""

    @impl(memref.LoadOp)
    def run_load(
        self, interpreter: Interpreter, op: memref.LoadOp, args: PythonValues
    ) -> PythonValues:
        """Read an element."""
        buffer, *indices = args
        return (buffer[place(op, buffer, indices)],)

    @impl(memref.StoreOp)
    def run_store(
        self, interpreter: Interpreter, op: memref.StoreOp, args: PythonValues
    ) -> PythonValues:
        """Write an element."""
        value, buffer, *indices = args
        buffer[place(op, buffer, indices)] = value
        return ()

    @impl(upstream.PrefetchOp)
    def run_prefetch(
        self, interpreter: Interpreter, op: upstream.PrefetchOp, args: PythonValues
    ) -> PythonValues:
        """Do nothing: a prefetch is a hint."""
        return ()

    @impl(memref.DimOp)
    def run_dim(
        self, interpreter: Interpreter, op: memref.DimOp, args: PythonValues
    ) -> PythonValues:
        """A size."""
        buffer, dim = args
        return (buffer.shape[dim],)

    @impl(memref.AllocaOp)
    def run_alloca(
        self, interpreter: Interpreter, op: memref.AllocaOp, args: PythonValues
    ) -> PythonValues:
        """Allocate an uninitialised buffer."""
        return (_allocated(op.memref.type, args),)

    @impl(memref.AllocOp)
    def run_alloc(
        self, interpreter: Interpreter, op: memref.AllocOp, args: PythonValues
    ) -> PythonValues:
        """Allocate an uninitialised buffer."""
        return (_allocated(op.memref.type, args),)

    @impl(memref.DeallocOp)
    def run_dealloc(
        self, interpreter: Interpreter, op: memref.DeallocOp, args: PythonValues
    ) -> PythonValues:
        """Make the contents of a buffer undefined."""
        (buffer,) = args
        buffer[...] = unknown(buffer.shape, memref_type(op.memref).element_type)
        return ()

    @impl(memref.ViewOp)
    def run_view(
        self, interpreter: Interpreter, op: memref.ViewOp, args: PythonValues
    ) -> PythonValues:
        """Bytes as a buffer of another type."""
        raw, shift, *sizes = args
        return (_part(op, raw, int(shift), shape_with(op.result.type, iter(sizes))),)

    @impl(memref.CastOp)
    def run_cast(
        self, interpreter: Interpreter, op: memref.CastOp, args: PythonValues
    ) -> PythonValues:
        """The same buffer, with more or fewer static sizes in its type."""
        (buffer,) = args
        sizes = memref_type(op.results[0]).get_shape()
        wrong = any(n not in (DYNAMIC_INDEX, m) for n, m in zip(sizes, buffer.shape, strict=True))
        if wrong:
            fact = "wrong shape"
            got = buffer.shape
            raise CompileError(explain(op.name, fact, expected=sizes, got=got, origin=origin(op)))
        return (buffer,)

    @impl(memref.CollapseShapeOp)
    def run_collapse_shape(
        self, interpreter: Interpreter, op: memref.CollapseShapeOp, args: PythonValues
    ) -> PythonValues:
        """The elements in one dimension."""
        (buffer,) = args
        return (buffer.reshape(-1),)

    @impl(upstream.ReinterpretCastOp)
    def run_reinterpret_cast(
        self, interpreter: Interpreter, op: upstream.ReinterpretCastOp, args: PythonValues
    ) -> PythonValues:
        """A contiguous part of a buffer in another shape."""
        buffer, *dynamic = args
        numbers = iter(dynamic)
        (offset,) = op.static_offsets.get_values()
        first = int(next(numbers)) if offset == DYNAMIC_INDEX else offset
        shape = shape_with(op.result.type, numbers)
        raw = buffer.reshape(-1).view(np.uint8)
        return (_part(op, raw, first * buffer.itemsize, shape),)

    @impl(memref.CopyOp)
    def run_copy(
        self, interpreter: Interpreter, op: memref.CopyOp, args: PythonValues
    ) -> PythonValues:
        """Copy all elements."""
        source, target = args
        if source.shape != target.shape:
            fact = "shapes differ"
            raise CompileError(
                explain(op.name, fact, expected=target.shape, got=source.shape, origin=origin(op))
            )
        target[...] = source
        return ()

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


def _allocated(kind: Attribute, sizes: PythonValues) -> np.ndarray:
    """An uninitialised buffer of a type."""
    return unknown(shape_with(kind, iter(sizes)), cast(MemRefType, kind).element_type)


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

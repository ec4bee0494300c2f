"""Accesses to contiguous buffers to LLVM loads, stores and address arithmetic.

A buffer is its address followed by one index for each symbolic dimension. Buffers on the stack are
allocated once, at the entry of the function, wherever `memref.alloca` stands.
"""

from __future__ import annotations

import math

from xdsl.context import Context
from xdsl.dialects import llvm, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i1,
    i8,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ..core.ir.typed import memref_type, owned
from ..core.pipelines.budgets import EXACT
from ..dialects.program import EFFORT, PARTS, SHARED
from ..dialects.rt import ops as rt
from ..dialects.rt.abi import ALIGNMENT
from ..dialects.upstream import ops as upstream
from .to_llvm.addresses import (
    bytes_of,
    element_address,
    load,
    number_of_elements,
    offset_address,
    sizes_of,
    store,
    sum_of,
)
from .to_llvm.calls import plain_call
from .to_llvm.checks import ALLOCATE, allocate
from .to_llvm.lowering import Lowering, LoweringTable, Parts, lower_module
from .to_llvm.types import NO_FASTMATH, PTR, byte_size, check_contiguous, int_attr, stored

MEMREF = LoweringTable()
"""How to lower each operation of `memref`."""

_STACK_EFFORT = StringAttr("light")
"""Small buffers on the stack become registers in passes of LLVM (`backends.llvm.jit.Effort`)."""


@MEMREF.on(memref.LoadOp)
def lower_load(op: memref.LoadOp, low: Lowering) -> SSAValue:
    return load(low, op.memref, op.indices, op.res.type)


@MEMREF.on(memref.StoreOp)
def lower_store(op: memref.StoreOp, low: Lowering) -> None:
    store(low, op.value, op.memref, op.indices)


@MEMREF.on(upstream.PrefetchOp)
def lower_prefetch(hint: upstream.PrefetchOp, low: Lowering) -> None:
    address = element_address(low, hint.memref, hint.indices)
    flags = (hint.is_write, hint.locality, hint.is_data)
    arguments = [address, *(low.integer(abs(flag.value.data), i32) for flag in flags)]
    low.perform(llvm.CallIntrinsicOp("llvm.prefetch.p0", arguments, []))


@MEMREF.on(memref.DimOp)
def lower_dim(dim: memref.DimOp, low: Lowering) -> SSAValue:
    type = dim.source.type
    number = low.known_integer(low.value(dim.index))
    if number is None or not isinstance(type, MemRefType):
        low.refuse("dimension is not known", "a constant")
    if not 0 <= number < type.get_num_dims():
        low.refuse("no such dimension", f"0 to {type.get_num_dims() - 1}", number)
    return sizes_of(low, dim.source)[number]


@MEMREF.on(memref.AllocaOp)
def lower_alloca(alloca: memref.AllocaOp, low: Lowering) -> SSAValue:
    type = memref_type(alloca.memref)
    check_contiguous(type)
    function = None if low.entry is None else low.entry.parent_op()
    if function is not None:
        function.attributes[EFFORT] = _STACK_EFFORT
    if not type.has_static_shape():
        low.refuse("size on the stack is not known", "a static shape", type)
    wanted = alloca.alignment.value.data if alloca.alignment is not None else ALIGNMENT
    properties: dict[str, Attribute] = {
        "elem_type": stored(type.element_type, low.index),
        "alignment": int_attr(max(wanted, byte_size(type.element_type, low.index)), 64),
    }
    count = low.integer(math.prod(type.get_shape()))
    made = low.hoist(alloca, llvm.AllocaOp, (count,), PTR, properties)
    marks = {name: value for name, value in alloca.attributes.items() if name in (PARTS, SHARED)}
    owned(made, llvm.AllocaOp).attributes |= marks
    return made


@MEMREF.on(memref.AllocOp)
def lower_alloc(alloc: memref.AllocOp, low: Lowering) -> Parts:
    type = memref_type(alloc.memref)
    check_contiguous(type)
    low.parts_of(type)
    sizes = [low.value(size) for size in alloc.dynamic_sizes]
    known = math.prod(size for size in type.get_shape() if size != DYNAMIC_INDEX)
    known, most = known * byte_size(type.element_type, low.index), 1 << low.index.width.data - 2
    if known > most:
        low.refuse("buffer is too large", f"at most {most} bytes", type)
    bytes = low.integer(known)
    for size in sizes:
        bytes = _limited_product(low, bytes, size, low.integer(most))
    if not low.is_declared(ALLOCATE):
        low.declare(rt.SYSTEM_ALLOCATE, llvm.LLVMFunctionType([low.index] * 2, PTR))
        low.declare(rt.SYSTEM_ABORT, llvm.LLVMFunctionType([]))
        low.add_symbol(allocate(low.index).clone())
    address = low.perform(plain_call(SymbolRefAttr(ALLOCATE), [bytes], PTR)).results[0]
    return (address, *sizes)


# A product that wraps around would be too little memory: nobody has the most, which it is instead.
def _limited_product(low: Lowering, bytes: SSAValue, size: SSAValue, most: SSAValue) -> SSAValue:
    """bytes * size, or `most` if that is less."""
    at_least_one = low.emit(llvm.OrOp, (bytes, low.integer(1)), low.index)
    fits = low.compare("ule", size, low.emit(llvm.UDivOp, (most, at_least_one), low.index))
    product = low.emit(llvm.MulOp, (bytes, size), low.index)
    return low.emit(upstream.LlvmSelectOp, (fits, product, most), low.index, NO_FASTMATH)


@MEMREF.on(memref.DeallocOp)
def lower_dealloc(dealloc: memref.DeallocOp, low: Lowering) -> None:
    low.declare(rt.SYSTEM_FREE, llvm.LLVMFunctionType([PTR]))
    address = low.parts(dealloc.memref)[0]
    low.perform(plain_call(SymbolRefAttr(rt.SYSTEM_FREE), [address], None))


# The view is of bytes, its address is that of the buffer plus the shift.
@MEMREF.on(memref.ViewOp)
def lower_view(view: memref.ViewOp, low: Lowering) -> Parts:
    shift = sum_of(low, view.byte_shift)
    address = offset_address(low, low.parts(view.source)[0], shift, i8)
    low.parts_of(view.result.type)
    return (address, *(low.value(size) for size in view.sizes))


@MEMREF.on(memref.CastOp)
def lower_cast(op: Operation, low: Lowering) -> Parts:
    source, target = op.operands[0], op.results[0].type
    if not isinstance(source.type, MemRefType) or not isinstance(target, MemRefType):
        low.refuse("rank is not known", "ranked buffers")
    low.parts_of(target)
    pairs = zip(sizes_of(low, source), target.get_shape(), strict=True)
    sizes = [size for size, known in pairs if known < 0]
    return (low.parts(source)[0], *sizes)


@MEMREF.on(memref.CollapseShapeOp)
def lower_collapse_shape(collapse: memref.CollapseShapeOp, low: Lowering) -> Parts:
    type = memref_type(collapse.result)
    low.parts_of(type)
    if type.get_num_dims() != 1:
        low.refuse("some dimensions are kept", "one dimension left", type)
    address = low.parts(collapse.src)[0]
    return (address, *([] if type.has_static_shape() else [number_of_elements(low, collapse.src)]))


@MEMREF.on(upstream.ReinterpretCastOp)
def lower_reinterpret_cast(cast_op: upstream.ReinterpretCastOp, low: Lowering) -> Parts:
    low.parts_of(cast_op.result.type)  # it has no layout, so the offset is 0
    address = low.parts(cast_op.source)[0]
    return (address, *(low.value(size) for size in cast_op.sizes))


@MEMREF.on(memref.AssumeAlignmentOp)
def lower_assume_alignment(op: Operation, low: Lowering) -> Parts:
    return low.parts(op.operands[0])


@MEMREF.on(memref.CopyOp)
def lower_copy(op: Operation, low: Lowering) -> None:
    source, target = op.operands
    bytes = bytes_of(low, source)
    arguments = [low.parts(target)[0], low.parts(source)[0], bytes]
    arguments.append(low.integer(0, i1))
    low.perform(llvm.CallIntrinsicOp(f"llvm.memcpy.p0.p0.{low.index}", arguments, []))


class ConvertMemrefToLlvmPass(ModulePass):
    """Lower accesses to contiguous buffers to loads, stores and address arithmetic.

    Before:
    ```mlir
    func.func @f(%x: memref<?x4xf32>, %i: index, %j: index) -> f32 {
      %0 = memref.load %x[%i, %j] : memref<?x4xf32>
      func.return %0 : f32
    }
    ```
    After:
    ```mlir
    func.func @f(%x: memref<?x4xf32>, %i: index, %j: index) -> f32 {
      %x1, %x2 = builtin.unrealized_conversion_cast %x : memref<?x4xf32> to !llvm.ptr, i64
      %0 = builtin.unrealized_conversion_cast %i : index to i64
      %1 = builtin.unrealized_conversion_cast %j : index to i64
      %2 = llvm.mlir.constant(4) : i64
      %3 = llvm.mul %0, %2 : i64
      %4 = llvm.getelementptr %x1[%3] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %5 = llvm.getelementptr %4[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %6 = llvm.load %5 {alignment = 4 : i64} : !llvm.ptr -> f32
      func.return %6 : f32
    }
    ```
    Requires: contiguous buffers; buffers on the stack of a static shape.
    Leaves: no operation of `memref`.
    """

    name = "convert-memref-to-llvm"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_module(ctx, op, MEMREF, ["memref"])

"""The levels of a device: a block of threads, its threads, and what they have in common.

```mlir
loop.for "b" %b to 4 blocks {
  %s = loop.local : memref<32xf32, #loop<space shared>>
  loop.for "t" %t to 32 threads { ... }
  loop.for "u" %u to 32 threads { ... }
}
```

A loop of kind `blocks` is at the top of a kernel, alone or perfectly nested with others. In it,
nests of kind `threads` run one after the other, each on the threads of the block. What is around
them, such as loops, loads and scalars, each thread computes for itself, and so it stores nothing. A
block without such nests has one thread. Without blocks, a nest of threads is at the top.

A buffer in space `threads` has a part for each thread, by the variables of the loops of threads.
Elements of 4 or 8 bytes may also be read from the part of another thread of the warp: in an
innermost loop to 32 at `(d0 + 5) mod 32`, and in a block of one warp outside of threads at a
constant. A device reads them from registers of that thread.

Kernels have no barriers: that a nest runs after another is their meaning. The conversion to `scf`
derives where threads have to wait for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)
from xdsl.traits import ConstantLike, is_side_effect_free

from ....core.algebra.affine import normalized
from ....core.dtypes import byte_size
from ....core.ir.typed import memref_type
from ..attrs import LoopKind, Space, SpaceAttr
from ..loop_base import LoopBase
from ..ops_access import LoadOp, StoreOp
from ..ops_values import LocalOp, refuse
from .bounds import iterations

WARP = 32
"""The threads that execute one instruction together."""
SHUFFLED_BYTES = (4, 8)
"""The sizes of the elements that threads of a warp read from registers of each other."""
SHARED_BYTES = 48 << 10
"""The memory that the threads of a block have in common without asking for more."""
VECTOR_BYTES = 16
"""The most that a thread loads or stores with one instruction."""


def is_on_device(kernel: Operation) -> bool:
    """Whether a kernel has loops whose iterations are threads of a device, or blocks of them."""
    top = kernel.regions[0].block.ops
    return any(isinstance(op, LoopBase) and op.kind.data.is_on_device for op in top)


def on_the_host(kernel: Operation) -> Operation | None:
    """The first operation of a kernel that the host would execute, scalars aside."""
    for op in kernel.regions[0].block.ops:
        if not is_scalar(op) and not (isinstance(op, LoopBase) and op.kind.data.is_on_device):
            return op
    return None


def is_scalar(op: Operation) -> bool:
    """Whether an operation computes scalars, such as sizes, of others, without any memory."""
    if op.has_trait(ConstantLike) or isinstance(op, memref.DimOp):
        return True
    return not op.regions and is_side_effect_free(op)


def check_kernel(kernel: Operation) -> None:
    """Check the loops of a kernel that are on a device; see `check_levels`.

    Raises:
        InvalidOperation: if one of them is at no place for its kind.
    """
    for op in kernel.walk():
        if isinstance(op, LoopBase):
            check_levels(op)


def check_levels(op: LoopBase) -> None:
    """Check that a loop on a device is at a place for its kind, and what blocks have in them.

    Raises:
        InvalidOperation: if it is not.
    """
    if not (op.kind.data.is_on_device or op.kind.data is LoopKind.ASYNC):
        return
    around = op.parent_op()
    outer = around.kind.data if isinstance(around, LoopBase) else None
    if op.kind.data is LoopKind.ASYNC:
        _check_copy(op)
        return
    if op.kind.data is LoopKind.BLOCKS:
        if outer is not None and outer is not LoopKind.BLOCKS:
            refuse(op, "blocks inside of another loop", "a loop of blocks around it", outer)
        _check_block(op)
        return
    if outer is None or outer in (LoopKind.THREADS, LoopKind.BLOCKS):
        return
    kinds = [loop.kind.data for loop in _around(op)]
    if LoopKind.BLOCKS not in kinds or LoopKind.THREADS in kinds:
        refuse(op, "threads inside of another loop", "a loop of threads around it", outer)


def thread_nest(op: Operation) -> list[LoopBase]:
    """The loops of threads around an operation, outer ones first."""
    return [loop for loop in _around(op) if loop.kind.data is LoopKind.THREADS][::-1]


def is_in_block(op: Operation) -> bool:
    """Whether an operation is inside of a loop of blocks."""
    return any(loop.kind.data is LoopKind.BLOCKS for loop in _around(op))


def space_of(op: LocalOp) -> Space | None:
    """The memory space of a local buffer."""
    space = memref_type(op.result).memory_space
    return space.data if isinstance(space, SpaceAttr) else None


def reads_another_part(op: Operation) -> bool:
    """Whether an operation reads what another thread of the warp has in space `threads`."""
    if not isinstance(op, LoadOp) or not isinstance(op.buffer.owner, LocalOp):
        return False
    kind, nest, places = memref_type(op.buffer), thread_nest(op), op.map.data.results
    if space_of(op.buffer.owner) is not Space.THREADS:
        return False
    if byte_size(kind.element_type) not in SHUFFLED_BYTES:
        return False
    if not nest:
        return kind.get_shape() == (WARP,) and isinstance(places[0], AffineConstantExpr)
    extents = tuple(iterations(loop.bound.data, loop.bounds) for loop in nest)
    if extents != kind.get_shape() or extents[-1] != WARP or op.result.type != kind.element_type:
        return False
    *outer, lane = (
        AffineExpr.dimension(list(op.indices).index(loop.variable))
        if loop.variable in op.indices
        else None
        for loop in nest
    )
    match places[-1]:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, turned, AffineConstantExpr(value=size)):
            fits = lane is not None and isinstance(normalized(turned - lane), AffineConstantExpr)
            return fits and size == WARP and list(places[:-1]) == outer
        case _:
            return False


def _check_copy(copy: LoopBase) -> None:
    """Check that the iterations of a loop are a copy of 16 bytes to shared memory."""
    match list(copy.body.block.ops):
        case [LoadOp() as load, StoreOp() as store] if store.value is load.result:
            owner, size = store.buffer.owner, iterations(copy.bound.data, copy.bounds)
            width = byte_size(memref_type(load.buffer).element_type)
            is_shared = isinstance(owner, LocalOp) and space_of(owner) is Space.SHARED
            along = all(_goes_along(one, copy.variable) for one in (load, store))
            if is_shared and along and size == VECTOR_BYTES // width and not store.accumulates:
                return
        case _:
            pass
    expected = "a load of neighbours and a store to shared memory, of 16 bytes together"
    refuse(copy, "no asynchronous copy", expected)


def _goes_along(access: LoadOp | StoreOp, variable: SSAValue) -> bool:
    """Whether an access goes to the next element of its buffer with a loop variable."""
    indices = list(access.indices)
    if indices.count(variable) != 1 or access.limits:
        return False
    dim = indices.index(variable)
    *outer, last = access.map.data.results
    rest = [*outer, normalized(last - AffineExpr.dimension(dim))]
    return all(dim not in expr.used_dims() for expr in rest)


def _around(op: Operation) -> Iterator[LoopBase]:
    around = op.parent_op()
    while isinstance(around, LoopBase):
        yield around
        around = around.parent_op()


def _check_block(blocks: LoopBase) -> None:
    outside = list(_outside_of_threads(blocks))
    if not any(isinstance(op, LoopBase) and op.kind.data is LoopKind.THREADS for op in outside):
        return
    for op in outside:
        if isinstance(op, StoreOp):
            refuse(op, "a store of each thread of the block", "a loop of threads around it")
        if isinstance(op, LocalOp):
            if isinstance(memref_type(op.result).memory_space, NoneAttr):
                expected = "#loop<space shared> or #loop<space threads>"
                refuse(op, "a buffer of a block has no memory space", expected, op.result.type)
            if space_of(op) is Space.THREADS:
                for use in op.result.uses:
                    if not reads_another_part(use.operation):
                        _check_own_part(use.operation)


def _outside_of_threads(around: LoopBase) -> Iterator[Operation]:
    """The operations in a loop that are in no loop of threads."""
    for op in around.body.block.ops:
        yield op
        if isinstance(op, LoopBase) and not op.kind.data.is_on_device:
            yield from _outside_of_threads(op)


def _check_own_part(access: Operation) -> None:
    """Check that each thread accesses its own part of a buffer in space `threads`."""
    if not isinstance(access, LoadOp | StoreOp):
        return
    nest = thread_nest(access)
    first: Sequence[object] = [
        access.indices[expr.position] if isinstance(expr, AffineDimExpr) else None
        for expr in access.map.data.results[: len(nest)]
    ]
    if not nest or first != [loop.variable for loop in nest]:
        names = ", ".join(loop.loop_name.data for loop in nest) or "loops of threads around it"
        refuse(access, "not the part of the thread in a buffer of space threads", names)
    extents = tuple(iterations(loop.bound.data, loop.bounds) for loop in nest)
    if extents != (parts := memref_type(access.buffer).get_shape()[: len(nest)]):
        refuse(access, "the threads around it are not those that have parts", parts, extents)

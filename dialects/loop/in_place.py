"""In-place kernels: an output that may be written over an input."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr

from .ops import IN_PLACE, ForOp, KernelOp, LoadOp, StoreOp


def overwritable(kernel: KernelOp, output: SSAValue) -> list[int]:
    """The inputs of a kernel that is not scheduled whose buffer an output may take.

        for i, j: y[i, j] = f(x[i, j], ...)

    Each element of such an input is read once, by the iteration that writes its place, and before
    it does. Schedules keep to that: none takes a load past a store that needs its value, and
    none reads an element again.
    """
    store = _only_store(output)
    if store is None or not _is_one_to_one(store):
        return []
    found: list[int] = []
    for number, value in enumerate(kernel.inputs):
        if value.type != output.type:
            continue
        users = [u.operation for u in value.uses if not isinstance(u.operation, memref.DimOp)]
        match users:
            case [LoadOp() as load] if _reads_what_is_written(load, store):
                found.append(number)
            case _:
                pass
    return found


def may_overwrite(kernel: KernelOp, output: int) -> set[int]:
    """The inputs that argument `output` may be written over, by `loop.in_place`."""
    marked = kernel.attrs_of(output).get(IN_PLACE, ArrayAttr([]))
    return {index.value.data for index in cast(ArrayAttr[IntegerAttr], marked)}


def sharing(kernel: KernelOp) -> set[int]:
    """The arguments whose buffers may be those of others, by `loop.in_place`."""
    count = len(kernel.inputs) + len(kernel.outputs)
    pairs = {number: may_overwrite(kernel, number) for number in range(count)}
    return {number for number, over in pairs.items() if over}.union(*pairs.values())


def _only_store(output: SSAValue) -> StoreOp | None:
    """The only operation but `memref.dim` that uses an output, if that stores to it."""
    users = [u.operation for u in output.uses if not isinstance(u.operation, memref.DimOp)]
    match users:
        case [StoreOp() as store] if store.buffer is output and store.value is not output:
            return store
        case _:
            return None


def _is_one_to_one(store: StoreOp) -> bool:
    """Whether no two iterations write to one place: each variable around it is a coordinate."""
    variables: set[SSAValue] = set()
    block: Block | None = store.parent
    while block is not None and not isinstance(parent := block.parent_op(), KernelOp):
        if not isinstance(parent, ForOp):
            return False
        variables.add(parent.variable)
        block = parent.parent
    map = store.map.data
    coordinates = {store.indices[e.position] for e in map.results if isinstance(e, AffineDimExpr)}
    return variables <= coordinates


def _reads_what_is_written(load: LoadOp, store: StoreOp) -> bool:
    return (
        load.parent is store.parent
        and load.map == store.map
        and list(load.indices) == list(store.indices)
        and load.result.type == store.value.type
        and not load.limits
        and not store.limits
        and load.is_before_in_block(store)
    )

"""In-place kernels: an output that may be written over an input."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from ....core.ir.walks import operations_in
from ..ops import ForOp, KernelOp, LoadOp, StoreOp


def overwritable(kernel: KernelOp, output: SSAValue) -> list[int]:
    """The inputs of an unscheduled kernel whose buffers an output may take.

        for i, j: y[i, j] = f(x[i, j], ...)

    Each element of such an input is read once, by the iteration that overwrites it, and only to
    compute what replaces it: the kernel has no other store. Schedules and conversions preserve
    this: none moves a load past the store that overwrites its element, or repeats it after that
    store.
    """
    store = _only_store(kernel, output)
    if store is None or not _is_one_to_one(store):
        return []
    found: list[int] = []
    for number, value in enumerate(kernel.inputs):
        if value.type != output.type:
            continue
        match _loads(value):
            case [LoadOp() as load] if _reads_what_is_written(load, store):
                found.append(number)
            case _:
                pass
    return found


def sharing(kernel: KernelOp) -> set[int]:
    """The arguments that may have the buffer of another one, by `loop.in_place`."""
    count = len(kernel.inputs) + len(kernel.outputs)
    pairs = {number: kernel.may_overwrite(number) for number in range(count)}
    return {number for number, over in pairs.items() if over}.union(*pairs.values())


def read_in(op: Operation) -> set[SSAValue]:
    """The buffers that an operation reads: what it loads from, and the matrices it follows."""
    found: set[SSAValue] = set()
    for inner in operations_in(op):
        if isinstance(inner, LoadOp):
            found.add(inner.buffer)
        elif isinstance(inner, ForOp):
            found.update(inner.matrix)
    return found


def written_in(kernel: KernelOp, op: Operation) -> set[SSAValue]:
    """The buffers of a kernel that an operation may write to.

    These are the buffers that it stores to, and the inputs that have such a buffer, by
    `loop.in_place`.
    """
    written = {inner.buffer for inner in operations_in(op) if isinstance(inner, StoreOp)}
    args, count = kernel.body.block.args, len(kernel.inputs)
    for number, output in enumerate(kernel.outputs, count):
        if output in written:
            written |= {args[given] for given in kernel.may_overwrite(number)}
    return written


def _only_store(kernel: KernelOp, output: SSAValue) -> StoreOp | None:
    """The only store of a kernel, if it is to an output that is never read."""
    match [op for op in operations_in(kernel) if isinstance(op, StoreOp)]:
        case [store] if store.buffer is output and not (store.accumulates or _loads(output)):
            return store
        case _:
            return None


def _loads(buffer: SSAValue) -> list[Operation]:
    """The operations on a buffer other than stores and queries of its sizes."""
    users = [use.operation for use in buffer.uses]
    return [user for user in users if not isinstance(user, StoreOp | memref.DimOp)]


def _is_one_to_one(store: StoreOp) -> bool:
    """Whether no two iterations write to one place: each variable around it is a coordinate."""
    variables: set[SSAValue] = set()
    block: Block | None = store.parent
    while block is not None and not isinstance(parent := block.parent_op(), KernelOp):
        if not isinstance(parent, ForOp) or not parent.is_plain:
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

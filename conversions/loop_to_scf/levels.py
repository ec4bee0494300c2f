"""Where the threads of a block wait for each other, and how many a block has."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from ...core.dtypes import byte_size
from ...core.ir.typed import memref_type
from ...dialects.loop import ops as loop
from ...dialects.loop.attrs import LoopKind, Space
from ...dialects.loop.loops import is_made_in, loops_in, most_iterations
from ...dialects.loop.proofs.levels import WARP, space_of

MOST_THREADS = 1024
"""The most threads that a block has on any device."""
_USUAL_THREADS = 128
"""The threads of a block where no nest of it has a known size."""

Buffers = frozenset[SSAValue]


def threads_of(blocks: loop.ForOp) -> int:
    """The threads of a block: those that have parts of buffers, else those of its largest nest."""
    nests = [nest for nest in loops_in(blocks.body.block) if _is_nest(nest)]
    if not nests:
        return 1
    sizes = [_threads(nest) for nest in nests if _has_parts(nest)] or [
        _threads(nest) for nest in nests
    ]
    most = max((size for size in sizes if size is not None), default=_USUAL_THREADS)
    return min(MOST_THREADS, max(1, -(-most // WARP)) * WARP)


def shared_bytes(blocks: loop.ForOp) -> int:
    """The bytes of the buffers of a block in space `shared`."""
    buffers = [op for op in blocks.walk() if isinstance(op, loop.LocalOp)]
    kinds = [memref_type(op.result) for op in buffers if space_of(op) is Space.SHARED]
    return sum(math.prod(kind.get_shape()) * byte_size(kind.element_type) for kind in kinds)


def _is_nest(op: Operation) -> bool:
    """Whether an operation is the outermost loop of a nest of threads."""
    if not isinstance(op, loop.ForOp) or op.kind.data is not LoopKind.THREADS:
        return False
    around = op.parent_op()
    return not isinstance(around, loop.ForOp) or around.kind.data is not LoopKind.THREADS


def _has_parts(nest: loop.ForOp) -> bool:
    """Whether a nest accesses what each thread has a part of."""
    accesses = [op for op in nest.walk() if isinstance(op, loop.LoadOp | loop.StoreOp)]
    owners = [op.buffer.owner for op in accesses]
    return any(isinstance(o, loop.LocalOp) and space_of(o) is Space.THREADS for o in owners)


def _threads(nest: loop.ForOp) -> int | None:
    """The most iterations of a nest of threads, None where they are not known."""
    inside = [op for op in loops_in(nest.body.block) if op.kind.data is LoopKind.THREADS]
    counts = [most_iterations(op) for op in (nest, *inside)]
    known = [count for count in counts if count is not None]
    return math.prod(known) if len(known) == len(counts) else None


def barriers(blocks: loop.ForOp) -> set[Operation]:
    """The operations of a block before which its threads wait for each other.

    These are nests of threads, loops that need no barrier in them, and loads of all threads or
    loops of these, that access what an earlier nest has written, or write what it has accessed,
    with no other barrier between.
    """
    found = set[Operation]()
    _add_barriers(blocks.body.block.ops, frozenset(), frozenset(), found)
    return found


def _add_barriers(
    ops: Iterable[Operation], read: Buffers, written: Buffers, found: set[Operation]
) -> tuple[Buffers, Buffers]:
    """Add the operations that need a barrier before them to those found.

    Args:
        ops: operations of a block, in order.
        read: the buffers that have been read since the last barrier.
        written: those that have been written since.
        found: the operations before which there is a barrier.

    Returns:
        What has been read and written since the last barrier at the end.
    """
    for op in ops:
        inside = list[Operation]()
        if isinstance(op, loop.ForOp) and any(map(_is_nest, loops_in(op.body.block))):
            # Twice, since an iteration follows another.
            inside = [*op.body.block.ops] * 2
        alone = set[Operation]()
        own = _add_barriers(inside, frozenset(), frozenset(), alone)
        if alone:
            # There may be no iteration at all.
            found |= alone
            after = _add_barriers(inside, read, written, found)
            read, written = read | after[0], written | after[1]
            continue
        own_read, own_written = own if inside else _accessed(op)
        if op in found or own_written & (read | written) or own_read & written:
            found.add(op)
            read = written = frozenset()
        read, written = read | own_read, written | own_written
    return read, written


def _accessed(op: Operation) -> tuple[Buffers, Buffers]:
    """The buffers that an operation reads and those that it writes, which other threads access."""
    read, written = set[SSAValue](), set[SSAValue]()
    for inner in op.walk():
        if not isinstance(inner, loop.LoadOp | loop.StoreOp):
            continue
        owner = inner.buffer.owner
        if isinstance(owner, loop.LocalOp) and space_of(owner) is Space.THREADS:
            continue
        if isinstance(op, loop.ForOp) and is_made_in(inner.buffer, op):
            continue
        if isinstance(inner, loop.LoadOp) or inner.accumulates:
            read.add(inner.buffer)
        if isinstance(inner, loop.StoreOp):
            written.add(inner.buffer)
    return frozenset(read), frozenset(written)


def parts_of(local: loop.LocalOp, dims: int) -> tuple[int, list[int]]:
    """How many threads have a part of a buffer in space `threads`, and the shape of a part."""
    shape = list(memref_type(local.result).get_shape())
    return math.prod(shape[:dims]), shape[dims:]

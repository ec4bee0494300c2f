"""Buffers: their sizes, loads, stores and prefetches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap

from ...core.algebra.affine import DivisorError
from ...core.algebra.expressions import ZERO, Affine
from ...core.dtypes import byte_size
from ...core.ir.typed import memref_type, owned
from ...dialects.loop import ops as loop
from ...dialects.loop.attrs import Space
from ...dialects.loop.proofs.levels import is_in_block, reads_another_part, space_of, thread_nest
from ...dialects.loop.vectors import BRANCH
from ...dialects.program import PARTS, SHARED
from ...dialects.rt import ops as rt
from ...dialects.rt.abi import ALIGNMENT
from ...dialects.upstream import ops as upstream
from .accesses import BlockAccess
from .blocks import VectorBlock
from .indices import fixed
from .levels import MOST_THREADS, parts_of
from .state import State, StateTable, refuse
from .transfers import BlockStore, LoadBlock, store_block

MEMORY = StateTable()

STACK_BYTES = 1 << 16
"""A larger local buffer, or one of symbolic size, is on the heap."""

_ALIGNED = IntegerAttr(ALIGNMENT, i64)
_TO_BE_READ = upstream.prefetch_properties(is_write=False, locality=3, is_data=True)


@MEMORY.on(memref.DimOp)
def _dimension(op: memref.DimOp, state: State) -> None:
    """The size of a dimension of a buffer."""
    number = state.form(op.index).number
    if number is None or not isinstance(op.source.type, MemRefType):
        refuse(op, "dimension is not known", "a constant")
    if not 0 <= number < op.source.type.get_num_dims():
        refuse(op, "no such dimension", f"below {op.source.type.get_num_dims()}", number)
    state.values[op.result] = state.buffers.size(state.scalar(op.source), number)


@MEMORY.on(loop.LocalOp)
def _local(op: loop.LocalOp, state: State) -> None:
    """A buffer on the stack of the function or tile, or on the heap for one iteration."""
    kind, emit = memref_type(op.result), state.emitter
    if (space := space_of(op)) is not None:
        _local_of_block(op, state, space)
        return
    if kind.has_static_shape() and _bytes_of(kind) <= STACK_BYTES:
        properties = {"alignment": _ALIGNED, "operandSegmentSizes": _segments(0)}
        value = emit.emit_head(memref.AllocaOp, [], kind, properties, emit.frame)
        state.buffers.contents.track(value)
    else:
        # Freed at the end of the iteration.
        sizes = [state.indices.not_negative(state.form(size)) for size in op.sizes]
        operands = [state.indices.value(size) for size in sizes]
        properties = {"operandSegmentSizes": _segments(len(sizes))}
        value = emit.emit(memref.AllocOp, operands, [kind], properties).results[0]
        state.buffers.know_sizes(value, sizes)
        state.allocated.append(op.result)
    state.buffers.written.add(value)
    state.values[op.result] = value


def _local_of_block(op: loop.LocalOp, state: State, space: Space) -> None:
    """A buffer of the threads of a block, at its top; where each has a part, by thread."""
    kind, emit = memref_type(op.result), state.emitter
    if thread_nest(op) or not is_in_block(op):
        refuse(op, "the buffer is in no block", "a loop of blocks around it", kind.memory_space)
    mark: dict[str, Attribute] = {SHARED: UnitAttr()}
    shape = list(kind.get_shape())
    if space is Space.THREADS:
        dims = max((len(thread_nest(use.operation)) for use in op.result.uses), default=1)
        count, rest = parts_of(op, dims)
        if count > MOST_THREADS:
            refuse(op, "a block has too few threads", f"at most {MOST_THREADS} parts", count)
        mark = {PARTS: IntegerAttr(count, i64)}
        shape = [count, *rest]
    properties = {"alignment": _ALIGNED, "operandSegmentSizes": _segments(0)}
    flat = MemRefType(kind.element_type, shape)
    value = emit.emit_head(memref.AllocaOp, [], flat, properties, emit.frame)
    owned(value, memref.AllocaOp).attributes |= mark
    state.buffers.written.add(value)
    state.values[op.result] = value


def _bytes_of(kind: MemRefType) -> int:
    return prod(kind.get_shape()) * byte_size(kind.element_type)


def _segments(sizes: int) -> DenseArrayBase:
    """The numbers of sizes and of symbols of an allocation."""
    return DenseArrayBase.from_list(i32, [sizes, 0])


def _limits(op: loop.LoadOp | loop.StoreOp, state: State) -> dict[int, Affine]:
    """How many lanes along each limited axis are inside the buffer."""
    pairs = zip(op.limited.get_values(), op.limits, strict=True)
    return {axis: state.form(limit) for axis, limit in pairs}


def _access(
    op: loop.LoadOp | loop.StoreOp | loop.PrefetchOp,
    state: State,
    kind: Attribute | None = None,
    limits: dict[int, Affine] | None = None,
) -> BlockAccess:
    """Where the lanes of a value of type `kind` are."""
    layout = state.layout(kind) if isinstance(kind, VectorType) else None
    if layout is not None and layout.merged == 2 and limits:
        refuse(op, "lanes are limited along merged axes", "machine vectors of each row")
    buffer = state.scalar(op.buffer)
    if op.buffer in state.writes[state.kernel]:
        state.buffers.written.add(buffer)
    dims = [state.form(value) for value in op.indices]
    map = op.map.data
    if (known := len(map.results) - memref_type(buffer).get_num_dims()) > 0:
        # It is the part of a thread, whose loops were the first indices.
        map = AffineMap(map.num_dims, map.num_symbols, map.results[known:])
    try:
        return BlockAccess(state.buffers, buffer, map, dims, layout, {**(limits or {})})
    except DivisorError as error:
        refuse(op, str(error))


@MEMORY.on(loop.LoadOp)
def _load(op: loop.LoadOp, state: State) -> None:
    """Load a scalar now, a block on demand."""
    kind = op.result.type
    if reads_another_part(op):
        _shuffle(op, state)
        return
    access = _access(op, state, kind, _limits(op, state))
    if isinstance(kind, VectorType):
        layout = state.layout(kind)
        block = LoadBlock(state.emitter, layout, kind.element_type, access, state.hoisted)
        state.values[op.result] = block
        if access.buffer in state.buffers.written:
            state.pending.append((op.buffer, block))
        return
    place = access.place(())
    found = access.known(place, 1)
    if found is None:
        operands = state.buffers.operands(access.buffer, place, False)
        found = state.emitter.emit(memref.LoadOp, operands, [kind]).results[0]
    state.values[op.result] = found


def _shuffle(op: loop.LoadOp, state: State) -> None:
    """Read what another thread of the warp has."""
    thread, dims = fixed(0), [state.form(value) for value in op.indices]
    for size, number in zip(
        memref_type(op.buffer).get_shape(),
        state.evaluate(op, op.map.data.results, dims),
        strict=True,
    ):
        thread = thread * size + number
    operands = [state.wholes.get(op.buffer) or state.scalar(op.buffer)]
    operands.append(state.indices.value(thread))
    shuffle = state.emitter.emit(rt.ShuffleOp, operands, [op.result.type])
    shuffle.attributes[PARTS] = IntegerAttr(prod(memref_type(op.buffer).get_shape()), i64)
    state.values[op.result] = shuffle.results[0]


@MEMORY.on(loop.StoreOp)
def _store(op: loop.StoreOp, state: State) -> None:
    """Store a scalar or a block; an accumulating store loads, joins and stores."""
    state.load_pending(op.buffer)
    limits, value = _limits(op, state), state.values[op.value]
    access = _access(op, state, op.value.type, limits)
    if isinstance(value, VectorBlock):
        *rows, lanes = value.layout.shape
        valid = limits.pop(len(rows), None) if BRANCH in op.attributes else None
        most = None if valid is None else state.indices.ranges.of(valid)[1]
        if valid is None or (most is not None and most < lanes):
            store_block(access, value, op.accumulates)
            return
        emit, whole = state.emitter, _access(op, state, op.value.type, limits)
        for predicate, part in (("sge", whole), ("slt", access)):
            condition = emit.compare(predicate, state.indices.value(valid), emit.index(lanes))
            with emit.guarded(condition):
                store_block(part, value, op.accumulates, certain=False)
        return
    scalar, place = state.scalar(op.value), access.place(())
    operands = access.buffers.operands(access.buffer, place, False)
    BlockStore(scalar, place, operands, 1).emit(access, True, op.accumulates)


def copy_async(op: loop.ForOp, state: State) -> bool:
    """Copy what the iterations of a loop load and store, without waiting for it.

    Returns:
        Whether it may: the buffer that is read begins at a multiple of 16 bytes.
    """
    load, store = op.body.block.ops
    assert isinstance(load, loop.LoadOp)
    assert isinstance(store, loop.StoreOp)
    if load.buffer not in state.aligned:
        return False
    state.load_pending(store.buffer)
    operands: list[Sequence[SSAValue]] = []
    with state.inside(op):
        state.values[op.variable] = ZERO
        for one in (load, store):
            access = _access(one, state)
            operands.append(state.buffers.operands(access.buffer, access.place(()), False))
        ones = [n for one in operands for n in (1, len(one) - 1)]
        properties = {"operandSegmentSizes": DenseArrayBase.from_list(i32, ones)}
        values = [value for one in operands for value in one]
        copy = state.emitter.emit(rt.CopyAsyncOp, values, [], properties)
        copy.attributes[SHARED] = UnitAttr()
    return True


@MEMORY.on(loop.PrefetchOp)
def _prefetch(op: loop.PrefetchOp, state: State) -> None:
    """A prefetch into the nearest cache."""
    access = _access(op, state)
    operands = state.buffers.operands(access.buffer, access.place(()), False)
    state.emitter.emit(upstream.PrefetchOp, operands, [], _TO_BE_READ)

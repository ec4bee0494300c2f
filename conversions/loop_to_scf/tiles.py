"""Tile loops: a range of tiles for threads, each isolated from the code around it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...core.algebra.expressions import Affine
from ...core.building.arithmetic import INDEX
from ...core.building.creation import copied
from ...core.ir.typed import memref_type, resized
from ...core.ir.walks import operations_in
from ...dialects.loop import ops as loop
from ...dialects.loop.attrs import LoopKind, Space
from ...dialects.loop.proofs.levels import (
    SHARED_BYTES,
    WARP,
    reads_another_part,
    space_of,
    thread_nest,
)
from ...dialects.program import PARTS
from ...dialects.rt import ops as rt
from .elementwise import INDEX_ARITHMETIC
from .indices import fixed
from .levels import barriers, parts_of, shared_bytes, threads_of
from .state import State, refuse


def convert_tiles(op: loop.ForOp, state: State) -> None:
    """Perfectly nested tile loops become one range of tiles."""
    nest, kind = _tile_nest(op), op.kind.data
    properties: dict[str, Attribute] = {"device": UnitAttr()} if kind.is_on_device else {}
    if kind is LoopKind.ALTERNATING_TILES:
        properties["alternating"] = UnitAttr()
    if kind is LoopKind.BLOCKS:
        if (wanted := shared_bytes(op)) > SHARED_BYTES:
            refuse(op, "a block has too little shared memory", f"at most {SHARED_BYTES}", wanted)
        properties["block"] = IntegerAttr(threads := threads_of(op), i64)
        for inner in operations_in(nest[-1]):
            if threads > WARP and reads_another_part(inner) and not thread_nest(inner):
                refuse(
                    op, "all threads of a block read what one of a warp has", "one warp", threads
                )
        state.barriers |= barriers(nest[-1])
    bounds = [state.bound(inner) for inner in nest]
    extents = [state.indices.not_negative(state.indices.least(b)) for b in bounds]
    total = fixed(1)
    for extent in extents:
        total = total * extent
    emit, indices, count = state.emitter, state.indices, state.indices.value(total)
    block = Block(arg_types=[INDEX])
    block.args[0].name_hint = "tile"
    outside, state.hoisted = state.hoisted, [state.hoistable]
    with state.inside(op):
        emit.open(block, frame=True)
        top = total.number
        tile = indices.atom(block.args[0], True, top - 1 if top is not None else None)
        variables = _divided(state, tile, extents)
        for inner, variable, bound in zip(nest, variables, bounds, strict=True):
            indices.assume_below(variable, bound)
            state.values[inner.variable] = variable
        threads = kind is LoopKind.THREADS
        parts = _take_parts(op, state, len(nest), block.args[0]) if threads else {}
        for inner in nest[:-1]:
            state.convert([o for o in inner.body.block.ops if not isinstance(o, loop.ForOp)])
        state.convert(nest[-1].body.block.ops)
        state.values |= parts
        emit.location = op.location
        emit.emit(rt.YieldOp, [])
        emit.close()
    state.hoisted = outside
    captures = _captures(state, block)
    emit.emit(rt.ParallelTilesOp, [count, *captures], (), properties, regions=[Region(block)])


def _take_parts(
    op: loop.ForOp, state: State, dims: int, thread: SSAValue
) -> dict[SSAValue, SSAValue]:
    """Take the part that a thread has of each buffer in space `threads`, in place of the buffer.

    Returns:
        The whole buffers.
    """
    whole: dict[SSAValue, SSAValue] = {}
    for access in operations_in(op):
        if not isinstance(access, loop.LoadOp | loop.StoreOp) or access.buffer in whole:
            continue
        owner = access.buffer.owner
        if isinstance(owner, loop.LocalOp) and space_of(owner) is Space.THREADS:
            if len(thread_nest(access)) != dims:
                refuse(op, "threads with parts of a buffer are not perfectly nested")
            every = whole[access.buffer] = state.scalar(access.buffer)
            kind = memref_type(every)
            own = resized(kind, kind.get_shape()[1:])
            part = state.emitter.emit(rt.SliceOp, [every, thread], [own])
            part.attributes[PARTS] = IntegerAttr(parts_of(owner, dims)[0], i64)
            state.values[access.buffer] = part.results[0]
            state.buffers.written.add(part.results[0])
    state.wholes = whole
    return whole


def _tile_nest(op: loop.ForOp) -> list[loop.ForOp]:
    """Perfectly nested tile loops: each body only computes indices before the next loop."""
    nest = [op]
    while True:
        block = nest[-1].body.block
        inner = block.last_op
        if not isinstance(inner, loop.ForOp) or inner.kind != op.kind:
            return nest
        if any(_is_in(value, block) for value in inner.bounds):
            return nest
        if not all(o is inner or _computes_index(o) for o in block.ops):
            return nest
        nest.append(inner)


def _is_in(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return (owner.parent if isinstance(owner, Operation) else owner) is block


def _computes_index(op: Operation) -> bool:
    if isinstance(op, INDEX_ARITHMETIC):
        return all(isinstance(result.type, IndexType) for result in op.results)
    return isinstance(op, arith.ConstantOp | affine.ApplyOp | affine.MinOp | memref.DimOp)


def _divided(state: State, tile: Affine, extents: Sequence[Affine]) -> list[Affine]:
    """The variables of nested loops from the number of a tile; the last one varies fastest."""
    emit, indices = state.emitter, state.indices
    variables: list[Affine] = []
    for extent in reversed(extents[1:]):
        operands = [indices.value(tile), indices.value(extent)]
        top = indices.ranges.of(extent)[1]
        high = top - 1 if top is not None else None
        variables.append(indices.atom(emit.pure(arith.RemUIOp, operands, INDEX), True, high))
        tile = indices.atom(emit.pure(arith.DivUIOp, operands, INDEX), True)
    return [tile, *reversed(variables)]


def _captures(state: State, block: Block) -> list[SSAValue]:
    """Isolate a block: copy constants from outside, make arguments of other values."""
    depths = state.emitter.depths
    depth = state.emitter.here + 1
    inside: dict[SSAValue, SSAValue] = {}
    captures: list[SSAValue] = []
    constants: list[Operation] = []
    for op in block.walk():
        for number, operand in enumerate(op.operands):
            if depths[operand] >= depth:
                continue
            if operand not in inside:
                owner = operand.owner
                if isinstance(owner, arith.ConstantOp):
                    constants.append(copied(owner))
                    inside[operand] = constants[-1].results[0]
                else:
                    captures.append(operand)
                    inside[operand] = block.insert_arg(operand.type, len(block.args))
                    inside[operand].name_hint = operand.name_hint
                depths[inside[operand]] = depth
            op.operands[number] = inside[operand]
    if constants and block.first_op is not None:
        block.insert_ops_before(constants, block.first_op)
    return captures

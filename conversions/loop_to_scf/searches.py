"""Searches in the index arrays of sparse matrices, and which part owns a place."""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block as IRBlock
from xdsl.ir import Region, SSAValue

from ...core.algebra.expressions import ZERO, Affine
from ...core.building.arithmetic import INDEX
from ...core.ir.typed import memref_type
from ...dialects.loop import ops as loop
from ...dialects.upstream import ops as upstream
from .state import State, StateTable

SEARCHES = StateTable()


def entry(state: State, buffer: SSAValue, place: Affine) -> Affine:
    """An element of a row pointer or index array, which is not negative."""
    emit = state.emitter
    operands = state.buffers.operands(state.scalar(buffer), (place,), False)
    kind = memref_type(buffer).element_type
    value = emit.emit(memref.LoadOp, operands, [kind]).results[0]
    index = emit.emit(upstream.IndexCastOp, [value], [INDEX]).results[0]
    return state.indices.atom(index, nonnegative=True)


@SEARCHES.on(loop.PartitionPointOp)
def _partition_point(op: loop.PartitionPointOp, state: State) -> None:
    """A binary search without a branch on what it compares.

    The result is one of `left` rows from `first` on, or the one after them. A step examines the
    last row of their first half, and continues with as many rows as the other half has. The
    increment of `first` is masked by the sign of a difference: LLVM would turn a select into a
    branch, which is mispredicted half of the time.
    """
    emit, indices = state.emitter, state.indices
    rows = state.form(op.rows)
    # The least cost of the rows before the part, without products that overflow:
    # c * p >= t * a  ==  c >= t * (a div p) + (t * (a mod p)) ceildiv p
    total, part, parts = _cost(state, op, rows), state.form(op.part), state.form(op.parts)
    operands = [indices.value(total), indices.value(parts)]
    whole, rest = (
        indices.atom(emit.pure(kind, operands, INDEX), nonnegative=True)
        for kind in (arith.DivUIOp, arith.RemUIOp)
    )
    operands[0] = indices.value(part * rest + parts - 1)
    above = indices.atom(emit.pure(arith.DivUIOp, operands, INDEX), nonnegative=True)
    aim = indices.value(part * whole + above)
    before, after = IRBlock(arg_types=[INDEX, INDEX]), IRBlock(arg_types=[INDEX, INDEX])
    emit.open(before)
    more = emit.compare("ne", before.args[1], emit.index(0))
    emit.emit(scf.ConditionOp, [more, *before.args])
    emit.close()
    emit.open(after)
    first, left = (indices.atom(arg, nonnegative=True) for arg in after.args)
    half = indices.divide(left + 1, 2)
    cost = indices.value(_cost(state, op, first + half - 1))
    sign = emit.pure(arith.SubiOp, [cost, aim], INDEX)
    # -1 if it is negative, else 0, for any width of an index
    sign = emit.pure(arith.MaxSIOp, [sign, emit.index(-1)], INDEX)
    below = emit.pure(arith.MinSIOp, [sign, emit.index(0)], INDEX)
    taken = indices.atom(emit.pure(arith.AndIOp, [indices.value(half), below], INDEX))
    emit.emit(scf.YieldOp, [indices.value(form) for form in (first + taken, left - half)])
    emit.close()
    start = [indices.value(ZERO), indices.value(rows)]
    regions = [Region(before), Region(after)]
    found = emit.emit(upstream.WhileOp, start, [INDEX, INDEX], regions=regions)
    state.values[op.result] = indices.atom(found.results[0], True, indices.ranges.of(rows)[1])


# t * c <= q < (t + 1) * c  ==  q - t * c < c, unsigned
@SEARCHES.on(loop.OwnedOp)
def _owned(op: loop.OwnedOp, state: State) -> None:
    """1 if a place is in a part."""
    emit, indices = state.emitter, state.indices
    place, part, size = (state.form(value) for value in op.operands)
    offset = indices.value(place - part * size)
    inside = emit.compare("ult", offset, indices.value(size))
    found = emit.pure(arith.SelectOp, [inside, emit.index(1), emit.index(0)], INDEX)
    state.values[op.result] = indices.atom(found, True, 1)


def _cost(state: State, op: loop.PartitionPointOp, row: Affine) -> Affine:
    """The total cost of the rows before a row."""
    return entry(state, op.indptr, row) + row * op.weight.value.data

"""Constants, index arithmetic, elementwise operations, and operations on lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import affine, arith, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Operation, OpResult, SSAValue

from ...core.algebra.expressions import Affine
from ...core.ir.typed import vector_type
from ...dialects.loop import ops as loop
from ...dialects.loop.attrs import Combine
from ...dialects.loop.vectors import INTERLEAVE, INTRINSICS
from ...dialects.upstream import ops as upstream
from .blocks import BroadcastBlock, ConstantBlock, FoldBlock, MappedBlock, VectorBlock
from .indices import Indices, fixed
from .instructions import InstructionBlock
from .state import State, StateTable, refuse

ELEMENTWISE = StateTable()


def elementwise(op: Operation, state: State) -> None:
    """An operation on scalars, or an elementwise one on blocks."""
    kinds = [r.type for r in op.results if isinstance(r.type, VectorType)]
    operands = [state.values[operand] for operand in op.operands]
    if not kinds and not any(isinstance(operand, VectorBlock) for operand in operands):
        # Copy an operation on scalars.
        new = state.emitter.emit(
            type(op),
            [state.scalar(operand) for operand in op.operands],
            [result.type for result in op.results],
            op.properties,
        )
        new.attributes |= op.attributes
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
            state.values[old] = result
        return
    shapes = {k.get_shape() for k in kinds}
    shapes |= {o.layout.shape for o in operands if isinstance(o, VectorBlock)}
    if len(op.results) != 1 or len(kinds) != 1 or len(shapes) != 1:
        refuse(op, "cannot be broken into machine vectors", "one shape for all blocks")
    whole = [
        found if isinstance(found, VectorBlock) else state.scalar(operand)
        for operand, found in zip(op.operands, operands, strict=True)
    ]
    (kind,), emitter, together = kinds, state.emitter, _interleaved(op)
    block = MappedBlock(emitter, state.layout(kind), kind.element_type, op, whole, together)
    state.values[op.results[0]] = block


def _interleaved(op: Operation) -> int:
    """How many vectors of a row an expanded operation interleaves."""
    found = op.attributes.get(INTERLEAVE)
    if found is None:
        return 1
    if not isinstance(found, IntegerAttr) or found.value.data < 1:
        refuse(op, f"wrong {INTERLEAVE}", "a number above 0", found)
    return found.value.data


@ELEMENTWISE.on(arith.ConstantOp)
def _constant(op: arith.ConstantOp, state: State) -> None:
    """A constant of the function, or a number in polynomials."""
    value, kind = op.value, op.result.type
    if isinstance(kind, IndexType) and isinstance(value, IntegerAttr):
        state.values[op.result] = fixed(value.value.data)
    elif isinstance(kind, VectorType) and isinstance(value, DenseIntOrFPElementsAttr):
        state.values[op.result] = ConstantBlock(
            state.emitter, state.layout(kind), kind.element_type, value
        )
    elif isinstance(kind, IntegerType | AnyFloat):
        state.values[op.result] = state.emitter.scalar(value)
    else:
        refuse(op, "constant of a wrong type", "numbers", kind)


# Indices.

_SUMS: Mapping[type[Operation], Callable[[Indices, Affine, Affine], Affine]] = {
    arith.AddiOp: lambda _, left, right: left + right,
    arith.SubiOp: lambda _, left, right: left - right,
    arith.MuliOp: lambda _, left, right: left * right,
    arith.MinSIOp: lambda indices, left, right: indices.least([left, right]),
    arith.MaxSIOp: lambda indices, left, right: indices.greatest([left, right]),
}
_QUOTIENTS: Mapping[type[Operation], Callable[[Indices, Affine, int], Affine]] = {
    arith.FloorDivSIOp: Indices.divide,
    arith.CeilDivSIOp: Indices.divide_up,
}
_TOWARDS_ZERO: Mapping[type[Operation], Callable[[Indices, Affine, int], Affine]] = {
    arith.DivSIOp: Indices.divide,
    arith.DivUIOp: Indices.divide,
    arith.RemSIOp: Indices.remainder,
    arith.RemUIOp: Indices.remainder,
}
"""These round down if the dividend is nonnegative."""

INDEX_ARITHMETIC = (*_SUMS, *_QUOTIENTS, *_TOWARDS_ZERO)


@ELEMENTWISE.on(*INDEX_ARITHMETIC)
def _arithmetic(op: Operation, state: State) -> None:
    """Sums, products and quotients of indices as polynomials, if they are."""
    if not isinstance(op.results[0].type, IndexType):
        elementwise(op, state)
        return
    indices, kind = state.indices, type(op)
    left, right = (state.form(operand) for operand in op.operands)
    if kind in _SUMS:
        state.values[op.results[0]] = _SUMS[kind](indices, left, right)
        return
    divisor = right.number
    is_known = kind in _QUOTIENTS or indices.ranges.is_nonnegative(left)
    if divisor is None or divisor < 1 or not is_known:
        elementwise(op, state)
        return
    divide = _QUOTIENTS.get(kind) or _TOWARDS_ZERO[kind]
    state.values[op.results[0]] = divide(indices, left, divisor)


@ELEMENTWISE.on(affine.ApplyOp, affine.MinOp)
def _affine(op: affine.ApplyOp | affine.MinOp, state: State) -> None:
    """A polynomial, or the least of several."""
    map = op.map.data
    forms = [state.form(operand) for operand in op.operands]
    dims, symbols = forms[: map.num_dims], forms[map.num_dims :]
    found = state.evaluate(op, map.results, dims, symbols)
    state.values[op.results[0]] = state.indices.least(found)


# Lanes.


@ELEMENTWISE.on(loop.InstructionOp)
def _instruction(op: loop.InstructionOp, state: State) -> None:
    """A block whose machine vectors an instruction computes."""
    operands = [state.block(operand) for operand in op.args]
    kind, intrinsics = op.result.type, op.attributes.get(INTRINSICS)
    if not isinstance(intrinsics, DictionaryAttr):
        refuse(op, "its intrinsics are not known", hint="run loop-legalize-vectors before")
    layout = state.layout(kind)
    if any(one.merged > 1 for one in (layout, *(operand.layout for operand in operands))):
        refuse(op, "merges axes", "machine vectors of each row")
    state.values[op.result] = InstructionBlock(
        state.emitter, layout, kind.element_type, op.row, operands, intrinsics.data
    )


@ELEMENTWISE.on(upstream.BroadcastOp, vector.BroadcastOp)
def _broadcast(op: upstream.BroadcastOp | vector.BroadcastOp, state: State) -> None:
    """A block that is stretched on demand."""
    (operand,), kind = op.operands, vector_type(op.vector)
    source = state.values[operand]
    source = source if isinstance(source, VectorBlock) else state.scalar(operand)
    layout = state.layout(kind)
    state.values[op.vector] = BroadcastBlock(state.emitter, layout, kind.element_type, source)


@ELEMENTWISE.on(vector.ExtractOp)
def _extract(op: vector.ExtractOp, state: State) -> None:
    """One element of a block."""
    block, place = state.block(op.vector), op.static_position.get_values()
    layout = block.layout
    if op.dynamic_position or len(place) != len(layout.shape):
        refuse(op, "position is not that of an element", "one constant for each axis")
    if not all(0 <= n < size for n, size in zip(place, layout.shape, strict=True)):
        refuse(op, "position is outside the vector", list(layout.shape), list(place))
    lane = place[-1]
    if layout.merged == 2:
        lane += place[-2] * layout.shape[-1]
    row = tuple(place[: len(place) - layout.merged])
    for number, part in enumerate(layout.chunks):
        if part.offset <= lane < part.offset + part.lanes:
            piece = block.piece(row, number)
            state.values[op.result] = state.emitter.extract(piece, lane - part.offset)


@ELEMENTWISE.on(loop.FoldOp)
def _fold(op: loop.FoldOp, state: State) -> None:
    """A block whose axis is folded on demand."""
    source, layout, combine = state.block(op.value), state.layout(op.result.type), op.combine.data
    axis, accumulated = op.axis.value.data, _accumulated(op.value, combine)
    state.values[op.result] = FoldBlock(
        state.emitter, layout, source.element, source, axis, combine, accumulated
    )


def _accumulated(value: SSAValue, combine: Combine) -> bool:
    """Whether a value is the result of a reduction by a combiner, or a fold of one."""
    owner = value.owner
    if isinstance(owner, loop.FoldOp):
        return owner.combine.data == combine and _accumulated(owner.value, combine)
    if not isinstance(owner, loop.ForOp) or not isinstance(value, OpResult):
        return False
    return owner.is_reduction and owner.combines[value.index] == combine

"""What operations of scf, memref, vector and rt do in all lanes at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType
from xdsl.ir import Operation, SSAValue

from ...core.ir.typed import memref_type, vector_type
from ...dialects.rt import ops as rt
from ...dialects.upstream import ops as upstream
from .lanes import Lanes
from .lockstep_core import Iterations, Laned, LockstepRun, Rule, UnsuitableError, Window, paths
from .numbers import COMBINE, REDUCTIONS, dtype_of, shape_of, shape_with, unknown


def _loop(run: LockstepRun, op: scf.ForOp, lanes: Lanes) -> None:
    """Run a loop in each lane: in order, if it carries values or iterations depend on others."""
    first, end, step = (run.value(value, lanes)[0] for value in (op.lb, op.ub, op.step))
    if np.any(np.less_equal(step, 0)):
        raise UnsuitableError
    count = np.maximum(0, -(np.subtract(first, end) // step))

    def variables(number: Any, some: np.ndarray | None) -> Sequence[Any]:
        begin, by = (
            one if some is None or not np.ndim(one) else one[some] for one in (first, step)
        )
        return [begin + number * by]

    iterations, block = Iterations(count, variables, forward=True), op.body.block
    if op.iter_args or op in run.serial:
        run.in_order(block, op.iter_args, op.results, iterations, lanes)
    else:
        run.together(op, block, iterations, lanes)


def _tiles(run: LockstepRun, op: rt.ParallelTilesOp, lanes: Lanes) -> None:
    """Run the tiles, whose order is unspecified."""
    count, *captured = op.operands
    for argument, value in zip(op.body.block.args[1:], captured, strict=True):
        found = run.values.get(value)
        run.values[argument] = run.value(value, lanes)[0] if found is None else found
    iterations = Iterations(run.value(count, lanes)[0], lambda number, lanes: [number])
    run.together(op, op.body.block, iterations, lanes)


def _places(
    run: LockstepRun, buffer: SSAValue, indices: Sequence[SSAValue], lanes: Lanes, checked: bool
) -> tuple[np.ndarray, Any, int]:
    """The elements of a buffer, the place that indices name, and where the buffer ends.

    Places are those in the whole buffer, one for each lane if they differ. A vector may begin
    outside of a row: then indices are not `checked` one by one.
    """
    elements, first, shape = run.window(buffer, lanes)
    numbers = [run.value(value, lanes)[0] for value in indices]
    place: Any = 0
    for number, size in zip(numbers, shape, strict=True):
        if checked and (np.any(np.less(number, 0)) or np.any(np.greater_equal(number, size))):
            raise UnsuitableError
        place = place * size + number
    return elements, (place, first), math.prod(shape)


def _accessed(
    run: LockstepRun,
    buffer: SSAValue,
    indices: Sequence[SSAValue],
    lanes: Lanes,
    offsets: np.ndarray | None = None,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The elements of a buffer, the places that lanes access, and which accesses are enabled.

    Args:
        run: the run.
        buffer: the buffer.
        indices: the indices of a number, or of the first one of a vector.
        lanes: the lanes.
        offsets: those of the numbers of a vector, of one lane or of all; None for a number.
        mask: which of them are enabled.
    """
    elements, (place, first), size = _places(run, buffer, indices, lanes, offsets is None)
    shape = (lanes.count,) if offsets is None else (lanes.count, offsets.shape[-1])
    if offsets is not None:
        place = np.asarray(place).reshape(-1, 1) + offsets
        first = np.asarray(first).reshape(-1, 1)
    valid = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, shape)
    inside = np.broadcast_to(place, shape)[valid]
    if ((inside < 0) | (inside >= size)).any():
        raise UnsuitableError
    return elements, inside + np.broadcast_to(first, shape)[valid], valid


def _read(
    run: LockstepRun,
    op: Operation,
    buffer: SSAValue,
    found: Any,
    rest: np.ndarray | None,
    lanes: Lanes,
) -> None:
    elements, places, valid = found
    if run.is_tracked(buffer, elements):
        run.accesses.read(elements, places, paths(lanes, valid))
    if rest is None:
        run.values[op.results[0]] = Laned(lanes, elements[places].reshape(valid.shape))
        return
    array = np.array(np.broadcast_to(rest, valid.shape))
    array[valid] = elements[places]
    run.values[op.results[0]] = Laned(lanes, array)


def _write(run: LockstepRun, value: SSAValue, found: Any, lanes: Lanes) -> None:
    elements, places, valid = found
    run.accesses.write(elements, places, paths(lanes, valid))
    elements[places] = np.broadcast_to(run.all(value, lanes), valid.shape)[valid]


def _load(run: LockstepRun, op: memref.LoadOp | vector.LoadOp | rt.ShuffleOp, lanes: Lanes) -> None:
    """Read a number or contiguous ones; once, if all lanes read the same."""
    buffer, *indices = op.operands
    (width,) = shape_of(op.results[0].type) or (0,)
    offsets = np.arange(width) if width else None
    if not run.is_laned(op.operands) and not run.is_tracked(buffer, run.window(buffer, lanes)[0]):
        elements, places, _ = _accessed(run, buffer, indices, Lanes(), offsets)
        run.values[op.results[0]] = elements[places] if width else elements[places][0]
        return
    found = _accessed(run, buffer, indices, lanes, offsets)
    _read(run, op, buffer, found, None, lanes)


def _store(run: LockstepRun, op: memref.StoreOp | vector.StoreOp, lanes: Lanes) -> None:
    """Write a number or contiguous ones."""
    value, buffer, *indices = op.operands
    (width,) = shape_of(value.type) or (0,)
    offsets = np.arange(width) if width else None
    _write(run, value, _accessed(run, buffer, indices, lanes, offsets), lanes)


def _copy_async(run: LockstepRun, op: rt.CopyAsyncOp, lanes: Lanes) -> None:
    """Copy contiguous numbers."""
    offsets = np.arange(op.count)
    elements, places, valid = _accessed(run, op.source, op.indices, lanes, offsets)
    if run.is_tracked(op.source, elements):
        run.accesses.read(elements, places, paths(lanes, valid))
    copied = elements[places]
    elements, places, valid = _accessed(run, op.target, op.places, lanes, offsets)
    run.accesses.write(elements, places, paths(lanes, valid))
    elements[places] = copied


def _masked_load(run: LockstepRun, op: vector.MaskedLoadOp, lanes: Lanes) -> None:
    """Read the contiguous numbers that a mask enables."""
    buffer, *indices, mask, rest = op.operands
    enabled, offsets = run.all(mask, lanes), np.arange(*shape_of(mask.type))
    found = _accessed(run, buffer, indices, lanes, offsets, enabled)
    _read(run, op, buffer, found, run.all(rest, lanes), lanes)


def _masked_store(run: LockstepRun, op: vector.MaskedStoreOp, lanes: Lanes) -> None:
    """Write the contiguous numbers that a mask enables."""
    buffer, *indices, mask, value = op.operands
    enabled, offsets = run.all(mask, lanes), np.arange(*shape_of(mask.type))
    _write(run, value, _accessed(run, buffer, indices, lanes, offsets, enabled), lanes)


def _gather(run: LockstepRun, op: upstream.GatherOp, lanes: Lanes) -> None:
    """Read the numbers that a mask enables, each at its own offset."""
    buffer, *indices, offsets, mask, rest = op.operands
    places, enabled = run.all(offsets, lanes).astype(np.int64), run.all(mask, lanes)
    found = _accessed(run, buffer, indices, lanes, places, enabled)
    _read(run, op, buffer, found, run.all(rest, lanes), lanes)


def _alloca(run: LockstepRun, op: memref.AllocaOp, lanes: Lanes) -> None:
    """Allocate a buffer for each lane."""
    if run.is_laned(op.operands):
        raise UnsuitableError
    kind, sizes = memref_type(op.memref), (run.value(value, lanes)[0] for value in op.operands)
    shape = shape_with(kind, sizes)
    run.allocate(op.memref, shape, lanes, lambda size: unknown(size, kind.element_type))


def _dim(run: LockstepRun, op: memref.DimOp, lanes: Lanes) -> None:
    """A size."""
    number, laned = run.value(op.index, lanes)
    if laned:
        raise UnsuitableError
    run.values[op.result] = run.window(op.source, lanes)[2][int(number)]


def _view(run: LockstepRun, op: Operation, first: Any, shape: Sequence[int], lanes: Lanes) -> None:
    """A part of a buffer that begins at a place of it."""
    buffer, result = op.operands[0], op.results[0]
    elements, begin, sizes = run.window(buffer, lanes)
    if np.any(np.less(first, 0)) or np.any(np.add(first, math.prod(shape)) > math.prod(sizes)):
        raise UnsuitableError
    known = run.values.get(buffer)
    root, place = known.root if isinstance(known, Window) else buffer, begin + first
    at = Laned(lanes, np.asarray(place)) if np.ndim(place) else int(place)
    run.values[result] = Window(root, elements, at, tuple(shape))


def _whole(run: LockstepRun, op: memref.CastOp | memref.CollapseShapeOp, lanes: Lanes) -> None:
    """The same elements in another shape."""
    sizes = run.window(op.operands[0], lanes)[2]
    shape = memref_type(op.results[0]).get_shape()
    if len(shape) == 1:
        sizes = (math.prod(sizes),)
    if any(n not in (DYNAMIC_INDEX, m) for n, m in zip(shape, sizes, strict=True)):
        raise UnsuitableError
    _view(run, op, 0, sizes, lanes)


def _reinterpret(run: LockstepRun, op: upstream.ReinterpretCastOp, lanes: Lanes) -> None:
    """A contiguous part of a buffer in another shape."""
    _, *dynamic = op.operands
    numbers = iter([run.value(value, lanes)[0] for value in dynamic])
    (offset,) = op.static_offsets.get_values()
    first = next(numbers) if offset == DYNAMIC_INDEX else offset
    shape = shape_with(op.result.type, numbers)
    _view(run, op, first, shape, lanes)


def _slice(run: LockstepRun, op: rt.SliceOp, lanes: Lanes) -> None:
    """An element of a buffer along its first dimension."""
    shape = run.window(op.operands[0], lanes)[2]
    number = run.value(op.operands[1], lanes)[0]
    if np.any(np.less(number, 0)) or np.any(np.greater_equal(number, shape[0])):
        raise UnsuitableError
    _view(run, op, np.multiply(number, math.prod(shape[1:])), shape[1:], lanes)


def _mask(run: LockstepRun, op: vector.CreateMaskOp, lanes: Lanes) -> None:
    """Enable the first numbers."""
    result, (count,) = op.results[0], op.operands
    places = np.arange(*shape_of(result.type))
    run.set(result, places < run.aligned(count, lanes, 1), lanes)


def _extract(run: LockstepRun, op: vector.ExtractOp, lanes: Lanes) -> None:
    """One number of a vector."""
    source, *dynamic = op.operands
    array, at = run.all(source, lanes), _position(run, op, dynamic, lanes)
    run.set(op.results[0], array[np.arange(lanes.count), at], lanes)


def _insert(run: LockstepRun, op: vector.InsertOp, lanes: Lanes) -> None:
    """Replace one number of a vector."""
    source, target, *dynamic = op.operands
    array, at = run.all(target, lanes).copy(), _position(run, op, dynamic, lanes)
    array[np.arange(lanes.count), at] = run.all(source, lanes)
    run.set(op.results[0], array, lanes)


def _position(
    run: LockstepRun,
    op: vector.ExtractOp | vector.InsertOp,
    dynamic: Sequence[SSAValue],
    lanes: Lanes,
) -> Any:
    static = op.static_position.get_values()
    if len(static) != 1:
        raise UnsuitableError
    return run.value(dynamic[0], lanes)[0] if dynamic else static[0]


def _shuffle(run: LockstepRun, op: vector.ShuffleOp, lanes: Lanes) -> None:
    """Numbers of two vectors."""
    both = np.concatenate([run.all(value, lanes) for value in op.operands], axis=1)
    run.set(op.results[0], both[:, list(op.mask.get_values())], lanes)


def _bitcast(run: LockstepRun, op: vector.BitcastOp, lanes: Lanes) -> None:
    """The same bits in another type."""
    source, result = op.operands[0], op.results[0]
    if IntegerType(1) in (vector_type(source).element_type, vector_type(result).element_type):
        raise UnsuitableError
    run.set(result, np.ascontiguousarray(run.all(source, lanes)).view(dtype_of(result.type)), lanes)


def _reduction(run: LockstepRun, op: upstream.ReductionOp, lanes: Lanes) -> None:
    """Combine all numbers of a vector, and the accumulator if there is one."""
    value, *start = op.operands
    kind = COMBINE[op.kind.data.value]
    if kind in ("umax", "umin"):
        raise UnsuitableError
    columns = [run.all(one, lanes).reshape(lanes.count, -1) for one in (*start, value)]
    array = np.ascontiguousarray(np.concatenate(columns, axis=1))
    run.set(op.results[0], REDUCTIONS[kind](array, axis=1), lanes)


STRUCTURED_RULES: Mapping[type[Operation], Rule] = {
    memref.AllocaOp: _alloca,
    memref.CastOp: _whole,
    memref.CollapseShapeOp: _whole,
    memref.DimOp: _dim,
    memref.LoadOp: _load,
    upstream.ReinterpretCastOp: _reinterpret,
    memref.StoreOp: _store,
    rt.CopyAsyncOp: _copy_async,
    rt.ParallelTilesOp: _tiles,
    rt.ShuffleOp: _load,
    rt.SliceOp: _slice,
    scf.ForOp: _loop,
    upstream.GatherOp: _gather,
    upstream.PrefetchOp: lambda run, op, lanes: None,
    upstream.ReductionOp: _reduction,
    vector.BitcastOp: _bitcast,
    vector.CreateMaskOp: _mask,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.LoadOp: _load,
    vector.MaskedLoadOp: _masked_load,
    vector.MaskedStoreOp: _masked_store,
    vector.ShuffleOp: _shuffle,
    vector.StoreOp: _store,
}

VIEWS = (memref.CastOp, memref.CollapseShapeOp, upstream.ReinterpretCastOp, rt.SliceOp)
"""Operations whose result is a part of their first operand."""


def stored_to(op: Operation) -> SSAValue | None:
    """The buffer that an operation writes to; None if it writes to none."""
    match op:
        case memref.StoreOp():
            buffer = op.memref
        case vector.StoreOp() | vector.MaskedStoreOp():
            buffer = op.base
        case rt.CopyAsyncOp():
            buffer = op.target
        case _:
            return None
    return buffer

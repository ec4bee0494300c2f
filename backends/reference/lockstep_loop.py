"""What operations of the loop dialect, and those on vectors in kernels, do in all lanes at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import affine, arith, scf, vector
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from ...core.ir.typed import memref_type
from ...dialects.loop.combiners import UFUNC
from ...dialects.loop.ops import FoldOp, ForOp, LoadOp, LocalOp, PrefetchOp, StoreOp
from ...dialects.upstream import ops as upstream
from .affine import evaluator
from .decoded import DecodedAccess, Loop
from .lanes import Lanes
from .lockstep_core import Iterations, Laned, LockstepRun, Rule, UnsuitableError, paths
from .numbers import dtype_of, fused, shape_of, shape_with, unknown


def _loop(run: LockstepRun, op: ForOp, lanes: Lanes) -> None:
    """Run a loop in each lane."""
    loop = Loop.of(op)
    iterations = _iterations(run, loop, lanes)
    if loop.in_order or loop.inits:
        run.in_order(op.body.block, op.inits, op.results, iterations, lanes)
    else:
        run.together(op, op.body.block, iterations, lanes)


def _iterations(run: LockstepRun, loop: Loop, lanes: Lanes) -> Iterations:
    bounds = loop.bound([run.value(value, lanes)[0] for value in loop.bounds])
    if loop.matrix is None:
        count = functools.reduce(np.minimum, bounds)
        return Iterations(count, lambda number, lanes: [number])
    (row,) = bounds
    indptr, indices = (run.value(value, lanes)[0] for value in loop.matrix)
    if np.any(row < 0) or np.any(row >= len(indptr) - 1):
        raise UnsuitableError
    first, end = indptr[row].astype(np.int64), indptr[row + 1].astype(np.int64)
    if np.any((end > first) & ((first < 0) | (end > len(indices)))):
        raise UnsuitableError

    def variables(number: Any, some: np.ndarray | None) -> Sequence[Any]:
        begin = first if some is None or not np.ndim(first) else first[some]
        return [begin + number, indices[begin + number].astype(np.int64)]

    return Iterations(end - first, variables)


def _local(run: LockstepRun, op: LocalOp, lanes: Lanes) -> None:
    """Allocate a buffer for each lane."""
    if run.is_laned(op.operands):
        raise UnsuitableError
    kind, sizes = memref_type(op.result), (run.value(value, lanes)[0] for value in op.operands)
    shape = shape_with(kind, (max(0, size) for size in sizes))
    run.allocate(op.result, shape, lanes, lambda size: unknown(size, kind.element_type))


def _load(run: LockstepRun, op: LoadOp, lanes: Lanes) -> None:
    """Read an element or a block in each lane."""
    access = DecodedAccess.of(op, op.result.type)
    elements, places, valid = _places(run, access, op.buffer, op.operands[1:], lanes)
    if run.is_tracked(op.buffer, elements):
        run.accesses.read(elements, places, paths(lanes, valid))
    block = unknown(valid.shape, access.element_type)
    block[valid] = elements[places]
    run.values[op.result] = Laned(lanes, block)


def _store(run: LockstepRun, op: StoreOp, lanes: Lanes) -> None:
    """Write an element or a block in each lane."""
    access = DecodedAccess.of(op, op.value.type, op.accumulates)
    elements, places, valid = _places(run, access, op.buffer, op.operands[2:], lanes)
    run.accesses.write(elements, places, paths(lanes, valid))
    values = np.broadcast_to(run.all(op.value, lanes), valid.shape)[valid]
    if access.accumulates is not None:
        UFUNC[access.accumulates].at(elements, places, values)
    else:
        elements[places] = values


def _places(
    run: LockstepRun,
    access: DecodedAccess,
    buffer: SSAValue,
    operands: Sequence[SSAValue],
    lanes: Lanes,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The elements of a buffer, the places of those that lanes access, and which are valid."""
    shape, rank = (lanes.count, *access.shape), len(access.shape)
    numbers = [run.aligned(value, lanes, rank) for value in operands]
    valid = np.ones(shape, bool)
    for axis, limit in zip(access.limited, numbers[access.dims :], strict=True):
        valid &= access.lanes[axis] < limit
    elements, first, sizes = run.window(buffer, lanes)
    places = np.zeros(np.count_nonzero(valid), np.int64)
    index = access.place([*numbers[: access.dims], *access.lanes])
    for place, size in zip(index, sizes, strict=True):
        inside = np.broadcast_to(place, shape)[valid]
        if ((inside < 0) | (inside >= size)).any():
            raise UnsuitableError
        places = places * size + inside
    if np.ndim(first):
        places += np.broadcast_to(first.reshape(-1, *(1,) * rank), shape)[valid]
    return elements, places + (0 if np.ndim(first) else first), valid


def _fold(run: LockstepRun, op: FoldOp, lanes: Lanes) -> None:
    """Combine the elements along an axis."""
    array, axis = run.all(op.operands[0], lanes), op.axis.value.data + 1
    run.set(op.results[0], UFUNC[op.combine.data].reduce(array, axis=axis, keepdims=True), lanes)


def _apply(run: LockstepRun, op: affine.ApplyOp | affine.MinOp, lanes: Lanes) -> None:
    """Run an affine map; of several results, the least."""
    numbers = [run.value(value, lanes)[0] for value in op.operands]
    found = functools.reduce(np.minimum, evaluator(op.map.data)(numbers))
    if np.ndim(found):
        run.set(op.results[0], found, lanes)
    else:
        run.values[op.results[0]] = int(found)


def _bitcast(run: LockstepRun, op: Operation, lanes: Lanes) -> None:
    """Run a cast to a type of the same size."""
    array, kinds = run.all(op.operands[0], lanes), (op.operands[0].type, op.results[0].type)
    source, target = map(dtype_of, kinds)
    if source.itemsize != target.itemsize or IntegerType(1) in kinds:
        raise UnsuitableError
    run.set(op.results[0], np.ascontiguousarray(array).view(target), lanes)


def _broadcast(run: LockstepRun, op: Operation, lanes: Lanes) -> None:
    """Repeat a number or a vector."""
    source, result = op.operands[0], op.results[0]
    array, shape = run.all(source, lanes), shape_of(result.type)
    inner = (1,) * (len(shape) - len(shape_of(source.type))) + array.shape[1:]
    run.set(result, array.reshape(lanes.count, *inner), lanes)


def _fma(run: LockstepRun, op: vector.FMAOp, lanes: Lanes) -> None:
    """Run a product and a sum with one rounding."""
    run.set(op.res, fused(op, *(run.all(value, lanes) for value in op.operands)), lanes)


def _choose(run: LockstepRun, op: scf.IfOp, lanes: Lanes) -> None:
    """Run the one or the other region in each lane."""
    condition, laned = run.value(op.cond, lanes)
    chosen = np.broadcast_to(np.asarray(condition, bool), lanes.count)
    results = [np.empty((lanes.count, *shape_of(r.type)), dtype_of(r.type)) for r in op.results]
    for region, which in ((op.true_region, chosen), (op.false_region, ~chosen)):
        if not region.blocks or not which.any():
            continue
        part = Lanes(lanes, np.flatnonzero(which)) if laned else lanes
        for array, value in zip(results, run.block(region.block, part), strict=True):
            array[which] = run.all(value, part)
    for result, array in zip(op.results, results, strict=True):
        run.values[result] = Laned(lanes, array)


LOOP_RULES: Mapping[type[Operation], Rule] = {
    FoldOp: _fold,
    ForOp: _loop,
    LoadOp: _load,
    LocalOp: _local,
    PrefetchOp: lambda run, op, lanes: None,
    StoreOp: _store,
    affine.ApplyOp: _apply,
    affine.MinOp: _apply,
    arith.BitcastOp: _bitcast,
    scf.IfOp: _choose,
    upstream.BroadcastOp: _broadcast,
    vector.FMAOp: _fma,
}

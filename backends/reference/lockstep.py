"""Loops whose iterations may run in any order, run together: operations on arrays of their values.

This is what makes it practical to interpret the nests of real models. It has the results of a run
iteration by iteration, including its errors: where two iterations of a loop access the same element
and one of them writes it, where an access is out of bounds, or where an operation is not known
here, `run` undoes what it did, and the iterations run one by one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import affine, arith, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.interpreter import Interpreter
from xdsl.ir import Block, Operation, SSAValue

from ...core.typed import memref_type
from ...dialects.loop.combiners import UFUNC
from ...dialects.loop.ops import (
    FoldOp,
    ForOp,
    LoadOp,
    LocalOp,
    PrefetchOp,
    StoreOp,
    YieldOp,
)
from ...dialects.upstream import ops as upstream
from .affine import evaluator
from .decoded import Access, Loop
from .lanes import Accesses, Conflict, Lanes
from .numbers import MEANINGS, dtype_of, fused, shape_of, shape_with, typed, unknown

_MOST_LANES = 1 << 16
_MOST_ELEMENTS = 1 << 24
"""In the buffers of all lanes that one operation allocates."""


class _UnsuitableError(Exception):
    """The iterations have to run one by one."""


@dataclass(frozen=True, eq=False)
class _Laned:
    """A value of each lane; its first dimension is that of the lanes."""

    lanes: Lanes
    array: np.ndarray

    def of(self, lanes: Lanes) -> np.ndarray:
        """The values of lanes inside of these."""
        return self.array if lanes is self.lanes else self.array[lanes.within(self.lanes)]


def run(interpreter: Interpreter, op: ForOp) -> bool:
    """Run all iterations of a loop together.

    Returns:
        False if they have to run one by one; then no buffer has changed.
    """
    run = _Run(interpreter, op)
    before = [(buffer, buffer.copy()) for buffer in run.stored]
    try:
        run.loop(op, Lanes())
    except (Conflict, _UnsuitableError, ArithmeticError, IndexError, TypeError, ValueError):
        for buffer, elements in before:
            buffer[...] = elements
        return False
    return True


def is_known(op: ForOp) -> bool:
    """Whether all operations in a loop are known here."""
    return all(type(one) in _RULES or one.name in MEANINGS for one in op.body.walk())


class _Run:
    """A run of a loop. Values that are the same in all lanes are those of the interpreter."""

    def __init__(self, interpreter: Interpreter, op: ForOp) -> None:
        self._interpreter = interpreter
        self._values: dict[SSAValue, Any] = {}
        self._accesses = Accesses()
        inside = {result for one in op.body.walk() for result in one.results}
        stores = [one for one in op.body.walk() if isinstance(one, StoreOp)]
        outside = dict.fromkeys(s.buffer for s in stores if s.buffer not in inside)
        self.stored: list[np.ndarray] = list(interpreter.get_values(outside))
        self._written = {store.buffer for store in stores}

    def _value(self, value: SSAValue, lanes: Lanes) -> tuple[Any, bool]:
        """A value, and whether it has one for each of the lanes."""
        if value not in self._values:
            return self._interpreter.get_values([value])[0], False
        found = self._values[value]
        return (found.of(lanes), True) if isinstance(found, _Laned) else (found, False)

    def _aligned(self, value: SSAValue, lanes: Lanes, rank: int) -> Any:
        """A value that can be combined with vectors of a rank in each lane."""
        found, laned = self._value(value, lanes)
        return found.reshape(found.shape + (1,) * (rank + 1 - found.ndim)) if laned else found

    def _all(self, value: SSAValue, lanes: Lanes) -> np.ndarray:
        """A value in each lane."""
        found, laned = self._value(value, lanes)
        if laned:
            return found
        return np.broadcast_to(
            np.asarray(found, dtype_of(value.type)), (lanes.count, *shape_of(value.type))
        )

    def block(self, block: Block, lanes: Lanes) -> Sequence[SSAValue]:
        """Run a block; returns what its terminator gives."""
        for op in block.ops:
            if isinstance(op, YieldOp | scf.YieldOp):
                return op.operands
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(self, op, lanes)
            else:
                self._number(op, lanes)
        return ()

    def _number(self, op: Operation, lanes: Lanes) -> None:
        """Run an operation on numbers, or on the numbers of vectors."""
        result, meaning = op.results[0], MEANINGS[op.name]
        rank = len(shape_of(result.type))
        laned = any(isinstance(self._values.get(value), _Laned) for value in op.operands)
        args = [self._aligned(value, lanes, rank) for value in op.operands]
        if not laned:
            self._values[result] = typed(meaning(op, *args), result.type)
            return
        if _divides_by_zero(op, args):
            raise _UnsuitableError
        self._set(result, meaning(op, *args), lanes)

    def _set(self, result: SSAValue, array: Any, lanes: Lanes) -> None:
        shape = (lanes.count, *shape_of(result.type))
        array = np.asarray(array).astype(dtype_of(result.type), copy=False)
        self._values[result] = _Laned(lanes, np.broadcast_to(array, shape))

    def apply(self, op: affine.ApplyOp | affine.MinOp, lanes: Lanes) -> None:
        """Run an affine map; of several results, the least."""
        numbers = [self._value(value, lanes)[0] for value in op.operands]
        found = functools.reduce(np.minimum, evaluator(op.map.data)(numbers))
        if np.ndim(found):
            self._set(op.results[0], found, lanes)
        else:
            self._values[op.results[0]] = int(found)

    def bitcast(self, op: Operation, lanes: Lanes) -> None:
        """Run a cast to a type of the same size."""
        array, kinds = self._all(op.operands[0], lanes), (op.operands[0].type, op.results[0].type)
        source, target = map(dtype_of, kinds)
        if source.itemsize != target.itemsize or IntegerType(1) in kinds:
            raise _UnsuitableError
        self._set(op.results[0], np.ascontiguousarray(array).view(target), lanes)

    def broadcast(self, op: Operation, lanes: Lanes) -> None:
        """Repeat a number or a vector."""
        source, result = op.operands[0], op.results[0]
        array, shape = self._all(source, lanes), shape_of(result.type)
        inner = (1,) * (len(shape) - len(shape_of(source.type))) + array.shape[1:]
        self._set(result, array.reshape(lanes.count, *inner), lanes)

    def fma(self, op: vector.FMAOp, lanes: Lanes) -> None:
        """Run a product and a sum with one rounding."""
        self._set(op.res, fused(op, *(self._all(value, lanes) for value in op.operands)), lanes)

    def fold(self, op: FoldOp, lanes: Lanes) -> None:
        """Combine the elements along an axis."""
        array = self._all(op.operands[0], lanes)
        axis = op.axis.value.data + 1
        self._set(
            op.results[0], UFUNC[op.combine.data].reduce(array, axis=axis, keepdims=True), lanes
        )

    def local(self, op: LocalOp, lanes: Lanes) -> None:
        """Allocate a buffer for each lane."""
        sizes = [self._value(value, lanes) for value in op.operands]
        if any(laned for _, laned in sizes):
            raise _UnsuitableError
        kind = memref_type(op.result)
        shape = shape_with(kind, (max(0, size) for size, _ in sizes))
        if lanes.count * math.prod(shape) > _MOST_ELEMENTS:
            raise _UnsuitableError
        buffers = unknown((lanes.count, *shape), kind.element_type)
        self._values[op.result] = _Laned(lanes, buffers)

    def prefetch(self, op: PrefetchOp, lanes: Lanes) -> None:
        """Do nothing: a prefetch is a hint."""

    def load(self, op: LoadOp, lanes: Lanes) -> None:
        """Read an element or a block in each lane."""
        access = Access.of(op, op.result.type)
        operands = op.operands[1:]
        elements, places, valid = self._places(access, op.buffer, operands, lanes)
        if self._is_tracked(op.buffer, elements):
            self._accesses.read(elements, places, _paths(lanes, valid))
        block = unknown(valid.shape, access.element_type)
        block[valid] = elements[places]
        self._values[op.result] = _Laned(lanes, block)

    def store(self, op: StoreOp, lanes: Lanes) -> None:
        """Write an element or a block in each lane."""
        access = Access.of(op, op.value.type, op.accumulates)
        operands = op.operands[2:]
        elements, places, valid = self._places(access, op.buffer, operands, lanes)
        self._accesses.write(elements, places, _paths(lanes, valid))
        values = np.broadcast_to(self._all(op.value, lanes), valid.shape)[valid]
        if access.accumulates is not None:
            UFUNC[access.accumulates].at(elements, places, values)
        else:
            elements[places] = values

    def _places(
        self, access: Access, buffer: SSAValue, operands: Sequence[SSAValue], lanes: Lanes
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The elements of a buffer, the places of those that lanes access, and which are valid."""
        shape, rank = (lanes.count, *access.shape), len(access.shape)
        numbers = [self._aligned(value, lanes, rank) for value in operands]
        valid = np.ones(shape, bool)
        for axis, limit in zip(access.limited, numbers[access.dims :], strict=True):
            valid &= access.lanes[axis] < limit
        index = [*access.place([*numbers[: access.dims], *access.lanes])]
        found = self._values.get(buffer)
        if isinstance(found, _Laned):
            array = found.array
            index = [lanes.within(found.lanes).reshape(-1, *(1,) * rank), *index]
        else:
            array = self._value(buffer, lanes)[0]
        if not array.flags.c_contiguous:
            raise _UnsuitableError
        places = np.zeros(np.count_nonzero(valid), np.int64)
        for place, size in zip(index, array.shape, strict=True):
            inside = np.broadcast_to(place, shape)[valid]
            if ((inside < 0) | (inside >= size)).any():
                raise _UnsuitableError
            places = places * size + inside
        return array.reshape(-1), places, valid

    def _is_tracked(self, buffer: SSAValue, elements: np.ndarray) -> bool:
        """Whether some iteration writes to a buffer."""
        if buffer in self._written:
            return True
        near = [one for one in self.stored if np.may_share_memory(one, elements)]
        if any(one.ctypes.data != elements.ctypes.data for one in near):
            raise _UnsuitableError
        return bool(near)

    def choose(self, op: scf.IfOp, lanes: Lanes) -> None:
        """Run the one or the other region in each lane."""
        condition, laned = self._value(op.cond, lanes)
        chosen = np.broadcast_to(np.asarray(condition, bool), lanes.count)
        results = [np.empty((lanes.count, *shape_of(r.type)), dtype_of(r.type)) for r in op.results]
        for region, which in ((op.true_region, chosen), (op.false_region, ~chosen)):
            if not region.blocks or not which.any():
                continue
            part = Lanes(lanes, np.flatnonzero(which)) if laned else lanes
            for array, value in zip(results, self.block(region.block, part), strict=True):
                array[which] = self._all(value, part)
        for result, array in zip(op.results, results, strict=True):
            self._values[result] = _Laned(lanes, array)

    def loop(self, op: ForOp, lanes: Lanes) -> None:
        """Run a loop in each lane."""
        loop = Loop.of(op)
        iterations = self._iterations(loop, lanes)
        if loop.in_order or loop.inits:
            self._in_order(op, iterations, lanes)
            return
        counts = np.maximum(0, np.broadcast_to(iterations.count, lanes.count))
        for above, numbers in _chunks(counts):
            with self._accesses.iterations(lanes, above) as inner:
                self._bind(op, iterations.variables(numbers, above), inner)
                self.block(op.body.block, inner)

    def _in_order(self, op: ForOp, iterations: _Iterations, lanes: Lanes) -> None:
        """Run iteration after iteration, each in the lanes that have so many."""
        carried = [self._value(value, lanes) for value in op.inits]
        arguments = op.body.block.args[len(op.body.block.args) - len(carried) :]
        for number in range(int(np.max(iterations.count, initial=0))):
            part, active = lanes, None
            if np.ndim(iterations.count) and not (iterations.count > number).all():
                active = np.flatnonzero(iterations.count > number)
                part = Lanes(lanes, active)
            self._bind(op, iterations.variables(number, active), part)
            for argument, (value, laned) in zip(arguments, carried, strict=True):
                seen = value if active is None or not laned else value[active]
                self._values[argument] = _value_of(seen, laned, part)
            given = self.block(op.body.block, part)
            for place, value in enumerate(given):
                if active is None:
                    carried[place] = self._value(value, lanes)
                    continue
                self._values[arguments[place]] = _value_of(*carried[place], lanes)
                array = self._all(arguments[place], lanes).copy()
                array[active] = self._all(value, part)
                carried[place] = array, True
        for result, (value, laned) in zip(op.results, carried, strict=True):
            self._values[result] = _value_of(value, laned, lanes)

    def _bind(self, op: ForOp, variables: Sequence[Any], lanes: Lanes) -> None:
        for argument, value in zip(op.body.block.args, variables, strict=False):
            self._values[argument] = _Laned(lanes, value) if np.ndim(value) else value

    def _iterations(self, loop: Loop, lanes: Lanes) -> _Iterations:
        bounds = loop.bound([self._value(value, lanes)[0] for value in loop.bounds])
        if loop.matrix is None:
            return _Iterations(functools.reduce(np.minimum, bounds))
        (row,) = bounds
        indptr, indices = (self._value(value, lanes)[0] for value in loop.matrix)
        if np.any(row < 0) or np.any(row >= len(indptr) - 1):
            raise _UnsuitableError
        first, end = indptr[row].astype(np.int64), indptr[row + 1].astype(np.int64)
        if np.any((end > first) & ((first < 0) | (end > len(indices)))):
            raise _UnsuitableError
        return _Iterations(end - first, first, indices)


@dataclass(frozen=True)
class _Iterations:
    """How often a loop runs in each lane; of entries, the first one, and the columns of all."""

    count: Any
    first: Any = 0
    columns: np.ndarray | None = None

    def variables(self, number: Any, lanes: np.ndarray | None) -> Sequence[Any]:
        """The variables of the iterations with these numbers, in some of the lanes."""
        if self.columns is None:
            return [number]
        first = self.first if lanes is None or not np.ndim(self.first) else self.first[lanes]
        return [first + number, self.columns[first + number].astype(np.int64)]


def _value_of(value: Any, laned: bool, lanes: Lanes) -> Any:
    return _Laned(lanes, value) if laned else value


def _chunks(counts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some of the iterations at a time, from the last ones on: their lanes and numbers."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for begin in reversed(range(0, total, _MOST_LANES)):
        places = np.arange(begin, min(begin + _MOST_LANES, total))
        above = np.searchsorted(ends, places, side="right")
        yield above, places - (ends - counts)[above]


def _paths(lanes: Lanes, valid: np.ndarray) -> list[np.ndarray]:
    """The iterations that each valid element of an access is in."""
    lane = np.nonzero(valid)[0]
    return [level[lane] for level in lanes.path]


def _divides_by_zero(op: Operation, args: Sequence[Any]) -> bool:
    """Whether an operation divides integers by 0, which is an error of a scalar only."""
    if not isinstance(op.results[0].type, IndexType | IntegerType):
        return False
    return ("div" in op.name or "rem" in op.name) and not np.all(args[1])


_RULES: dict[type[Operation], Callable[[_Run, Any, Lanes], None]] = {
    FoldOp: _Run.fold,
    ForOp: _Run.loop,
    LoadOp: _Run.load,
    LocalOp: _Run.local,
    PrefetchOp: _Run.prefetch,
    StoreOp: _Run.store,
    YieldOp: lambda run, op, lanes: None,
    affine.ApplyOp: _Run.apply,
    affine.MinOp: _Run.apply,
    arith.BitcastOp: _Run.bitcast,
    scf.IfOp: _Run.choose,
    scf.YieldOp: lambda run, op, lanes: None,
    upstream.BroadcastOp: _Run.broadcast,
    vector.FMAOp: _Run.fma,
}

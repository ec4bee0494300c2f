"""Values and iterations of loops that run together; what operations mean is in the rules.

A value is an array with an element for each iteration, a *lane*, or one for all lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.interpreter import Interpreter
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects.loop.ops import YieldOp
from ...dialects.rt import ops as rt
from .lanes import Accesses, Lanes
from .numbers import MEANINGS, dtype_of, shape_of, typed

MOST_LANES = 1 << 16
MOST_ELEMENTS = 1 << 24
"""In the buffers of all lanes that one operation allocates."""


class UnsuitableError(Exception):
    """The iterations have to run one by one."""


@dataclass(frozen=True, eq=False)
class Laned:
    """A value of each lane; its first dimension is that of the lanes."""

    lanes: Lanes
    array: np.ndarray

    def of(self, lanes: Lanes) -> np.ndarray:
        """The values of lanes inside of these."""
        return self.array if lanes is self.lanes else self.array[lanes.within(self.lanes)]


@dataclass(frozen=True, eq=False)
class Window:
    """A contiguous part of a buffer.

    `root` is the value of the whole buffer, `elements` has all its elements, and `first` the place
    of the first one of the part, in each lane if it differs.
    """

    root: SSAValue
    elements: np.ndarray
    first: Laned | int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Iterations:
    """How often a loop runs in each lane, and its variables.

    `variables` takes the numbers of iterations and, where they are those of some lanes only, the
    numbers of these lanes.
    """

    count: Any
    variables: Callable[[Any, np.ndarray | None], Sequence[Any]]
    forward: bool = False
    """Whether the order of the iterations is known, as that of `scf.for`."""


class LockstepRun:
    """A run of a loop. Values that are the same in all lanes are those of the interpreter.

    Args:
        interpreter: has the values that are defined outside.
        op: the loop.
        rules: what operations other than those on numbers do.
        stores: of each operation in the loop that writes to a buffer, that buffer.
        serial: loops that run in order in each lane.
        listeners: are notified of each operation in the loop.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        op: Operation,
        rules: Mapping[type[Operation], Rule],
        stores: Sequence[SSAValue],
        serial: set[Operation],
        listeners: Sequence[Interpreter.Listener] = (),
    ) -> None:
        self._interpreter, self._rules, self.serial = interpreter, rules, serial
        self._loop, self._listeners = op, listeners
        self.values: dict[SSAValue, Any] = {}
        self.accesses = Accesses()
        self.open: list[Operation] = []
        """The loops whose iterations run together, the innermost last."""
        self._written = set(stores)
        outside = [value for value in self._written if not _is_inside(value, op)]
        self.stored: list[np.ndarray] = list(interpreter.get_values(outside))

    def run(self) -> None:
        """Run the loop.

        Raises:
            Conflict: if iterations depend on each other.
            UnsuitableError: if they have to run one by one for another reason.
        """
        self._rules[type(self._loop)](self, self._loop, Lanes())

    def check_apart(self) -> None:
        """Check that buffers which are written do not overlap.

        Raises:
            UnsuitableError: if they do.
        """
        for number, one in enumerate(self.stored):
            for other in self.stored[:number]:
                if not _is_alike(one, other) and np.may_share_memory(one, other):
                    raise UnsuitableError

    def value(self, value: SSAValue, lanes: Lanes) -> tuple[Any, bool]:
        """A value, and whether it has one for each of the lanes."""
        if value not in self.values:
            return self._interpreter.get_values([value])[0], False
        found = self.values[value]
        return (found.of(lanes), True) if isinstance(found, Laned) else (found, False)

    def aligned(self, value: SSAValue, lanes: Lanes, rank: int) -> Any:
        """A value that can be combined with vectors of a rank in each lane."""
        found, laned = self.value(value, lanes)
        return found.reshape(found.shape + (1,) * (rank + 1 - found.ndim)) if laned else found

    def all(self, value: SSAValue, lanes: Lanes) -> np.ndarray:
        """A value in each lane."""
        found, laned = self.value(value, lanes)
        if laned:
            return found
        return np.broadcast_to(
            np.asarray(found, dtype_of(value.type)), (lanes.count, *shape_of(value.type))
        )

    def is_laned(self, values: Sequence[SSAValue]) -> bool:
        """Whether one of the values differs between lanes."""
        found = (self.values.get(value) for value in values)
        return any(
            isinstance(one, Laned) or (isinstance(one, Window) and isinstance(one.first, Laned))
            for one in found
        )

    def set(self, result: SSAValue, array: Any, lanes: Lanes) -> None:
        """Set a value of each lane."""
        shape = (lanes.count, *shape_of(result.type))
        array = np.asarray(array).astype(dtype_of(result.type), copy=False)
        self.values[result] = Laned(lanes, np.broadcast_to(array, shape))

    def block(self, block: Block, lanes: Lanes) -> Sequence[SSAValue]:
        """Run a block; returns what its terminator gives."""
        for op in block.ops:
            if isinstance(op, TERMINATORS):
                return op.operands
            rule = self._rules.get(type(op))
            if rule is not None:
                rule(self, op, lanes)
            else:
                self._number(op, lanes)
            for listener in self._listeners:
                listener.did_interpret_op(op, ())
        return ()

    def _number(self, op: Operation, lanes: Lanes) -> None:
        """Run an operation on numbers, or on the numbers of vectors."""
        result, meaning = op.results[0], MEANINGS[op.name]
        rank = len(shape_of(result.type))
        args = [self.aligned(value, lanes, rank) for value in op.operands]
        if _divides_by_zero(op, args):
            raise UnsuitableError
        if self.is_laned(op.operands):
            self.set(result, meaning(op)(*args), lanes)
        else:
            self.values[result] = typed(meaning(op)(*args), result.type)

    def window(self, buffer: SSAValue, lanes: Lanes) -> tuple[np.ndarray, Any, tuple[int, ...]]:
        """All elements of a buffer, the place of the first one in each lane, and its sizes."""
        found = self.values.get(buffer)
        if isinstance(found, Window):
            first = found.first.of(lanes) if isinstance(found.first, Laned) else found.first
            return found.elements, first, found.shape
        array = self.value(buffer, lanes)[0]
        if not array.flags.c_contiguous:
            raise UnsuitableError
        return array.reshape(-1), 0, array.shape

    def allocate(self, result: SSAValue, shape: Sequence[int], lanes: Lanes, make: Any) -> None:
        """Make a buffer for each lane.

        Args:
            result: its value.
            shape: its sizes.
            lanes: the lanes.
            make: makes an array of a size.
        """
        size = math.prod(shape)
        if lanes.count * size > MOST_ELEMENTS:
            raise UnsuitableError
        first = Laned(lanes, np.arange(lanes.count) * size)
        self.values[result] = Window(result, make((lanes.count * size,)), first, tuple(shape))

    def is_tracked(self, buffer: SSAValue, elements: np.ndarray) -> bool:
        """Whether some iteration writes to a buffer."""
        found = self.values.get(buffer)
        if (found.root if isinstance(found, Window) else buffer) in self._written:
            return True
        near = [one for one in self.stored if np.may_share_memory(one, elements)]
        if not all(_is_alike(one, elements) for one in near):
            raise UnsuitableError
        return bool(near)

    def together(
        self,
        op: Operation,
        block: Block,
        iterations: Iterations,
        lanes: Lanes,
    ) -> None:
        """Run the iterations of a loop in all lanes at once."""
        self.open.append(op)
        counts = np.maximum(0, np.broadcast_to(iterations.count, lanes.count))
        for above, numbers in _chunks(counts, iterations.forward):
            with self.accesses.iterations(lanes, above) as inner:
                self._bind(block.args, iterations.variables(numbers, above), inner)
                self.block(block, inner)
        self.open.pop()

    def in_order(
        self,
        block: Block,
        inits: Sequence[SSAValue],
        results: Sequence[SSAValue],
        iterations: Iterations,
        lanes: Lanes,
    ) -> None:
        """Run iteration after iteration, each in the lanes that have so many."""
        carried = [self.value(value, lanes) for value in inits]
        arguments = block.args[len(block.args) - len(carried) :]
        for number in range(int(np.max(iterations.count, initial=0))):
            part, active = lanes, None
            if np.ndim(iterations.count) and not (iterations.count > number).all():
                active = np.flatnonzero(iterations.count > number)
                part = Lanes(lanes, active)
            self._bind(block.args, iterations.variables(number, active), part)
            for argument, (value, laned) in zip(arguments, carried, strict=True):
                seen = value if active is None or not laned else value[active]
                self.values[argument] = _value_of(seen, laned, part)
            given = self.block(block, part)
            for place, value in enumerate(given):
                if active is None:
                    carried[place] = self.value(value, lanes)
                    continue
                self.values[arguments[place]] = _value_of(*carried[place], lanes)
                array = self.all(arguments[place], lanes).copy()
                array[active] = self.all(value, part)
                carried[place] = array, True
        for result, (value, laned) in zip(results, carried, strict=True):
            self.values[result] = _value_of(value, laned, lanes)

    def _bind(
        self, arguments: Sequence[BlockArgument], variables: Sequence[Any], lanes: Lanes
    ) -> None:
        for argument, value in zip(arguments, variables, strict=False):
            self.values[argument] = Laned(lanes, value) if np.ndim(value) else value


Rule = Callable[[LockstepRun, Any, Lanes], None]
"""Runs an operation in all lanes."""

TERMINATORS = (YieldOp, scf.YieldOp, rt.YieldOp)


def paths(lanes: Lanes, valid: np.ndarray) -> list[np.ndarray]:
    """The iterations that each valid element of an access is in."""
    lane = np.nonzero(valid)[0]
    return [level[lane] for level in lanes.path]


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in a loop."""
    around = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    while around is not None:
        if around is op:
            return True
        around = around.parent_op()
    return False


def _is_alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have the same elements in the same memory."""
    return one.ctypes.data == other.ctypes.data and one.dtype == other.dtype


def _value_of(value: Any, laned: bool, lanes: Lanes) -> Any:
    return Laned(lanes, value) if laned else value


def _chunks(counts: np.ndarray, forward: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some of the iterations at a time, from the last ones on: their lanes and numbers."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    begins = range(0, total, MOST_LANES)
    for begin in begins if forward else reversed(begins):
        places = np.arange(begin, min(begin + MOST_LANES, total))
        above = np.searchsorted(ends, places, side="right")
        yield above, places - (ends - counts)[above]


def _divides_by_zero(op: Operation, args: Sequence[Any]) -> bool:
    """Whether an operation divides integers by 0, which is an error of a scalar only."""
    if not isinstance(op.results[0].type, IndexType | IntegerType):
        return False
    return ("div" in op.name or "rem" in op.name) and not np.all(args[1])

"""`RecordingNest`: records what an operator does, and builds nothing.

It notes every read of an operand with its index, the loops around it, and the scalar operations
(`accesses.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.building.arithmetic import constant
from ...upstream.ops import RemfOp
from ..attrs import compute_type
from ..interfaces import GraphOp, element_type, rank
from ..kinds import FusionKind
from .accesses import (
    NOTHING,
    AtomKind,
    Read,
    RecordedLoop,
    RecordedLoopKind,
    Recording,
    Sources,
    Write,
)
from .nest import Index, LocalBuffer, PlaceSteps, SerialStep, Steps
from .recorded_indices import RecordedIndices

_FAST_MATH = (math.FmaOp, math.AbsFOp, math.CopySignOp, math.FloorOp, math.CeilOp, math.TruncOp)
_SLOW_KINDS: frozenset[type[Operation]] = frozenset(
    (
        *(arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp),
        RemfOp,
        *(kind for kind in math.Math.operations if kind not in _FAST_MATH),
    )
)
"""Divisions, and functions such as `exp`."""
_SLOW = 8
"""The cost of one of them, in simple operations such as an addition."""
_REDUCTION = "the step of a reduction"


class _Local(LocalBuffer):
    def __init__(self, nest: RecordingNest, type: Attribute) -> None:
        self.nest, self.type = nest, type
        self.sources = Sources(loops=nest.contract.visible)
        self.around = len(nest.contract.pure)

    def at(self, index: Index) -> SSAValue:
        contract = self.nest.contract
        contract.index(index)
        contract.inside("a local buffer", self.sources.loops)
        here = Sources(loops=contract.visible)
        return self.nest.placeholder(self.type, self.sources | self.nest.used(index) | here)

    def put(self, index: Index, value: SSAValue, combine: str | None = None) -> None:
        contract = self.nest.contract
        contract.stored(index, value, self.type, combine, self.around)
        contract.inside("a local buffer", self.sources.loops)
        more = self.nest.sources_of(value) | self.nest.used(index)
        self.sources |= Sources(more.atoms, more.reads)


class RecordingNest(RecordedIndices):
    """Records accesses. `finished` returns the recording."""

    def __init__(self, op: GraphOp, result: int) -> None:
        self._rank = 0 if op.fusion == FusionKind.NEST else rank(op.results[result])
        super().__init__(op, self._rank)
        self._open: tuple[int, ...] = ()
        self._reads: list[Read] = []
        self._writes: list[Write] = []
        self._cost = 0
        self._read_of: dict[SSAValue, int] = {}

    def finished(self, value: SSAValue | None = None) -> Recording:
        """The notes, after `value_at` has given `value`, or `write` has come to its end."""
        parts = self._rank, tuple(self._atoms), tuple(self._loops), tuple(self._reads)
        sources = NOTHING if value is None else self.sources_of(value)
        return Recording(
            *parts,
            sources,
            self._cost,
            tuple(self._writes),
            None if value is None else self._read_of.get(value),
            frozenset(self._numbers),
            frozenset(self._extents),
        )

    # The reads.

    def at(self, value: SSAValue, index: Index) -> SSAValue:
        """Note a read of an operand.

        Raises:
            UnsupportedError: if it is none, or the index has another rank.
        """
        operand = self.contract.operand(value)
        if len(index) != rank(value):
            raise self.contract.wrong("reads at an index of another rank", rank(value), len(index))
        return self._read(operand, tuple(index), compute_type(element_type(value)))

    def stored_entry(self, matrix: SSAValue, position: AffineExpr) -> SSAValue:
        """Note a read of the value of a stored entry."""
        operand = self.contract.operand(matrix, sparse=True)
        return self._read(operand, (position,), compute_type(element_type(matrix)))

    def _read(self, operand: int, index: Index, kind: Attribute) -> SSAValue:
        self.contract.index(index)
        key = ("read", operand, index)
        if key not in self._known:
            self._reads.append(Read(operand, index, self._open))
            reads = frozenset({len(self._reads) - 1})
            read = Sources(reads=reads, loops=self.used(index).loops)
            self._known[key] = self.placeholder(kind, read)
            self._read_of[self._known[key]] = len(self._reads) - 1
        return self._known[key]

    # The loops.

    def reduce_several(
        self,
        extents: Sequence[AffineExpr],
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: Steps,
    ) -> Sequence[SSAValue]:
        """Note a loop for each extent."""
        self.contract.reduction(combines, inits)
        with self._opened(self._over(RecordedLoopKind.REDUCTION, extents)) as loops:
            index = tuple(self._variable(loop, AtomKind.LOOP) for loop in loops)
            with self.contract.computing(_REDUCTION):
                after = step(index, self._carried(loops, inits))
            self.contract.step(inits, after)
            return self._closed(loops, inits, after)

    @contextmanager
    def loops(self, extents: Sequence[AffineExpr]) -> Iterator[Index]:
        """Note a loop for each extent."""
        with self._opened(self._over(RecordedLoopKind.PARALLEL, extents)) as loops:
            yield tuple(self._variable(loop, AtomKind.LOOP) for loop in loops)

    def serial(
        self, extent: AffineExpr, inits: Sequence[SSAValue], step: SerialStep
    ) -> Sequence[SSAValue]:
        """Note a loop."""
        with self._opened(self._over(RecordedLoopKind.SERIAL, [extent])) as loops:
            index = self._variable(loops[0], AtomKind.LOOP)
            after = step(index, self._carried(loops, inits))
            self.contract.step(inits, after)
            return self._closed(loops, inits, after)

    def _carried(self, loops: Sequence[int], inits: Sequence[SSAValue]) -> list[SSAValue]:
        """What iterations of loops pass to the next ones."""
        own = Sources(loops=frozenset(loops))
        for init in inits:
            self.contract.scalar(init)
        return [self.placeholder(init.type, self.sources_of(init) | own) for init in inits]

    def _over(self, kind: RecordedLoopKind, extents: Sequence[AffineExpr]) -> list[RecordedLoop]:
        """Loops of a kind, guards where the number of iterations is 1 or 0."""
        self.contract.index(extents)
        kinds = [RecordedLoopKind.GUARD if e in self._conditions else kind for e in extents]
        return [RecordedLoop(own, (), e) for own, e in zip(kinds, extents, strict=True)]

    def pattern_several(
        self,
        matrix: SSAValue,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        """Note a loop over the entries of a row."""
        operand = self.contract.operand(matrix, sparse=True)
        self.contract.index([row])
        self.contract.reduction(combines, inits)
        loop = RecordedLoop(RecordedLoopKind.ENTRIES, (), matrix=operand, row=(row,))
        with self._opened([loop]) as loops:
            position = self._variable(loops[0], AtomKind.POSITION)
            column = self._variable(loops[0], AtomKind.COLUMN)
            self._entries[operand, position] = row, column
            with self.contract.computing(_REDUCTION):
                after = step(position, column, self._carried(loops, inits))
            self.contract.step(inits, after)
            return self._closed(loops, inits, after)

    @contextmanager
    def _opened(self, loops: Sequence[RecordedLoop]) -> Iterator[list[int]]:
        """Open nested loops within the context."""
        outside, visible, numbers = self._open, self.contract.visible, list[int]()
        for loop in loops:
            loop.around = self._open
            numbers.append(len(self._loops))
            self._loops.append(loop)
            self._open = (*self._open, numbers[-1])
        self.contract.visible |= set(numbers)
        try:
            yield numbers
        finally:
            self._open, self.contract.visible = outside, visible

    def _closed(
        self, loops: Sequence[int], inits: Sequence[SSAValue], results: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """The results of a loop, which depend on everything that its body uses from outside."""
        sources = NOTHING
        for value in (*inits, *results):
            sources |= self.sources_of(value)
        own = {atom for number in loops for atom in self._loops[number].atoms}
        outer = Sources(sources.atoms - own, sources.reads, sources.loops.difference(loops))
        for number in loops:
            row = self.used(self._loops[number].row)
            self._loops[number].sources = outer | row
            outer |= row
        return [self.placeholder(result.type, outer) for result in results]

    # The writes.

    def local(self, shape: Index, type: Attribute) -> LocalBuffer:
        """A buffer whose elements depend on all that is put into it."""
        return _Local(self, type)

    def write(self, result: int, index: Index, value: SSAValue) -> None:
        """Note a write of elements that are final."""
        self.contract.element(result, index, value, None)
        self._writes.append(Write(result, tuple(index), True))

    def fill(self, result: int, value: Callable[[Index], SSAValue]) -> None:
        """Note a write of all elements of a result."""
        self.contract.result(result)
        filled = self._op.results[result]
        with self.loops([self.extent(filled, dim) for dim in range(rank(filled))]) as index:
            self.update(result, index, value(index))

    def update(
        self, result: int, index: Index, value: SSAValue, combine: str | None = None
    ) -> None:
        """Note a write of elements that may change again."""
        self.contract.element(result, index, value, combine)
        self._writes.append(Write(result, tuple(index), False))

    # The scalars.

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        """A constant, which is free."""
        key = ("constant", repr(value), type)
        if key not in self._known:
            self._known[key] = made = constant(value, type).result
            self.contract.sources[made] = NOTHING
        return self._known[key]

    def insert(self, op: Operation) -> SSAValue:
        """Note the cost of an operation on scalars, once for equal ones."""
        key = (op.name, *op.operands, *op.properties.items(), *op.result_types)
        if key not in self._known:
            self.contract.operation(op)
            if all(self._loops[number].kind == RecordedLoopKind.GUARD for number in self._open):
                self._cost += _SLOW if type(op) in _SLOW_KINDS else 1
            sources = NOTHING
            for operand in op.operands:
                sources |= self.sources_of(operand)
            self.contract.sources |= dict.fromkeys(op.results, sources)
            self._known[key] = op.results[0]
        return self._known[key]

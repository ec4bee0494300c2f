"""`RecordingNest`: records what an operator does, and builds nothing.

It notes every read of an operand with its index, the loops around it, and the scalar operations
(`accesses.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineConstantExpr, AffineDimExpr, AffineExpr

from ....core.building.arithmetic import constant
from ...loop.attrs import LoopKind
from ...loop.proofs.bounds import constant_index
from ...upstream.ops import RemfOp
from ..attrs import compute_type
from ..interfaces import GraphOp, element_type, rank, tensor_type
from ..kinds import FusionKind
from .accesses import (
    NOTHING,
    Atom,
    AtomKind,
    Read,
    RecordedLoop,
    RecordedLoopKind,
    Recording,
    Sources,
    Write,
    atoms_in,
)
from .contract import Contract
from .nest import Indices, LocalBuffer, PlaceSteps, SerialStep, Steps, WritingNest

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

    def at(self, index: Indices) -> SSAValue:
        contract = self.nest.contract
        contract.index(index)
        contract.inside("a local buffer", self.sources.loops)
        here = Sources(loops=contract.visible)
        return self.nest.placeholder(self.type, self.sources | self.nest.used(index) | here)

    def put(self, index: Indices, value: SSAValue, combine: str | None = None) -> None:
        contract = self.nest.contract
        contract.stored(index, value, self.type, combine, self.around)
        contract.inside("a local buffer", self.sources.loops)
        more = self.nest.sources_of(value) | self.nest.used(index)
        self.sources |= Sources(more.atoms, more.reads)


class RecordingNest(WritingNest):
    """Records accesses. `finished` returns the recording."""

    def __init__(self, op: GraphOp, result: int) -> None:
        self._op = op
        self.contract = Contract(op)
        self._rank = 0 if op.fusion == FusionKind.NEST else rank(op.results[result])
        self._atoms = list[Atom]()
        for _ in range(self._rank):
            self._atom(Atom(AtomKind.RESULT))
        self._loops: list[RecordedLoop] = []
        self._open: tuple[int, ...] = ()
        self._reads: list[Read] = []
        self._writes: list[Write] = []
        self._cost = 0
        self._known: dict[object, SSAValue] = {}
        self._read_of: dict[SSAValue, int] = {}
        self._exprs: dict[SSAValue, AffineExpr] = {}
        self._conditions: set[AffineExpr] = set()
        """The indices that are 1 where a condition holds, else 0."""
        self._values: dict[int, SSAValue] = {}
        self._entries: dict[tuple[int, AffineExpr], tuple[AffineExpr, AffineExpr]] = {}
        self._sizes: dict[tuple[SSAValue, int], AffineExpr] = {}
        self._numbers: set[int] = set()
        """The atoms that are used as numbers."""
        self._extents: set[tuple[int, int]] = set()
        """The sizes that are used: see `Recording.sizes`."""

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

    def at(self, value: SSAValue, index: Indices) -> SSAValue:
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

    def _read(self, operand: int, index: Indices, kind: Attribute) -> SSAValue:
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
    def loops(
        self, extents: Sequence[AffineExpr], kind: LoopKind = LoopKind.PARALLEL
    ) -> Iterator[Indices]:
        """Note a loop for each extent."""
        in_order = kind == LoopKind.SERIAL
        own = RecordedLoopKind.SERIAL if in_order else RecordedLoopKind.PARALLEL
        with self._opened(self._over(own, extents)) as loops:
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

    def local(self, shape: Indices, type: Attribute) -> LocalBuffer:
        """A buffer whose elements depend on all that is put into it."""
        return _Local(self, type)

    def write(self, result: int, index: Indices, value: SSAValue) -> None:
        """Note a write of elements that are final."""
        self.contract.element(result, index, value, None)
        self._writes.append(Write(result, tuple(index), True))

    def fill(self, result: int, value: Callable[[Indices], SSAValue]) -> None:
        """Note a write of all elements of a result."""
        self.contract.result(result)
        filled = self._op.results[result]
        with self.loops([self.extent(filled, dim) for dim in range(rank(filled))]) as index:
            self.update(result, index, value(index))

    def update(
        self, result: int, index: Indices, value: SSAValue, combine: str | None = None
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

    # The indices: atoms, what they are made of, and the numbers they are used as.

    def extent(self, value: SSAValue, dim: int) -> AffineExpr:
        """The size of a dimension: a constant or an atom."""
        self.contract.dimension(value, dim)
        values = (*self._op.operands, *self._op.results)
        self._extents |= {(n, dim) for n, one in enumerate(values) if one is value}
        if (size := tensor_type(value).get_shape()[dim]) >= 0:
            return AffineExpr.constant(size)
        if (value, dim) not in self._sizes:
            self._sizes[value, dim] = self._atom(Atom(AtomKind.SIZE))
        return self._sizes[value, dim]

    def index(self, value: SSAValue) -> AffineExpr:
        """A computed integer as an atom."""
        self.contract.scalar(value)
        if value not in self._exprs:
            atom = Atom(AtomKind.COMPUTED, sources=self.sources_of(value))
            self._exprs[value] = self._atom(atom)
            op = value.owner
            # A condition is an index that is 1 where it holds, else 0.
            if isinstance(op, arith.SelectOp) and (
                [constant_index(op.lhs), constant_index(op.rhs)] == [1, 0]
            ):
                self._conditions.add(self._exprs[value])
        return self._exprs[value]

    def value(self, expr: AffineExpr) -> SSAValue:
        """An index expression as a scalar."""
        self.contract.index([expr])
        self._numbers |= atoms_in([expr])
        if isinstance(expr, AffineConstantExpr):
            return self.constant(expr.value, IndexType())
        if isinstance(expr, AffineDimExpr):
            if expr.position not in self._values:
                value = self.placeholder(IndexType(), self.used([expr]))
                self._values[expr.position], self._exprs[value] = value, expr
            return self._values[expr.position]
        assert isinstance(expr, AffineBinaryOpExpr)
        key = ("value", expr)
        if key not in self._known:
            self._known[key] = self.placeholder(IndexType(), self.used([expr]))
        return self._known[key]

    def entry(self, matrix: SSAValue, position: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
        """Row and column of a stored entry: atoms where no loop here visits it."""
        self.contract.index([position])
        key = self.contract.operand(matrix, sparse=True), position
        if key not in self._entries:
            self._entries[key] = (
                self._atom(Atom(AtomKind.ROW_OF_ENTRY, matrix=key[0], position=position)),
                self._atom(Atom(AtomKind.COLUMN_OF_ENTRY, matrix=key[0], position=position)),
            )
        return self._entries[key]

    def count(self, matrix: SSAValue, row: AffineExpr) -> AffineExpr:
        """The number of entries of a row: an atom."""
        self.contract.index([row])
        if not isinstance(row, AffineDimExpr):
            self._numbers |= atoms_in([row])
        key = ("count", self.contract.operand(matrix, sparse=True), row)
        if key not in self._known:
            self._known[key] = self.placeholder(IndexType(), self.used([row]))
        return self.index(self._known[key])

    def _variable(self, loop: int, kind: AtomKind) -> AffineExpr:
        expr = self._atom(Atom(kind, loop=loop))
        self._loops[loop].atoms += (cast(AffineDimExpr, expr).position,)
        return expr

    def _atom(self, atom: Atom) -> AffineExpr:
        loops = frozenset[int]() if atom.sources is None else atom.sources.loops
        if atom.loop is not None:
            loops |= {atom.loop}
        if atom.position is not None:
            loops |= self.used([atom.position]).loops
        self._atoms.append(atom)
        self.contract.loops_of.append(loops)
        return AffineExpr.dimension(len(self._atoms) - 1)

    def used(self, exprs: Iterable[AffineExpr]) -> Sources:
        """What index expressions are made of."""
        atoms = atoms_in(exprs)
        loops = frozenset[int]().union(*(self.contract.loops_of[atom] for atom in atoms))
        found = Sources(frozenset(atoms), loops=loops)
        for atom in atoms:
            found |= self._atoms[atom].sources or NOTHING
        return found

    def sources_of(self, value: SSAValue) -> Sources:
        return self.contract.sources.get(value, NOTHING)

    def placeholder(self, type: Attribute, sources: Sources) -> SSAValue:
        value = Block(arg_types=[type]).args[0]
        self.contract.sources[value] = sources
        return value

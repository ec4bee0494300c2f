"""The indices of a recording: atoms, what they are made of, and the numbers they are used as."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineConstantExpr, AffineDimExpr, AffineExpr

from ...loop.bounds import constant_index
from ..interfaces import GraphOp, tensor_type
from .accesses import NOTHING, Atom, AtomKind, RecordedLoop, Sources, atoms_in
from .contract import Contract
from .nest import WritingNest


class RecordedIndices(WritingNest, ABC):
    """The part of a `RecordingNest` that notes what indices are."""

    def __init__(self, op: GraphOp, rank: int) -> None:
        self._op = op
        self.contract = Contract(op)
        self._atoms = list[Atom]()
        for _ in range(rank):
            self._atom(Atom(AtomKind.RESULT))
        self._loops: list[RecordedLoop] = []
        self._known: dict[object, SSAValue] = {}
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

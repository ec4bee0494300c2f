"""What a recording of an operator consists of: atoms, loops, and reads of operands.

Index expressions are affine expressions over numbered *atoms*; the first ones are the indices of
the result, and `Atom` says what the others stand for.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from xdsl.ir.affine import AffineExpr

from ....core.algebra.affine import dims_in
from .nest import Indices


class AtomKind(Enum):
    """The meaning of a variable in an index expression."""

    RESULT = auto()
    """One index of the element that is computed."""
    LOOP = auto()
    """The variable of a loop that `value_at` opens."""
    POSITION = auto()
    """The position of a stored entry, in a loop over the entries of a row."""
    COLUMN = auto()
    """The column of that entry."""
    ROW_OF_ENTRY = auto()
    """The row of the stored entry at a position that comes from outside."""
    COLUMN_OF_ENTRY = auto()
    """The column of such an entry."""
    COMPUTED = auto()
    """An index that was computed, for example loaded."""
    SIZE = auto()
    """The size of a dimension that is not known."""


@dataclass(frozen=True)
class Atom:
    """A number that index expressions are made of."""

    kind: AtomKind
    loop: int | None = None
    """Its loop, for LOOP, POSITION and COLUMN."""
    matrix: int | None = None
    """The operand whose entry it belongs to, for ROW_OF_ENTRY and COLUMN_OF_ENTRY."""
    position: AffineExpr | None = None
    """The position of that entry."""
    sources: Sources | None = None
    """What it is computed from, for COMPUTED."""


@dataclass(frozen=True)
class Sources:
    """What a scalar is computed from."""

    atoms: frozenset[int] = frozenset()
    reads: frozenset[int] = frozenset()
    loops: frozenset[int] = frozenset()
    """The loops in which it is known: each of their iterations has another value."""

    def __or__(self, other: Sources) -> Sources:
        loops = self.loops | other.loops
        return Sources(self.atoms | other.atoms, self.reads | other.reads, loops)


NOTHING = Sources()


class RecordedLoopKind(Enum):
    """Which loops an operator opens."""

    PARALLEL = auto()
    """Parallel iterations of `GraphOp.write`."""
    SERIAL = auto()
    """Iterations of `GraphOp.write` that keep their order."""

    REDUCTION = auto()
    GUARD = auto()
    """A loop that runs at most once: its body is computed under a condition."""
    ENTRIES = auto()
    """A reduction over the stored entries of a row."""


@dataclass
class RecordedLoop:
    """A loop that an operator opens."""

    kind: RecordedLoopKind
    around: tuple[int, ...]
    """The loops that are open around it, outermost first."""
    extent: AffineExpr | None = None
    """The number of iterations; None for the entries of a row."""
    matrix: int | None = None
    """The operand whose entries it visits."""
    row: Indices = ()
    """The row whose entries it visits."""
    atoms: tuple[int, ...] = ()
    """Its values: the variable, or position and column of the entry."""
    sources: Sources = NOTHING
    """What its result is computed from."""


@dataclass(frozen=True)
class Read:
    """One read of an operand."""

    operand: int
    index: Indices
    around: tuple[int, ...]
    """The loops that are open around it, outermost first."""

    @functools.cached_property
    def _atoms(self) -> tuple[frozenset[int], ...]:
        return tuple(frozenset(atoms_in([expr])) for expr in self.index)

    def atoms_at(self, places: Iterable[int]) -> frozenset[int]:
        """The atoms that some of the index expressions are made of."""
        return frozenset[int]().union(*(self._atoms[place] for place in places))


@dataclass(frozen=True)
class Write:
    """A write of elements of a result by `GraphOp.write`."""

    result: int
    index: Indices
    is_final: bool
    """Whether nothing is combined with the elements afterwards."""


@dataclass(frozen=True)
class Recording:
    """What computing one element of a result takes, or writing all results."""

    rank: int
    """The number of indices of the element; 0 where all results are written."""
    atoms: tuple[Atom, ...]
    loops: tuple[RecordedLoop, ...]
    reads: tuple[Read, ...]
    sources: Sources
    """What the element is computed from."""
    cost: int
    """The number of scalar operations outside of reductions, slow ones counted several times."""
    writes: tuple[Write, ...] = ()
    """Of an operator that writes its results."""
    moved: int | None = None
    """The number of the read whose element the result's element is, unchanged; None where it is
    computed."""
    numbers: frozenset[int] = frozenset()
    """The atoms that are used as numbers, not only as places of elements."""
    sizes: frozenset[tuple[int, int]] = frozenset()
    """The sizes that are used: the number of an operand, or of a result after them, and its
    dimension."""

    @property
    def reduces(self) -> bool:
        """Whether an element takes a reduction."""
        reductions = (RecordedLoopKind.REDUCTION, RecordedLoopKind.ENTRIES)
        return any(loop.kind in reductions for loop in self.loops)

    def dims_of(self, atoms: Iterable[int]) -> frozenset[int]:
        """The dimensions of the result that atoms are made of, reads and own loops aside."""
        found: set[int] = set()
        for number in atoms:
            atom = self.atoms[number]
            if atom.kind == AtomKind.RESULT:
                found.add(number)
            elif atom.position is not None:
                found |= self.dims_of(atoms_in([atom.position]))
            elif atom.sources is not None:
                found |= self.dims_of(atom.sources.atoms)
        return frozenset(found)


def atoms_in(exprs: Iterable[AffineExpr]) -> set[int]:
    """The numbers of the atoms that expressions are made of."""
    return {position for expr in exprs for position in dims_in(expr)}

"""A walk from the results of a nest back to the arguments of its group.

Each use of a value is a `Demand`: an index, under the loops that are open there. Where a value
that takes a reduction is demanded under a loop that its index does not need, it would be
computed again in each iteration of that loop; the walk stages it in a local buffer instead, or
says in words why there is no plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ....core.algebra.dims import Dim
from ....core.algebra.injective import are_apart, is_injective
from ..attrs import compute_type
from ..buffers import storage_type
from ..interfaces import GraphOp, Indices, element_type, rank, tensor_type
from ..nests.accesses import Atom, AtomKind, RecordedLoopKind, Recording, Sources, atoms_in
from ..nests.loop_nest import NAMES
from .group_values import GroupValues
from .local_buffers import is_local
from .nest_plan import Loops, PlannedLoop, Refusal, ResultNest


@dataclass(frozen=True)
class Demand:
    """A use of a value: where its element is needed, and the loops that are open there."""

    index: Indices
    loops: Loops


class Walk:
    """Follows the results of one nest back to the arguments of the group.

    Args:
        values: the values of the group.
        nest: the nest, with the order of its loops.
        staged: values that other nests stage, with the number of loops around their buffers.
    """

    def __init__(
        self, values: GroupValues, nest: ResultNest, staged: Mapping[SSAValue, int]
    ) -> None:
        self.values, self.nest, self.staged = values, nest, dict(staged)
        self.root: Loops = ()
        self.reductions: list[frozenset[PlannedLoop]] = []
        """For each reduction the parallel loops on which it depends."""
        self.entries: tuple[int, SSAValue] | None = nest.entries
        self.refusal: Refusal | None = None
        self.repeated: set[SSAValue] = set()
        self.hoisted: set[SSAValue] = set()
        """Staged values that a loop would compute again."""
        self.in_result: SSAValue | None = None
        """The staged value that the only result holds; see `NestPlan.in_result`."""
        self.computed: set[SSAValue] = set()
        """Values that this nest computes, except those that are staged before all nests."""
        self._atoms: list[frozenset[PlannedLoop]] = []
        self._variables: dict[AffineExpr, PlannedLoop] = {}
        self.ends: dict[tuple[SSAValue, AffineExpr], tuple[AffineExpr, AffineExpr]] = {}
        self._demands: dict[SSAValue, dict[Indices, Demand]] = {}
        self._reshaped: set[tuple[SSAValue, Indices]] = set()
        self._own: Indices = ()

    def done(self) -> Self:
        """This walk, after it has come to its end, or to entries that the nest has to visit."""
        own = self._own = self._open_root()
        for number, reshape in zip(self.nest.results, self.nest.reshapes, strict=True):
            value = self.values.results[number]
            index = self.nest.index(own, self.values.shapes.shape(self.nest.source))
            if reshape is not None:
                index = tuple(self.atom(self.loops_of(own)) for _ in range(rank(value)))
                self._reshaped.add((reshape, index))
            self._demand(value, Demand(index, self.root))
        for op in reversed(self.values.ops):
            for result in op.results:
                self._compute(op, result)
                if self.entries != self.nest.entries:
                    return self
        return self

    def loops_of(self, exprs: Iterable[AffineExpr]) -> frozenset[PlannedLoop]:
        """The loops on which index expressions depend."""
        return frozenset[PlannedLoop]().union(*(self._atoms[atom] for atom in atoms_in(exprs)))

    # The loops over the results.

    def _open_root(self) -> Indices:
        """Open the loops of the nest; return the index of the source."""
        source, dims = self.nest.source, range(rank(self.nest.source))
        extents = self.values.shapes.shape(source)
        if self.nest.entries is not None:
            return self._open_entries(*self.nest.entries)
        order = self.nest.order or list(dims)
        self.root = self._parallel([extents[dim] for dim in order])
        variables = [self.variable(loop) for loop in self.root]
        return tuple(variables[order.index(dim)] for dim in dims)

    def _open_entries(self, dim: int, matrix: SSAValue) -> Indices:
        """Open loops over the rows of a matrix, the other dimensions, and a row's entries."""
        extents = list(self.values.shapes.shape(self.nest.source))
        del extents[dim]
        rows = self.values.shapes.shape(matrix)[0]
        self.root = self._parallel([rows, *extents, None])
        row, *between, number = (self.variable(loop) for loop in self.root)
        position = self.atom({self.root[0]}) + number
        column = self.atom({self.root[0], self.root[-1]})
        self.ends[matrix, position] = row, column
        return (*between[:dim], position, *between[dim:])

    @staticmethod
    def _parallel(extents: Iterable[Dim | None], depth: int = 0) -> Loops:
        """Parallel loops under others, named by their depth."""
        letters = enumerate(extents, depth)
        return tuple(PlannedLoop(n, NAMES[min(d, len(NAMES) - 1)], True) for d, n in letters)

    def atom(self, loops: Iterable[PlannedLoop]) -> AffineExpr:
        """A number that depends on loops."""
        self._atoms.append(frozenset(loops))
        return AffineExpr.dimension(len(self._atoms) - 1)

    def variable(self, loop: PlannedLoop) -> AffineExpr:
        """The number of the iteration of a loop over a bound."""
        expr = self.atom({loop})
        self._variables[expr] = loop
        return expr

    # The values.

    def _demand(self, value: SSAValue, demand: Demand) -> None:
        """Note a use of a value, if it is computed in the kernel."""
        if value.owner in self.values.inside:
            self._demands.setdefault(value, {}).setdefault(demand.index, demand)

    def _compute(self, op: GraphOp, value: SSAValue) -> None:
        """Note what computing a value takes wherever the nest needs it."""
        demands = list(self._demands.get(value, {}).values())
        # What belongs to a stored entry is never staged.
        fixed = [d for d in demands if all(place not in d.index for _, place in self.ends)]
        depth = self._depth(value, fixed)
        if depth is not None:
            self.staged[value] = depth
            demands = [demand for demand in demands if demand not in fixed]
            demands.append(self._fill(value, fixed[0], depth))
        if demands and depth != 0:
            self.computed.add(value)
        again = len(demands) > 1 and not self._are_parts(demands)
        if again or any(self._is_repeated(value, demand) for demand in demands):
            self.repeated.add(value)
        for demand in demands:
            self._read(op, value, demand)

    def _fill(self, value: SSAValue, demand: Demand, depth: int) -> Demand:
        """How a value is needed to fill a buffer for what comes after its first `depth` indices."""
        outer = demand.index[:depth]
        outside = _up_to(demand.loops, self.loops_of(outer))
        inner = self._parallel(self.values.shapes.shape(value)[depth:], len(outside))
        return Demand((*outer, *map(self.variable, inner)), (*outside, *inner))

    def _again(self, demand: Demand, exprs: Iterable[AffineExpr]) -> int | None:
        """The outermost loop in each iteration of which the same element would be computed.

        That is a loop which the index does not need, around one that is needed for expressions
        of the index.
        """
        index, needed = self.loops_of(demand.index), self.loops_of(exprs)
        for number, loop in enumerate(demand.loops):
            if loop not in index and not loop.runs_once:
                return None if needed.isdisjoint(demand.loops[number:]) else number
        return None

    def _is_repeated(self, value: SSAValue, demand: Demand) -> bool:
        """Whether one use computes an element again: a loop does, or windows that overlap.

        Of what is cheap, windows are not looked at.
        """
        if self._again(demand, demand.index) is not None:
            return True
        if self.values.is_cheap(value):
            return False
        sizes: dict[AffineExpr, int | None] = {}
        for atom in atoms_in(demand.index):
            loops = self._atoms[atom]
            (size,) = {loop.iterations for loop in loops} if len(loops) == 1 else {None}
            sizes[AffineExpr.dimension(atom)] = size
        return not is_injective(demand.index, sizes)

    def _are_parts(self, demands: Sequence[Demand]) -> bool:
        """Whether uses are of parts of a value that have no element in common."""
        sizes = {variable: loop.iterations for variable, loop in self._variables.items()}
        pairs = itertools.combinations(demands, 2)
        return all(are_apart(one.index, other.index, sizes) for one, other in pairs)

    def _depth(self, value: SSAValue, demands: Sequence[Demand]) -> int | None:
        """How many leading indices each buffer for a value has; None if it is not staged.

        It is staged if its reductions would run again, if several uses would each compute what is
        expensive, or if another nest stages it. What is expensive only, and has no room in a local
        buffer, may have room in the result.
        """
        if not demands:
            return None
        first, idle = demands[0], None
        for demand in demands:
            number = self._again(demand, self.values.reduced(value, demand.index))
            if number is not None and (idle is None or number < idle):
                first, idle = demand, number
        depth = min(self._common_depth(first, idle, demands), self.staged.get(value, rank(value)))
        fits = is_local(tensor_type(value), depth)
        several = len(demands) > 1 and not self.ends and not self._are_parts(demands)
        again = idle is not None or (several and self._reduces_for_each(value, first, depth))
        if not again and value not in self.staged:
            if not several or not self._is_expensive(value, demands):
                return None
            if not fits and self._fits_result(value, depth, demands):
                self.in_result = value
            return depth if fits or value is self.in_result else None
        if fits:
            self.hoisted |= {value} if idle is not None else set()
            return depth
        # What follows says whether there is a better order of the loops.
        why = "its reductions would run again for each of its uses"
        if idle is not None:
            name = first.loops[idle].name
            why = f'a reduction would be computed again in each iteration of loop "{name}"'
        self.refusal = self.refusal or Refusal(value, why)
        return None

    def _fits_result(self, value: SSAValue, depth: int, demands: Sequence[Demand]) -> bool:
        """Whether each row of the only result can hold that of a value until it is computed.

        In the loop over the row, elements of the value are read only where they are replaced.
        """
        result, *others = self.values.results
        if others or self.in_result is not None or self.nest.entries is not None:
            return False
        if self.nest.order is not None or self.nest.reshapes != [None]:
            return False
        kind, shape = element_type(value), self.values.shapes.shape(value)
        same = element_type(result) == kind == storage_type(compute_type(kind))
        if not same or self.values.shapes.shape(result) != shape or depth != rank(value) - 1:
            return False
        places = [place for place, size in enumerate(shape) if size != Dim.of(1)]
        return all(
            self.root[-1] not in demand.loops
            or all(demand.index[place] == self._own[place] for place in places)
            for demand in demands
        )

    def _common_depth(self, first: Demand, idle: int | None, demands: Sequence[Demand]) -> int:
        """How many leading indices all uses have in common, of parallel loops before a loop."""
        open_loops = {loop for loop in first.loops[:idle] if loop.parallel}
        depth = 0
        for expr, *others in zip(first.index, *(demand.index for demand in demands), strict=True):
            if any(other != expr for other in others) or not self.loops_of([expr]) <= open_loops:
                break
            depth += 1
        return depth

    def _is_expensive(self, value: SSAValue, demands: Sequence[Demand]) -> bool:
        """Whether a value is expensive, and no loop around a use would fill its buffer again."""
        if self.values.is_cheap(value):
            return False
        return all(self._again(demand, demand.index) is None for demand in demands)

    def _reduces_for_each(self, value: SSAValue, demand: Demand, depth: int) -> bool:
        """Whether reductions that a value needs depend on more than its first `depth` indices."""
        own = self.loops_of(demand.index[depth:])
        reduced = self.loops_of(self.values.reduced(value, demand.index))
        return not reduced.isdisjoint(own) and not self._follows_shared(value)

    def _follows_shared(self, value: SSAValue) -> bool:
        """Whether an operand that this value reduces over entirely has other users."""
        op = value.owner
        assert isinstance(op, GraphOp)
        for operand in op.operands:
            index = [AffineExpr.dimension(place) for place in range(rank(operand))]
            users = {use.operation for use in operand.uses} - {op}
            if self.values.reduced(operand, index) == index and users & self.values.inside:
                return True
        return False

    def _read(self, op: GraphOp, value: SSAValue, demand: Demand) -> None:
        """Note the uses of operands that computing a value at an index makes."""
        if (value, demand.index) in self._reshaped:
            self._demand(op.operands[0], Demand(self._own, demand.loops))
            return
        recording = self.values.recording(value)
        site = _Site(self, op, recording, demand)
        if site.unknown_entry is not None:
            # The nest visits the entries of the matrix, if one of its dimensions is theirs.
            matrix, position = site.unknown_entry
            if self.nest.entries is None and position in self._own:
                self.entries = self._own.index(position), matrix
                return
            why = "the row of a stored entry is needed where the rows of its matrix are not visited"
            self.refusal = self.refusal or Refusal(value, why)
            return
        for read in recording.reads:
            loops = site.loops_around(read.around)
            self._demand(op.operands[read.operand], Demand(site.index(read.index), loops))
        for loop in recording.loops:
            needed = site.loops_of(loop.sources)
            # One in another reduction stays there, whatever the order.
            if all(other.parallel for other in needed.intersection(demand.loops)):
                self.reductions.append(frozenset(other for other in needed if other.parallel))


class _Site:
    """A recording substituted for a demand: its atoms as expressions of the walk."""

    def __init__(self, walk: Walk, op: GraphOp, recording: Recording, demand: Demand) -> None:
        self._walk, self._op, self._recording, self._demand = walk, op, recording, demand
        self._exprs = list(demand.index)
        self._loops = [
            PlannedLoop(loop.extent, "e" if loop.kind == RecordedLoopKind.ENTRIES else "k")
            for loop in recording.loops
        ]
        self.unknown_entry: tuple[SSAValue, AffineExpr] | None = None
        """A matrix and the position of an entry whose row is not known here."""
        for atom in recording.atoms[recording.rank :]:
            self._exprs.append(self._bound(atom))

    def index(self, index: Iterable[AffineExpr]) -> Indices:
        """Index expressions of the recording, as those of the walk."""
        return tuple(e.replace_dims_and_symbols(self._exprs, []) for e in index)

    def loops_of(self, sources: Sources) -> frozenset[PlannedLoop]:
        """The loops on which a scalar of the recording depends."""
        found = self._walk.loops_of(self._exprs[atom] for atom in sources.atoms)
        for number in sources.reads:
            read = self._recording.reads[number]
            operand = self._op.operands[read.operand]
            found |= self._walk.loops_of(self._walk.values.needed(operand, self.index(read.index)))
        return found

    def loops_around(self, around: Sequence[int]) -> Loops:
        """The loops that are open where the recording has these.

        The outermost of them is placed where all that it needs is available.
        """
        if not around:
            return self._demand.loops
        outermost = self._recording.loops[around[0]]
        needed = self.loops_of(outermost.sources) | self._walk.loops_of(self.index(outermost.row))
        loops = _up_to(self._demand.loops, needed)
        return (*loops, *(self._loops[number] for number in around))

    def _bound(self, atom: Atom) -> AffineExpr:
        """The expression for an atom, after all earlier ones are bound."""
        walk = self._walk
        if atom.loop is not None:
            if atom.kind == AtomKind.LOOP:
                return walk.variable(self._loops[atom.loop])
            expr = walk.atom({self._loops[atom.loop]})
            if atom.kind == AtomKind.COLUMN:
                loop = self._recording.loops[atom.loop]
                assert loop.matrix is not None
                ((row,), position) = self.index(loop.row), self._exprs[-1]
                walk.ends[self._op.operands[loop.matrix], position] = row, expr
            return expr
        if atom.position is not None and atom.matrix is not None:
            (position,) = self.index([atom.position])
            entry = self._op.operands[atom.matrix], position
            if entry not in walk.ends:
                self.unknown_entry = entry
                return atom.position
            return walk.ends[entry][atom.kind == AtomKind.COLUMN_OF_ENTRY]
        return walk.atom(() if atom.sources is None else self.loops_of(atom.sources))


def _up_to(loops: Loops, needed: Collection[PlannedLoop]) -> Loops:
    """The outermost loops, up to the innermost one that is needed."""
    return loops[: max((n for n, loop in enumerate(loops, 1) if loop in needed), default=0)]

"""The plan of the nests that compute a group of operators in one kernel.

Planning follows the values of a group from its results back to its arguments, without building
IR. Each use of a value is a `Demand`: an index, under the loops that are open there. Where a
value that takes a reduction is demanded under a loop that its index does not need, it would be
computed again in each iteration of that loop; the plan stages it in a local buffer instead, or
says in words why the group cannot be one kernel.

`plan_nests` is asked by fusion before a group grows; `convert-graph-to-loop` builds what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from ....core.dims import Dim
from ....core.errors import UnsupportedError, explain
from ..interfaces import GraphOp, Index, Sizes, rank, tensor_type
from ..shapes import SymbolicShapes
from .local_buffers import local_type
from .recording import Atom, AtomKind, LoopKind, Recorder, Recording, Sources, is_reshape

NAMES = "ijlmnpqrstuv"
"""The names of parallel loops, by their depth."""


@dataclass(eq=False)
class PlannedLoop:
    """A loop of a planned nest, by its identity."""

    extent: Dim | AffineExpr | None
    name: str
    parallel: bool = False

    @property
    def runs_once(self) -> bool:
        """Whether the loop has one iteration."""
        return self.extent in (Dim.of(1), AffineExpr.constant(1))


Loops = tuple[PlannedLoop, ...]


@dataclass(frozen=True)
class Demand:
    """A use of a value: where its element is needed, and the loops that are open there."""

    index: Index
    loops: Loops


@dataclass(frozen=True)
class Refusal:
    """Why a group cannot be one kernel, and the value that has to be computed before it."""

    value: SSAValue
    why: str


@dataclass
class ResultNest:
    """The nest that computes some results of a group."""

    results: list[int]
    """The numbers of the results; several only where they are numbers for the same rows."""
    source: SSAValue
    """The value whose indices are looped over: the first result, or the source of its reshape."""
    reshapes: list[SSAValue | None]
    """For each of them a reshape that it is made of, index by index: what is reshaped is looped
    over, so that a reduction over one of its rows runs once for the row."""
    order: list[int] | None = None
    """The dimensions in the order of their loops, where a reduction needs another one."""
    entries: tuple[int, SSAValue] | None = None
    """A dimension that visits the stored entries of a matrix, row by row."""


@dataclass
class NestPlan:
    """How a group becomes one kernel, or why it cannot."""

    nests: list[ResultNest] = field(default_factory=list)
    staged: dict[SSAValue, int] = field(default_factory=dict)
    """Values kept in a local buffer, with the number of loops the buffer is filled under."""
    repeated: set[SSAValue] = field(default_factory=set)
    """Values that are computed more often than they have elements."""
    refusal: Refusal | None = None


def plan_nests(
    ops: Sequence[GraphOp], results: Sequence[SSAValue], shapes: Sizes, recorder: Recorder
) -> NestPlan:
    """Plan the nests of a group.

    Args:
        ops: the operators of the group, in the order of their block.
        results: those of their results that are used outside of the group.
        shapes: the symbolic shapes of the values.
        recorder: knows what operators read.
    """
    return _Planner(ops, results, shapes, recorder).planned()


def planned(function: func.FuncOp, shapes: Sizes, recorder: Recorder) -> NestPlan:
    """Plan the nests of a primitive function.

    Raises:
        UnsupportedError: if there is an operation in it that is no operator of `graph`.
    """
    *body, returned = function.body.block.ops
    ops: list[GraphOp] = []
    for op in body:
        if not isinstance(op, GraphOp):
            raise UnsupportedError(explain(op.name, "has no value at an index"))
        ops.append(op)
    return plan_nests(ops, list(returned.operands), shapes, recorder)


def obstacle(function: func.FuncOp) -> str | None:
    """Why a primitive function cannot be one kernel; None where it can, or is one call.

    Raises:
        UnsupportedError: if there is an operation in it that is no operator of `graph`.
        VerifyException: if its shapes cannot fit together.
    """
    refusal = planned(function, SymbolicShapes(function), Recorder()).refusal
    alone = len(function.body.block.ops) <= 2
    return None if refusal is None or alone else refusal.why


class _Planner:
    """Plans the nests of one group."""

    def __init__(
        self,
        ops: Sequence[GraphOp],
        results: Sequence[SSAValue],
        shapes: Sizes,
        recorder: Recorder,
    ) -> None:
        self.ops, self.results = ops, results
        self.inside = set[object](ops)
        self.shapes, self.recorder = shapes, recorder
        self.plan = NestPlan()
        self._deep: dict[SSAValue, bool] = {}

    def planned(self) -> NestPlan:
        """The plan, or the first reason against it."""
        self.plan.refusal = next(filter(None, map(self._refusal_of, self.ops)), None)
        if self.plan.refusal is not None:
            return self.plan
        waiting = list(self._nests())
        while waiting:
            nest = waiting.pop(0)
            known = len(self.plan.staged)
            walk = self._walked(nest)
            if walk.refusal is not None:
                self.plan.refusal = walk.refusal
                return self.plan
            if nest.entries is not None and len(nest.results) > 1:
                waiting = [*map(self._nest_of, nest.results), *waiting]
                continue
            self.plan.nests.append(nest)
            self.plan.repeated |= walk.repeated
            if len(self.plan.staged) > known and len(self.plan.nests) > 1:
                # A nest that was planned earlier may use values that are staged now.
                waiting = [*self.plan.nests, *waiting]
                self.plan.nests = []
        self.plan.nests.sort(key=lambda nest: nest.results[0])
        return self.plan

    def _refusal_of(self, op: GraphOp) -> Refusal | None:
        """Why an operator cannot be in a kernel with the others, whatever the nest."""
        if (why := op.refusal) is not None:
            return Refusal(op.results[0], why)
        for indices, _, _ in op.index_bounds:
            if indices.owner in self.inside:
                why = "indices are checked before the kernel that reads by them runs"
                return Refusal(indices, why)
        return None

    def is_deep(self, value: SSAValue) -> bool:
        """Whether computing one element of `value` runs a reduction."""
        if value not in self._deep:
            op = value.owner
            self._deep[value] = (
                isinstance(op, GraphOp)
                and op in self.inside
                and (
                    self.recorder.recording(op, op.results.index(value)).reduces
                    or any(self.is_deep(operand) for operand in op.operands)
                )
            )
        return self._deep[value]

    def _nests(self) -> list[ResultNest]:
        """The results by the nest that computes them.

        Each has its own, but for numbers that reductions give for the same rows.
        """
        nests: dict[object, ResultNest] = {}
        for number, value in enumerate(self.results):
            nest = self._nest_of(number)
            key: object = number
            if rank(nest.source) == 1 and self.is_deep(value):
                key = self.shapes.shape(nest.source)[0]
            known = nests.setdefault(key, nest)
            if known is not nest:
                known.results += nest.results
                known.reshapes += nest.reshapes
        return list(nests.values())

    def _nest_of(self, number: int) -> ResultNest:
        """The nest of one result by itself."""
        value = self.results[number]
        reshape = self._reshape_of(value)
        if reshape is None:
            return ResultNest([number], value, [None])
        assert isinstance(reshape.owner, GraphOp)
        return ResultNest([number], reshape.owner.operands[0], [reshape])

    def _reshape_of(self, value: SSAValue) -> SSAValue | None:
        """The reshape of something that reduces, of which `value` is made index by index."""
        op = value.owner
        if not isinstance(op, GraphOp) or op not in self.inside or not self.is_deep(value):
            return None
        if is_reshape(op):
            return value
        recording = self.recorder.recording(op, op.results.index(value))
        own = tuple(AffineExpr.dimension(n) for n in range(recording.rank))
        if recording.reduces or len(recording.atoms) > recording.rank:
            return None
        deep = [read for read in recording.reads if self.is_deep(op.operands[read.operand])]
        if len(deep) != 1 or deep[0].index != own:
            return None
        operand = op.operands[deep[0].operand]
        same = tensor_type(operand).get_shape() == tensor_type(value).get_shape()
        return self._reshape_of(operand) if same else None

    def _walked(self, nest: ResultNest) -> _Walk:
        """Follow a nest back to its arguments, in the loops that its reductions need."""
        walk = _Walk(self, nest).done()
        if walk.refusal is None and walk.entries != nest.entries:
            nest.entries = walk.entries
            return _Walk(self, nest).done()
        if walk.refusal is None and nest.entries is None:
            nest.order = _better_order(walk.root, walk.reductions)
        return walk if nest.order is None else _Walk(self, nest).done()


class _Walk:
    """Follows the results of one nest back to the arguments of the group."""

    def __init__(self, planner: _Planner, nest: ResultNest) -> None:
        self.planner, self.nest = planner, nest
        self.root: Loops = ()
        self.reductions: list[frozenset[PlannedLoop]] = []
        """For each reduction the parallel loops on which it depends."""
        self.entries: tuple[int, SSAValue] | None = nest.entries
        self.refusal: Refusal | None = None
        self.repeated: set[SSAValue] = set()
        self._atoms: list[frozenset[PlannedLoop]] = []
        self.ends: dict[tuple[SSAValue, AffineExpr], tuple[AffineExpr, AffineExpr]] = {}
        self._demands: dict[SSAValue, dict[Index, Demand]] = {}
        self._filled: set[tuple[SSAValue, Index]] = set()
        self._reshaped: set[tuple[SSAValue, Index]] = set()
        self._own: Index = ()
        self._behind: dict[tuple[SSAValue, Index], frozenset[PlannedLoop]] = {}

    def done(self) -> _Walk:
        """This walk, after it has come to its end or to a reason why there is no plan."""
        own = self._own = self._open_root()
        for number, reshape in zip(self.nest.results, self.nest.reshapes, strict=True):
            value, index = self.planner.results[number], own
            if reshape is not None:
                index = tuple(self.atom(self.loops_of(own)) for _ in range(rank(value)))
                self._reshaped.add((reshape, index))
            self._demand(value, Demand(index, self.root))
        for op in reversed(self.planner.ops):
            for result in op.results:
                for demand in list(self._demands.get(result, {}).values()):
                    self._compute(op, result, demand)
                    if self.refusal is not None or self.entries != self.nest.entries:
                        return self
        return self

    def loops_of(self, exprs: Iterable[AffineExpr]) -> frozenset[PlannedLoop]:
        """The loops on which index expressions depend."""
        used = {e.position for expr in exprs for e in expr.dfs() if isinstance(e, AffineDimExpr)}
        return frozenset[PlannedLoop]().union(*(self._atoms[number] for number in used))

    def loops_behind(self, value: SSAValue, index: Index) -> frozenset[PlannedLoop]:
        """The loops on which a value at an index depends, those of its own reductions aside."""
        op = value.owner
        if not isinstance(op, GraphOp) or op not in self.planner.inside:
            return self.loops_of(index)
        key = value, index
        if key not in self._behind:
            recording = self.planner.recorder.recording(op, op.results.index(value))
            zero = AffineExpr.constant(0)
            exprs = [*index, *(zero for _ in recording.atoms[recording.rank :])]
            outer = (atom for atom in recording.sources.atoms if atom < recording.rank)
            found = self.loops_of(exprs[atom] for atom in outer)
            for read in recording.reads:
                at = tuple(e.replace_dims_and_symbols(exprs, []) for e in read.index)
                found |= self.loops_behind(op.operands[read.operand], at)
            self._behind[key] = found
        return self._behind[key]

    # The loops over the results.

    def _open_root(self) -> Index:
        """Open the loops of the nest; return the index of the source."""
        source, dims = self.nest.source, range(rank(self.nest.source))
        extents = self.planner.shapes.shape(source)
        if self.nest.entries is not None:
            return self._open_entries(*self.nest.entries)
        order = self.nest.order or list(dims)
        self.root = self._parallel([extents[dim] for dim in order])
        variables = [self.atom({loop}) for loop in self.root]
        return tuple(variables[order.index(dim)] for dim in dims)

    def _open_entries(self, dim: int, matrix: SSAValue) -> Index:
        """Open loops over the rows of a matrix, the other dimensions, and a row's entries."""
        extents = list(self.planner.shapes.shape(self.nest.source))
        del extents[dim]
        rows = self.planner.shapes.shape(matrix)[0]
        self.root = self._parallel([rows, *extents, None])
        row, *between, number = (self.atom({loop}) for loop in self.root)
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
        self._atoms.append(frozenset(loops))
        return AffineExpr.dimension(len(self._atoms) - 1)

    # The values.

    def _demand(self, value: SSAValue, demand: Demand) -> None:
        """Note a use of a value, if it is computed in the kernel."""
        if value.owner in self.planner.inside:
            self._demands.setdefault(value, {}).setdefault(demand.index, demand)

    def _compute(self, op: GraphOp, value: SSAValue, demand: Demand) -> None:
        """Note what computing a value at an index needs."""
        plan, again = self.planner.plan, self._computed_again(demand)
        visited = any(position in demand.index for _, position in self.ends)
        deep = not visited and self.planner.is_deep(value)
        if deep and (again is not None or value in plan.staged):
            self._compute_staged(op, value, demand, again)
            return
        if again is not None or len(self._demands[value]) > 1:
            self.repeated.add(value)
        self._read(op, value, demand)

    def _computed_again(self, demand: Demand) -> int | None:
        """The outermost loop in each iteration of which the same element would be computed.

        That is a loop which the index does not need, around one that it needs.
        """
        needed = self.loops_of(demand.index)
        for number, loop in enumerate(demand.loops):
            if loop not in needed and not loop.runs_once:
                inner = demand.loops[number:]
                return number if any(other in needed for other in inner) else None
        return None

    def _compute_staged(
        self, op: GraphOp, value: SSAValue, demand: Demand, again: int | None
    ) -> None:
        """Compute a value in loops that fill a local buffer, once for each place of the buffer."""
        plan, kind = self.planner.plan, tensor_type(value)
        depth = plan.staged.get(value, again)
        assert depth is not None
        if local_type(kind, depth) is None and value not in plan.staged:
            name = demand.loops[depth].name
            why = f'a reduction would be computed again in each iteration of loop "{name}"'
            self.refusal = Refusal(value, why)
            return
        plan.staged.setdefault(value, depth)
        outer, outside = demand.index[:depth], demand.loops[:depth]
        if local_type(kind, depth) is None or not self.loops_of(outer) <= set(outside):
            self._read(op, value, demand)
            return
        if (value, outer) not in self._filled:
            self._filled.add((value, outer))
            extents = self.planner.shapes.shape(value)[depth:]
            inner = self._parallel(extents, len(outside))
            index = (*outer, *(self.atom({loop}) for loop in inner))
            self._read(op, value, Demand(index, (*outside, *inner)))

    def _read(self, op: GraphOp, value: SSAValue, demand: Demand) -> None:
        """Note the uses of operands that computing a value at an index makes."""
        if (value, demand.index) in self._reshaped:
            self._demand(op.operands[0], Demand(self._own, demand.loops))
            return
        recording = self.planner.recorder.recording(op, op.results.index(value))
        site = _Site(self, op, recording, demand)
        if site.unknown_entry is not None:
            self._walk_entries(value, *site.unknown_entry)
            return
        for read in recording.reads:
            loops = site.loops_around(read.around)
            self._demand(op.operands[read.operand], Demand(site.index(read.index), loops))
        for loop in recording.loops:
            if loop.kind != LoopKind.ROW:
                needed = site.loops_of(loop.sources)
                self.reductions.append(frozenset(other for other in needed if other.parallel))

    def _walk_entries(self, value: SSAValue, matrix: SSAValue, position: AffineExpr) -> None:
        """Have the nest visit the entries of a matrix, if one of its dimensions is theirs."""
        if self.nest.entries is None and position in self._own:
            self.entries = self._own.index(position), matrix
            return
        why = "the row of a stored entry is needed where the rows of its matrix are not visited"
        self.refusal = Refusal(value, why)


class _Site:
    """A recording substituted for a demand: its atoms as expressions of the walk."""

    def __init__(self, walk: _Walk, op: GraphOp, recording: Recording, demand: Demand) -> None:
        self._walk, self._op, self._recording, self._demand = walk, op, recording, demand
        self._exprs = list(demand.index)
        self._loops = [
            PlannedLoop(loop.extent, "e" if loop.kind == LoopKind.ENTRIES else "k")
            for loop in recording.loops
        ]
        self.unknown_entry: tuple[SSAValue, AffineExpr] | None = None
        """A matrix and the position of an entry whose row is not known here."""
        for atom in recording.atoms[recording.rank :]:
            self._exprs.append(self._bound(atom))

    def index(self, index: Iterable[AffineExpr]) -> Index:
        """Index expressions of the recording, as those of the walk."""
        return tuple(e.replace_dims_and_symbols(self._exprs, []) for e in index)

    def loops_of(self, sources: Sources) -> frozenset[PlannedLoop]:
        """The loops on which a scalar of the recording depends."""
        found = self._walk.loops_of(self._exprs[atom] for atom in sources.atoms)
        for number in sources.reads:
            read = self._recording.reads[number]
            operand = self._op.operands[read.operand]
            found |= self._walk.loops_behind(operand, self.index(read.index))
        return found

    def loops_around(self, around: Iterable[int]) -> Loops:
        """The loops that are open where the recording has these."""
        loops = self._demand.loops
        for number in around:
            recorded = self._recording.loops[number]
            if recorded.kind == LoopKind.ROW:
                needed = self._walk.loops_of(self.index(recorded.row))
                inner = [n for n, loop in enumerate(loops, 1) if loop in needed]
                loops = loops[: max(inner, default=0)]
            loops = (*loops, self._loops[number])
        return loops

    def _bound(self, atom: Atom) -> AffineExpr:
        """The expression for an atom, after all earlier ones are bound."""
        walk = self._walk
        if atom.loop is not None:
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


def _better_order(
    loops: Sequence[PlannedLoop], reductions: Iterable[frozenset[PlannedLoop]]
) -> list[int] | None:
    """The loops that a reduction depends on, then the others; None where that is so already.

    A reduction that needs some of the loops only is then computed before the others begin. A
    loop that runs once may stay where it is.
    """
    for needed in reductions:
        inside = [n for n, loop in enumerate(loops) if loop in needed or loop.runs_once]
        if 0 < len(inside) < len(loops) and inside != list(range(len(inside))):
            return inside + [n for n in range(len(loops)) if n not in inside]
    return None

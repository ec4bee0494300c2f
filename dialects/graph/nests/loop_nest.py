"""The loops of a kernel under construction: every operation is placed in its outermost legal loop.

So loop invariants are computed before the loop. That alone hoists the maximum of a row of softmax
out of the loop over the row. A loop that may not run guards its body: a read that is not known to
be inside of its buffer otherwise stays there, and so do the reductions around the read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, UNKNOWN_LOC, IndexType, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.traits import Pure

from ....core.building.arithmetic import INDEX, computed, constant
from ....core.building.scopes import Scope, Scopes, may_trap
from ....core.ir.provenance import fuse
from ....core.ir.typed import parent_of
from ....core.ir.walks import is_same
from ...loop import ops as loop
from ...loop.attrs import Combine, LoopKind
from ...loop.loops import reduction
from ...loop.proofs.indices import Known
from ...loop.proofs.inside import Inside, Reader
from ...loop.syntax import compress
from .accesses import atoms_in
from .nest import Indices, LocalBuffer, Loops, PlaceSteps, SerialStep, Steps

NAMES = "ijlmnpqrstuv"
"""The names of parallel loops, by their depth."""


@dataclass(eq=False)
class LoopFrame(Scope):
    """A loop whose body is being filled; the first frame is the body of the kernel."""

    parallel: bool = False
    fixed: bool = False
    """Whether the loop stays in the body in which it was opened."""
    effects: bool = False
    """Whether the body stores, or reads what changes, so that an equal loop is another one."""
    dependences: set[LoopFrame] = field(default_factory=set)
    """Frames on which the operations in the body depend."""

    @property
    def loop(self) -> loop.ForOp:
        """The loop, which is placed once its body is complete."""
        return parent_of(self.block, loop.ForOp)


class LoopNest(Scopes[LoopFrame], Loops):
    """The open loops of a kernel and their contents.

    Index expressions are over `variables`: loop variables, sizes and computed integers.

    Args:
        block: the body of the kernel.
        known: what is known of its arguments, nothing if it is not given.
    """

    def __init__(self, block: Block, known: Callable[[], Known] = Known) -> None:
        super().__init__(LoopFrame(block))
        self._known = known
        self.variables: list[SSAValue] = []
        self.depends: dict[SSAValue, frozenset[LoopFrame]] = {}
        self.sources: list[Operation] = []
        """The operators that are being emitted, each for the one before it."""
        self.source_of: dict[Operation, Operation] = {}
        """The operator that each operation was placed for."""
        self._used: dict[str, int] = {}

    @contextmanager
    def standing_for(self, op: Operation) -> Iterator[None]:
        """Give placed operations the location of `op` within the context."""
        self.sources.append(op)
        try:
            yield
        finally:
            self.sources.pop()

    # Loops.

    @contextmanager
    def loops(
        self, extents: Sequence[AffineExpr], kind: LoopKind = LoopKind.PARALLEL
    ) -> Iterator[Indices]:
        """Open nested loops within the context."""
        opened: list[loop.ForOp] = []
        index: list[AffineExpr] = []
        for extent in extents:
            opened.append(self._open(kind, extent))
            index.append(self.variable(opened[-1].variable))
        yield tuple(index)
        for op in reversed(opened):
            self._close_here(op)

    def reduce_several(
        self,
        extents: Sequence[AffineExpr],
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: Steps,
    ) -> Sequence[SSAValue]:
        """Fold over an iteration space."""

        def level(index: Indices, accumulators: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if len(index) == len(extents):
                return step(index, accumulators)
            op = self._open(LoopKind.REDUCTION, extents[len(index)], accumulators, combines)
            return self._close(op, level((*index, self.variable(op.variable)), op.carried))

        return level((), inits)

    def reduce_entries(
        self,
        indptr: SSAValue,
        indices: SSAValue,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        """Fold over the places of the stored entries of a row."""
        map, operands = compress([row], self.variables)
        op = reduction(self._name("e"), map, operands, combines, inits, [indptr, indices])
        op.variable.name_hint, op.column.name_hint = "p", "c"
        guards = self._guards_of(op)
        self._enter(op)
        self.scopes[-1].dependences |= guards
        position, column = self.variable(op.variable), self.variable(op.column)
        return self._close(op, step(position, column, op.carried))

    def serial(
        self, extent: AffineExpr, inits: Sequence[SSAValue], step: SerialStep
    ) -> Sequence[SSAValue]:
        """Run iterations in order in the innermost loop; see `WritingNest.serial`."""
        op = self._open(LoopKind.SERIAL, extent, inits)
        self._close_here(op, step(self.variable(op.variable), op.carried))
        self.depends |= dict.fromkeys(op.results, frozenset(self.scopes[1:]))
        return op.results

    def _open(
        self,
        kind: LoopKind,
        extent: AffineExpr,
        inits: Sequence[SSAValue] = (),
        combines: Sequence[str] = (),
    ) -> loop.ForOp:
        """Open a loop over a range."""
        map, operands = compress([extent], self.variables)
        joins = [Combine(combine) for combine in combines]
        name = self._name(self._letter(kind))
        op = loop.ForOp(name, map, operands, kind, inits=inits, combines=joins)
        op.variable.name_hint = name
        self._enter(op, not isinstance(extent, AffineConstantExpr) or extent.value < 1)
        return op

    def _enter(self, op: loop.ForOp, conditional: bool = True) -> None:
        """Fill the body of a loop from here on."""
        kind = op.kind.data
        frame = LoopFrame(
            op.body.block,
            len(self.scopes),
            parallel=kind == LoopKind.PARALLEL,
            fixed=kind != LoopKind.REDUCTION,
            conditional=conditional,
        )
        frame.dependences |= self._depends_of(op.operands)
        self.depends |= dict.fromkeys(frame.block.args, frozenset({frame}))
        self.scopes.append(frame)

    def _leave(self, results: Sequence[SSAValue]) -> LoopFrame:
        """End the body of a loop, which passes values on."""
        frame = self.scopes.pop()
        if results:
            frame.block.add_op(loop.YieldOp(*results))
            frame.dependences |= self._depends_of(results)
        return frame

    def _close_here(self, op: loop.ForOp, results: Sequence[SSAValue] = ()) -> None:
        """End the body of a loop with effects, and place it in the loop around it."""
        frame = self._leave(results)
        op.location = fuse(op.body.block.ops)
        self._place(op, self.scopes[-1])
        self.scopes[-1].dependences |= frame.dependences - {frame}

    def _close(self, op: loop.ForOp, results: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """End the body of a reduction and place it where its operands are."""
        frame = self._leave(results)
        needed = frame.dependences - {frame}
        home = self.home_of(needed)
        for other in () if frame.effects else home.block.ops:
            if _is_same_reduction(other, op):
                op.drop_all_references()
                return other.results
        home.dependences |= needed
        self.depends |= dict.fromkeys(op.results, frozenset(needed))
        self._place(op, home)
        return op.results

    def _letter(self, kind: LoopKind) -> str:
        """The letter that names a loop over a range; that of a parallel one tells its depth."""
        if kind != LoopKind.PARALLEL:
            return "k"
        return NAMES[min(sum(frame.parallel for frame in self.scopes), len(NAMES) - 1)]

    def _name(self, base: str) -> str:
        count = self._used.get(base, 0)
        self._used[base] = count + 1
        return f"{base}{count}" if count else base

    # Memory.

    def load(self, buffer: SSAValue, index: Sequence[AffineExpr]) -> SSAValue:
        map, operands = compress(index, self.variables)
        op = loop.LoadOp(buffer, map, operands)
        guards = self._guards_of(op)
        depth = max(self.home_of_read(buffer, op.operands), self.home_of(guards).depth)
        return self._insert_at(depth, op, guards)

    def load_here(self, buffer: SSAValue, index: Sequence[AffineExpr]) -> SSAValue:
        """Read a buffer in the innermost loop, which also writes to it."""
        map, operands = compress(index, self.variables)
        op = loop.LoadOp(buffer, map, operands)
        self._place_here(op)
        return op.result

    def store(
        self,
        value: SSAValue,
        buffer: SSAValue,
        index: Sequence[AffineExpr],
        combine: Combine | None = None,
    ) -> None:
        """Write a scalar at an index in the innermost loop, or combine it with what is there."""
        map, operands = compress(index, self.variables)
        self.note_write(buffer)
        self._place_here(loop.StoreOp(value, buffer, map, operands, combine=combine))

    def local(self, shape: Indices, type: Attribute) -> LocalBuffer:
        """A buffer in the innermost open loop."""
        sizes = [e.value if isinstance(e, AffineConstantExpr) else DYNAMIC_INDEX for e in shape]
        symbolic = [e for e in shape if not isinstance(e, AffineConstantExpr)]
        return InMemory(self, self.allocate(MemRefType(type, sizes), symbolic))

    def allocate(self, kind: MemRefType, sizes: Sequence[AffineExpr] = ()) -> SSAValue:
        """A new local buffer in the innermost loop, with its symbolic sizes."""
        op = loop.LocalOp(kind, [self.value(size) for size in sizes])
        self._place_here(op)
        return op.result

    def _place_here(self, op: Operation) -> None:
        """Place an operation whose effects, or what it reads, keep it in the innermost loop."""
        self._place(op, self.scopes[-1])
        self.depends |= dict.fromkeys(op.results, frozenset(self.scopes[1:]))
        for frame in self.scopes:
            frame.effects = True

    @contextmanager
    def under(self, depth: int) -> Iterator[None]:
        """Leave all but the outermost `depth` loops within the context."""
        scopes, self.scopes = self.scopes, self.scopes[: depth + 1]
        try:
            yield
        finally:
            self.scopes = scopes

    # Scalars.

    def insert(self, op: Operation) -> SSAValue:
        """Place a pure operation in its outermost legal loop, once."""
        traps = may_trap(type(op), op.operands)
        guards = frozenset(self._may_be_left(op) if traps else ())
        return self._insert_at(self.home(type(op), op.operands), op, guards)

    def _insert_at(
        self, depth: int, op: Operation, guards: frozenset[LoopFrame] = frozenset()
    ) -> SSAValue:
        home, key = self.scopes[depth], _scalar_key(op)
        if key in home.memo:
            op.drop_all_references()
            return home.memo[key]
        self._place(op, home)
        home.dependences |= guards
        result, depends = op.results[0], self._depends_of(op.operands) | guards
        self.depends[result] = depends | {home} if depth else depends
        if key is not None:
            home.memo[key] = result
        return result

    def _place(self, op: Operation, frame: LoopFrame) -> None:
        if self.sources:
            self.source_of[op] = self.sources[-1]
            if op.location is UNKNOWN_LOC:
                op.location = self.sources[-1].location
        frame.block.add_op(op)
        frame.dependences |= self._depends_of(op.operands)

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        """A scalar constant, once, at the top of the kernel."""
        top = self.scopes[0]
        key = ("constant", repr(value), type)
        if key not in top.memo:
            top.memo[key] = self.on_top(constant(value, type))
        return top.memo[key]

    def on_top(self, op: Operation) -> SSAValue:
        """Place a pure operation of arguments and constants in front of all loops."""
        return self._insert_at(0, op)

    def known(self, key: object) -> SSAValue | None:
        """What is known by a key in an open loop."""
        return next((frame.memo[key] for frame in self.scopes if key in frame.memo), None)

    # Index expressions.

    def index(self, value: SSAValue) -> AffineExpr:
        """A computed integer as an index expression."""
        if not isinstance(value.type, IndexType):
            value = self.insert(arith.IndexCastOp(value, INDEX))
        return self.variable(value)

    def value(self, expr: AffineExpr) -> SSAValue:
        """An index expression as a scalar of type `index`."""
        return computed(expr, self._known_index, lambda _, op: self.insert(op))

    def _known_index(self, expr: AffineExpr) -> SSAValue | None:
        if isinstance(expr, AffineDimExpr):
            return self.variables[expr.position]
        return self.constant(expr.value, INDEX) if isinstance(expr, AffineConstantExpr) else None

    def variable(self, value: SSAValue) -> AffineExpr:
        """A value of type `index` as an index expression."""
        self.variables.append(value)
        return AffineExpr.dimension(len(self.variables) - 1)

    # The loops that values depend on.

    def frames_of(self, index: Sequence[AffineExpr], *values: SSAValue) -> frozenset[LoopFrame]:
        """The loops on which index expressions and values depend."""
        used = atoms_in(index)
        return self._depends_of([*(self.variables[position] for position in used), *values])

    def _depends_of(self, values: Sequence[SSAValue]) -> frozenset[LoopFrame]:
        none: frozenset[LoopFrame] = frozenset()
        return none.union(*(self.depends.get(value, none) for value in values))

    def depth_of(self, values: Sequence[SSAValue]) -> int:
        """The depth of the innermost loop that values depend on."""
        return self.home_of(self._depends_of(values)).depth

    def home_of(self, frames: frozenset[LoopFrame] | set[LoopFrame]) -> LoopFrame:
        for frame in reversed(self.scopes):
            if frame in frames:
                return frame
        return self.scopes[0]

    # Loops that guard what is in them.

    def _guards_of(self, op: Reader) -> frozenset[LoopFrame]:
        """The loops that have to run for an access to be inside of its buffer.

        Those that run wherever it is placed are left out.
        """
        guards = self._may_be_left(op)
        if not guards or self._is_inside(op, guards, []):
            return frozenset()
        needed = guards
        for frame in reversed(guards):
            fewer = [other for other in needed if other is not frame]
            if self._is_inside(op, guards, fewer):
                needed = fewer
        return frozenset(needed)

    def _is_inside(self, op: Reader, left: Sequence[LoopFrame], kept: Sequence[LoopFrame]) -> bool:
        """Whether an access is inside of its buffer out of some loops, but in others of these."""
        around = [frame for frame in self.scopes[1:] if frame in kept or frame not in left]
        return self._inside.is_inside(op, [frame.loop for frame in around])

    @cached_property
    def _inside(self) -> Inside:
        return Inside(self._known())

    def _may_be_left(self, op: Operation) -> list[LoopFrame]:
        """The loops that may not run, and that an operation or a reduction around it may leave."""
        certain = set(self._depends_of(op.operands))
        for frame in reversed(self.scopes[1:]):
            if frame in certain:
                certain |= {self.scopes[frame.depth - 1]} if frame.fixed else frame.dependences
        return [f for f in self.scopes[1:] if f.conditional and f not in certain]


class InMemory(LocalBuffer):
    """A buffer that is read and written in the innermost loop."""

    def __init__(self, nest: LoopNest, buffer: SSAValue) -> None:
        self.nest, self.buffer = nest, buffer

    def at(self, index: Indices) -> SSAValue:
        return self.nest.load_here(self.buffer, index)

    def put(self, index: Indices, value: SSAValue, combine: str | None = None) -> None:
        self.nest.store(value, self.buffer, index, None if combine is None else Combine(combine))


def _scalar_key(op: Operation) -> object:
    """A key that equal operations on scalars have in common; None for one that is not shared."""
    if op.regions or not op.has_trait(Pure):
        return None
    attributes = *op.properties.items(), *op.attributes.items()
    return (op.name, *op.operands, *attributes, *op.result_types)


def _is_same_reduction(known: Operation, op: loop.ForOp) -> bool:
    """Whether an operation is a reduction equal to another one but for its name."""
    if not isinstance(known, loop.ForOp):
        return False
    name, op.loop_name = op.loop_name, known.loop_name
    same = is_same(known, op)
    op.loop_name = name
    return same

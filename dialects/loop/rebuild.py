"""Rebuilding a kernel: the one visitor that every schedule primitive overrides.

A `Rebuild` walks what changes in a kernel, and emits what takes its place, operation by operation.
It maps each old value to a new one, and each old index (a loop variable, a size, a column) to an
affine expression over new indices. To split a loop is to bind its variable to `12 * i0 + i1`; every
map and bound that used it is composed with that, normalised, and compressed to the indices it still
needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from xdsl.dialects import affine
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...core.algebra.affine import with_dims
from ...core.building.creation import created
from .attrs import Combine, LoopKind
from .bindings import Bindings
from .handles import forward
from .loops import enclosing, loops_in
from .ops import (
    ForOp,
    KernelOp,
    LoadOp,
    PrefetchOp,
    StoreOp,
    YieldOp,
    block_shape,
)
from .proofs.bounds import without_repeats
from .unused import erase_unused


class Rebuild(Bindings):
    """Rebuilds parts of a kernel, in their place; a subclass overrides the operations it changes.

    Args:
        kernel: the kernel, which stays the same operation; see `nests.Consumed`.
        changing: the operations that may contain changes; None for all of the kernel.
    """

    def __init__(self, kernel: KernelOp, changing: Sequence[Operation] | None = None) -> None:
        super().__init__(kernel)
        self.kernel = kernel
        self._kept = set[Operation]()
        """Loops that stay as they are."""
        self._replaced: list[Operation] = []
        """Old operations that have been visited: others may still use their results."""
        self.suffix = ""
        self._change(kernel.body.block.ops if changing is None else changing)

    def _change(self, ops: Iterable[Operation]) -> None:
        """State which operations change from now on."""
        self._changing = set(ops)
        self._around = {around for op in self._changing for around in enclosing(op)}

    def run(self) -> KernelOp:
        """Rebuild what changes, and return the kernel."""
        self._rebuild_in(self.kernel.body.block)
        for op in reversed(self._replaced):
            self._remove(op)
        erase_unused(self.kernel.body.block, self._kept)
        return self.kernel

    def _rebuild_in(self, block: Block) -> None:
        """Rebuild what changes in a block of the old kernel, which stays."""
        with self.inside(block):
            for op in list(block.ops):
                if op in self._changing or self.is_normalized_by(op):
                    with _in_front_of(op):
                        self.visit(op)
                    self._replaced.append(op)
                elif op in self._around:
                    assert isinstance(op, ForOp)
                    with _in_front_of(op):
                        self._enter(op)
                        self._rebuild_in(op.body.block)
                elif type(op) is ForOp:
                    self._kept.add(op)

    def _enter(self, loop: ForOp) -> None:
        """Number the indices of a loop that stays, as those of a new one are."""
        if not loop.over_entries:
            bound = self.bound(loop)
            self.opened(self.number(loop.variable), bound)

    def is_normalized_by(self, op: Operation) -> bool:
        """Whether an operation around what changes is to be rebuilt, too: an index that its users
        may compute, or an access with such an index.
        """
        kind = type(op)  # an ABC: isinstance is slow
        if kind in (LoadOp, StoreOp, PrefetchOp):
            return self.follows(cast(LoadOp, op).indices)
        return kind in (affine.ApplyOp, affine.MinOp)

    def _remove(self, op: Operation) -> None:
        """Remove an old operation, whose results what stays uses no longer."""
        used, self._computed = [result for result in op.results if result.first_use], {}
        if used:
            self.source = op
            assert op.parent is not None
            with self.inside(op.parent), _in_front_of(op):
                for result in used:
                    result.replace_all_uses_with(self.value(result))
        op.detach()
        op.erase()

    # Loops.

    def bound(self, loop: ForOp) -> list[AffineExpr]:
        """The bounds of an old loop over new indices; of one over entries its row."""
        if not loop.over_entries and not self.follows(loop.bounds):
            dims = [self.expr(operand) for operand in loop.bounds]
            return [with_dims(expr, dims) for expr in loop.bound.data.results]
        return self.composed(loop.bound.data, loop.bounds)

    def name(self, old: str) -> str:
        """The name that a copied loop gets."""
        return old + self.suffix

    @contextmanager
    def loop(
        self, name: str, bound: Sequence[AffineExpr], kind: LoopKind, source: Operation
    ) -> Iterator[AffineExpr]:
        """Open a loop without carried values within the context; return its variable."""
        map, operands = self.map(without_repeats(bound))
        op = ForOp(name, map, operands, kind)
        op.variable.name_hint = name
        with self.inside(op.body.block):
            variable = self.number(op.variable)
            self.opened(variable, bound)
            yield variable
        if isinstance(source, ForOp):
            forward(source, op)
        self.emit(op, source)

    def loop_like(
        self,
        source: ForOp,
        name: str,
        bound: Sequence[AffineExpr],
        inits: Sequence[SSAValue],
        body: Callable[[ForOp], Sequence[SSAValue]],
        combines: Sequence[Combine] | None = None,
    ) -> Sequence[SSAValue]:
        """Emit a loop of the kind of `source`, over the same matrix if that is over entries.

        `body` emits an iteration of the new loop and returns its next carried values; the results
        are the final ones. `combines` has their combiners, if they are others than those of
        `source`.
        """
        entries = source.over_entries
        map, operands = self.map(bound if entries else without_repeats(bound))
        op = ForOp(
            name,
            map,
            operands,
            source.kind.data,
            matrix=[self.value(array) for array in source.matrix],
            inits=inits,
            combines=source.combines if combines is None else combines,
            unroll=None if source.unroll is None else source.at_once,
            cascade=source.chunk,
        )
        for old, new in zip(source.carried, op.carried, strict=False):
            new.name_hint = old.name_hint
        with self.inside(op.body.block):
            if entries:
                op.variable.name_hint = source.variable.name_hint
                self.bind(source.column, op.column)
            else:
                op.variable.name_hint = name
                self.opened(self.number(op.variable), bound)
            if last := body(op):
                self.emit(YieldOp(*last))
        forward(source, op)
        return self.emit(op, source).results

    def opened(self, variable: AffineExpr, bound: Sequence[AffineExpr]) -> None:
        """Called with the variable of each new loop over a bound, in its body."""

    # The operations of the old kernel.

    def visit_body(self, block: Block) -> None:
        """Visit the operations of an old block, except for the yield at its end."""
        for op in list(block.ops):
            if type(op) is not YieldOp:
                self.visit(op)

    def take_body(self, loop: ForOp) -> None:
        """Move the body of an old loop without carried values here, whose variable is bound.

        What uses the variable is rebuilt, and the rest stays as it is.
        """
        block, kept = self.block, set(loops_in(loop.body.block))
        for op in list(loop.body.block.ops):
            op.detach()
            block.add_op(op)
        changing, around = self._changing, self._around
        self._change(_users(loop.variable))
        self._rebuild_in(block)
        self._changing, self._around = changing, around
        gone = set(self._replaced)
        for inner in loops_in(block):
            if inner in kept and gone.isdisjoint((inner, *enclosing(inner))):
                forward(inner, inner)

    def visit(self, op: Operation) -> None:
        """Emit the replacement of an operation."""
        outer, self.source = self.source, op
        self.visit_op(op)
        self.source = outer

    def visit_op(self, op: Operation) -> None:
        """Emit what takes the place of an old operation, by its kind."""
        visit = _VISITS.get(type(op))
        if visit is None:
            self.visit_other(op)
        else:
            visit(self, op)

    def visit_for(self, op: ForOp) -> None:
        """Copy a loop."""
        inits, name = self.inits(op), self.name(op.loop_name.data)

        def body(new: ForOp) -> Sequence[SSAValue]:
            variable = new.variable if op.over_entries else self.number(new.variable)
            return self.step(op, variable, new.carried)

        self.bind_all(op.results, self.loop_like(op, name, self.bound(op), inits, body))

    def step(
        self, op: ForOp, variable: SSAValue | AffineExpr, carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Emit one iteration of an old loop; return its next carried values."""
        self.bind(op.variable, variable)
        self.bind_all(op.carried, carried)
        self.visit_body(op.body.block)
        return self.yielded(op)

    def inits(self, op: ForOp) -> Sequence[SSAValue]:
        """The initial carried values of an old loop."""
        return [self.value(init) for init in op.inits]

    def yielded(self, op: ForOp) -> Sequence[SSAValue]:
        """The carried values after one iteration of an old loop."""
        return [self.value(value) for value in op.yielded]

    def visit_load(self, op: LoadOp) -> None:
        """Copy a load."""
        if not self.follows(op.indices):
            self.visit_other(op)
            return
        self.load_like(op, self.composed(op.map.data, op.indices))

    def visit_store(self, op: StoreOp) -> None:
        """Copy a store."""
        if not self.follows(op.indices):
            self.visit_other(op)
            return
        self.store_like(op, self.composed(op.map.data, op.indices))

    def load_like(
        self,
        op: LoadOp,
        exprs: Sequence[AffineExpr],
        *,
        buffer: SSAValue | None = None,
        kind: Attribute | None = None,
        limits: Sequence[tuple[int, SSAValue]] | None = None,
    ) -> None:
        """Emit an old load at the place `exprs`; what is not given stays."""
        kind = op.result.type if kind is None else kind
        buffer = self.value(op.buffer) if buffer is None else buffer
        map, operands = self.map(exprs, len(block_shape(kind)))
        limits = self._limits(op) if limits is None else limits
        new = LoadOp(buffer, map, operands, kind, limits)
        new.attributes |= op.attributes
        self.bind(op.result, self.emit(new, op).results[0])

    def store_like(
        self,
        op: StoreOp,
        exprs: Sequence[AffineExpr],
        *,
        buffer: SSAValue | None = None,
        value: SSAValue | None = None,
        limits: Sequence[tuple[int, SSAValue]] | None = None,
    ) -> None:
        """Emit an old store at the place `exprs`, with its combiner; what is not given stays."""
        value = self.value(op.value) if value is None else value
        buffer = self.value(op.buffer) if buffer is None else buffer
        map, operands = self.map(exprs, len(block_shape(value.type)))
        limits = self._limits(op) if limits is None else limits
        new = StoreOp(value, buffer, map, operands, limits, op.accumulates)
        new.attributes |= op.attributes
        self.emit(new, op)

    def visit_prefetch(self, op: PrefetchOp) -> None:
        """Copy a hint."""
        map, operands = self.map(self.composed(op.map.data, op.indices))
        self.emit(PrefetchOp(self.value(op.buffer), map, operands), op)

    def _limits(self, op: LoadOp | StoreOp) -> list[tuple[int, SSAValue]]:
        if not (limits := op.limits):
            return []
        values = [self.value(limit) for limit in limits]
        return list(zip(op.limited.get_values(), values, strict=True))

    def visit_affine(self, op: affine.MinOp | affine.ApplyOp) -> None:
        """An index computed by a separate map: a sum is folded into its uses."""
        operands = list(op.operands)
        map = op.map.data
        count = map.num_dims
        symbols = [self.expr(operand) for operand in operands[count:]]
        exprs = self.composed(map, operands[:count], symbols)
        if len(exprs) == 1:
            self.bind(op.results[0], exprs[0])
            return
        self.bind(op.results[0], self.smallest(exprs, op))

    def visit_other(self, op: Operation) -> None:
        """An operation without regions, on the new operands."""
        operands = [self.value(operand) for operand in op.operands]
        results = [result.type for result in op.results]
        new = created(type(op), operands, results, op.properties, op.attributes)
        self.bind_all(op.results, self.emit(new, op).results)


def _users(index: SSAValue) -> Iterator[Operation]:
    """The operations that use an index, or one that follows from it alone."""
    for use in index.uses:
        yield use.operation
        if isinstance(use.operation, affine.ApplyOp | affine.MinOp):
            yield from _users(use.operation.results[0])


@contextmanager
def _in_front_of(op: Operation) -> Iterator[None]:
    """Move what is appended to the block of an operation within the context in front of it."""
    block = op.parent
    assert block is not None
    last = block.last_op
    assert last is not None
    yield
    made = list[Operation]()
    while (new := last.next_op) is not None:
        made.append(block.detach_op(new))
    block.insert_ops_before(made, op)


_VISITS: Mapping[type[Operation], Callable[[Rebuild, Any], None]] = {
    ForOp: lambda rebuild, op: rebuild.visit_for(op),
    LoadOp: lambda rebuild, op: rebuild.visit_load(op),
    StoreOp: lambda rebuild, op: rebuild.visit_store(op),
    PrefetchOp: lambda rebuild, op: rebuild.visit_prefetch(op),
    affine.MinOp: lambda rebuild, op: rebuild.visit_affine(op),
    affine.ApplyOp: lambda rebuild, op: rebuild.visit_affine(op),
}
"""The method for each kind of operation: their classes are ABCs, for which `match` and isinstance
are slow."""

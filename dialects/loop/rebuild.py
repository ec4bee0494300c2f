"""Rebuilding a kernel: the one visitor that every schedule primitive overrides.

A `Rebuild` walks a kernel and emits a new one, operation by operation. It maps each old value to a
new one, and each old index (a loop variable, a size, a column) to an affine expression over new
indices. To split a loop is to bind its variable to `12 * i0 + i1`; every map and bound that used it
is composed with that, normalised, and compressed to the indices it still needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects import affine
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import Rewriter

from ...core.algebra.affine import with_dims
from ...core.building.creation import created
from ...core.ir.walks import operations_in
from .attrs import Combine, LoopKind
from .bindings import Bindings
from .handles import forward
from .loops import enclosing
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
    """Builds a kernel from another; a subclass overrides the operations it changes.

    Args:
        kernel: the kernel, which is consumed: see `nests.Consumed`.
        changing: the operations that may contain changes; None if unknown.
    """

    def __init__(self, kernel: KernelOp, changing: Sequence[Operation] | None = None) -> None:
        super().__init__(kernel)
        self.kernel = kernel
        self._changing = None if changing is None else set(changing)
        self._around = {kernel, *(around for op in changing or () for around in enclosing(op))}
        self.suffix = ""

    def run(self) -> KernelOp:
        """Build the new kernel and put it in the place of the old one."""
        old, args = self.kernel, self.argument_types()
        count = len(old.function_type.inputs)
        block = Block(arg_types=args)
        for before, after in zip(old.body.block.args, block.args, strict=True):
            after.name_hint = before.name_hint
            self._bound[before] = after
        with self.inside(block):
            self.visit_body(old.body.block)
        erase_unused(block)
        new = KernelOp(
            old.sym_name.data, args[:count], args[count:], Region(block), self.argument_attrs()
        )
        new.attributes |= old.attributes
        new.location = old.location
        if old.parent is None:
            old.erase()
        else:
            Rewriter.replace_op(old, new, [])
        return new

    def argument_types(self) -> list[Attribute]:
        """The types of the arguments of the new kernel."""
        return [arg.type for arg in self.kernel.body.block.args]

    def argument_attrs(self) -> Sequence[DictionaryAttr] | None:
        """The attributes of the arguments of the new kernel."""
        attrs = self.kernel.arg_attrs
        return None if attrs is None else attrs.data

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

    def visit(self, op: Operation) -> None:
        """Emit the replacement of an operation."""
        changing = self._changing
        if changing is not None and type(op) is ForOp:
            if op in changing:
                self._changing = None
            elif op not in self._around:
                self._keep(op)
                return
        outer, self.source = self.source, op
        self.visit_op(op)
        self.source, self._changing = outer, changing

    def _keep(self, op: Operation) -> None:
        """Move an unchanged loop: what `visit_op` would do, faster."""
        for inner in operations_in(op):
            for place, operand in enumerate(inner.operands):
                if operand in self._bound:
                    inner.operands[place] = self.value(operand)
        op.detach()
        self.block.add_op(op)
        self.bind_all(op.results, op.results)

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

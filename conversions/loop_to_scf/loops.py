"""Kernels and the loops in them: `scf.for` that carries accumulators, and tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, func, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from ...core.building.arithmetic import INDEX
from ...core.target import Target
from ...dialects import rt, upstream
from ...dialects.loop import ops as loop
from ...dialects.loop.attrs import Combine, LoopKind
from ...dialects.loop.in_place import sharing
from .blocks import join, neutral
from .indices import ZERO, Form, fixed
from .layouts import Chunk
from .searches import Searches
from .statements import HANDLERS, Handler, refuse

_TOGETHER_BITS = 128
"""The most bits to load at a time for numbers that are each broadcast to a vector: within so many,
all processors broadcast a lane cheaply."""
_UNROLLED_ACCUMULATORS = 4
"""Accumulators of a completely unrolled reduction: they cover the latency of an addition."""


def convert_kernel(kernel: loop.KernelOp, target: Target) -> func.FuncOp:
    """The function that does what a kernel does.

    Raises:
        PassFailedException: naming an operation that cannot be converted.
    """
    types = [arg.type for arg in kernel.body.block.args]
    body = IRBlock(arg_types=types)
    for old, new in zip(kernel.body.block.args, body.args, strict=True):
        new.name_hint = old.name_hint
    Loops(kernel, body, target).run()
    shared = sharing(kernel)
    no_alias = DictionaryAttr({"llvm.noalias": UnitAttr()})
    attrs = [
        no_alias if isinstance(kind, MemRefType) and number not in shared else DictionaryAttr({})
        for number, kind in enumerate(types)
    ]
    return func.FuncOp.create(
        properties={
            "sym_name": kernel.sym_name,
            "function_type": FunctionType.from_lists(types, []),
            "sym_visibility": StringAttr("private"),
            "arg_attrs": ArrayAttr(attrs),
        },
        regions=[Region(body)],
        location=kernel.location,
    )


class Loops(Searches):
    """The conversion of one kernel into a block, with its loops."""

    def __init__(self, kernel: loop.KernelOp, body: IRBlock, target: Target) -> None:
        super().__init__(kernel, body, target, HANDLERS | LOOP_HANDLERS)

    def loop(
        self,
        op: Operation,
        hint: str | None,
        lower: Form,
        upper: Form,
        step: int,
        carried: Sequence[Sequence[SSAValue]],
        fill: Callable[[Form, list[list[SSAValue]]], Sequence[Sequence[SSAValue]]],
    ) -> list[list[SSAValue]]:
        """An `scf.for` that carries groups of values; `fill` makes an iteration's new ones.

        `op` is the loop that is converted.
        """
        self.forget_written(op)
        emit, indices, location = self.emitter, self.indices, self.emitter.location
        flat = [value for group in carried for value in group]
        types = [value.type for value in flat]
        ends = [indices.value(lower), indices.value(upper), emit.index(step)]
        block = IRBlock(arg_types=[INDEX, *types])
        block.args[0].name_hint = hint
        facts, pending = len(indices.facts.positive), len(self.pending)
        emit.open(block)
        top = indices.facts.of(upper)[1]
        variable = indices.atom(
            block.args[0], indices.facts.is_nonnegative(lower), top - 1 if top is not None else None
        )
        new = fill(variable, _grouped(block.args[1:], carried))
        emit.location = location
        emit.emit(scf.YieldOp, [value for group in new for value in group])
        emit.close()
        del indices.facts.positive[facts:], self.pending[pending:]
        self.forget_written(op)
        new_op = emit.emit(scf.ForOp, [*ends, *flat], types, regions=[Region(block)])
        return _grouped(new_op.results, carried)

    def forget_written(self, op: Operation) -> None:
        """Forget the contents of buffers that a loop writes to: iterations see each other's
        stores."""
        for buffer in self.writes[op]:
            new = self.values.get(buffer)
            if isinstance(new, SSAValue):
                self.buffers.contents.forget(new)

    def for_loop(self, op: Operation) -> bool:
        """`loop.for`."""
        assert isinstance(op, loop.ForOp)
        lower, bounds, kind = ZERO, self.bound(op), op.kind.data
        if op.over_entries:
            indptr, (row,) = op.matrix[0], bounds
            lower, bounds = self.entry(indptr, row), [self.entry(indptr, row + 1)]
        upper = self.indices.least(bounds)
        known, at_once = (upper - lower).number, op.at_once
        if kind == LoopKind.UNROLL:
            if known is None:
                fact = f'loop "{op.loop_name.data}" cannot be unrolled'
                refuse(op, fact, "a constant bound", "none")
            at_once = known
        if op.is_plain and (known is None or known > at_once):
            if kind == LoopKind.TILES and not self.emitter.frame:
                self.tiles(op)
                return True
            if self.indices.facts.of(upper)[1] == 1:
                self.at_most_once(op, bounds)
                return True
        facts = len(self.indices.facts.positive)
        self.whole(op.results, self._iterated(op, lower, bounds, upper, at_once))
        del self.indices.facts.positive[facts:]
        return True

    # min(1, n) > 0  ==  n > 0
    def at_most_once(self, op: loop.ForOp, bounds: Sequence[Form]) -> None:
        """A loop of no or one iteration is its body under a condition."""
        self.forget_written(op)
        emit, indices = self.emitter, self.indices
        facts, pending = len(indices.facts.positive), len(self.pending)
        unknown = indices.least([bound for bound in bounds if bound.number is None])
        with emit.guarded(emit.compare("slt", emit.index(0), indices.value(unknown))):
            indices.facts.assume_below(ZERO, bounds)
            self.values[op.variable] = ZERO
            self.statements(op.body.block)
            emit.location = op.location
        del indices.facts.positive[facts:], self.pending[pending:]
        self.forget_written(op)

    def tiles(self, op: loop.ForOp) -> None:
        """Tile loops, one directly inside the other, become one range of tiles."""
        nest = _perfect_nest(op)
        bounds = [self.bound(inner) for inner in nest]
        extents = [self._number_of_tiles(b) for b in bounds]
        total = fixed(1)
        for extent in extents:
            total = total * extent
        self.forget_written(op)
        emit, indices, count = self.emitter, self.indices, self.indices.value(total)
        block = IRBlock(arg_types=[INDEX])
        block.args[0].name_hint = "tile"
        outside, self.hoisted = self.hoisted, [self.budget]
        facts, pending = len(indices.facts.positive), len(self.pending)
        emit.open(block, frame=True)
        top = total.number
        tile = indices.atom(block.args[0], True, top - 1 if top is not None else None)
        variables = self._divided(tile, extents)
        for inner, variable, bound in zip(nest, variables, bounds, strict=True):
            indices.facts.assume_below(variable, bound)
            self.values[inner.variable] = variable
        for inner in nest[:-1]:
            self.statements_before(inner.body.block)
        self.statements(nest[-1].body.block)
        emit.location = op.location
        emit.emit(rt.YieldOp, [])
        emit.close()
        del indices.facts.positive[facts:], self.pending[pending:]
        self.hoisted = outside
        self.forget_written(op)
        captures = self._captures(block)
        emit.emit(rt.ParallelTilesOp, [count, *captures], regions=[Region(block)])

    def _number_of_tiles(self, bounds: Sequence[Form]) -> Form:
        """The iterations of a loop, which are none where its bound is below 0."""
        extent = self.indices.least(bounds)
        known = self.indices.facts.is_nonnegative(extent)
        return extent if known else self.indices.greatest([extent, ZERO])

    def _divided(self, tile: Form, extents: Sequence[Form]) -> list[Form]:
        """The variables of nested loops from the number of a tile, the last one fastest."""
        emit, indices = self.emitter, self.indices
        variables: list[Form] = []
        for extent in reversed(extents[1:]):
            operands = [indices.value(tile), indices.value(extent)]
            top = indices.facts.of(extent)[1]
            high = top - 1 if top is not None else None
            variables.append(indices.atom(emit.pure(arith.RemUIOp, operands, INDEX), True, high))
            tile = indices.atom(emit.pure(arith.DivUIOp, operands, INDEX), True)
        return [tile, *reversed(variables)]

    def statements_before(self, block: IRBlock) -> None:
        """The statements of a block up to the loop in it, which is the last one."""
        for op in block.ops:
            if isinstance(op, loop.ForOp):
                return
            self.emitter.location = op.location
            handler = self.handlers.get(op.name)
            if handler is None or not handler(self, op):
                self.other(op)

    def _captures(self, block: IRBlock) -> list[SSAValue]:
        """Isolate a block: what comes from outside becomes an argument, constants are copied."""
        emit = self.emitter
        depth = emit.here + 1
        inside: dict[SSAValue, SSAValue] = {}
        captures: list[SSAValue] = []
        constants: list[Operation] = []
        own = [op for top in block.ops for op in top.walk()]
        defined: set[SSAValue] = {value for op in own for value in op.results}
        defined.update(arg for op in own for r in op.regions for b in r.blocks for arg in b.args)
        defined.update(block.args)
        for op in own:
            for number, operand in enumerate(op.operands):
                if operand in defined:
                    continue
                if operand not in inside:
                    owner = operand.owner
                    if isinstance(owner, arith.ConstantOp):
                        constants.append(owner.clone())
                        inside[operand] = constants[-1].results[0]
                    else:
                        captures.append(operand)
                        inside[operand] = block.insert_arg(operand.type, len(block.args))
                        inside[operand].name_hint = operand.name_hint
                    emit.depths[inside[operand]] = depth
                op.operands[number] = inside[operand]
        if constants and block.first_op is not None:
            block.insert_ops_before(constants, block.first_op)
        return captures

    def _iteration(
        self, op: loop.ForOp, variable: Form, parts: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """One iteration: the parts of what it carries on from those that it is given."""
        self.values[op.variable] = variable
        if op.over_entries:
            self.values[op.column] = self.entry(op.matrix[1], variable)
        self.whole(op.carried, parts)
        self.statements(op.body.block)
        return self.all_parts(op.yielded)

    def _iterated(
        self, op: loop.ForOp, lower: Form, bounds: Sequence[Form], upper: Form, at_once: int
    ) -> list[SSAValue]:
        """All iterations, up to the least of the bounds: the parts of what they carry at last."""
        parts, known = self.all_parts(op.inits), (upper - lower).number
        if known is not None and known <= at_once:
            # All of it, in a few chains of accumulators that do not wait for each other.
            chains = max(1, min(known, _UNROLLED_ACCUMULATORS, at_once))
            groups = self._accumulators(op, parts, chains)
            for number in range(known):
                chain = number % chains
                groups[chain] = self._iteration(op, lower + number, groups[chain])
            return self._joined(op, groups)

        def several(position: Form, groups: list[list[SSAValue]]) -> list[list[SSAValue]]:
            if at_once == 1:
                self.indices.facts.assume_below(position, bounds)
            beside = self._loaded_together(op, position, len(groups))
            found: list[list[SSAValue]] = []
            for number, group in enumerate(groups):
                self.given = {load: scalars[number] for load, scalars in beside.items()}
                found.append(self._iteration(op, position + number, group))
            self.given = {}
            return found

        hint = op.variable.name_hint
        if at_once == 1:
            return self.loop(op, hint, lower, upper, 1, [parts], several)[0]
        count = upper - lower
        if known is None:
            if op.over_entries or self.indices.facts.is_nonnegative(count):
                # Rows do not end before they begin.
                distance = self.indices.atom(self.indices.value(count), nonnegative=True)
            else:
                distance = self.indices.greatest([count, ZERO])
            full = lower + self.indices.divide(distance, at_once) * at_once
        else:
            full = lower + known // at_once * at_once
        groups = self._accumulators(op, parts, at_once)
        groups = self.loop(op, hint, lower, full, at_once, groups, several)
        if known is not None:
            for number in range(known % at_once):
                groups[number] = self._iteration(op, full + number, groups[number])
            return self._joined(op, groups)
        return self.loop(op, hint, full, upper, 1, [self._joined(op, groups)], several)[0]

    def _loaded_together(
        self, op: loop.ForOp, position: Form, count: int
    ) -> dict[Operation, list[SSAValue]]:
        """The numbers of neighbouring entries which fill vectors: read by one load for several.

        A broadcast from memory keeps a load port as busy as a load of a whole vector does.
        """
        found: dict[Operation, list[SSAValue]] = {}
        if not op.over_entries:
            return found
        emit = self.emitter
        for load in op.body.block.ops:
            if not isinstance(load, loop.LoadOp) or not _is_stretched(load, op):
                continue
            element = load.result.type
            several = _TOGETHER_BITS // cast(AnyFloat, element).bitwidth
            widths = [p.width for u in load.result.uses for p in self._chunks(u.operation)]
            if count % several or min(widths) < several:
                continue
            scalars: list[SSAValue] = []
            for first in range(0, count, several):
                operands = self.buffers.operands(
                    self.scalar(load.buffer), (position + first,), False
                )
                kind = emit.machine(element, several)
                (loaded,) = emit.emit(vector.LoadOp, operands, [kind]).results
                lanes = emit.repeat(loaded, max(widths))
                scalars += [emit.extract(lanes, number) for number in range(several)]
            found[load] = scalars
        return found

    def _chunks(self, broadcast: Operation) -> Sequence[Chunk]:
        """The machine vectors of a row of a result."""
        return self.layout(broadcast.results[0].type).chunks

    def _combines(self, op: loop.ForOp) -> list[Combine]:
        """How each part of what a reduction carries is joined."""
        parts = [len(self.parts(init)) for init in op.inits]
        return [c for c, count in zip(op.combines, parts, strict=True) for _ in range(count)]

    def _accumulators(
        self, op: loop.ForOp, first: list[SSAValue], count: int
    ) -> list[list[SSAValue]]:
        """The initial values, then as many neutral values as are needed."""
        if count < 2 or not first:
            return [first] * count
        other: list[SSAValue] = []
        for value, combine in zip(first, self._combines(op), strict=True):
            kind = value.type
            width = kind.get_shape()[0] if isinstance(kind, VectorType) else 1
            attr = neutral(combine, loop.element_type(kind))
            other.append(self.emitter.splat(attr, width))
        return [first, *([other] * (count - 1))]

    def _joined(self, op: loop.ForOp, groups: Sequence[list[SSAValue]]) -> list[SSAValue]:
        if len(groups) == 1 or not groups[0]:
            return groups[0]
        parts = zip(self._combines(op), zip(*groups, strict=True), strict=True)
        return [join(self.emitter, combine, several) for combine, several in parts]


LOOP_HANDLERS: dict[str, Handler] = {
    "loop.for": Loops.for_loop,
    "loop.partition_point": Loops.partition_point,
}
"""How loops are converted."""


def _is_stretched(load: loop.LoadOp, entries: loop.ForOp) -> bool:
    """Whether a load reads the number of an entry, of which only vectors are made."""
    kind = load.result.type
    return (
        isinstance(kind, AnyFloat)
        and kind.bitwidth in (32, 64)
        and list(load.indices) == [entries.variable]
        and load.map.data == AffineMap.identity(1)
        and all(isinstance(use.operation, upstream.BroadcastOp) for use in load.result.uses)
    )


def _grouped(flat: Sequence[SSAValue], like: Sequence[Sequence[SSAValue]]) -> list[list[SSAValue]]:
    values = iter(flat)
    return [[next(values) for _ in group] for group in like]


def _perfect_nest(op: loop.ForOp) -> list[loop.ForOp]:
    """Tile loops of which each has in its body only indices, and the next as its end."""
    nest = [op]
    while True:
        block = nest[-1].body.block
        inner = block.last_op
        if not isinstance(inner, loop.ForOp) or inner.kind.data != LoopKind.TILES:
            return nest
        if any(value.owner is block or _is_in(value, block) for value in inner.bounds):
            return nest
        if not all(o is inner or _computes_index(o) for o in block.ops):
            return nest
        nest.append(inner)


def _is_in(value: SSAValue, block: IRBlock) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent is block


def _computes_index(op: Operation) -> bool:
    names = ("arith.constant", "affine.apply", "affine.min", "memref.dim")
    index = all(isinstance(result.type, IndexType) for result in op.results)
    return op.name in names or (op.name in HANDLERS and index and op.name.startswith("arith."))

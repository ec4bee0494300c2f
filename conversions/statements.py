"""One kernel of the loop dialect, statement by statement, into `scf`, `memref` and `vector`.

Scalars are converted where they stand. Blocks are noted as what they are made of, and made
where a store, an accumulator or a scalar asks for them. Indices are kept as polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, cast

from xdsl.dialects import affine, arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.builtin import IntegerAttr as Integer
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir import Block as IRBlock
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import PassFailedException

from ..core.errors import explain
from ..core.provenance import origin
from ..core.target import Target
from ..dialects import rt, upstream
from ..dialects.loop import ops as loop
from ..dialects.loop.attrs import Combine, LoopKind
from .accesses import Access, Buffers
from .blocks import (
    Block,
    BroadcastBlock,
    ConstantBlock,
    FoldBlock,
    GivenBlock,
    Layout,
    Layouts,
    MappedBlock,
    join,
    neutral,
)
from .indices import ZERO, Form, Indices, fixed
from .scopes import INDEX, Emitter
from .transfers import LoadBlock, store_block, store_scalar

Value = SSAValue | Block | Form

_NO_SIZES = DenseArrayBase.from_list(i32, [0, 0])
_STACK_ALIGNMENT = Integer(64, i64)
_UNROLLED_ACCUMULATORS = 4
"""Accumulators of a reduction that is copied out as a whole: the latency of an addition."""


def refuse(op: Operation, fact: str, expected: object = None, got: object = None) -> NoReturn:
    """Say that an operation cannot be converted."""
    subject = f"convert-loop-to-scf: {op.name}"
    text = explain(subject, fact, expected=expected, got=got, origin=origin(op))
    raise PassFailedException(text)


def convert_kernel(kernel: loop.KernelOp, target: Target) -> func.FuncOp:
    """The function that does what a kernel does.

    Raises:
        PassFailedException: naming an operation that cannot be converted.
    """
    types = [arg.type for arg in kernel.body.block.args]
    body = IRBlock(arg_types=types)
    for old, new in zip(kernel.body.block.args, body.args, strict=True):
        new.name_hint = old.name_hint
    Statements(kernel, body, target).run()
    no_alias = DictionaryAttr({"llvm.noalias": UnitAttr()})
    attrs = [no_alias if isinstance(t, MemRefType) else DictionaryAttr({}) for t in types]
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


class Statements:
    """The conversion of one kernel into a block."""

    def __init__(self, kernel: loop.KernelOp, body: IRBlock, target: Target) -> None:
        self.kernel = kernel
        self.emitter = Emitter(body)
        self.indices = Indices(self.emitter)
        self.buffers = Buffers(self.emitter, self.indices)
        self.layouts = layouts_for(kernel, target)
        self.values: dict[SSAValue, Value] = dict(
            zip(kernel.body.block.args, body.args, strict=True)
        )
        self.pending: list[tuple[SSAValue, Block]] = []
        """Blocks of buffers that will be written to, loaded later but before that."""
        self.budget = target.vector_registers // 2
        self.hoisted = [self.budget]
        self._writes: dict[Operation, set[SSAValue]] = {}
        self._note_writes(kernel)

    def run(self) -> None:
        """Fill the block."""
        self.emitter.location = self.kernel.location
        self.statements(self.kernel.body.block)
        self.emitter.emit(func.ReturnOp, [])
        self.emitter.close()
        self.buffers.contents.drop_unread()
        self.emitter.drop_unused_lanes()

    def _note_writes(self, op: Operation) -> set[SSAValue]:
        """Remember for each operation with a body which buffers it writes to."""
        found = {op.buffer} if isinstance(op, loop.StoreOp) else set[SSAValue]()
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    found |= self._note_writes(inner)
        if op.regions:
            self._writes[op] = found
        return found

    # Values.

    def form(self, value: SSAValue) -> Form:
        """An index value as a polynomial."""
        found = self.values[value]
        if isinstance(found, Form):
            return found
        assert isinstance(found, SSAValue)
        nonnegative = value in self.kernel.body.block.args
        return self.indices.atom(found, nonnegative)

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar or a buffer as an SSA value."""
        found = self.values[value]
        if isinstance(found, Form):
            return self.indices.value(found)
        assert isinstance(found, SSAValue)
        return found

    def layout(self, kind: Attribute) -> Layout:
        """How a block type is cut."""
        return self.layouts[cast(VectorType, kind).get_shape()]

    def parts(self, value: SSAValue) -> list[SSAValue]:
        """A value as scalars and machine vectors, all of them made now."""
        found = self.values[value]
        return found.pieces() if isinstance(found, Block) else [self.scalar(value)]

    def whole(self, value: SSAValue, parts: Sequence[SSAValue]) -> None:
        """Let `value` stand for these scalars or machine vectors."""
        kind = value.type
        if isinstance(kind, VectorType):
            block = GivenBlock(self.emitter, self.layout(kind), kind.element_type, parts)
            self.values[value] = block
        else:
            self.values[value] = parts[0]

    def bound(self, op: loop.ForOp | loop.ReduceOp) -> list[Form]:
        """The bounds of a loop."""
        dims = [self.form(value) for value in op.bounds]
        return self.evaluate(op, op.bound.data.results, dims)

    def evaluate(
        self,
        op: Operation,
        exprs: Sequence[AffineExpr],
        dims: Sequence[Form],
        symbols: Sequence[Form] = (),
    ) -> list[Form]:
        """Affine expressions as polynomials."""
        try:
            return [self.indices.evaluate(expr, dims, symbols) for expr in exprs]
        except ValueError as error:
            refuse(op, str(error))

    # Statements.

    def statements(self, block: IRBlock) -> None:
        """Convert the operations of a block."""
        for op in block.ops:
            self.emitter.location = op.location
            if op in self._writes:
                for buffer in self._writes[op]:
                    self.load_pending(buffer)
            handler = _HANDLERS.get(op.name)
            if handler is None or not handler(self, op):
                self.other(op)

    def load_pending(self, buffer: SSAValue) -> None:
        """Load what is read from a buffer before it is written to."""
        for source, block in self.pending:
            if source is buffer:
                block.pieces()
        self.pending = [entry for entry in self.pending if entry[0] is not buffer]

    def other(self, op: Operation) -> None:
        """An operation on scalars, or one that does the same to each element of a block."""
        if op.regions:
            refuse(op, "has a body, which this conversion does not know")
        kinds = [r.type for r in op.results if isinstance(r.type, VectorType)]
        operands = [self.values[operand] for operand in op.operands]
        if not kinds and not any(isinstance(operand, Block) for operand in operands):
            self.cloned(op)
            return
        shapes = {k.get_shape() for k in kinds}
        shapes |= {o.layout.shape for o in operands if isinstance(o, Block)}
        if len(op.results) != 1 or len(kinds) != 1 or len(shapes) != 1:
            refuse(op, "cannot be broken into machine vectors", "one shape for all blocks")
        whole = [
            found if isinstance(found, Block) else self.scalar(operand)
            for operand, found in zip(op.operands, operands, strict=True)
        ]
        layout = self.layout(kinds[0])
        self.values[op.results[0]] = MappedBlock(self.emitter, layout, op, whole)

    def cloned(self, op: Operation) -> None:
        """The same operation on the new scalars."""
        new = self.emitter.emit(
            type(op),
            [self.scalar(operand) for operand in op.operands],
            [result.type for result in op.results],
            op.properties,
        )
        new.attributes |= op.attributes
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
            self.values[old] = result

    def constant(self, op: Operation) -> bool:
        """Constants of the function, or numbers in polynomials."""
        op = cast(arith.ConstantOp, op)
        value, kind = op.value, op.result.type
        if isinstance(kind, IndexType) and isinstance(value, Integer):
            self.values[op.result] = fixed(value.value.data)
        elif isinstance(kind, VectorType) and isinstance(value, DenseIntOrFPElementsAttr):
            self.values[op.result] = ConstantBlock(self.emitter, self.layout(kind), value)
        elif isinstance(kind, IntegerType | AnyFloat):
            self.values[op.result] = self.emitter.scalar(value)
        else:
            refuse(op, "constant of a wrong type", "numbers", kind)
        return True

    def index_arithmetic(self, op: Operation) -> bool:
        """Sums, products and quotients of indices, where they are polynomials."""
        if not isinstance(op.results[0].type, IndexType):
            return False
        left, right = (self.form(operand) for operand in op.operands)
        found = self._combined(op.name, left, right)
        if found is None:
            return False
        self.values[op.results[0]] = found
        return True

    def _combined(self, name: str, left: Form, right: Form) -> Form | None:
        indices = self.indices
        match name.removeprefix("arith."):
            case "addi":
                return left + right
            case "subi":
                return left - right
            case "muli":
                return left * right
            case "minsi":
                return indices.least([left, right])
            case "maxsi":
                return indices.greatest([left, right])
        divisor = right.value
        if divisor is None or divisor < 1:
            return None
        match name.removeprefix("arith."):
            case "floordivsi":
                return indices.divide(left, divisor)
            case "ceildivsi":
                return indices.divide(left + (divisor - 1), divisor)
        if not indices.nonnegative(left):
            return None
        if name in ("arith.remsi", "arith.remui"):
            return indices.remainder(left, divisor)
        return indices.divide(left, divisor)

    def affine_apply(self, op: Operation) -> bool:
        """`affine.apply`: a polynomial."""
        assert isinstance(op, affine.ApplyOp | affine.MinOp)
        map = op.map.data
        forms = [self.form(operand) for operand in op.operands]
        dims, symbols = forms[: map.num_dims], forms[map.num_dims :]
        found = self.evaluate(op, map.results, dims, symbols)
        self.values[op.results[0]] = self.indices.least(found)
        return True

    def dimension(self, op: Operation) -> bool:
        """`memref.dim` of an argument: the same everywhere."""
        assert isinstance(op, memref.DimOp)
        number = self.form(op.index).value
        if number is None or not isinstance(op.source.type, MemRefType):
            refuse(op, "dimension is not known", "a constant")
        if not 0 <= number < op.source.type.get_num_dims():
            refuse(op, "no such dimension", f"below {op.source.type.get_num_dims()}", number)
        self.values[op.result] = self.buffers.size(self.scalar(op.source), number)
        return True

    def local(self, op: Operation) -> bool:
        """`loop.local`: on the stack of the function or the tile."""
        assert isinstance(op, loop.LocalOp)
        emit = self.emitter
        properties = {"alignment": _STACK_ALIGNMENT, "operandSegmentSizes": _NO_SIZES}
        kind = op.result.type
        value = emit.emit_head(memref.AllocaOp, [], kind, properties, emit.frame)
        self.buffers.written.add(value)
        self.buffers.contents.track(value)
        self.values[op.result] = value
        return True

    def access(self, op: loop.LoadOp | loop.StoreOp, kind: Attribute) -> Access:
        """Where the lanes of a value are."""
        layout = self.layout(kind) if isinstance(kind, VectorType) else None
        limits: dict[int, Form] = {}
        for axis, limit in zip(op.limited.get_values(), op.limits, strict=True):
            form = self.form(limit)
            limits[axis] = self.indices.least([limits[axis], form]) if axis in limits else form
        buffer = self.scalar(op.buffer)
        if op.buffer in self._writes[self.kernel]:
            self.buffers.written.add(buffer)
        dims = [self.form(value) for value in op.indices]
        try:
            return Access(self.buffers, buffer, op.map.data, dims, layout, limits)
        except ValueError as error:
            refuse(op, str(error))

    def load(self, op: Operation) -> bool:
        """`loop.load`: a scalar now, a block when it is needed."""
        assert isinstance(op, loop.LoadOp)
        kind = op.result.type
        access = self.access(op, kind)
        if isinstance(kind, VectorType):
            block = LoadBlock(access, self.layout(kind), self.hoisted)
            self.values[op.result] = block
            if access.buffer in self.buffers.written:
                self.pending.append((op.buffer, block))
            return True
        place = access.place(())
        found = access.known(place, 1)
        if found is None:
            operands = self.buffers.operands(access.buffer, place, False)
            found = self.emitter.emit(memref.LoadOp, operands, [kind]).results[0]
        self.values[op.result] = found
        return True

    def store(self, op: Operation) -> bool:
        """`loop.store`."""
        assert isinstance(op, loop.StoreOp)
        self.load_pending(op.buffer)
        access = self.access(op, op.value.type)
        value = self.values[op.value]
        if isinstance(value, Block):
            store_block(access, value)
            return True
        store_scalar(access, self.scalar(op.value))
        return True

    def broadcast(self, op: Operation) -> bool:
        """`vector.broadcast`: made lane by lane where it is needed."""
        op = cast(vector.BroadcastOp, op)  # or this project's
        kind, source = op.vector.type, self.values[op.source]
        source = source if isinstance(source, Block) else self.scalar(op.source)
        self.values[op.vector] = BroadcastBlock(
            self.emitter, self.layout(kind), source, kind.element_type
        )
        return True

    def extract(self, op: Operation) -> bool:
        """`vector.extract` of one element."""
        op = cast(vector.ExtractOp, op)
        block = self.values[op.vector]
        place = op.static_position.get_values()
        assert isinstance(block, Block)
        if op.dynamic_position or len(place) != len(block.layout.shape):
            refuse(op, "position is not that of an element", "one constant for each axis")
        layout = block.layout
        lane = place[-1]
        if layout.merged == 2:
            lane += place[-2] * layout.shape[-1]
        row = tuple(place[: len(place) - layout.merged])
        for number, part in enumerate(layout.chunks):
            if part.offset <= lane < part.offset + part.lanes:
                piece = block.piece(row, number)
                self.values[op.result] = self.emitter.extract(piece, lane - part.offset)
        return True

    def fold(self, op: Operation) -> bool:
        """`loop.fold`: made where it is needed."""
        assert isinstance(op, loop.FoldOp)
        source = self.values[op.value]
        assert isinstance(source, Block)
        axis, layout = op.axis.value.data, self.layout(op.result.type)
        self.values[op.result] = FoldBlock(self.emitter, layout, source, axis, op.combine.data)
        return True

    # Loops.

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
        facts, pending = len(indices.positive), len(self.pending)
        emit.open(block)
        top = indices.range(upper)[1]
        variable = indices.atom(
            block.args[0], indices.nonnegative(lower), top - 1 if top is not None else None
        )
        new = fill(variable, _grouped(block.args[1:], carried))
        emit.location = location
        emit.emit(scf.YieldOp, [value for group in new for value in group])
        emit.close()
        del indices.positive[facts:], self.pending[pending:]
        self.forget_written(op)
        new_op = emit.emit(scf.ForOp, [*ends, *flat], types, regions=[Region(block)])
        return _grouped(new_op.results, carried)

    def forget_written(self, op: Operation) -> None:
        """Forget what lies in the buffers that a loop writes to: iterations see each other's."""
        for buffer in self._writes[op]:
            new = self.values.get(buffer)
            if isinstance(new, SSAValue):
                self.buffers.contents.forget(new)

    def for_loop(self, op: Operation) -> bool:
        """`loop.for`."""
        assert isinstance(op, loop.ForOp)
        bounds = self.bound(op)
        extent = self.indices.least(bounds)
        known, kind = extent.value, op.kind.data
        if kind == LoopKind.UNROLL and known is None:
            refuse(op, f'loop "{op.loop_name.data}" cannot be unrolled', "a constant bound", "none")
        if known is not None and (known <= 1 or kind == LoopKind.UNROLL):
            for number in range(known):
                self.values[op.variable] = fixed(number)
                self.statements(op.body.block)
        elif kind == LoopKind.TILES and not self.emitter.frame:
            self.tiles(op)
        else:

            def fill(variable: Form, _: object) -> list[list[SSAValue]]:
                self.indices.assume_below(variable, bounds)
                self.values[op.variable] = variable
                self.statements(op.body.block)
                return []

            self.loop(op, op.variable.name_hint, ZERO, extent, 1, [], fill)
        return True

    def tiles(self, op: loop.ForOp) -> None:
        """Tile loops, one directly inside the other, become one range of tiles."""
        nest = _perfect_nest(op)
        bounds = [self.bound(inner) for inner in nest]
        extents = [self.indices.least(b) for b in bounds]
        total = fixed(1)
        for extent in extents:
            total = total * extent
        self.forget_written(op)
        emit, indices, count = self.emitter, self.indices, self.indices.value(total)
        block = IRBlock(arg_types=[INDEX])
        block.args[0].name_hint = "tile"
        outside, self.hoisted = self.hoisted, [self.budget]
        facts, pending = len(indices.positive), len(self.pending)
        emit.open(block, frame=True)
        top = total.value
        tile = indices.atom(block.args[0], True, top - 1 if top is not None else None)
        variables = self._divided(tile, extents)
        for inner, variable, bound in zip(nest, variables, bounds, strict=True):
            indices.assume_below(variable, bound)
            self.values[inner.variable] = variable
        for inner in nest[:-1]:
            self.statements_before(inner.body.block)
        self.statements(nest[-1].body.block)
        emit.location = op.location
        emit.emit(rt.YieldOp, [])
        emit.close()
        del indices.positive[facts:], self.pending[pending:]
        self.hoisted = outside
        self.forget_written(op)
        captures = self._captures(block)
        emit.emit(rt.ParallelTilesOp, [count, *captures], regions=[Region(block)])

    def _divided(self, tile: Form, extents: Sequence[Form]) -> list[Form]:
        """The variables of nested loops from the number of a tile, the last one fastest."""
        emit, indices = self.emitter, self.indices
        variables: list[Form] = []
        for extent in reversed(extents[1:]):
            operands = [indices.value(tile), indices.value(extent)]
            top = indices.range(extent)[1]
            high = top - 1 if top is not None else None
            variables.append(indices.atom(emit.pure(arith.RemUIOp, operands, INDEX), True, high))
            tile = indices.atom(emit.pure(arith.DivUIOp, operands, INDEX), True)
        return [tile, *reversed(variables)]

    def statements_before(self, block: IRBlock) -> None:
        """The statements of a block up to the loop in it, which is the last one."""
        for op in block.ops:
            if isinstance(op, loop.ForOp):
                return
            handler = _HANDLERS.get(op.name)
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

    def reduce(self, op: Operation) -> bool:
        """`loop.reduce`: accumulators carried by an `scf.for`."""
        assert isinstance(op, loop.ReduceOp)
        bounds = self.bound(op)
        extent = self.indices.least(bounds)

        def step(variable: Form, parts: Sequence[SSAValue]) -> list[SSAValue]:
            self.values[op.variable] = variable
            self.whole(op.accumulator, parts)
            self.statements(op.body.block)
            return self.parts(op.yielded)

        facts = len(self.indices.positive)
        self._reduction(op, op.variable, ZERO, extent, bounds, step)
        del self.indices.positive[facts:]
        return True

    def reduce_entries(self, op: Operation) -> bool:
        """`loop.reduce_entries`: from one row pointer to the next."""
        assert isinstance(op, loop.ReduceEntriesOp)
        (row,) = self.evaluate(op, op.row.data.results, [self.form(v) for v in op.row_operands])
        start, end = self._entry(op.indptr, row), self._entry(op.indptr, row + 1)

        def step(position: Form, parts: Sequence[SSAValue]) -> list[SSAValue]:
            self.values[op.position] = position
            self.values[op.column] = self._entry(op.indices, position)
            self.whole(op.accumulator, parts)
            self.statements(op.body.block)
            return self.parts(op.yielded)

        self._reduction(op, op.position, start, end, [end], step)
        return True

    def _entry(self, buffer: SSAValue, place: Form) -> Form:
        """An element of a row pointer or index array, which is not negative."""
        emit = self.emitter
        operands = self.buffers.operands(self.scalar(buffer), (place,), False)
        kind = cast(MemRefType, buffer.type).element_type
        value = emit.emit(memref.LoadOp, operands, [kind]).results[0]
        index = emit.emit(upstream.IndexCastOp, [value], [INDEX]).results[0]
        return self.indices.atom(index, nonnegative=True)

    def _reduction(
        self,
        op: loop.ReduceOp | loop.ReduceEntriesOp,
        variable: SSAValue,
        lower: Form,
        upper: Form,
        bounds: Sequence[Form],
        step: Callable[[Form, Sequence[SSAValue]], list[SSAValue]],
    ) -> None:
        hint, known = variable.name_hint, (upper - lower).value
        at_once = op.unroll.value.data if op.unroll is not None else 1
        parts = self.parts(op.init)
        if known is not None and known <= at_once:
            # All of it, in a few chains of accumulators that do not wait for each other.
            chains = min(known, _UNROLLED_ACCUMULATORS, at_once)
            groups = self._accumulators(op, parts, chains)
            for number in range(known):
                groups[number % chains] = step(lower + number, groups[number % chains])
            self.whole(op.result, self._joined(op, groups))
            return

        def several(position: Form, groups: list[list[SSAValue]]) -> list[list[SSAValue]]:
            if at_once == 1:
                self.indices.assume_below(position, bounds)
            return [step(position + number, group) for number, group in enumerate(groups)]

        if at_once == 1:
            (parts,) = self.loop(op, hint, lower, upper, 1, [parts], several)
            self.whole(op.result, parts)
            return
        count = upper - lower
        if known is None:
            # Rows do not end before they begin.
            distance = self.indices.atom(self.indices.value(count), nonnegative=True)
            full = lower + self.indices.divide(distance, at_once) * at_once
        else:
            full = lower + known // at_once * at_once
        groups = self._accumulators(op, parts, at_once)
        groups = self.loop(op, hint, lower, full, at_once, groups, several)
        if known is not None:
            for number in range(known % at_once):
                groups[number] = step(full + number, groups[number])
            self.whole(op.result, self._joined(op, groups))
            return
        (parts,) = self.loop(op, hint, full, upper, 1, [self._joined(op, groups)], several)
        self.whole(op.result, parts)

    def _accumulators(
        self, op: loop.ReduceOp | loop.ReduceEntriesOp, first: list[SSAValue], count: int
    ) -> list[list[SSAValue]]:
        """The initial value, then as many values that change nothing as are needed."""
        if count < 2:
            return [first]
        attr = neutral(op.combine.data, loop.element_type(op.init.type))
        widths = [v.type.get_shape()[0] if isinstance(v.type, VectorType) else 1 for v in first]
        other = [self.emitter.splat(attr, width) for width in widths]
        return [first, *([other] * (count - 1))]

    def _joined(
        self, op: loop.ReduceOp | loop.ReduceEntriesOp, groups: Sequence[Sequence[SSAValue]]
    ) -> list[SSAValue]:
        combine: Combine = op.combine.data
        return [join(self.emitter, combine, parts) for parts in zip(*groups, strict=True)]


_Handler = Callable[[Statements, Operation], bool]
_HANDLERS: dict[str, _Handler] = {
    "arith.constant": Statements.constant,
    "affine.apply": Statements.affine_apply,
    "affine.min": Statements.affine_apply,
    "memref.dim": Statements.dimension,
    "vector.broadcast": Statements.broadcast,
    "vector.extract": Statements.extract,
    "loop.for": Statements.for_loop,
    "loop.reduce": Statements.reduce,
    "loop.reduce_entries": Statements.reduce_entries,
    "loop.load": Statements.load,
    "loop.store": Statements.store,
    "loop.local": Statements.local,
    "loop.fold": Statements.fold,
    "loop.yield": lambda _, __: True,
}
_INDEX_OPS = ("addi", "subi", "muli", "minsi", "maxsi", "floordivsi", "ceildivsi")
_INDEX_OPS += ("divsi", "divui", "remsi", "remui")
_HANDLERS |= {f"arith.{name}": Statements.index_arithmetic for name in _INDEX_OPS}
"""How operations are converted; one that is not here, or is answered by False, is copied."""


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
    return op.name in names or (op.name in _HANDLERS and index and op.name.startswith("arith."))


def layouts_for(kernel: loop.KernelOp, target: Target) -> Layouts:
    """How the blocks of a kernel are cut: by the widest numbers that it computes with."""
    floats, integers = {16}, {8}
    merged: set[tuple[int, ...]] = set()
    limited: set[tuple[int, ...]] = set()
    for op in kernel.walk():
        for kind in (value.type for value in (*op.operands, *op.results)):
            if isinstance(kind, VectorType) and isinstance(kind.element_type, AnyFloat):
                floats.add(kind.element_type.bitwidth)
            elif isinstance(kind, VectorType) and isinstance(kind.element_type, IntegerType):
                integers.add(kind.element_type.width.data)
        if isinstance(op, loop.LoadOp | loop.StoreOp) and op.limits:
            value = op.result if isinstance(op, loop.LoadOp) else op.value
            limited.add(loop.block_shape(value.type))
        if isinstance(op, loop.FoldOp):
            shape = loop.block_shape(op.value.type)
            if op.axis.value.data == len(shape) - 2:
                merged.add(shape)
    bits = max(floats) if len(floats) > 1 else max(integers)
    lanes = target.lanes(bits)
    fitting = {s for s in merged - limited if _fits(s[-2] * s[-1], lanes) and _fits(s[-1], lanes)}
    return Layouts(lanes, masks=target.vector_bits >= 512, merged=frozenset(fitting))


def _fits(lanes: int, most: int) -> bool:
    """Whether a machine vector has a part of this many lanes."""
    return 1 < lanes <= most and lanes & (lanes - 1) == 0

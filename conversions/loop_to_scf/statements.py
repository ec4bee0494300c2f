"""One kernel of the loop dialect, statement by statement, into `scf`, `memref` and `vector`.

Scalars are converted in place. Blocks are recorded by their definitions, and made
where a store, an accumulator or a scalar uses them. Indices are kept as polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

from xdsl.dialects import affine, arith, func, memref, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
    i32,
    i64,
)
from xdsl.dialects.builtin import IntegerAttr as Integer
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as IRBlock
from xdsl.ir.affine import AffineExpr

from ...core.building.affine import DivisorError
from ...core.refusal import refused
from ...core.target import Target
from ...dialects import upstream
from ...dialects.loop import ops as loop
from ...dialects.loop.nests import EXPENSIVE
from .accesses import Access, Buffers
from .blocks import Block, BroadcastBlock, ConstantBlock, FoldBlock, GivenBlock, MappedBlock
from .indices import Form, Indices, fixed
from .layouts import Layout, layouts_for
from .scopes import Emitter
from .transfers import LoadBlock, store_block, store_scalar

Value = SSAValue | Block | Form

_NO_SIZES = DenseArrayBase.from_list(i32, [0, 0])
_STACK_ALIGNMENT = Integer(64, i64)
_TO_BE_READ = upstream.prefetch_properties(is_write=False, locality=3, is_data=True)


def refuse(op: Operation, fact: str, expected: object = None, got: object = None) -> NoReturn:
    """Say that an operation cannot be converted."""
    subject = f"convert-loop-to-scf: {op.name}"
    raise refused(op, fact, subject=subject, expected=expected, got=got)


class Statements:
    """The conversion of one kernel into a block."""

    def __init__(
        self,
        kernel: loop.KernelOp,
        body: IRBlock,
        target: Target,
        handlers: Mapping[str, Handler],
    ) -> None:
        self.kernel = kernel
        self.handlers = handlers
        self.emitter = Emitter(body)
        self.indices = Indices(self.emitter)
        self.buffers = Buffers(self.emitter, self.indices)
        self.layouts = layouts_for(kernel, target)
        self.values: dict[SSAValue, Value] = dict(
            zip(kernel.body.block.args, body.args, strict=True)
        )
        self.pending: list[tuple[SSAValue, Block]] = []
        """Blocks of buffers that will be written to, loaded later but before that."""
        self.registers = target.vector_registers
        self.budget = target.vector_registers // 2
        self.hoisted = [self.budget]
        self.writes: dict[Operation, list[SSAValue]] = {}
        self.given: dict[Operation, SSAValue] = {}
        """The results of loads that were done together with others."""
        self._note_writes(kernel)

    def run(self) -> None:
        """Fill the block."""
        self.emitter.location = self.kernel.location
        self.statements(self.kernel.body.block)
        self.emitter.emit(func.ReturnOp, [])
        self.emitter.close()
        self.buffers.contents.drop_unread()
        self.emitter.drop_unused_lanes()

    def _note_writes(self, op: Operation) -> list[SSAValue]:
        """Remember for each operation with a body which buffers it writes to."""
        found = [op.buffer] if isinstance(op, loop.StoreOp) else []
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    found += self._note_writes(inner)
        found = list(dict.fromkeys(found))
        if op.regions:
            self.writes[op] = found
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

    def all_parts(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The parts of several values, one after the other."""
        return [part for value in values for part in self.parts(value)]

    def whole(self, values: Sequence[SSAValue], parts: Sequence[SSAValue]) -> None:
        """Let `values` stand for these scalars and machine vectors, those of one after another."""
        first = 0
        for value in values:
            kind = value.type
            if isinstance(kind, VectorType):
                layout = self.layout(kind)
                last = first + len(layout.places())
                own = parts[first:last]
                self.values[value] = GivenBlock(self.emitter, layout, kind.element_type, own)
            else:
                last, self.values[value] = first + 1, parts[first]
            first = last

    def bound(self, op: loop.ForOp) -> list[Form]:
        """The bounds of a loop; of one over entries its row."""
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
        except DivisorError as error:
            refuse(op, str(error))

    # Statements.

    def statements(self, block: IRBlock) -> None:
        """Convert the operations of a block."""
        for op in block.ops:
            self.emitter.location = op.location
            if op in self.writes:
                for buffer in self.writes[op]:
                    self.load_pending(buffer)
            handler = self.handlers.get(op.name)
            if handler is None or not handler(self, op):
                self.other(op)

    def load_pending(self, buffer: SSAValue) -> None:
        """Load the elements of a buffer that are read before they are written."""
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
        together = self.together(layout) if op.name in EXPENSIVE else 1
        self.values[op.results[0]] = MappedBlock(self.emitter, layout, op, whole, together)

    def together(self, layout: Layout) -> int:
        """For how many vectors of a block a function is computed at a time.

        Each takes three registers, besides what the rest of the block may occupy.
        """
        free = self.registers - len(layout.places())
        return max(1, free // 3)

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
        divisor = right.number
        if divisor is None or divisor < 1:
            return None
        match name.removeprefix("arith."):
            case "floordivsi":
                return indices.divide(left, divisor)
            case "ceildivsi":
                return indices.divide(left + (divisor - 1), divisor)
        if not indices.facts.is_nonnegative(left):
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
        number = self.form(op.index).number
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
        if op.buffer in self.writes[self.kernel]:
            self.buffers.written.add(buffer)
        dims = [self.form(value) for value in op.indices]
        try:
            return Access(self.buffers, buffer, op.map.data, dims, layout, limits)
        except DivisorError as error:
            refuse(op, str(error))

    def load(self, op: Operation) -> bool:
        """`loop.load`: a scalar now, a block when it is needed."""
        assert isinstance(op, loop.LoadOp)
        if op in self.given:
            self.values[op.result] = self.given[op]
            return True
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

    def prefetch(self, op: Operation) -> bool:
        """`loop.prefetch`: `memref.prefetch` into the nearest cache."""
        assert isinstance(op, loop.PrefetchOp)
        buffer = self.scalar(op.buffer)
        dims = [self.form(value) for value in op.indices]
        try:
            place = Access(self.buffers, buffer, op.map.data, dims, None, {}).place(())
        except DivisorError as error:
            refuse(op, str(error))
        operands = self.buffers.operands(buffer, place, False)
        self.emitter.emit(upstream.PrefetchOp, operands, [], _TO_BE_READ)
        return True

    def broadcast(self, op: Operation) -> bool:
        """`vector.broadcast`: made lane by lane where it is needed."""
        op = cast(upstream.BroadcastOp, op)
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
        if not all(0 <= n < size for n, size in zip(place, layout.shape, strict=True)):
            refuse(op, "position is outside the vector", list(layout.shape), list(place))
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


Handler = Callable[[Any, Operation], bool]

_INDEX_OPS = ("addi", "subi", "muli", "minsi", "maxsi", "floordivsi", "ceildivsi")
_INDEX_OPS += ("divsi", "divui", "remsi", "remui")

HANDLERS: dict[str, Handler] = {
    "arith.constant": Statements.constant,
    "affine.apply": Statements.affine_apply,
    "affine.min": Statements.affine_apply,
    "memref.dim": Statements.dimension,
    "vector.broadcast": Statements.broadcast,
    "vector.extract": Statements.extract,
    "loop.load": Statements.load,
    "loop.store": Statements.store,
    "loop.local": Statements.local,
    "loop.fold": Statements.fold,
    "loop.prefetch": Statements.prefetch,
    "loop.yield": lambda _, __: True,
    **{f"arith.{name}": Statements.index_arithmetic for name in _INDEX_OPS},
}
"""How operations are converted; one that is not here, or is answered by False, is copied."""

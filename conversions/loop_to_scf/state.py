"""The state of the conversion of a kernel.

A block is a definition until a store, an accumulator or a scalar uses it. Indices are polynomials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as IRBlock
from xdsl.ir.affine import AffineExpr

from ...core.algebra.affine import DivisorError
from ...core.algebra.expressions import Affine
from ...core.algebra.polynomials import Polynomial
from ...core.building.tables import Handler, HandlerTable
from ...core.ir.refusal import refused
from ...dialects.loop import ops as loop
from ...dialects.loop.vectors import VECTORS, VectorLayout, VectorsAttr
from ...dialects.rt import ops as rt
from .accesses import BufferLayouts
from .blocks import GivenBlock, VectorBlock
from .indices import Indices
from .scopes import ScopedEmitter

Value: TypeAlias = SSAValue | VectorBlock | Affine


def refuse(
    op: Operation,
    fact: str,
    expected: object = None,
    got: object = None,
    hint: str | None = None,
) -> NoReturn:
    """Raise the error that an operation cannot be converted."""
    subject = f"convert-loop-to-scf: {op.name}"
    raise refused(op, fact, subject=subject, expected=expected, got=got, hint=hint)


class State:
    """The state of the conversion of one kernel into a block.

    Args:
        kernel: the kernel.
        body: the block, with an argument for each argument of the kernel.
        handlers: functions that convert operations, by class.
        otherwise: converts operations of all other classes.
    """

    def __init__(
        self,
        kernel: loop.KernelOp,
        body: IRBlock,
        handlers: Mapping[type[Operation], Handler[Any, State, None]],
        otherwise: Handler[Operation, State, None],
    ) -> None:
        self.kernel = kernel
        self.emitter = ScopedEmitter(body)
        self.indices = Indices(self.emitter)
        self.buffers = BufferLayouts(self.emitter, self.indices)
        self.values: dict[SSAValue, Value] = dict(
            zip(kernel.body.block.args, body.args, strict=True)
        )
        self.pending: list[tuple[SSAValue, VectorBlock]] = []
        """Blocks that are not loaded yet, of buffers that are written to later."""
        vectors = kernel.attributes.get(VECTORS)
        self._vectors = vectors.data if isinstance(vectors, VectorsAttr) else None
        self._layouts: dict[tuple[int, ...], VectorLayout] = {}
        self.hoistable = self._vectors.hoisted if self._vectors is not None else 0
        """How many loads may be hoisted out of the loops of the function or of a tile."""
        self.hoisted = [self.hoistable]
        """How many more may be hoisted out of the open loops."""
        self.writes: dict[Operation, list[SSAValue]] = {}
        """The buffers that each operation with a body writes to."""
        self.allocated: list[SSAValue] = []
        """The local buffers on the heap that end with the body that is being converted."""
        self.barriers = set[Operation]()
        """The operations before which the threads of a block wait for each other."""
        self.wholes = dict[SSAValue, SSAValue]()
        """The buffers of which a thread of the open nest has taken its part."""
        self.aligned = set[SSAValue]()
        """The arguments that a device finds at multiples of 16 bytes."""
        self._handlers = handlers
        self._otherwise = otherwise
        self._note_writes(kernel)

    def _note_writes(self, op: Operation) -> list[SSAValue]:
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

    def form(self, value: SSAValue) -> Affine:
        """An index value as a polynomial."""
        found = self.values[value]
        if isinstance(found, Polynomial):
            return found
        assert isinstance(found, SSAValue)
        nonnegative = value in self.kernel.body.block.args
        return self.indices.atom(found, nonnegative)

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar or a buffer as an SSA value."""
        found = self.values[value]
        if isinstance(found, Polynomial):
            return self.indices.value(found)
        assert isinstance(found, SSAValue)
        return found

    def block(self, value: SSAValue) -> VectorBlock:
        """A value that is a block."""
        found = self.values[value]
        assert isinstance(found, VectorBlock)
        return found

    def layout(self, kind: Attribute) -> VectorLayout:
        """How a block type is split into machine vectors."""
        shape = cast(VectorType, kind).get_shape()
        if shape not in self._layouts:
            found = self._vectors.layout(shape) if self._vectors is not None else None
            if found is None:
                fact = f"{kind} in @{self.kernel.sym_name.data} is not legalised"
                refuse(self.kernel, fact, hint="run loop-legalize-vectors first")
            self._layouts[shape] = found
        return self._layouts[shape]

    def parts(self, value: SSAValue) -> list[SSAValue]:
        """A value as scalars and machine vectors, all of them emitted now."""
        found = self.values[value]
        return found.pieces() if isinstance(found, VectorBlock) else [self.scalar(value)]

    def all_parts(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The parts of several values, concatenated."""
        return [part for value in values for part in self.parts(value)]

    def whole(self, values: Sequence[SSAValue], parts: Sequence[SSAValue]) -> None:
        """Map values to scalars and machine vectors, their concatenated parts."""
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

    def bound(self, op: loop.ForOp) -> list[Affine]:
        """The bounds of a loop; of one over entries its row."""
        dims = [self.form(value) for value in op.bounds]
        return self.evaluate(op, op.bound.data.results, dims)

    def evaluate(
        self,
        op: Operation,
        exprs: Sequence[AffineExpr],
        dims: Sequence[Affine],
        symbols: Sequence[Affine] = (),
    ) -> list[Affine]:
        """Affine expressions of an operation as polynomials."""
        try:
            return [self.indices.evaluate(expr, dims, symbols) for expr in exprs]
        except DivisorError as error:
            refuse(op, str(error))

    # Statements.

    def convert(self, ops: Iterable[Operation]) -> None:
        """Convert the operations of a body, in order, and free its buffers on the heap."""
        outside, self.allocated = self.allocated, []
        for op in ops:
            self.emitter.location = op.location
            if op in self.barriers:
                self.emitter.emit(rt.BarrierOp, [])
            if op in self.writes:
                for buffer in self.writes[op]:
                    self.load_pending(buffer)
            self._handlers.get(type(op), self._otherwise)(op, self)
        for buffer in self.allocated:
            self.load_pending(buffer)
            self.emitter.emit(memref.DeallocOp, [self.scalar(buffer)])
        self.allocated = outside

    def load_pending(self, buffer: SSAValue) -> None:
        """Emit the pending loads from a buffer, before a write to it."""
        for source, block in self.pending:
            if source is buffer:
                block.pieces()
        self.pending = [entry for entry in self.pending if entry[0] is not buffer]

    @contextmanager
    def inside(self, op: Operation) -> Iterator[None]:
        """Convert the body of a loop within the context.

        Facts and pending loads of the body end with it. The contents of buffers that it writes to
        are unknown inside and after it, as iterations see each other's stores.
        """
        self._forget_written(op)
        facts, pending = len(self.indices.facts), len(self.pending)
        yield
        del self.indices.facts[facts:], self.pending[pending:]
        self._forget_written(op)

    def _forget_written(self, op: Operation) -> None:
        for buffer in self.writes[op]:
            new = self.values.get(buffer)
            if isinstance(new, SSAValue):
                self.buffers.contents.forget(new)


class StateTable(HandlerTable[State, None]):
    """How to convert operations, by their classes."""

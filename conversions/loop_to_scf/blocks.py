"""Blocks as machine vectors.

A machine vector of a block is emitted on demand and only once: a load or a splat comes just before
the operation that needs it, which keeps a register tile in registers. It goes into the scope where
the block was defined, wherever it is used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...core.building.creation import created
from ...core.ir.typed import is_splat
from ...dialects.loop.attrs import Combine
from ...dialects.loop.combiners import combining, neutral_value
from ...dialects.loop.vectors import INTERLEAVE, Chunk, Row, VectorLayout
from ...dialects.upstream import ops as upstream
from .scopes import ScopedEmitter, number, width_of

Piece: TypeAlias = tuple[Row, int]
"""A machine vector of a block: that of a chunk of a row."""


@dataclass(eq=False)
class VectorBlock(ABC):
    """A value of several machine vectors, each emitted on first use."""

    emitter: ScopedEmitter
    layout: VectorLayout
    element: Attribute
    depth: int = field(init=False)
    location: LocationAttr = field(init=False)
    _pieces: dict[Piece, SSAValue] = field(init=False)

    def __post_init__(self) -> None:
        self.depth, self.location = self.emitter.here, self.emitter.location
        self._pieces = {}

    def piece(self, row: Row, chunk: int) -> SSAValue:
        """A machine vector of the block; a scalar where its width is 1."""
        if (row, chunk) not in self._pieces:
            # Depth first, but not by recursion: chains of operations can be hundreds long.
            first = (row, chunk), self.operands_of(row, chunk)
            waiting: list[tuple[VectorBlock, Piece, Iterator[tuple[VectorBlock, Piece]]]] = [
                (self, *first)
            ]
            while waiting:
                block, wanted, operands = waiting[-1]
                operand, place = next(operands, (None, wanted))
                if operand is None:
                    waiting.pop()
                    block.emit_piece(*wanted)
                elif place not in operand._pieces:
                    waiting.append((operand, place, operand.operands_of(*place)))
        return self._pieces[row, chunk]

    def emit_piece(self, row: Row, chunk: int) -> None:
        """Emit a machine vector in the scope of the block."""
        emitter = self.emitter
        outside = emitter.location, emitter.origin
        emitter.location, emitter.origin = self.location, self.depth
        self._pieces[row, chunk] = self.make(row, chunk)
        emitter.location, emitter.origin = outside

    def pieces(self) -> list[SSAValue]:
        """All machine vectors of the block, in order."""
        return [self.piece(row, chunk) for row, chunk in self.layout.places()]

    def type_of(self, chunk: int) -> Attribute:
        """The type of a piece."""
        return self.emitter.machine(self.element, self.layout.chunks[chunk].width)

    def operands_of(self, row: Row, chunk: int) -> Iterator[tuple[VectorBlock, Piece]]:
        """Pieces of other blocks that `make` uses for a piece; it may use others, too."""
        return iter(())

    @abstractmethod
    def make(self, row: Row, chunk: int) -> SSAValue:
        """Emit a piece."""


@dataclass(eq=False)
class GivenBlock(VectorBlock):
    """A block whose pieces exist: an accumulator, the result of a loop."""

    values: Sequence[SSAValue]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pieces = dict(zip(self.layout.places(), self.values, strict=True))

    def make(self, row: Row, chunk: int) -> SSAValue:
        raise KeyError((row, chunk))


@dataclass(eq=False)
class ConstantBlock(VectorBlock):
    """A block of numbers."""

    value: DenseIntOrFPElementsAttr

    def make(self, row: Row, chunk: int) -> SSAValue:
        part = self.layout.chunks[chunk]
        values = cast(tuple[float, ...], self.value.get_values())
        if is_splat(self.value):
            return self.emitter.splat(number(values[0], self.element), part.width)
        attrs: list[IntegerAttr | FloatAttr] = []
        for lane in range(part.offset, part.offset + part.lanes):
            flat = 0
            place = self.layout.position(row, lane)
            for size, index in zip(self.layout.shape, place, strict=True):
                flat = flat * size + index
            attrs.append(number(values[flat], self.element))
        attrs += [number(0, self.element)] * (part.width - part.lanes)
        return self.emitter.scalar(attrs[0]) if part.width == 1 else self.emitter.lanes((*attrs,))


@dataclass(eq=False)
class MappedBlock(VectorBlock):
    """An elementwise operation, done on each machine vector.

    `together` neighbours in a row are made together: the steps of a function that is expanded into
    many operations can then be interleaved.
    """

    op: Operation
    operands: Sequence[VectorBlock | SSAValue]
    together: int = 1

    def operands_of(self, row: Row, chunk: int) -> Iterator[tuple[VectorBlock, Piece]]:
        blocks = [operand for operand in self.operands if isinstance(operand, VectorBlock)]
        return ((block, (row, n)) for n in self._with(chunk) for block in blocks)

    def _with(self, chunk: int) -> Sequence[int]:
        """The chunks that are made together with one."""
        first = chunk - chunk % self.together
        return range(first, min(first + self.together, len(self.layout.chunks)))

    def make(self, row: Row, chunk: int) -> SSAValue:
        chunks = self._with(chunk)
        operands = {n: self._operands(row, n) for n in chunks}
        made = {(row, n): self._make(n, operands[n]) for n in chunks}
        self._pieces |= made
        return made[row, chunk]

    def _operands(self, row: Row, chunk: int) -> list[SSAValue]:
        return [o.piece(row, chunk) if isinstance(o, VectorBlock) else o for o in self.operands]

    def _make(self, chunk: int, operands: Sequence[SSAValue]) -> SSAValue:
        attributes = {n: attr for n, attr in self.op.attributes.items() if n != INTERLEAVE}
        kind, results, properties = type(self.op), [self.type_of(chunk)], self.op.properties
        op = created(kind, operands, results, properties, attributes, self.location)
        self.emitter.scopes[self.depth].block.add_op(op)
        self.emitter.depths[op.results[0]] = self.depth
        return op.results[0]


@dataclass(eq=False)
class BroadcastBlock(VectorBlock):
    """A scalar or a block stretched along axes on which it has one lane."""

    source: VectorBlock | SSAValue

    def make(self, row: Row, chunk: int) -> SSAValue:
        width = self.layout.chunks[chunk].width
        source = self.source
        if not isinstance(source, VectorBlock):
            return self.emitter.broadcast(source, width)
        shape = source.layout.shape
        if source.layout.merged < self.layout.merged:
            return self._merge(source, row)
        lead = len(self.layout.shape) - len(shape)
        place = tuple(
            [0 if size == 1 else index for size, index in zip(shape[:-1], row[lead:], strict=False)]
        )
        if source.layout.merged > self.layout.merged:
            # The lanes of a column, each for a row.
            column = source.piece(place[:-1], 0)
            return self.emitter.broadcast(self.emitter.extract(column, place[-1]), width)
        if shape[-1] == 1:
            return self.emitter.broadcast(source.piece(place, 0), width)
        return source.piece(place, chunk)

    def _merge(self, source: VectorBlock, row: Row) -> SSAValue:
        # Rows of the source, or copies of its only row, concatenated in one vector.
        *_, count, lanes = self.layout.shape
        shape = source.layout.shape
        lead = len(self.layout.shape) - len(shape)
        place = tuple(
            0 if size == 1 else index for size, index in zip(shape[:-2], row[lead:], strict=False)
        )
        stretched = not shape or shape[-1] == 1
        several = len(shape) > 1 and shape[-2] > 1
        parts: list[SSAValue] = []
        for part in range(count):
            inner = (part if several else 0,) if len(shape) > 1 else ()
            parts.append(source.piece((*place, *inner), 0))
        if stretched:
            if not several:
                return self.emitter.broadcast(parts[0], count * lanes)
            found = [self.emitter.lane_of.get(part) for part in parts]
            taken = [one for one in found if one is not None]
            if len(taken) == count and len({vector for vector, _ in taken}) == 1:
                order = [lane for _, lane in taken for _ in range(lanes)]
                return self.emitter.shuffle(taken[0][0], taken[0][0], order)
            parts = [self.emitter.broadcast(part, lanes) for part in parts]
        while len(parts) > 1:
            width = lanes * count // len(parts)
            order = range(2 * width)
            parts = [
                self.emitter.shuffle(parts[i], parts[i + 1], order) for i in range(0, len(parts), 2)
            ]
        return parts[0]


@dataclass(eq=False)
class FoldBlock(VectorBlock):
    """The lanes of one axis joined: pairs first, so that it takes few steps."""

    source: VectorBlock
    axis: int
    combine: Combine
    accumulated: bool
    """Whether the source is the final accumulator of a reduction by `combine`."""

    def make(self, row: Row, chunk: int) -> SSAValue:
        source = self.source
        rank = len(source.layout.shape)
        if source.layout.merged == 2 and self.axis >= rank - 2:
            whole, width = source.piece(row[:-1], 0), source.layout.shape[-1]
            if self.axis != rank - 1:
                return self._halve([whole], width)
            first = row[-1] * width
            return self._halve([self.emitter.shuffle(whole, whole, range(first, first + width))])
        if self.axis == rank - 1:
            parts = source.layout.chunks
            lanes = [self._lanes(source.piece(row, n), part) for n, part in enumerate(parts)]
            return self._halve(lanes)
        count = source.layout.shape[self.axis]
        rows = [(*row[: self.axis], n, *row[self.axis + 1 :]) for n in range(count)]
        return self._tree([source.piece(r, chunk) for r in rows])

    def _lanes(self, value: SSAValue, part: Chunk) -> SSAValue:
        """A piece whose unused lanes have no effect."""
        if part.lanes == part.width:
            return value
        unused = neutral(self.combine, self.element)
        if not self.accumulated and combining(self.combine, self.element) is arith.MaxnumfOp:
            # The `maxnum` of NaN only is NaN.
            unused = number(math.nan, self.element)
        filler = self.emitter.splat(unused, part.width)
        order = [n if n < part.lanes else n + part.width for n in range(part.width)]
        return self.emitter.shuffle(value, filler, order)

    def _halve(self, values: Sequence[SSAValue], least: int = 1) -> SSAValue:
        """Join vectors of equal width pairwise, then halves of vectors, down to a width."""
        by_width: dict[int, list[SSAValue]] = {}
        for value in values:
            by_width.setdefault(width_of(value.type), []).append(value)
        width = max(by_width)
        joined = self._tree(by_width.pop(width))
        while width > least:
            emit, half = self.emitter, width // 2
            low = emit.shuffle(joined, joined, range(half))
            high = emit.shuffle(joined, joined, range(half, width))
            joined = self._tree([low, high, *by_width.pop(half, [])])
            width = half
        return joined

    def _tree(self, values: Sequence[SSAValue]) -> SSAValue:
        return join(self.emitter, self.combine, values, self.depth, accumulated=self.accumulated)


def join(
    emitter: ScopedEmitter,
    combine: Combine,
    values: Sequence[SSAValue],
    depth: int | None = None,
    *,
    accumulated: bool = False,
) -> SSAValue:
    """Join values pairwise; if `accumulated`, they are accumulators of a reduction."""
    while len(values) > 1:
        kind = values[0].type
        element = kind.element_type if isinstance(kind, VectorType) else kind
        choice = combining(combine, element)
        pairs = zip(values[::2], values[1::2], strict=False)
        joined = [
            _larger(emitter, a, b, depth)
            if choice is arith.MaxnumfOp and accumulated
            else emitter.emit(choice, [a, b], [kind], depth=depth).results[0]
            for a, b in pairs
        ]
        values = joined + list(values[len(joined) * 2 :])
    return values[0]


_GREATER = {"predicate": IntegerAttr(arith.CMPF_COMPARISON_OPERATIONS.index("ogt"), i64)}


# maxnum(a, b) == a if a > b else b  where b is not NaN, as no accumulator of maxnum is
def _larger(emitter: ScopedEmitter, a: SSAValue, b: SSAValue, depth: int | None) -> SSAValue:
    condition = upstream.with_element_type(a.type, i1)
    above = emitter.emit(upstream.CmpfOp, [a, b], [condition], _GREATER, depth).results[0]
    return emitter.emit(upstream.SelectOp, [above, a, b], [a.type], {}, depth).results[0]


def neutral(combine: Combine, element: Attribute) -> IntegerAttr | FloatAttr:
    """The number that changes no result of a combination."""
    return number(neutral_value(combine, element), element)

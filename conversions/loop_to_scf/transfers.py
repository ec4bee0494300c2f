"""Blocks that are loaded, and blocks that are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import AnyFloat, VectorType
from xdsl.ir import Operation, SSAValue

from ...core.algebra.expressions import Affine
from ...core.ir.typed import memref_type
from ...dialects.loop import ops as loop
from ...dialects.loop.attrs import Combine
from ...dialects.loop.vectors import Chunk, Row
from .accesses import BlockAccess, Place
from .blocks import VectorBlock, join
from .indices import fixed
from .scopes import ScopedEmitter, lane_number, width_of

_MOST_VECTORS = 4
"""The most vectors that are loaded for lanes of which only some are in them."""


@dataclass(eq=False)
class LoadBlock(VectorBlock):
    """A block that is read from a buffer."""

    access: BlockAccess
    hoisted: list[int]
    """How many more loads may be hoisted out of their loop, in a list of one number."""
    _scalars: dict[Place, SSAValue] = field(init=False, default_factory=dict[Place, SSAValue])

    def make(self, row: Row, chunk: int) -> SSAValue:
        access, part = self.access, self.layout.chunks[chunk]
        if access.runs_along_rows() and self.layout.shape[0] % part.width == 0:
            self._pieces |= self._columns(row[0] - row[0] % part.width, chunk)
            return self._pieces[row, chunk]
        readable = access.readable(row)
        if readable is None:
            return self.emitter.zero(self.element, part.width)
        position, conditions = readable
        step, in_row = access.step(position, part) if part.width > 1 else (0, True)
        if step == 1:
            return self._neighbours(position, part, conditions, not in_row)
        if step != 0:
            found = step and self._every(step, position, part, conditions, not in_row)
            return found or self._one_by_one(position, part, conditions)
        if access.merged == 2:
            position = access.lane(position, part.offset)
        else:
            last = access.clamped(len(row), part.offset)
            if last is None:
                return self.emitter.zero(self.element, part.width)
            position, conditions = [*position, last[0]], [*conditions, *last[1]]
        return self.emitter.broadcast(self._scalar(position, conditions), part.width)

    def _columns(self, first: int, chunk: int) -> dict[tuple[Row, int], SSAValue]:
        """The pieces of a square: loads along its columns, then a transpose in registers."""
        access, emit, part = self.access, self.emitter, self.layout.chunks[chunk]
        width = part.width
        count, mask = access.mask(Chunk(first, width, width), axis=0)
        columns: list[SSAValue] = []
        for lane in range(part.offset, part.offset + width):
            found = access.clamped(1, lane)
            is_spare = count == 0 or lane >= part.offset + part.lanes
            if is_spare or found is None or access.is_outside(1, lane):
                columns.append(emit.zero(self.element, width))
                continue
            position = access.place([fixed(first), found[0]])
            operands = access.buffers.operands(access.buffer, position, False)
            columns.append(self._load(operands, width, found[1], self.depth, mask))
        rows = _transposed(emit, columns)
        return {((first + number,), chunk): row for number, row in enumerate(rows)}

    def _scalar(self, position: list[Affine], conditions: Sequence[SSAValue]) -> SSAValue:
        """One element, loaded once for all pieces."""
        place = self.access.place(position)
        if place not in self._scalars and (found := self.access.known(place, 1)) is not None:
            self._scalars[place] = found
        if place not in self._scalars:
            operands = self.access.buffers.operands(self.access.buffer, place, False)
            depth = self._depth(place, 1)
            self._scalars[place] = self._load(operands, 1, conditions, depth)
        return self._scalars[place]

    def _neighbours(
        self, position: list[Affine], part: Chunk, conditions: Sequence[SSAValue], across: bool
    ) -> SSAValue:
        access, emit, width = self.access, self.emitter, part.width
        count, mask = access.mask(part)
        if count == 0:
            return emit.zero(self.element, width)
        place = access.place(access.lane(position, part.offset))
        if count is not None and self._has_room(place, width, across):
            # Unused lanes may hold anything, and reading them stays inside the row.
            mask = None
        if mask is None and (found := access.known(place, width)) is not None:
            return found
        operands = access.buffers.operands(access.buffer, place, across)
        if mask is None:
            count = width
        depth = self._depth(place, count) if count is not None else self.depth
        return self._load(operands, width, conditions, depth, mask)

    def _has_room(self, place: Place, width: int, across: bool) -> bool:
        """Whether `width` floats from a place on are inside the row of the buffer."""
        size = memref_type(self.access.buffer).get_shape()[-1]
        last = self.access.indices.ranges.of(place[-1])[1]
        is_number = isinstance(self.element, AnyFloat)
        return is_number and not across and last is not None and last + width <= size

    def _every(
        self,
        step: int,
        position: list[Affine],
        part: Chunk,
        conditions: Sequence[SSAValue],
        across: bool,
    ) -> SSAValue | None:
        """Elements a few apart: vectors of all from the first to the last one, and shuffles.

        None if these are too many, or the number of lanes is not known.
        """
        access, emit, width = self.access, self.emitter, part.width
        lanes = access.lanes_inside(part)
        if lanes is None or access.buffers.contents.tracks(access.buffer):
            return None
        span = (lanes - 1) * abs(step) + 1
        # The last vector ends at the last element.
        starts = [*range(0, span - width, width), span - width]
        if span < width or len(starts) > min(lanes // 2, _MOST_VECTORS):
            return None
        taken = [min(lane, lanes - 1) * abs(step) for lane in range(width)]
        if step < 0:
            taken = [span - 1 - element for element in taken]
        first = access.place(access.lane(position, part.offset + (0 if step > 0 else lanes - 1)))
        vectors: list[SSAValue] = []
        for start in starts:
            place = (*first[:-1], first[-1] + fixed(start))
            operands = access.buffers.operands(access.buffer, place, across)
            vectors.append(self._load(operands, width, conditions, self._depth(place, width)))
        result, at, loaded = vectors[0], taken, width
        if len(vectors) == 1:
            return emit.shuffle(result, result, taken)
        for start, more in zip(starts[1:], vectors[1:], strict=True):
            new = [min(width + element - start, 2 * width - 1) for element in taken]
            order = [a if e < loaded else b for e, a, b in zip(taken, at, new, strict=True)]
            result, at, loaded = emit.shuffle(result, more, order), range(width), start + width
        return result

    def _one_by_one(
        self, position: list[Affine], part: Chunk, conditions: Sequence[SSAValue]
    ) -> SSAValue:
        access, emit = self.access, self.emitter
        kind = emit.machine(self.element, part.width)
        result = emit.zero(self.element, part.width)
        for lane in range(part.lanes):
            place, extra = access.lane(position, part.offset + lane), list[SSAValue]()
            if access.merged == 1:
                found = access.clamped(len(position), part.offset + lane)
                if found is None:
                    break
                place[-1], extra = found
            value = self._scalar(place, [*conditions, *extra])
            operands, where = [value, result], {"static_position": lane_number(lane)}
            result = emit.emit(vector.InsertOp, operands, [kind], where, self.depth).results[0]
        return result

    def _depth(self, place: Place, count: int) -> int:
        """The depth of a load: outside the loops if that is legal and registers are left."""
        frame = self.emitter.scopes[self.depth].frame
        if self.depth == frame or not self.hoisted[0]:
            return self.depth
        if not self.access.buffers.always_readable(self.access.buffer, place, count):
            return self.depth
        self.hoisted[0] -= 1
        return frame

    def _load(
        self,
        operands: list[SSAValue],
        width: int,
        conditions: Sequence[SSAValue],
        depth: int,
        mask: SSAValue | None = None,
    ) -> SSAValue:
        emit, kind = self.emitter, self.emitter.machine(self.element, width)
        op: type[Operation] = memref.LoadOp if width == 1 else vector.LoadOp
        if mask is not None:
            op, operands = vector.MaskedLoadOp, [*operands, mask, emit.zero(self.element, width)]
        if not conditions:
            return emit.emit(op, operands, [kind], depth=depth).results[0]
        zero = emit.zero(self.element, width)
        with emit.guarded(self.access.all_of(conditions), [zero], self.depth) as results:
            results += emit.emit(op, operands, [kind]).results
        return results[0]


@dataclass(frozen=True)
class BlockStore:
    """One store."""

    value: SSAValue
    place: Place
    operands: list[SSAValue]
    """The buffer and the indices."""
    count: int | None
    """How many lanes are stored; None if a mask decides."""
    mask: SSAValue | None = None
    condition: SSAValue | None = None

    def emit(self, access: BlockAccess, certain: bool, combine: Combine | None) -> None:
        """Store; `certain` means that the scope stores unconditionally."""
        if self.condition is not None:
            with access.emitter.guarded(self.condition):
                self._store(access, combine)
            access.note_write(None, self.value, 0)
            return
        stored = self._store(access, combine)
        known = certain and self.count is not None
        access.note_write(self.place if known else None, stored, self.count or 0)

    def _store(self, access: BlockAccess, combine: Combine | None) -> SSAValue:
        """Store the value, joined with the present one if it accumulates; return what is stored."""
        emit, value = access.emitter, self.value
        if combine is not None:
            value = join(emit, combine, [value, self._present(access)])
        if self.mask is not None:
            emit.emit(vector.MaskedStoreOp, [*self.operands, self.mask, value])
        else:
            kind = vector.StoreOp if isinstance(value.type, VectorType) else memref.StoreOp
            emit.emit(kind, [value, *self.operands])
        return value

    def _present(self, access: BlockAccess) -> SSAValue:
        """The present elements in the place of the store."""
        emit, type = access.emitter, self.value.type
        if self.mask is not None:
            zero = emit.zero(loop.element_type(type), width_of(type))
            operands = [*self.operands, self.mask, zero]
            return emit.emit(vector.MaskedLoadOp, operands, [type]).results[0]
        found = access.known(self.place, width_of(type))
        if found is not None:
            return found
        kind = vector.LoadOp if isinstance(type, VectorType) else memref.LoadOp
        return emit.emit(kind, self.operands, [type]).results[0]


def store_block(
    access: BlockAccess, value: VectorBlock, combine: Combine | None, certain: bool = True
) -> None:
    """Store a block row by row, each under the conditions of its limits.

    Args:
        certain: whether the scope stores unconditionally.
    """
    emit, layout = access.emitter, value.layout
    for row in layout.rows:
        conditions: list[SSAValue] = []
        for axis, index in enumerate(row):
            found = access.write_conditions(axis, index)
            if found is None:
                break
            conditions += found
        else:
            parts = [(part, value.piece(row, n)) for n, part in enumerate(layout.chunks)]
            writes = list(_writes(access, row, parts))
            if not conditions:
                for write in writes:
                    write.emit(access, certain, combine)
                continue
            with emit.guarded(access.all_of(conditions)):
                for write in writes:
                    write.emit(access, False, combine)


def _writes(
    access: BlockAccess, row: Row, parts: Sequence[tuple[Chunk, SSAValue]]
) -> Iterator[BlockStore]:
    """The stores of a row, whose operands are emitted before the first store."""
    position = [fixed(index) for index in row]
    buffers, buffer = access.buffers, access.buffer
    for part, value in parts:
        step, in_row = access.step(position, part) if part.width > 1 else (None, True)
        if step == 1:
            count, mask = access.mask(part)
            if count != 0:
                place = access.place(access.lane(position, part.offset))
                operands = buffers.operands(buffer, place, not in_row)
                yield BlockStore(value, place, operands, count if mask else part.width, mask)
            continue
        for lane in range(part.lanes):
            axis, index = len(row), part.offset + lane
            conditions = access.write_conditions(axis, index) if access.merged == 1 else []
            if conditions is None:
                break
            scalar = access.emitter.extract(value, lane)
            place = access.place(access.lane(position, index))
            operands = buffers.operands(buffer, place, False)
            condition = conditions[0] if conditions else None
            yield BlockStore(scalar, place, operands, 1, condition=condition)


# Stage d swaps the off-diagonal quarters of each square of 2 d rows and 2 d lanes; d = 1, 2, 4, ...
# transpose the whole square (Eklundh 1972).
def _transposed(emitter: ScopedEmitter, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """The transpose of n machine vectors of n lanes, a power of two."""
    values, width = list(rows), len(rows)
    apart = 1
    while apart < width:
        upper = [n if not n & apart else n - apart + width for n in range(width)]
        lower = [n + apart if not n & apart else n + width for n in range(width)]
        for one in [n for n in range(width) if not n & apart]:
            above, below = values[one], values[one + apart]
            values[one] = emitter.shuffle(above, below, upper)
            values[one + apart] = emitter.shuffle(above, below, lower)
        apart *= 2
    return values

"""Loads and stores of blocks, as loads and stores of machine vectors.

The affine map of an access says what a machine vector is: neighbours in memory where the lane
axis has coefficient 1, one element in all lanes where it has none, otherwise elements that are
read or written one by one.

Where only the first n lanes of an axis are inside the buffer, the lane axis is masked. Another
axis reads the last row inside again (or, where n may be 0, nothing) and writes conditionally.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import cast

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from .blocks import Block, Chunk, Layout, Row
from .indices import ZERO, Form, Indices, NotLinearError, fixed
from .scopes import INDEX, Emitter, lane_number, number

_NOWHERE = fixed(-1)


Place = tuple[Form, ...]
"""Indices into a buffer."""


class Buffers:
    """The buffers of a function: their sizes and strides."""

    def __init__(self, emitter: Emitter, indices: Indices) -> None:
        self.emitter = emitter
        self.indices = indices
        self.written: set[SSAValue] = set()
        self._rows: dict[SSAValue, SSAValue] = {}
        self._sizes: dict[tuple[SSAValue, int], Form] = {}
        self._strides: dict[SSAValue, list[Form]] = {}

    def size(self, buffer: SSAValue, dimension: int) -> Form:
        """The size of a dimension."""
        extent = cast(MemRefType, buffer.type).get_shape()[dimension]
        if extent != DYNAMIC_INDEX:
            return fixed(extent)
        key = (buffer, dimension)
        if key not in self._sizes:
            emit = self.emitter
            operands = [buffer, emit.index(dimension)]
            value = emit.emit_head(memref.DimOp, operands, INDEX, {}, emit.depths[buffer])
            self._sizes[key] = self.indices.atom(value, nonnegative=True)
        return self._sizes[key]

    def strides(self, buffer: SSAValue) -> list[Form]:
        """How many elements apart neighbours along each dimension are."""
        if buffer not in self._strides:
            rank = cast(MemRefType, buffer.type).get_num_dims()
            strides = [fixed(1)] * rank
            for dimension in range(rank - 2, -1, -1):
                size = self.size(buffer, dimension + 1)
                strides[dimension] = strides[dimension + 1] * size
            self._strides[buffer] = strides
        return self._strides[buffer]

    def linear(self, buffer: SSAValue, place: Place) -> Form:
        """The number of the element at a place."""
        total = ZERO
        for index, stride in zip(place, self.strides(buffer), strict=True):
            total = total + index * stride
        return total

    def row(self, buffer: SSAValue) -> SSAValue:
        """The buffer as one row of elements."""
        if buffer not in self._rows:
            kind = cast(MemRefType, buffer.type)
            rank = kind.get_num_dims()
            size = prod(kind.get_shape()) if kind.has_static_shape() else DYNAMIC_INDEX
            groups = ArrayAttr([ArrayAttr([IntegerAttr(d, i64) for d in range(rank)])])
            self._rows[buffer] = self.emitter.emit_head(
                memref.CollapseShapeOp,
                [buffer],
                MemRefType(kind.element_type, [size]),
                {"reassociation": groups},
                self.emitter.depths[buffer],
            )
        return self._rows[buffer]

    def operands(self, buffer: SSAValue, place: Place, across: bool) -> list[SSAValue]:
        """A buffer and indices as operands; `across` rows, the buffer is taken as one row."""
        value = self.indices.value
        if across:
            return [self.row(buffer), value(self.linear(buffer, place))]
        return [buffer, *(value(index) for index in place)]

    def always_readable(self, buffer: SSAValue, place: Place, count: int) -> bool:
        """Whether `count` elements from a place can be read at any time, with one result."""
        kind = cast(MemRefType, buffer.type)
        if buffer in self.written or not kind.has_static_shape():
            return False
        indices = [index.value for index in place]
        if not all(
            index is not None and 0 <= index < size
            for index, size in zip(indices, kind.get_shape(), strict=True)
        ):
            return False
        first = self.linear(buffer, place).value
        return first is not None and first + count <= prod(kind.get_shape())


class Access:
    """Where the lanes of a block are in a buffer."""

    def __init__(
        self,
        buffers: Buffers,
        buffer: SSAValue,
        map: AffineMap,
        dims: Sequence[Form],
        layout: Layout | None,
        limits: dict[int, Form],
    ) -> None:
        self.buffers = buffers
        self.indices = buffers.indices
        self.emitter = buffers.emitter
        self.buffer = buffer
        self.map = map
        self.dims = dims
        self.shape: tuple[int, ...] = layout.shape if layout is not None else ()
        self.merged = layout.merged if layout is not None else 1
        self.limits = limits
        self.base: list[Form] = []
        self.steps: list[list[Form]] = []
        self.is_linear = self._split()
        self._step: tuple[int | None, bool] | None = None

    def _split(self) -> bool:
        """index == base + sum of axis * step for each dimension of the buffer, if so it is."""
        make = self.indices.axis
        axes = [make(n, a) if n > 1 else ZERO for a, n in enumerate(self.shape)]
        numbers = {axis.atom: a for a, axis in enumerate(axes) if axis.terms}
        try:
            found = self._evaluate(axes)
        except NotLinearError:
            return False
        for index in found:
            base, steps = ZERO, [ZERO] * len(axes)
            for monomial, coefficient in index.terms.items():
                used = [n for n in monomial if n in numbers]
                if len(used) > 1:
                    return False
                rest = Form({tuple(n for n in monomial if n not in numbers): coefficient})
                if used:
                    steps[numbers[used[0]]] = steps[numbers[used[0]]] + rest
                else:
                    base = base + rest
            self.base.append(base)
            self.steps.append(steps)
        return True

    def _evaluate(self, symbols: Sequence[Form]) -> list[Form]:
        evaluate, dims = self.indices.evaluate, self.dims
        return [evaluate(expr, dims, symbols) for expr in self.map.results]

    def place(self, position: Sequence[Form]) -> Place:
        """The indices into the buffer of the element at a position in the block."""
        if not self.is_linear:
            return tuple(self._evaluate(position))
        found: list[Form] = []
        for total, steps in zip(self.base, self.steps, strict=True):
            for step, index in zip(steps, position, strict=True):
                if step.terms and index.terms:
                    known = index.value
                    total = total + (step * index if known is None else step * known)
            found.append(total)
        return tuple(found)

    def step(self, position: Sequence[Form], part: Chunk) -> tuple[int | None, bool]:
        """How far neighbouring lanes of a piece are apart, None where that differs.

        Then whether they are in one row of the buffer.
        """
        if self._step is not None:
            return self._step
        if not self.map.results:
            return 0, True
        places = [self.place(self.lane(position, part.offset))]
        if self.is_linear and self.merged == 1:
            places.append(self.place(self.lane(position, part.offset + 1)))
        else:
            more = range(1, part.lanes)
            places += [self.place(self.lane(position, part.offset + n)) for n in more]
        in_row = all(a[:-1] == b[:-1] for a, b in pairwise(places))
        if in_row:
            numbers = [place[-1] for place in places]
        else:
            numbers = [self.buffers.linear(self.buffer, place) for place in places]
        apart = {(b - a).value for a, b in pairwise(numbers)}
        found = (apart.pop() if len(apart) == 1 else None), in_row
        if self.is_linear:
            self._step = found
        return found

    def lane(self, position: Sequence[Form], lane: int) -> list[Form]:
        """The position of a lane of a row; `position` is that of the row."""
        if self.merged == 1:
            return [*position, fixed(lane)]
        *_, lanes = self.shape
        return [*position, *(fixed(n) for n in divmod(lane, lanes))]

    # Limits.

    def clamped(self, axis: int, index: int) -> tuple[Form, SSAValue | None]:
        """An index along a limited axis that can be read, and the condition under which.

        The index is -1 where there is none.
        """
        limit = self.limits.get(axis)
        if limit is None:
            return fixed(index), None
        known = limit.value
        if known is not None:
            return fixed(min(index, known - 1)) if known > 0 else _NOWHERE, None
        if not self.indices.is_positive(limit):
            return fixed(index), self.inside(axis, index)
        if index == 0:
            return ZERO, None
        return self.indices.least([limit - 1, fixed(index)]), None

    def inside(self, axis: int, index: int) -> SSAValue:
        """Whether an index along a limited axis is inside the buffer."""
        emit = self.emitter
        limit = self.indices.value(self.limits[axis])
        return emit.compare("slt", emit.index(index), limit)

    def write_conditions(self, axis: int, index: int) -> list[SSAValue] | None:
        """What must hold for a lane to be written; None where it never is."""
        limit = self.limits.get(axis)
        if limit is None:
            return []
        known = limit.value
        if known is not None:
            return [] if index < known else None
        if index == 0 and self.indices.is_positive(limit):
            return []
        return [self.inside(axis, index)]

    def readable(self, row: Row) -> tuple[list[Form], list[SSAValue]] | None:
        """A row that can be read in the place of `row`, and the conditions under which."""
        position: list[Form] = []
        conditions: list[SSAValue] = []
        for axis, index in enumerate(row):
            place, condition = self.clamped(axis, index)
            if place is _NOWHERE:
                return None
            position.append(place)
            conditions += [condition] if condition is not None else []
        return position, conditions

    def mask(self, part: Chunk) -> tuple[int | None, SSAValue | None]:
        """The lanes of a piece that are inside: how many, or as a mask where that is not known.

        A piece that is inside with all of its lanes has neither.
        """
        limit = self.limits.get(len(self.shape) - 1) if self.merged == 1 else None
        known = limit.value if limit is not None else part.offset + part.lanes
        if known is not None:
            count = max(0, min(known - part.offset, part.lanes))
            if count == part.width:
                return None, None
            lanes = (*(number(n < count, i1) for n in range(part.width)),)
            return count, self.emitter.lanes(lanes)
        assert limit is not None
        count = limit - part.offset
        if part.lanes < part.width:
            count = self.indices.least([count, fixed(part.lanes)])
        kind = self.emitter.machine(i1, part.width)
        return None, self.emitter.pure(vector.CreateMaskOp, [self.indices.value(count)], kind)

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """The conjunction of some conditions."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.emitter.pure(arith.AndIOp, [result, condition], i1)
        return result


class LoadBlock(Block):
    """A block that is read from a buffer."""

    def __init__(self, access: Access, layout: Layout, hoisted: list[int]) -> None:
        """`hoisted` counts down how many more loads may leave their loop."""
        buffer = access.buffer
        element = cast(MemRefType, buffer.type).element_type
        super().__init__(access.emitter, layout, element)
        self.access = access
        self.hoisted = hoisted
        self._scalars: dict[Place, SSAValue] = {}

    def make(self, row: Row, chunk: int) -> SSAValue:
        access, part = self.access, self.layout.chunks[chunk]
        lanes = len(row)
        found = access.readable(row)
        if found is None:
            return self.emitter.zero(self.element, part.width)
        position, conditions = found
        step, in_row = access.step(position, part) if part.width > 1 else (0, True)
        if step == 1:
            return self._neighbours(position, part, conditions, not in_row)
        if step != 0:
            return self._one_by_one(position, part, conditions)
        if access.merged == 2:
            position = access.lane(position, 0)
        else:
            place, condition = access.clamped(lanes, part.offset if part.width == 1 else 0)
            if place is _NOWHERE:
                return self.emitter.zero(self.element, part.width)
            conditions += [condition] if condition is not None else []
            position = [*position, place]
        return self.emitter.broadcast(self._scalar(position, conditions), part.width)

    def _scalar(self, position: list[Form], conditions: Sequence[SSAValue]) -> SSAValue:
        """One element; the pieces that need the same one share it."""
        place = self.access.place(position)
        if place not in self._scalars:
            operands = self.access.buffers.operands(self.access.buffer, place, False)
            depth = self._depth(place, 1)
            self._scalars[place] = self._load(memref.LoadOp, operands, 1, conditions, depth)
        return self._scalars[place]

    def _neighbours(
        self, position: list[Form], part: Chunk, conditions: Sequence[SSAValue], across: bool
    ) -> SSAValue:
        access, emit, width = self.access, self.emitter, part.width
        count, mask = access.mask(part)
        if count == 0:
            return emit.zero(self.element, width)
        place = access.place(access.lane(position, part.offset))
        operands = access.buffers.operands(access.buffer, place, across)
        if mask is None:
            depth = self._depth(place, width)
            return self._load(vector.LoadOp, operands, width, conditions, depth)
        operands += [mask, emit.zero(self.element, width)]
        depth = self._depth(place, count) if count is not None else self.depth
        return self._load(vector.MaskedLoadOp, operands, width, conditions, depth)

    def _one_by_one(
        self, position: list[Form], part: Chunk, conditions: Sequence[SSAValue]
    ) -> SSAValue:
        access, emit = self.access, self.emitter
        kind = emit.machine(self.element, part.width)
        result = emit.zero(self.element, part.width)
        for lane in range(part.lanes):
            place = access.lane(position, part.offset + lane)
            extra: list[SSAValue] = []
            if access.merged == 1:
                clamped, condition = access.clamped(len(position), part.offset + lane)
                if clamped is _NOWHERE:
                    break
                place[-1] = clamped
                extra = [condition] if condition is not None else []
            value = self._scalar(place, [*conditions, *extra])
            operands, where = [value, result], {"static_position": lane_number(lane)}
            result = emit.emit(vector.InsertOp, operands, [kind], where, self.depth).results[0]
        return result

    def _depth(self, place: Place, count: int) -> int:
        """Where to load: before the loops where that is possible and registers are left."""
        frame = self.emitter.scopes[self.depth].frame
        if self.depth == frame or not self.hoisted[0]:
            return self.depth
        if not self.access.buffers.always_readable(self.access.buffer, place, count):
            return self.depth
        self.hoisted[0] -= 1
        return frame

    def _load(
        self,
        op: type[Operation],
        operands: Sequence[SSAValue],
        width: int,
        conditions: Sequence[SSAValue],
        depth: int,
    ) -> SSAValue:
        emit, kind = self.emitter, self.emitter.machine(self.element, width)
        if not conditions:
            return emit.emit(op, operands, [kind], depth=depth).results[0]
        with emit.guarded(self.access.all_of(conditions), [kind], self.depth) as guard:
            guard.given = emit.emit(op, operands, [kind]).results
            guard.otherwise = [emit.zero(self.element, width)]
        return guard.results[0]


def store_block(access: Access, value: Block) -> None:
    """Write a block: row after row, each under the conditions that its limits make."""
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
                    _write(emit, *write)
                continue
            with emit.guarded(access.all_of(conditions)):
                for write in writes:
                    _write(emit, *write)


Write = tuple[list[SSAValue], list[SSAValue], SSAValue | None, SSAValue | None]
"""The value and the place as operands, then a mask and a condition where there is one."""


def _writes(access: Access, row: Row, parts: Sequence[tuple[Chunk, SSAValue]]) -> Iterator[Write]:
    """The stores of a row; all that they need is emitted before the first."""
    position = [fixed(index) for index in row]
    buffers, buffer = access.buffers, access.buffer
    for part, value in parts:
        step, in_row = access.step(position, part) if part.width > 1 else (None, True)
        if step == 1:
            count, mask = access.mask(part)
            if count != 0:
                place = access.place(access.lane(position, part.offset))
                yield [value], buffers.operands(buffer, place, not in_row), mask, None
            continue
        for lane in range(part.lanes):
            axis, index = len(row), part.offset + lane
            conditions = access.write_conditions(axis, index) if access.merged == 1 else []
            if conditions is None:
                break
            scalar = access.emitter.extract(value, lane)
            place = buffers.operands(buffer, access.place(access.lane(position, index)), False)
            yield [scalar], place, None, conditions[0] if conditions else None


def _write(
    emit: Emitter,
    value: list[SSAValue],
    place: list[SSAValue],
    mask: SSAValue | None,
    condition: SSAValue | None,
) -> None:
    if condition is not None:
        with emit.guarded(condition):
            emit.emit(memref.StoreOp, value + place)
    elif mask is not None:
        emit.emit(vector.MaskedStoreOp, [*place, mask, *value])
    elif not isinstance(value[0].type, VectorType):
        emit.emit(memref.StoreOp, value + place)
    else:
        emit.emit(vector.StoreOp, value + place)

"""Where the machine vectors of a block are in a buffer, and which of their lanes are inside it.

The coefficient of the lane axis in the affine map decides what a machine vector is: neighbours in
memory if it is 1, one element in all lanes if it is 0, otherwise elements that are accessed one by
one.

If only the first n lanes of an axis are inside the buffer, accesses along the lane axis are
masked. Along another axis, reads are clamped to the last row inside (or conditional if n may be 0)
and writes are conditional.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from math import prod

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    i1,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from ...core.algebra.affine import polynomial
from ...core.algebra.expressions import (
    SYMBOL,
    ZERO,
    Affine,
    Variable,
    variables,
    without_remainders,
)
from ...core.algebra.polynomials import Polynomial
from ...core.building.arithmetic import INDEX
from ...core.ir.typed import memref_type
from ...dialects.loop.vectors import Chunk, Row, VectorLayout
from .contents import LocalContents
from .indices import Indices, NotLinearError, fixed
from .scopes import ScopedEmitter, number

Place = tuple[Affine, ...]
"""Indices into a buffer."""


class BufferLayouts:
    """The buffers of a function: their sizes and strides."""

    def __init__(self, emitter: ScopedEmitter, indices: Indices) -> None:
        self.emitter = emitter
        self.indices = indices
        self.written: set[SSAValue] = set()
        self.contents = LocalContents(emitter)
        self._rows: dict[SSAValue, SSAValue] = {}
        self._sizes: dict[tuple[SSAValue, int], Affine] = {}
        self._strides: dict[SSAValue, list[Affine]] = {}

    def size(self, buffer: SSAValue, dimension: int) -> Affine:
        """The size of a dimension."""
        extent = memref_type(buffer).get_shape()[dimension]
        if extent != DYNAMIC_INDEX:
            return fixed(extent)
        key = (buffer, dimension)
        if key not in self._sizes:
            emit = self.emitter
            operands = [buffer, emit.index(dimension)]
            value = emit.emit_head(memref.DimOp, operands, INDEX, {}, emit.depths[buffer])
            self._sizes[key] = self.indices.atom(value, nonnegative=True)
        return self._sizes[key]

    def know_sizes(self, buffer: SSAValue, sizes: Sequence[Affine]) -> None:
        """Record the sizes of the symbolic dimensions of a buffer."""
        shape = memref_type(buffer).get_shape()
        symbolic = [axis for axis, size in enumerate(shape) if size == DYNAMIC_INDEX]
        for axis, size in zip(symbolic, sizes, strict=True):
            self._sizes[buffer, axis] = size

    def strides(self, buffer: SSAValue) -> list[Affine]:
        """The stride of each dimension, in elements."""
        if buffer not in self._strides:
            rank = memref_type(buffer).get_num_dims()
            strides = [fixed(1)] * rank
            for dimension in range(rank - 2, -1, -1):
                size = self.size(buffer, dimension + 1)
                strides[dimension] = strides[dimension + 1] * size
            self._strides[buffer] = strides
        return self._strides[buffer]

    def linear(self, buffer: SSAValue, place: Place) -> Affine:
        """The row-major number of the element at a place."""
        total = ZERO
        for index, stride in zip(place, self.strides(buffer), strict=True):
            total = total + index * stride
        return total

    def row(self, buffer: SSAValue) -> SSAValue:
        """The buffer, collapsed to one dimension."""
        if buffer not in self._rows:
            kind = memref_type(buffer)
            rank = kind.get_num_dims()
            size = prod(kind.get_shape()) if kind.has_static_shape() else DYNAMIC_INDEX
            groups = ArrayAttr([ArrayAttr([IntegerAttr(d, i64) for d in range(rank)])])
            self._rows[buffer] = self.emitter.emit_after(
                buffer,
                memref.CollapseShapeOp,
                MemRefType(kind.element_type, [size]),
                {"reassociation": groups},
            )
        return self._rows[buffer]

    def operands(self, buffer: SSAValue, place: Place, across: bool) -> list[SSAValue]:
        """A buffer and indices as operands; `across` rows, of the collapsed buffer."""
        value = self.indices.value
        if across:
            return [self.row(buffer), value(self.linear(buffer, place))]
        return [buffer, *[value(index) for index in place]]

    def number(self, buffer: SSAValue, place: Place) -> int | None:
        """The row-major number of the element at a place, None unless it is constant."""
        if any(index.number is None for index in place):
            return None
        return self.linear(buffer, place).number

    def always_readable(self, buffer: SSAValue, place: Place, count: int) -> bool:
        """Whether `count` elements from a place are never written, and inside the buffer."""
        kind = memref_type(buffer)
        if buffer in self.written or not kind.has_static_shape():
            return False
        shape, first = kind.get_shape(), self.number(buffer, place)
        if first is None or first + count > prod(shape):
            return False
        return all(
            0 <= (index.number or 0) < size for index, size in zip(place, shape, strict=True)
        )


class BlockAccess:
    """Where the lanes of a block are in a buffer."""

    def __init__(
        self,
        buffers: BufferLayouts,
        buffer: SSAValue,
        map: AffineMap,
        dims: Sequence[Affine],
        layout: VectorLayout | None,
        limits: dict[int, Affine],
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
        self.base: list[Affine] = []
        self.steps: list[list[Affine]] = []
        self.is_linear = self._split()
        self._step: tuple[int | None, bool] | None = None

    def _split(self) -> bool:
        """Find base and step: index == base + sum of axis * step in each dimension, if linear."""
        make = self.indices.axis
        axes = [make(n, a) if n > 1 else ZERO for a, n in enumerate(self.shape)]
        numbers = {axis.single_atom: a for a, axis in enumerate(axes) if axis.terms}
        try:
            found = self._evaluate(axes)
        except NotLinearError:
            return False
        for index in found:
            base, steps = ZERO, [ZERO] * len(axes)
            for monomial, coefficient in index.terms:
                used = [n for n in monomial if n in numbers]
                if len(used) > 1:
                    return False
                rest = Polynomial([(tuple(n for n in monomial if n not in numbers), coefficient)])
                if used:
                    steps[numbers[used[0]]] = steps[numbers[used[0]]] + rest
                else:
                    base = base + rest
            self.base.append(base)
            self.steps.append(steps)
        return True

    def _evaluate(self, symbols: Sequence[Affine]) -> list[Affine]:
        evaluate, dims = self.indices.evaluate, self.dims
        return [evaluate(expr, dims, symbols) for expr in self.map.results]

    def place(self, position: Sequence[Affine]) -> Place:
        """The indices into the buffer of the element at a position in the block."""
        if not self.is_linear:
            return tuple(self._evaluate(position))
        found: list[Affine] = []
        for total, steps in zip(self.base, self.steps, strict=True):
            for step, index in zip(steps, position, strict=True):
                if step.terms and index.terms:
                    known = index.number
                    total = total + (step * index if known is None else step * known)
            found.append(total)
        return tuple(found)

    def step(self, position: Sequence[Affine], part: Chunk) -> tuple[int | None, bool]:
        """The distance of neighbouring lanes of a piece in elements, None if it varies.

        And whether they are in one row of the buffer.
        """
        if self._step is not None:
            return self._step
        if not self.map.results:
            return 0, True
        lanes: Sequence[int] = range(part.lanes)
        if self.is_linear and self.merged == 1:
            lanes = (0, 1)
        elif self._distance is not None:
            # Quotients by a number only grow: between two lanes in one row all are.
            lanes = (0, part.lanes - 1)
        places = [self.place(self.lane(position, part.offset + n)) for n in lanes]
        in_row = all(a[:-1] == b[:-1] for a, b in pairwise(places))
        if not self.is_linear and self._distance is not None:
            return self._distance, in_row
        if in_row:
            numbers = [place[-1] for place in places]
        else:
            numbers = [self.buffers.linear(self.buffer, place) for place in places]
        apart = {(b - a).number for a, b in pairwise(numbers)}
        found = (apart.pop() if len(apart) == 1 else None), in_row
        if self.is_linear:
            self._step = found
        return found

    @cached_property
    def _distance(self) -> int | None:
        """The distance of neighbouring lanes in elements, where it follows from the map.

        The quotients and remainders of a linear index cancel in the number of the element:
        7 * (i floordiv 7) + i mod 7 == i.
        """
        strides = [stride.number for stride in self.buffers.strides(self.buffer)]
        if self.merged > 1 or None in strides:
            return None
        number = ZERO
        for expr, stride in zip(self.map.results, strides, strict=True):
            number = number + without_remainders(polynomial(expr)) * (stride or 0)
        lane = Variable(SYMBOL, len(self.shape) - 1)
        along = [(m, step) for m, step in number.terms if lane in variables(Polynomial([(m, 1)]))]
        if not along:
            return 0
        ((monomial, step), *others) = along
        return step if monomial == (lane,) and not others else None

    def runs_along_rows(self) -> bool:
        """Whether neighbours in memory are in different rows of a block of rows and lanes."""
        if not self.is_linear or self.merged > 1 or len(self.shape) != 2 or not self.steps:
            return False
        *outer, last = ((along.number, lanes.number) for along, lanes in self.steps)
        if last[0] != 1 or any(along != 0 for along, _ in outer):
            return False
        return min(self.shape) > 1 and last[1] == 0 and any(lanes != 0 for _, lanes in outer)

    def lane(self, position: Sequence[Affine], lane: int) -> list[Affine]:
        """The position of a lane of a row; `position` is that of the row."""
        if self.merged == 1:
            return [*position, fixed(lane)]
        *_, lanes = self.shape
        return [*position, *(fixed(n) for n in divmod(lane, lanes))]

    # Limits.

    def clamped(self, axis: int, index: int) -> tuple[Affine, list[SSAValue]] | None:
        """An index along an axis that can be read in place of one, and the conditions for that.

        None if no index can.
        """
        limit = self.limits.get(axis)
        if limit is None:
            return fixed(index), []
        known = limit.number
        if known is not None:
            return (fixed(min(index, known - 1)), []) if known > 0 else None
        if not self.indices.is_positive(limit):
            return fixed(index), [self._inside(axis, index)]
        return self.indices.least([limit - 1, fixed(index)]) if index else ZERO, []

    def is_outside(self, axis: int, index: int) -> bool:
        """Whether an index along an axis is known to be outside the buffer."""
        limit = self.limits.get(axis)
        return limit is not None and limit.number is not None and index >= limit.number

    def write_conditions(self, axis: int, index: int) -> list[SSAValue] | None:
        """The conditions for a lane to be written; None if it never is."""
        if self.is_outside(axis, index):
            return None
        limit = self.limits.get(axis)
        if limit is None or limit.number is not None:
            return []
        if index == 0 and self.indices.is_positive(limit):
            return []
        return [self._inside(axis, index)]

    def _inside(self, axis: int, index: int) -> SSAValue:
        """Whether an index along a limited axis is inside the buffer."""
        emit = self.emitter
        return emit.compare("slt", emit.index(index), self.indices.value(self.limits[axis]))

    def readable(self, row: Row) -> tuple[list[Affine], list[SSAValue]] | None:
        """A row that can be read in place of `row`, and the conditions for that; None if none."""
        position: list[Affine] = []
        conditions: list[SSAValue] = []
        for axis, index in enumerate(row):
            found = self.clamped(axis, index)
            if found is None:
                return None
            position.append(found[0])
            conditions += found[1]
        return position, conditions

    def lanes_inside(self, part: Chunk, axis: int = -1) -> int | None:
        """How many lanes of a piece along an axis are inside, None if unknown."""
        limit = self.limits.get(axis % len(self.shape)) if self.merged == 1 else None
        if limit is None:
            return part.lanes
        known = limit.number
        return None if known is None else max(0, min(known - part.offset, part.lanes))

    def mask(self, part: Chunk, axis: int = -1) -> tuple[int | None, SSAValue | None]:
        """How many lanes of a piece along an axis are inside, None if unknown, and their mask.

        The mask of a piece with all of its lanes inside is None, and so is its count.
        """
        inside = self.lanes_inside(part, axis)
        if inside == part.width:
            return None, None
        if inside is not None:
            lanes = (*(number(n < inside, i1) for n in range(part.width)),)
            return inside, self.emitter.lanes(lanes)
        count = self.limits[axis % len(self.shape)] - part.offset
        if part.lanes < part.width:
            count = self.indices.least([count, fixed(part.lanes)])
        kind = self.emitter.machine(i1, part.width)
        return None, self.emitter.pure(vector.CreateMaskOp, [self.indices.value(count)], kind)

    # Known elements.

    def known(self, place: Place, width: int) -> SSAValue | None:
        """Elements that were stored before, None if they have to be loaded."""
        contents = self.buffers.contents
        if not contents.tracks(self.buffer):
            return None
        return contents.read(self.buffer, self.buffers.number(self.buffer, place), width)

    def note_write(self, place: Place | None, value: SSAValue, count: int) -> None:
        """Record a store of `count` lanes from a place, None if that is unknown."""
        contents = self.buffers.contents
        if contents.tracks(self.buffer):
            first = None if place is None else self.buffers.number(self.buffer, place)
            contents.write(self.buffer, first, value, count)

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """The conjunction of some conditions."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.emitter.pure(arith.AndIOp, [result, condition], i1)
        return result

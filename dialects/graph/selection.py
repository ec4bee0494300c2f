"""Loops that select the first few elements of one row, in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from . import scalars
from .guards import only_if
from .nests.nest import Index, WritingNest
from .order_keys import KeyAt, PlaceAt, Record, Records

BLOCK = 32
"""The elements that are compared at once with the last one that is kept."""
FEW = 16
"""Up to this many records move one by one, more in vectors."""

_ZERO = AffineExpr.constant(0)


def select_first(
    nest: WritingNest, extent: AffineExpr, count: int, key_at: KeyAt, bits: int
) -> PlaceAt:
    """Where the first `count` elements come from, of a row that has as many.

    They are kept in order while the row is read. Of a block of it in which no key is less than
    that of the last one kept, nothing else is computed.
    """
    start = AffineExpr.constant(count)
    blocks, rest = (extent - count) // BLOCK, (extent - count) % BLOCK
    selection = _Selection(nest, Records(bits), count, key_at)
    selection.fill()
    selection.scan(start, blocks)
    tail = start + blocks * BLOCK
    selection.take(tail, rest, lambda number: key_at(tail + number))
    return selection.place


class _Selection:
    """The records that come first of those that have been taken so far, in a local buffer.

    In front of them is one that is not greater than any.
    """

    def __init__(self, nest: WritingNest, form: Records, count: int, key_at: KeyAt) -> None:
        self.nest, self.form, self.key_at = nest, form, key_at
        self.count, self.is_small = AffineExpr.constant(count), count <= FEW
        self.kept = form.buffer(nest, (AffineExpr.constant(count + 1),))
        self.keys = nest.local((AffineExpr.constant(BLOCK),), i32 if form.is_packed else i64)

    def place(self, position: AffineExpr) -> SSAValue:
        """The place of the element that is kept at a position."""
        return self.form.place(self.nest, self.kept.at((position + 1,)))

    def fill(self) -> None:
        """Take as many elements as are kept."""
        nest = self.nest
        self.kept.put((_ZERO,), self.form.lowest(nest))
        with nest.loops([self.count]) as (position,):
            self.kept.put((position + 1,), self.form.highest(nest))

        def step(place: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._insert(self.form.of(nest, self.key_at(place), place))
            return nothing

        nest.serial(self.count, [], step)

    def scan(self, start: AffineExpr, blocks: AffineExpr) -> None:
        """Take the elements of blocks."""
        nest, size = self.nest, AffineExpr.constant(BLOCK)

        def step(number: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            first = start + number * BLOCK
            with nest.loops([size]) as (own,):
                self.keys.put((own,), self.key_at(first + own))
            is_less = scalars.less(nest, self._least(), self._bound())
            only_if(nest, is_less, lambda: self.take(first, size, lambda at: self.keys.at((at,))))
            return nothing

        nest.serial(blocks, [], step)

    def _least(self) -> SSAValue:
        """The least key of a block."""
        nest, width = self.nest, self.form.key_width

        def less(own: Index, before: SSAValue) -> SSAValue:
            return scalars.minimum(nest, before, self.keys.at(own))

        init = nest.constant((1 << (width - 1)) - 1, i32 if width == 32 else i64)
        return nest.reduce([AffineExpr.constant(BLOCK)], "min", init, less)

    # Of equal keys the record that is kept stays first: a new one precedes it by its key only.
    def take(
        self, start: AffineExpr, count: AffineExpr, key_of: Callable[[AffineExpr], SSAValue]
    ) -> None:
        """Take elements, from `start` on, one by one."""
        nest = self.nest

        def step(number: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            key = key_of(number)
            record = self.form.of(nest, key, start + number)
            only_if(nest, scalars.less(nest, key, self._bound()), lambda: self._insert(record))
            return nothing

        nest.serial(count, [], step)

    def _bound(self) -> SSAValue:
        """The key of the last record that is kept."""
        return self.form.key(self.nest, self.kept.at((self.count,)))

    # For a <= b, next to each other in order, what is at the place of b when r has been inserted is
    # a if r <= a, b if b <= r, else r.
    def _insert(self, record: Record) -> None:
        """Insert a record in order; those after it move by one place, and the last is dropped."""
        nest = self.nest
        if not self.is_small:
            self._insert_at_once(record)
            return

        def step(number: AffineExpr, behind: Sequence[SSAValue]) -> Sequence[SSAValue]:
            position = self.count - 1 - number
            low = self.kept.at((position,))
            inserted = self.form.clamped(nest, record, low, tuple(behind))
            self.kept.put((position + 1,), inserted)
            return low

        nest.serial(self.count, self.kept.at((self.count,)), step)

    def _insert_at_once(self, record: Record) -> None:
        """The same for many records, by way of another buffer."""
        nest = self.nest
        moved = self.form.buffer(nest, (self.count,))
        with nest.loops([self.count]) as (position,):
            low, high = self.kept.at((position,)), self.kept.at((position + 1,))
            moved.put((position,), self.form.clamped(nest, record, low, high))
        with nest.loops([self.count]) as (position,):
            self.kept.put((position + 1,), moved.at((position,)))

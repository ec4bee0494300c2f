"""Loops that select the first few elements of one row, in the order of their keys."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from . import scalars
from .guards import only_if
from .nest import Index, WritingNest
from .order_keys import KeyAt, PlaceAt, Record, Records

BLOCK = 32
"""The elements that are compared at once with the last one that is kept."""

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
    selection.take(_ZERO, start)
    selection.scan(start, blocks)
    selection.take(start + blocks * BLOCK, rest)
    return selection.place


class _Selection:
    """The records that come first of those that have been taken so far, in a local buffer."""

    def __init__(self, nest: WritingNest, form: Records, count: int, key_at: KeyAt) -> None:
        self.nest, self.form, self.count, self.key_at = nest, form, count, key_at
        self.kept = form.buffer(nest, (AffineExpr.constant(count),))
        with nest.loops([AffineExpr.constant(count)]) as index:
            self.kept.put(index, form.last(nest))

    def place(self, position: AffineExpr) -> SSAValue:
        """The place of the element that is kept at a position."""
        return self.form.place(self.nest, self.kept.at((position,)))

    def scan(self, start: AffineExpr, blocks: AffineExpr) -> None:
        """Take the elements of blocks."""
        nest = self.nest

        def step(number: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            first = start + number * BLOCK
            bound = self.form.key(nest, self._last())

            def least(place: Index, before: SSAValue) -> SSAValue:
                return scalars.minimum(nest, before, self.key_at(first + place[0]))

            init = nest.constant((1 << (self.form.key_width - 1)) - 1, bound.type)
            found = nest.reduce([AffineExpr.constant(BLOCK)], "min", init, least)
            is_less = scalars.less(nest, found, bound)
            only_if(nest, is_less, lambda: self.take(first, AffineExpr.constant(BLOCK)))
            return nothing

        nest.serial(blocks, [], step)

    def take(self, start: AffineExpr, count: AffineExpr) -> None:
        """Take elements one by one."""
        nest = self.nest

        def step(number: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            place = start + number
            record = self.form.of(nest, self.key_at(place), place)
            is_less = self.form.less(nest, record, self._last())
            only_if(nest, is_less, lambda: self._insert(record))
            return nothing

        nest.serial(count, [], step)

    def _last(self) -> Record:
        return self.kept.at((AffineExpr.constant(self.count - 1),))

    def _insert(self, record: Record) -> None:
        """Put a record where it belongs; those behind it move, and the last one goes."""
        nest = self.nest

        def step(position: AffineExpr, moved: Sequence[SSAValue]) -> Sequence[SSAValue]:
            own, other = tuple(moved), self.kept.at((position,))
            is_less = self.form.less(nest, own, other)
            pairs = list(zip(own, other, strict=True))
            stays = tuple(scalars.select(nest, is_less, a, b) for a, b in pairs)
            self.kept.put((position,), stays)
            return [scalars.select(nest, is_less, b, a) for a, b in pairs]

        nest.serial(AffineExpr.constant(self.count), list(record), step)

"""Loops that sort one row: the places of its elements in the order of their keys.

A short row is sorted by ranks: the place of a record is the number of those that are less, which
vectors count for many records at a time. A longer one is sorted by the digits of its keys, from the
last digit on (Knuth, The Art of Computer Programming, volume 3, section 5.2.5): no step of it
branches on an element, and digits that all elements have in common are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from . import scalars
from .guards import only_if
from .nest import Index, WritingNest
from .order_keys import PLACE_BITS, KeyAt, PlaceAt, Record, Records

RANKED = 128
"""A row of a known size up to this is sorted by ranks."""
LONG = 1 << 15
"""A row of a known size from this on has longer digits: their counts are few beside it."""
SHORT_DIGIT, LONG_DIGIT = 8, 11
"""The most bits of a digit, by the length of the row."""

_ZERO = AffineExpr.constant(0)


def sort(nest: WritingNest, extent: AffineExpr, key_at: KeyAt, bits: int) -> PlaceAt:
    """Sort a row of `extent` elements with keys of some bits; equal keys keep their order."""
    known = extent.value if isinstance(extent, AffineConstantExpr) else None
    if known is not None and known <= RANKED:
        return _sort_by_ranks(nest, extent, key_at, Records(bits))
    digit = LONG_DIGIT if known is not None and known >= LONG else SHORT_DIGIT
    return _DigitSort(nest, extent, bits, digit).sorted(key_at)


def _sort_by_ranks(nest: WritingNest, extent: AffineExpr, key_at: KeyAt, form: Records) -> PlaceAt:
    # No local buffer is empty.
    size = AffineExpr.constant(1) if extent == _ZERO else extent
    given, ranks = form.buffer(nest, (size,)), nest.local((size,), i64)
    places = nest.local((size,), i64)
    one, none = nest.constant(1, i64), nest.constant(0, i64)
    with nest.loops([extent]) as (place,):
        given.put((place,), form.of(nest, key_at(place), place))
    with nest.loops([extent]) as (place,):
        own = given.at((place,))

        def count(other: Index, before: SSAValue) -> SSAValue:
            less = form.less(nest, given.at(other), own)
            return scalars.add(nest, before, scalars.select(nest, less, one, none))

        ranks.put((place,), nest.reduce([extent], "add", none, count))

    def scatter(place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        rank = nest.index(ranks.at((place,)))
        places.put((rank,), scalars.from_index(nest, nest.value(place), i64))
        return carried

    nest.serial(extent, [], scatter)
    return lambda position: places.at((position,))


class _DigitSort:
    """Sorts one row by the digits of its keys, into one half of a buffer and into the other."""

    def __init__(self, nest: WritingNest, extent: AffineExpr, bits: int, digit: int) -> None:
        self.nest, self.extent, self.form = nest, extent, Records(bits)
        self.passes = -(-bits // digit)
        self.digit = -(-bits // self.passes)
        # The first record is looked at even where there is none.
        self.records = self.form.buffer(nest, (AffineExpr.constant(2), extent + 1))
        values = AffineExpr.constant(1 << self.digit)
        self.counts = nest.local((AffineExpr.constant(self.passes), values), i32)
        self.values = values

    def sorted(self, key_at: KeyAt) -> PlaceAt:
        """Sort, and return where each element of the sorted row comes from."""
        self._fill(key_at)
        self._count()
        nest = self.nest
        (half,) = nest.serial(AffineExpr.constant(self.passes), [nest.constant(0, i64)], self._pass)

        def place(position: AffineExpr) -> SSAValue:
            return self.form.place(nest, self.records.at((nest.index(half), position)))

        return place

    def _fill(self, key_at: KeyAt) -> None:
        """Records whose keys, as unsigned numbers, are in order."""
        nest = self.nest
        shift = self.form.bits - 1 + (PLACE_BITS if self.form.is_packed else 0)
        offset = nest.constant(-(1 << 63) if shift == 63 else 1 << shift, i64)
        with nest.loops([self.extent]) as (place,):
            first, *rest = self.form.of(nest, key_at(place), place)
            self.records.put((_ZERO, place), (scalars.add(nest, first, offset), *rest))

    def _count(self) -> None:
        """How often each digit has each value."""
        nest, one = self.nest, self.nest.constant(1, i32)
        with nest.loops([AffineExpr.constant(self.passes), self.values]) as index:
            self.counts.put(index, nest.constant(0, i32))

        def step(place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            record = self.records.at((_ZERO, place))
            for number in range(self.passes):
                shift = nest.constant(self._shift(number), i64)
                value = self._digit(record, shift)
                self.counts.put((AffineExpr.constant(number), value), one, "add")
            return carried

        nest.serial(self.extent, [], step)

    def _shift(self, number: int) -> int:
        return number * self.digit + (PLACE_BITS if self.form.is_packed else 0)

    def _digit(self, record: Record, shift: SSAValue) -> AffineExpr:
        nest, mask = self.nest, self.nest.constant((1 << self.digit) - 1, i64)
        shifted = nest.insert(arith.ShRUIOp(record[0], shift))
        return nest.index(nest.insert(arith.AndIOp(shifted, mask)))

    def _pass(self, number: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Order the records by one digit, unless all have the same; return their half."""
        nest, (half,) = self.nest, carried
        bits = nest.constant(self.digit, i64)
        shift = scalars.mul(nest, scalars.from_index(nest, nest.value(number), i64), bits)
        shift = scalars.add(nest, shift, nest.constant(self._shift(0), i64))
        source = nest.index(half)
        other = nest.insert(arith.XOrIOp(half, nest.constant(1, i64)))
        first = self._digit(self.records.at((source, _ZERO)), shift)
        size = scalars.from_index(nest, nest.value(self.extent), i32)
        differ = scalars.less(nest, self.counts.at((number, first)), size)

        def order() -> None:
            self._starts(number)
            self._move(number, shift, source, nest.index(other))

        only_if(nest, differ, order)
        return [scalars.select(nest, differ, other, half)]

    def _starts(self, number: AffineExpr) -> None:
        """Replace the count of each value by the number of records with a smaller one."""
        nest = self.nest

        def step(value: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            count = self.counts.at((number, value))
            self.counts.put((number, value), carried[0])
            return [scalars.add(nest, carried[0], count)]

        nest.serial(self.values, [nest.constant(0, i32)], step)

    def _move(
        self, number: AffineExpr, shift: SSAValue, source: AffineExpr, target: AffineExpr
    ) -> None:
        nest, one = self.nest, self.nest.constant(1, i32)

        def step(place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            record = self.records.at((source, place))
            value = self._digit(record, shift)
            position = self.counts.at((number, value))
            self.counts.put((number, value), scalars.add(nest, position, one))
            self.records.put((target, nest.index(position)), record)
            return carried

        nest.serial(self.extent, [], step)

"""Loops that sort one row: the places of its elements in the order of their keys.

A short row is sorted by ranks: the place of a record is the number of those that are less, which
vectors count for many records at a time. A longer one is sorted by the digits of its keys, from the
last digit on (Knuth, The Art of Computer Programming, volume 3, section 5.2.5): no step of it
branches on an element, and digits that all elements have in common are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from . import scalars
from .guards import only_if
from .nests.nest import Index, WritingNest
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
    known = known_size(extent)
    if known is not None and known <= RANKED:
        return _sort_by_ranks(nest, extent, key_at, Records(bits))
    digit = LONG_DIGIT if known is not None and known >= LONG else SHORT_DIGIT
    half = nest.constant(0, i64)
    return _DigitSort(nest, extent, key_at, bits).sorted(digit, extent, half)


def sort_first(
    nest: WritingNest, extent: AffineExpr, count: int, key_at: KeyAt, bits: int
) -> PlaceAt:
    """Where the first `count` elements come from, of a row that has as many.

    Only elements are sorted whose first digit is not greater than that of all of these.
    """
    sort = _DigitSort(nest, extent, key_at, bits)
    return sort.sorted(SHORT_DIGIT, sort.only_first(count), nest.constant(1, i64))


def sort_where(
    nest: WritingNest, extent: AffineExpr, keep_at: PlaceAt, key_at: KeyAt, bits: int
) -> tuple[PlaceAt, AffineExpr]:
    """Where the elements that are kept come from, in the order of their keys, and their number.

    `keep_at` gives an i1 for each place of a row of `extent` elements.
    """
    sort = _DigitSort(nest, extent, key_at, bits, keep_at)
    return sort.sorted(SHORT_DIGIT, sort.extent, nest.constant(0, i64)), sort.extent


def known_size(extent: AffineExpr) -> int | None:
    """The size of a row, None if it is symbolic."""
    return extent.value if isinstance(extent, AffineConstantExpr) else None


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
    """Sorts the records of one row, which lie in one half of a buffer and move into the other.

    Their keys are shifted, so that they are in order as unsigned numbers.
    """

    def __init__(
        self,
        nest: WritingNest,
        extent: AffineExpr,
        key_at: KeyAt,
        bits: int,
        keep_at: PlaceAt | None = None,
    ) -> None:
        self.nest, self.extent, self.form = nest, extent, Records(bits)
        # The first record is looked at even where there is none.
        self.records = self.form.buffer(nest, (AffineExpr.constant(2), extent + 1))
        shift = self.shift(bits - 1)
        offset = nest.constant(-(1 << 63) if shift == 63 else 1 << shift, i64)

        def record(place: AffineExpr) -> Record:
            first, *rest = self.form.of(nest, key_at(place), place)
            return scalars.add(nest, first, offset), *rest

        if keep_at is None:
            with nest.loops([extent]) as (place,):
                self.records.put((_ZERO, place), record(place))
            return
        keep = keep_at

        def append(place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (count,) = carried
            # Without a branch: the next record overwrites one that is not kept.
            self.records.put((_ZERO, nest.index(count)), record(place))
            return [scalars.add(nest, count, scalars.convert(nest, keep(place), i1, i64))]

        (count,) = nest.serial(extent, [nest.constant(0, i64)], append)
        self.extent = nest.index(count)

    def shift(self, bit: int) -> int:
        """The number of a bit of a key in the first scalar of its record."""
        return bit + (PLACE_BITS if self.form.is_packed else 0)

    def digit(self, record: Record, shift: SSAValue, bits: int) -> SSAValue:
        """A part of a key, as an i64."""
        mask = self.nest.constant((1 << bits) - 1, i64)
        shifted = self.nest.insert(arith.ShRUIOp(record[0], shift))
        return self.nest.insert(arith.AndIOp(shifted, mask))

    def sorted(self, longest: int, extent: AffineExpr, half: SSAValue) -> PlaceAt:
        """Sort some records of a half by digits of at most `longest` bits."""
        nest = self.nest
        passes = -(-self.form.bits // longest)
        digits = _Digits(self, passes, extent)
        digits.count(nest.index(half))
        (half,) = nest.serial(digits.passes, [half], digits.order)

        def place(position: AffineExpr) -> SSAValue:
            return self.form.place(nest, self.records.at((nest.index(half), position)))

        return place

    def only_first(self, count: int) -> AffineExpr:
        """Move records to the other half that may be among the first ones; return their number."""
        nest, bits = self.nest, min(self.form.bits, LONG_DIGIT)
        shift = nest.constant(self.shift(self.form.bits - bits), i64)
        values = AffineExpr.constant(1 << bits)
        counts = nest.local((values,), i32)
        none, one = nest.constant(0, i32), nest.constant(1, i32)
        with nest.loops([values]) as index:
            counts.put(index, none)

        def digit(place: AffineExpr) -> tuple[Record, SSAValue]:
            record = self.records.at((_ZERO, place))
            return record, self.digit(record, shift, bits)

        def note(place: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            counts.put((nest.index(digit(place)[1]),), one, "add")
            return nothing

        def enough(value: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            before, bound = carried
            needed = scalars.less(nest, before, nest.constant(count, i32))
            more = scalars.add(nest, before, counts.at((value,)))
            return [more, scalars.add(nest, bound, scalars.convert(nest, needed, i1, i64))]

        def move(place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (position,), (record, value) = carried, digit(place)
            self.records.put((AffineExpr.constant(1), nest.index(position)), record)
            needed = scalars.less(nest, value, bound)
            return [scalars.add(nest, position, scalars.convert(nest, needed, i1, i64))]

        nest.serial(self.extent, [], note)
        start = nest.constant(0, i64)
        _, bound = nest.serial(values, [none, start], enough)
        (number,) = nest.serial(self.extent, [start], move)
        return nest.index(number)


class _Digits:
    """Orders records by each of the digits of their keys, the last one first."""

    def __init__(self, sort: _DigitSort, passes: int, extent: AffineExpr) -> None:
        self.sort, self.nest, self.extent = sort, sort.nest, extent
        self.bits = -(-sort.form.bits // passes)
        self.number, self.passes = passes, AffineExpr.constant(passes)
        self.values = AffineExpr.constant(1 << self.bits)
        self.counts = sort.nest.local((self.passes, self.values), i32)

    def count(self, half: AffineExpr) -> None:
        """How often each digit has each value."""
        nest, one = self.nest, self.nest.constant(1, i32)
        with nest.loops([self.passes, self.values]) as index:
            self.counts.put(index, nest.constant(0, i32))

        def step(place: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            record = self.sort.records.at((half, place))
            for number in range(self.number):
                shift = nest.constant(self.sort.shift(number * self.bits), i64)
                self.counts.put((AffineExpr.constant(number), self._of(record, shift)), one, "add")
            return nothing

        nest.serial(self.extent, [], step)

    def _of(self, record: Record, shift: SSAValue) -> AffineExpr:
        return self.nest.index(self.sort.digit(record, shift, self.bits))

    def order(self, number: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Order the records by one digit, unless all have the same; return their half."""
        nest, (half,) = self.nest, carried
        bits = nest.constant(self.bits, i64)
        shift = scalars.mul(nest, scalars.from_index(nest, nest.value(number), i64), bits)
        shift = scalars.add(nest, shift, nest.constant(self.sort.shift(0), i64))
        source = nest.index(half)
        other = nest.insert(arith.XOrIOp(half, nest.constant(1, i64)))
        first = self._of(self.sort.records.at((source, _ZERO)), shift)
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

        def step(place: AffineExpr, nothing: Sequence[SSAValue]) -> Sequence[SSAValue]:
            record = self.sort.records.at((source, place))
            value = self._of(record, shift)
            position = self.counts.at((number, value))
            self.counts.put((number, value), scalars.add(nest, position, one))
            self.sort.records.put((target, nest.index(position)), record)
            return nothing

        nest.serial(self.extent, [], step)

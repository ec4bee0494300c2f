"""Loops that sort one row: the places of its elements in the order of their keys.

A short row is sorted by ranks: the place of a record is the number of those that are less, which
vectors count for many records at a time. A longer one is sorted by the digits of its keys, from the
last digit on (Knuth, The Art of Computer Programming, volume 3, section 5.2.5): no step of it
branches on an element, and digits that all elements have in common are passed over.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64

from ...nests.body import KernelBody
from ...nests.buffers import Index, Scalar
from .order_keys import PLACE_BITS, KeyAt, KeyRecords, PlaceAt, Record

RANKED = 128
"""A row of a known size up to this is sorted by ranks."""
LONG = 1 << 15
"""A row of a known size from this on has longer digits: their counts are few beside it."""
SHORT_DIGIT, LONG_DIGIT = 8, 11
"""The most bits of a digit, by the length of the row."""


def sort(k: KernelBody, extent: int | Index, key_at: KeyAt, bits: int) -> PlaceAt:
    """Sort a row of `extent` elements with keys of some bits; equal keys keep their order."""
    if isinstance(extent, int) and extent <= RANKED:
        return _sort_by_ranks(k, extent, key_at, KeyRecords(k, bits))
    digit = LONG_DIGIT if isinstance(extent, int) and extent >= LONG else SHORT_DIGIT
    return _DigitSort(k, extent, key_at, bits).sorted(digit, extent, 0)


def sort_first(k: KernelBody, extent: int | Index, count: int, key_at: KeyAt, bits: int) -> PlaceAt:
    """Where the first `count` elements come from, of a row that has as many.

    Only elements are sorted whose first digit is not greater than that of all of these.
    """
    sort = _DigitSort(k, extent, key_at, bits)
    return sort.sorted(SHORT_DIGIT, sort.only_first(count), 1)


def sort_where(
    k: KernelBody, extent: int | Index, keep_at: PlaceAt, key_at: KeyAt, bits: int
) -> tuple[PlaceAt, int | Index]:
    """Where the elements that are kept come from, in the order of their keys, and their number.

    `keep_at` gives an i1 for each place of a row of `extent` elements.
    """
    sort = _DigitSort(k, extent, key_at, bits, keep_at)
    return sort.sorted(SHORT_DIGIT, sort.extent, 0), sort.extent


def _sort_by_ranks(k: KernelBody, size: int, key_at: KeyAt, form: KeyRecords) -> PlaceAt:
    given, ranks, places = form.buffer(size), k.local(size, i64), k.local(size, i64)
    none, one = k.scalar(0, i64), k.scalar(1, i64)
    with k.loops(size) as place:
        given[place] = form.of(key_at(place), place)
    with k.loops(size) as place:
        own = given[place]
        ranks[place] = k.reduce(
            size,
            "add",
            none,
            lambda other, before: before + k.where(form.less(given[other], own), one, none),
        )
    with k.serial(size) as place:
        places[ranks[place]] = k.cast(place, i64)
    return lambda position: places[position]


class _DigitSort:
    """Sorts the records of one row, which lie in one half of a buffer and move into the other.

    Their keys are shifted, so that they are in order as unsigned numbers.
    """

    def __init__(
        self,
        k: KernelBody,
        extent: int | Index,
        key_at: KeyAt,
        bits: int,
        keep_at: PlaceAt | None = None,
    ) -> None:
        self.k, self.extent, self.form = k, extent, KeyRecords(k, bits)
        # The first record is looked at even where there is none.
        self.records = self.form.buffer(2, extent + 1)
        shift = self.shift(bits - 1)
        offset = -(1 << 63) if shift == 63 else 1 << shift

        def record(place: Index) -> Record:
            first, *rest = self.form.of(key_at(place), place)
            return first + offset, *rest

        if keep_at is None:
            with k.loops(extent) as place:
                self.records[0, place] = record(place)
            return
        keep = keep_at

        def append(place: Index, count: Scalar) -> tuple[Scalar]:
            # Without a branch: the next record overwrites one that is not kept.
            self.records[0, k.index(count)] = record(place)
            return (count + k.cast(keep(place), i64),)

        (count,) = k.carry(extent, [k.scalar(0, i64)], append)
        self.extent = k.index(count)

    def shift(self, bit: int) -> int:
        """The number of a bit of a key in the first scalar of its record."""
        return bit + (PLACE_BITS if self.form.is_packed else 0)

    def digit(self, record: Record, shift: Scalar, bits: int) -> Scalar:
        """A part of a key, as an i64."""
        return self.k.apply(arith.ShRUIOp, record[0], shift) & ((1 << bits) - 1)

    def sorted(self, longest: int, extent: int | Index, half: int) -> PlaceAt:
        """Sort some records of a half by digits of at most `longest` bits."""
        k = self.k
        passes = -(-self.form.bits // longest)
        digits = _Digits(self, passes, extent)
        digits.count(half)
        (last,) = k.carry(passes, [k.scalar(half, i64)], digits.order)
        return lambda position: self.form.place(self.records[last, position])

    def only_first(self, count: int) -> Index:
        """Move records to the other half that may be among the first ones; return their number."""
        k, bits = self.k, min(self.form.bits, LONG_DIGIT)
        shift, start = k.scalar(self.shift(self.form.bits - bits), i64), k.scalar(0, i64)
        values = 1 << bits
        counts = k.local(values, i32)
        with k.loops(values) as value:
            counts[value] = 0

        def digit(place: Index) -> tuple[Record, Scalar]:
            record = self.records[0, place]
            return record, self.digit(record, shift, bits)

        def enough(value: Index, before: Scalar, bound: Scalar) -> tuple[Scalar, Scalar]:
            needed = before < count
            return before + counts[value], bound + k.cast(needed, i64)

        def move(place: Index, position: Scalar) -> tuple[Scalar]:
            record, value = digit(place)
            self.records[1, position] = record
            return (position + k.cast(value < bound, i64),)

        with k.serial(self.extent) as place:
            counts.accumulate(digit(place)[1], 1)
        _, bound = k.carry(values, [k.scalar(0, i32), start], enough)
        (number,) = k.carry(self.extent, [start], move)
        return k.index(number)


class _Digits:
    """Orders records by each of the digits of their keys, the last one first."""

    def __init__(self, sort: _DigitSort, passes: int, extent: int | Index) -> None:
        self.sort, self.k, self.passes, self.extent = sort, sort.k, passes, extent
        self.bits = -(-sort.form.bits // passes)
        self.values = 1 << self.bits
        self.counts = self.k.local((passes, self.values), i32)

    def count(self, half: int) -> None:
        """How often each digit has each value."""
        with self.k.loops(self.passes, self.values) as index:
            self.counts[index] = 0
        with self.k.serial(self.extent) as place:
            record = self.sort.records[half, place]
            for number in range(self.passes):
                shift = self.k.scalar(self.sort.shift(number * self.bits), i64)
                self.counts.accumulate((number, self._of(record, shift)), 1)

    def _of(self, record: Record, shift: Scalar) -> Index:
        return self.k.index(self.sort.digit(record, shift, self.bits))

    def order(self, number: Index, half: Scalar) -> tuple[Scalar]:
        """Order the records by one digit, unless all have the same; return their half."""
        k = self.k
        shift = k.cast(number, i64) * self.bits + self.sort.shift(0)
        source, other = k.index(half), half ^ 1
        first = self._of(self.sort.records[source, 0], shift)
        size = k.cast(self.extent, i32)
        differ = self.counts[number, first] < size
        with k.only_if(differ):
            self._starts(number)
            self._move(number, shift, source, k.index(other))
        return (k.where(differ, other, half),)

    def _starts(self, number: Index) -> None:
        """Replace the count of each value by the number of records with a smaller one."""

        def step(value: Index, before: Scalar) -> tuple[Scalar]:
            count = self.counts[number, value]
            self.counts[number, value] = before
            return (before + count,)

        self.k.carry(self.values, [self.k.scalar(0, i32)], step)

    def _move(self, number: Index, shift: Scalar, source: Index, target: Index) -> None:
        with self.k.serial(self.extent) as place:
            record = self.sort.records[source, place]
            value = self._of(record, shift)
            position = self.counts[number, value]
            self.counts[number, value] = position + 1
            self.sort.records[target, self.k.index(position)] = record

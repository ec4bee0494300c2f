"""Loops that select the first few elements of one row, in the order of their keys."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64

from ...nests.body import KernelBody
from ...nests.buffers import Index, Scalar
from .order_keys import KeyAt, KeyRecords, PlaceAt, Record

BLOCK = 32
"""The elements that are compared at once with the last one that is kept."""
FEW = 16
"""Up to this many records move one by one, more in vectors."""


def select_first(
    k: KernelBody, extent: int | Index, count: int, key_at: KeyAt, bits: int
) -> PlaceAt:
    """Where the first `count` elements come from, of a row that has as many.

    They are kept in order while the row is read. Of a block of it in which no key is less than
    that of the last one kept, nothing else is computed.
    """
    blocks, rest = (extent - count) // BLOCK, (extent - count) % BLOCK
    selection = _Selection(k, KeyRecords(k, bits), count, key_at)
    selection.fill()
    selection.scan(count, blocks)
    tail = blocks * BLOCK + count
    selection.take(tail, rest, lambda number: key_at(tail + number))
    return selection.place


class _Selection:
    """The records that come first of those that have been taken so far, in a local buffer.

    In front of them is one that is not greater than any.
    """

    def __init__(self, k: KernelBody, form: KeyRecords, count: int, key_at: KeyAt) -> None:
        self.k, self.form, self.count, self.key_at = k, form, count, key_at
        self.kept = form.buffer(count + 1)
        self.keys = k.local(BLOCK, i32 if form.is_packed else i64)

    def place(self, position: Index) -> Scalar:
        """The place of the element that is kept at a position."""
        return self.form.place(self.kept[position + 1])

    def fill(self) -> None:
        """Take as many elements as are kept."""
        self.kept[0] = self.form.lowest()
        with self.k.loops(self.count) as position:
            self.kept[position + 1] = self.form.highest()
        with self.k.serial(self.count) as place:
            self._insert(self.form.of(self.key_at(place), place))

    def scan(self, start: int, blocks: int | Index) -> None:
        """Take the elements of blocks."""
        k = self.k
        with k.serial(blocks) as number:
            first = start + number * BLOCK
            with k.loops(BLOCK) as own:
                self.keys[own] = self.key_at(first + own)
            with k.only_if(self._least() < self._bound()):
                self.take(first, BLOCK, lambda own: self.keys[own])

    def _least(self) -> Scalar:
        """The least key of a block."""
        k, width = self.k, self.form.key_width
        init = k.scalar((1 << (width - 1)) - 1, i32 if width == 32 else i64)
        return k.reduce(BLOCK, "min", init, lambda own, before: k.minimum(before, self.keys[own]))

    # Of equal keys the record that is kept stays first: a new one precedes it by its key only.
    def take(self, start: int | Index, count: int | Index, key_of: KeyAt) -> None:
        """Take elements, from `start` on, one by one."""
        with self.k.serial(count) as number:
            key = key_of(number)
            record = self.form.of(key, start + number)
            with self.k.only_if(key < self._bound()):
                self._insert(record)

    def _bound(self) -> Scalar:
        """The key of the last record that is kept."""
        return self.form.key(self.kept[self.count])

    # For a <= b, next to each other in order, what is at the place of b when r has been inserted is
    # a if r <= a, b if b <= r, else r.
    def _insert(self, record: Record) -> None:
        """Insert a record in order; those after it move by one place, and the last is dropped."""
        if self.count > FEW:
            moved = self.form.buffer(self.count)
            with self.k.loops(self.count) as position:
                low, high = self.kept[position], self.kept[position + 1]
                moved[position] = self.form.clamped(record, low, high)
            with self.k.loops(self.count) as position:
                self.kept[position + 1] = moved[position]
            return

        def step(number: Index, *behind: Scalar) -> Record:
            position = self.count - 1 - number
            low = self.kept[position]
            self.kept[position + 1] = self.form.clamped(record, low, behind)
            return low

        self.k.carry(self.count, self.kept[self.count], step)

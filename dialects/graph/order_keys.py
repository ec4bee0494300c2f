"""Integers in the order of the elements of a tensor: what sorts and selections compare.

Records are pairs of such a key and a place. No two are equal, so that an order of records is
stable. A key of up to 32 bits and its place are one i64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from ...core.typed import bits
from . import scalars
from .attrs import compute_type, is_float, is_unsigned
from .nests.nest import Index, LocalBuffer, Scalars, WritingNest

PLACE_BITS = 32
MOST_PLACES = (1 << 31) - 1
"""The longest axis that is sorted."""

_FLOAT_BITS: dict[Attribute, int] = {f16: 19, bf16: 16, f32: 32, f64: 64}
"""The bits of keys of floats; an f16 is computed as an f32, which has a longer exponent."""


def key_bits(kind: Attribute) -> int:
    """How many bits the keys of an element type have.

    A key is at least -2 ** (bits - 1), and less than 2 ** (bits - 1).
    """
    return _FLOAT_BITS.get(kind) or bits(kind)


def order_key(nest: Scalars, x: SSAValue, kind: Attribute, descending: bool) -> SSAValue:
    """An i32, or i64, that is less than another one where the scalar comes before that one.

    Zeros are equal, and so are NaNs, which come last, in a descending order first.
    """
    computed, wide = compute_type(kind), i64 if key_bits(kind) > PLACE_BITS else i32
    if is_float(kind):
        key = _float_key(nest, x)
        if (unused := 32 - key_bits(kind)) > 0:
            key = nest.insert(arith.ShRSIOp(key, nest.constant(unused, i32)))
    elif is_unsigned(kind):
        middle = nest.constant(1 << (bits(kind) - 1), computed)
        key = scalars.convert(nest, scalars.sub(nest, x, middle), computed, wide)
    else:
        key = scalars.convert(nest, x, computed, wide)
        if kind == i1:
            key = scalars.sub(nest, key, nest.constant(1, wide))
    return nest.insert(arith.XOrIOp(key, nest.constant(-1, wide))) if descending else key


# The bits of a positive float are in its order, those of a negative one in the opposite order.
def _float_key(nest: Scalars, x: SSAValue) -> SSAValue:
    word = i64 if x.type == f64 else i32
    largest = nest.constant((1 << (bits(word) - 1)) - 1, word)
    # -0.0 + 0.0 == 0.0
    number = nest.insert(arith.BitcastOp(scalars.add(nest, x, scalars.zero(nest, x.type)), word))
    sign = nest.insert(arith.ShRSIOp(number, nest.constant(bits(word) - 1, word)))
    key = nest.insert(arith.XOrIOp(number, nest.insert(arith.AndIOp(sign, largest))))
    is_nan = nest.insert(arith.CmpfOp(x, x, "une"))
    return scalars.select(nest, is_nan, largest, key)


KeyAt = Callable[[AffineExpr], SSAValue]
"""From the place of an element to its key: see `order_key`."""
PlaceAt = Callable[[AffineExpr], SSAValue]
"""From a position in a sorted row to the place of its element, an i64."""
Record = tuple[SSAValue, ...]
"""A key and its place in one i64, or one i64 each."""


@dataclass(frozen=True)
class Records:
    """What records of keys of some bits are made of."""

    bits: int

    @property
    def is_packed(self) -> bool:
        """Whether a record is one scalar."""
        return self.bits <= PLACE_BITS

    @property
    def key_width(self) -> int:
        """The width of the type of keys."""
        return 32 if self.is_packed else 64

    def of(self, nest: WritingNest, key: SSAValue, place: AffineExpr) -> Record:
        """The record of a key at a place."""
        own = scalars.from_index(nest, nest.value(place), i64)
        if not self.is_packed:
            return key, own
        wide = nest.insert(arith.ExtSIOp(key, i64))
        high = nest.insert(arith.ShLIOp(wide, nest.constant(PLACE_BITS, i64)))
        return (nest.insert(arith.OrIOp(high, own)),)

    def lowest(self, nest: WritingNest) -> Record:
        """What no record is less than."""
        return self._repeated(nest.constant(-(1 << 63), i64))

    def highest(self, nest: WritingNest) -> Record:
        """What is not less than any record."""
        return self._repeated(nest.constant((1 << 63) - 1, i64))

    def _repeated(self, scalar: SSAValue) -> Record:
        return (scalar,) if self.is_packed else (scalar, scalar)

    def key(self, nest: WritingNest, record: Record) -> SSAValue:
        """The key of a record, in the type of `order_key`."""
        if not self.is_packed:
            return record[0]
        high = nest.insert(arith.ShRSIOp(record[0], nest.constant(PLACE_BITS, i64)))
        return nest.insert(arith.TruncIOp(high, i32))

    def place(self, nest: WritingNest, record: Record) -> SSAValue:
        """The place of a record, an i64."""
        if not self.is_packed:
            return record[1]
        mask = nest.constant((1 << PLACE_BITS) - 1, i64)
        return nest.insert(arith.AndIOp(record[0], mask))

    def less(self, nest: WritingNest, a: Record, b: Record) -> SSAValue:
        """Whether a record comes before another one."""
        first = scalars.less(nest, a[0], b[0])
        if self.is_packed:
            return first
        same = scalars.equal(nest, a[0], b[0])
        before = nest.insert(arith.AndIOp(same, scalars.less(nest, a[1], b[1])))
        return nest.insert(arith.OrIOp(first, before))

    def clamped(self, nest: WritingNest, record: Record, low: Record, high: Record) -> Record:
        """A record, or `low` if it is less than that, or `high` if that is less."""
        if self.is_packed:
            larger = scalars.maximum(nest, record[0], low[0])
            return (scalars.minimum(nest, larger, high[0]),)
        larger = self._chosen(nest, self.less(nest, record, low), low, record)
        return self._chosen(nest, self.less(nest, high, larger), high, larger)

    def _chosen(self, nest: WritingNest, first: SSAValue, a: Record, b: Record) -> Record:
        return tuple(scalars.select(nest, first, x, y) for x, y in zip(a, b, strict=True))

    def buffer(self, nest: WritingNest, shape: Index) -> RecordBuffer:
        """A local buffer of records."""
        return RecordBuffer([nest.local(shape, i64) for _ in range(1 if self.is_packed else 2)])


@dataclass(frozen=True)
class RecordBuffer:
    """A local buffer of records, in one for each of their scalars."""

    parts: list[LocalBuffer]

    def at(self, index: Index) -> Record:
        """The record at an index."""
        return tuple(part.at(index) for part in self.parts)

    def put(self, index: Index, record: Record) -> None:
        """Change the record at an index."""
        for part, scalar in zip(self.parts, record, strict=True):
            part.put(index, scalar)

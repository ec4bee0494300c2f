"""Integers in the order of the elements of a tensor: what sorts and selections compare.

Records are pairs of such a key and a place. No two are equal, so that an order of records is
stable. A key of up to 32 bits and its place are one i64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, bf16, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from .....core.ir.typed import bits
from ...attrs import compute_type, is_float, is_unsigned
from ...nests import scalars
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from ...nests.nest import Scalars

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


def key_type(kind: Attribute) -> IntegerType:
    """The type of the keys of an element type."""
    return i64 if key_bits(kind) > PLACE_BITS else i32


def order_key(nest: Scalars, x: SSAValue, kind: Attribute, descending: bool) -> SSAValue:
    """An i32, or i64, that is less than another one where the scalar comes before that one.

    Zeros are equal, and so are NaNs, which come last, in a descending order first.
    """
    computed, wide = compute_type(kind), key_type(kind)
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


KeyAt = Callable[[Index], Scalar]
"""From the place of an element to its key: see `order_key`."""
PlaceAt = Callable[[Index], Scalar]
"""From a position in a sorted row to the place of its element, an i64."""
Record = tuple[Scalar, ...]
"""A key and its place in one i64, or one i64 each."""


@dataclass(frozen=True)
class KeyRecords:
    """What records of keys of some bits are made of."""

    k: KernelBody
    bits: int

    @property
    def is_packed(self) -> bool:
        """Whether a record is one scalar."""
        return self.bits <= PLACE_BITS

    @property
    def key_width(self) -> int:
        """The width of the type of keys."""
        return 32 if self.is_packed else 64

    def of(self, key: Scalar, place: Index) -> Record:
        """The record of a key at a place."""
        own = self.k.cast(place, i64)
        if not self.is_packed:
            return key, own
        return ((self.k.cast(key, i64) << PLACE_BITS) | own,)

    def lowest(self) -> Record:
        """What no record is less than."""
        return self._repeated(-(1 << 63))

    def highest(self) -> Record:
        """What is not less than any record."""
        return self._repeated((1 << 63) - 1)

    def _repeated(self, number: int) -> Record:
        return (self.k.scalar(number, i64),) * (1 if self.is_packed else 2)

    def key(self, record: Record) -> Scalar:
        """The key of a record, in the type of `order_key`."""
        return self.k.cast(record[0] >> PLACE_BITS, i32) if self.is_packed else record[0]

    def place(self, record: Record) -> Scalar:
        """The place of a record, an i64."""
        return record[0] & ((1 << PLACE_BITS) - 1) if self.is_packed else record[1]

    def less(self, a: Record, b: Record) -> Scalar:
        """Whether a record comes before another one."""
        first = a[0] < b[0]
        return first if self.is_packed else first | (self.k.equal(a[0], b[0]) & (a[1] < b[1]))

    def clamped(self, record: Record, low: Record, high: Record) -> Record:
        """A record, or `low` if it is less than that, or `high` if that is less."""
        if self.is_packed:
            return (self.k.minimum(self.k.maximum(record[0], low[0]), high[0]),)
        larger = self._chosen(self.less(record, low), low, record)
        return self._chosen(self.less(high, larger), high, larger)

    def _chosen(self, first: Scalar, a: Record, b: Record) -> Record:
        return tuple(self.k.where(first, x, y) for x, y in zip(a, b, strict=True))

    def buffer(self, *shape: int | Index) -> RecordBuffer:
        """A local buffer of records."""
        return RecordBuffer([self.k.local(shape, i64) for _ in range(1 if self.is_packed else 2)])


@dataclass(frozen=True)
class RecordBuffer:
    """A local buffer of records, in one for each of their scalars."""

    parts: list[Buffer]

    def __getitem__(self, index: Any) -> Record:
        return tuple(part[index] for part in self.parts)

    def __setitem__(self, index: Any, record: Record) -> None:
        for part, scalar in zip(self.parts, record, strict=True):
            part[index] = scalar

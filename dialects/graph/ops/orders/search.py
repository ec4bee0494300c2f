"""Searches in sorted rows: `searchsorted`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array
from ...attrs import DENSE_TENSOR, INDEX_TENSOR
from ...constructors import operator
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    widened,
)
from ...nests import scalars
from ...traits import NeverNegative
from .order_keys import PLACE_BITS, key_bits, order_key

if TYPE_CHECKING:
    from ...interfaces import Array

_I32_MAX = (1 << 31) - 1


@operator(right=False)
class SearchsortedOp(GraphOp):
    """Where each value would be inserted into a sorted row: the number of elements before it.

    These are the elements that are less than the value or, with `right`, not greater. Either
    `sorted` is one row for values of any shape, or it has a row for each row of the values, and all
    dimensions but the last one are the same. As in NumPy, NaNs are equal and greater than all other
    numbers. Results are i64. Rows are in ascending order, which is not checked: in another row a
    place from 0 up to its length is found.

    %p = graph.searchsorted %sorted, %values right = false
        : (tensor<9xf32>, tensor<?x4xf32>) -> tensor<?x4xi64>
    """

    name = "graph.searchsorted"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION
    traits = traits_def(NeverNegative())

    sorted = operand_def(DENSE_TENSOR)
    values = operand_def(DENSE_TENSOR)
    right = prop_def(IntegerAttr.constr(i1))
    result = result_def(INDEX_TENSOR)

    assembly_format = (
        "$sorted `,` $values `right` `=` $right attr-dict `:` functional-type(operands, results)"
    )

    def flops(self, sizes: Sizes) -> Dim | None:
        """One operation for each value."""
        return product(sizes.shape(self.values))

    def infer_element_types(self) -> list[Attribute]:
        return [i64]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        rows, values = shapes
        expected, got = map(element_type, (self.sorted, self.values))
        if expected != got:
            facts.fail("element types differ", expected, got)
        if not rows:
            facts.fail("there is no row to search in", "rank >= 1", "rank 0")
        if len(rows) == 1:
            return [values]
        if len(values) != len(rows):
            facts.fail("values have the wrong rank", len(rows), len(values))
        pairs = zip(rows[:-1], values[:-1], strict=True)
        return [(*(facts.equal(a, b, "values have other rows") for a, b in pairs), values[-1])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        rows, values = (widened(dense_array(array)) for array in arrays)
        size, first = rows.shape[-1], np.zeros(values.shape, np.int64)
        for step in range(size.bit_length()):
            half = ((size >> step) + 1) // 2
            place = first + half - 1
            found = rows[place] if rows.ndim == 1 else np.take_along_axis(rows, place, -1)
            first += np.where(self._is_before(found, values), half, 0)
        return self.stored(first)

    def _is_before(self, element: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Whether elements are to the left of values."""
        if self.right.value.data:
            return (element <= value) | (value != value)
        return (element < value) | ((value != value) & (element == element))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        """A binary search: it has as many steps as the size has bits.

        The place is in the `size >> step` elements from the first one on, or after them. What is
        added to the first one is masked: half of the branches would be mispredicted.
        """
        extent = nest.extent(self.sorted, rank(self.sorted) - 1)
        rest = index[: rank(self.sorted) - 1]
        type = i32 if _known(extent) <= _I32_MAX else i64
        value = self._key(nest, nest.at(self.values, index))
        size = scalars.from_index(nest, nest.value(extent), type)
        none, one = nest.constant(0, type), nest.constant(1, type)

        def step(number: Indices, first: SSAValue) -> SSAValue:
            shift = scalars.from_index(nest, nest.value(number[0]), type)
            left = nest.insert(arith.ShRUIOp(size, shift))
            half = nest.insert(arith.ShRUIOp(scalars.add(nest, left, one), one))
            place = scalars.sub(nest, scalars.add(nest, first, half), one)
            element = self._key(nest, nest.at(self.sorted, (*rest, nest.index(place))))
            before = scalars.convert(nest, self._before(nest, element, value), i64, type)
            return scalars.add(nest, first, nest.insert(arith.AndIOp(half, before)))

        first = nest.reduce([_bits_of(nest, extent)], "custom", none, step)
        return scalars.convert(nest, first, type, i64)

    def _key(self, nest: Nest, scalar: SSAValue) -> SSAValue:
        """An i64 in the order of the elements."""
        key = order_key(nest, scalar, element_type(self.sorted), False)
        return scalars.convert(nest, key, key.type, i64)

    def _before(self, nest: Nest, element: SSAValue, value: SSAValue) -> SSAValue:
        """-1 if an element is to the left of a value, else 0, by their keys."""
        if self.right.value.data:
            return _complement(nest, self._less(nest, value, element))
        return self._less(nest, element, value)

    # a < b: a - b is negative, unless it overflows; then a is negative, and b is not
    # (Warren, Hacker's Delight, section 2-12)
    def _less(self, nest: Nest, a: SSAValue, b: SSAValue) -> SSAValue:
        """-1 if a key is less than another one, else 0."""
        sign = scalars.sub(nest, a, b)
        if key_bits(element_type(self.sorted)) > PLACE_BITS:
            below = nest.insert(arith.AndIOp(a, _complement(nest, b)))
            same = _complement(nest, nest.insert(arith.XOrIOp(a, b)))
            sign = nest.insert(arith.OrIOp(below, nest.insert(arith.AndIOp(same, sign))))
        return nest.insert(arith.ShRSIOp(sign, nest.constant(63, i64)))


def _complement(nest: Nest, word: SSAValue) -> SSAValue:
    return nest.insert(arith.XOrIOp(word, nest.constant(-1, i64)))


def _known(extent: AffineExpr) -> float:
    """A size, infinite if it is symbolic."""
    return extent.value if isinstance(extent, AffineConstantExpr) else float("inf")


# The exponent of a float from 2 ** n up to 2 ** (n + 1) is n, and that of 0 is the least of all. A
# size is below 2 ** 53, so that the float is exact.
def _bits_of(nest: Nest, extent: AffineExpr) -> AffineExpr:
    """The number of bits of a size."""
    if isinstance(extent, AffineConstantExpr):
        return AffineExpr.constant(extent.value.bit_length())
    number = scalars.from_index(nest, nest.value(extent), f64)
    word = nest.insert(arith.BitcastOp(number, i64))
    exponent = nest.insert(arith.ShRUIOp(word, nest.constant(52, i64)))
    bits = scalars.sub(nest, exponent, nest.constant(1022, i64))
    return nest.index(scalars.maximum(nest, bits, nest.constant(0, i64)))

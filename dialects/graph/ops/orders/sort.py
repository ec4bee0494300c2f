"""Operators that order the elements along an axis: `sort` and `top_k`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def

from .....core.algebra.dims import Dim, Shape
from .....core.ir.typed import dense_array
from ...attrs import DENSE_TENSOR, INDEX_TENSOR
from ...axes import AxisOp
from ...constructors import operator
from ...demands import DemandInterface, SizeBound
from ...interfaces import FusionKind, ShapeFacts, element_type, widened
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from .order_keys import MOST_PLACES, KeyAt, PlaceAt, key_bits, order_key
from .selection import select_first
from .sorting import RANKED, sort, sort_first

if TYPE_CHECKING:
    from ...interfaces import Array

FEW, MANY, SPARSE = 16, 128, 32
"""How many elements are kept while a row is read: up to `FEW` of any row, and up to `MANY` of one
that is `SPARSE` times as long."""
DENSE = 4
"""Of a row that is this many times as long, not all elements are sorted."""


class OrderingOp(AxisOp, DemandInterface, ABC):
    """Common code of operators whose results are elements along an axis in order, and places."""

    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    x = operand_def(DENSE_TENSOR)
    values = result_def(DENSE_TENSOR)
    indices = result_def(INDEX_TENSOR)

    @property
    @abstractmethod
    def is_descending(self) -> bool:
        """Whether the largest elements come first."""

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x), i64]

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        return (SizeBound(self.x, self.axis_from_front, most=MOST_PLACES),)

    def check_axis(self, x: Shape, facts: ShapeFacts) -> int:
        """The axis, counted from the front, which is not too long."""
        axis = self.axis_from_front
        if x[axis].is_static and x[axis].value > MOST_PLACES:
            facts.fail("the axis is too long", f"at most {MOST_PLACES}", x[axis])
        return axis

    def ordered(self, array: Array) -> tuple[np.ndarray, np.ndarray]:
        """The elements in order, and their places."""
        x, axis = dense_array(array), self.axis_from_front
        wide = widened(x)
        if self.is_descending:
            # Reversed twice, so that equal elements keep their order.
            behind = np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
            places = x.shape[axis] - 1 - np.flip(behind, axis)
        else:
            places = np.argsort(wide, axis=axis, kind="stable")
        return np.take_along_axis(x, places, axis), places

    @abstractmethod
    def order(self, k: KernelBody, extent: int | Index, key_at: KeyAt, bits: int) -> PlaceAt:
        """Where the elements of a row of the results come from."""

    def write(self, k: KernelBody, x: Buffer, values: Buffer, indices: Buffer) -> None:
        axis, kind = self.axis_from_front, element_type(self.x)
        with k.loops([*x.shape[:axis], *x.shape[axis + 1 :]]) as rest:

            def own(place: Any) -> tuple[Any, ...]:
                return (*rest[:axis], place, *rest[axis:])

            def key_at(place: Index) -> Scalar:
                return k.apply(order_key, x[own(place)], kind, self.is_descending)

            place_at = self.order(k, x.shape[axis], key_at, key_bits(kind))
            with k.loops(values.shape[axis]) as position:
                place = place_at(position)
                values[own(position)] = x[own(place)]
                indices[own(position)] = place


@operator(axis=-1, descending=False)
class SortOp(OrderingOp):
    """The elements along an axis in ascending or descending order, and where each comes from.

    Equal elements keep their order, in both directions; -0.0 and 0.0 are equal. NaNs come last in
    ascending order, as in NumPy, and first in descending order, as in PyTorch. Indices are i64, and
    the axis has less than 2 ** 31 elements.

    %y, %p = graph.sort %x axis = 1 descending = false
        : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
    """

    name = "graph.sort"

    descending = prop_def(IntegerAttr.constr(i1))

    assembly_format = (
        "$x `axis` `=` $axis `descending` `=` $descending attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def is_descending(self) -> bool:
        return bool(self.descending.value.data)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        self.check_axis(x, facts)
        return [x, x]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return self.stored(*self.ordered(arrays[0]))

    def order(self, k: KernelBody, extent: int | Index, key_at: KeyAt, bits: int) -> PlaceAt:
        return sort(k, extent, key_at, bits)


@operator(axis=-1, largest=True)
class TopKOp(OrderingOp):
    """The k largest or smallest elements along an axis, in their order, and where they come from.

    Of equal elements that with the lower index comes first; NaNs count as the largest, -0.0 and 0.0
    are equal. Indices are i64. The axis has less than 2 ** 31 elements; less than k are an error.

    %y, %p = graph.top_k %x axis = 1 k = 2 largest = true
        : (tensor<4x3xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
    """

    name = "graph.top_k"

    k = prop_def(IntegerAttr.constr(i64))
    largest = prop_def(IntegerAttr.constr(i1))

    assembly_format = (
        "$x `axis` `=` $axis `k` `=` $k `largest` `=` $largest attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def is_descending(self) -> bool:
        return bool(self.largest.value.data)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        axis, k = self.check_axis(x, facts), self.k.value.data
        if k < 0 or (x[axis].is_static and k > x[axis].value):
            facts.fail("wrong k", f"0 to {x[axis]}" if x[axis].is_static else "0 or more", k)
        shape = (*x[:axis], Dim.of(k), *x[axis + 1 :])
        return [shape, shape]

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        return (SizeBound(self.x, self.axis_from_front, self.k.value.data, MOST_PLACES),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        first = range(self.k.value.data)
        found = (np.take(part, first, self.axis_from_front) for part in self.ordered(arrays[0]))
        return self.stored(*found)

    def order(self, k: KernelBody, extent: int | Index, key_at: KeyAt, bits: int) -> PlaceAt:
        count, size = self.k.value.data, extent if isinstance(extent, int) else None
        if 0 < count <= FEW or (size is not None and 0 < count <= min(MANY, size // SPARSE)):
            return select_first(k, extent, count, key_at, bits)
        if count and (size is None or size >= max(RANKED, DENSE * count)):
            return sort_first(k, extent, count, key_at, bits)
        return sort(k, extent, key_at, bits)

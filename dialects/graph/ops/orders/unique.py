"""The different elements of a vector: `unique`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def, traits_def

from .....core.algebra.dims import Shape
from .....core.ir.typed import dense_array
from ...attrs import DENSE_TENSOR, I64_TENSOR
from ...constructors import operator
from ...demands import DemandInterface, SizeBound, SizeResult
from ...interfaces import FusionKind, GraphOp, ShapeFacts, element_type, widened
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from ...traits import Discontinuous
from .order_keys import MOST_PLACES, KeyAt, PlaceAt, key_bits, key_type, order_key
from .sorting import sort

if TYPE_CHECKING:
    from ...interfaces import Array


@operator(sorted=True)
class UniqueOp(GraphOp, DemandInterface):
    """The different elements of a vector, in ascending order or in that of their first places.

    With them come the first place and the count of each, the number of the element that each one
    of x is equal to, and how many there are. Zeros are equal, and so are NaNs, which come last in
    ascending order. The vector has less than 2 ** 31 elements.

    %y, %first, %inverse, %counts, %count = graph.unique %x sorted = true
        : (tensor<9xf32>)
        -> (tensor<?xf32>, tensor<?xi64>, tensor<9xi64>, tensor<?xi64>, tensor<i64>)
    """

    name = "graph.unique"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    traits = traits_def(Discontinuous())

    x = operand_def(DENSE_TENSOR)
    sorted = prop_def(IntegerAttr.constr(i1))
    values = result_def(DENSE_TENSOR)
    indices = result_def(I64_TENSOR)
    inverse = result_def(I64_TENSOR)
    counts = result_def(I64_TENSOR)
    count = result_def(I64_TENSOR)

    assembly_format = "$x `sorted` `=` $sorted attr-dict `:` functional-type(operands, results)"

    @property
    def demands(self) -> tuple[SizeBound | SizeResult, ...]:
        return SizeBound(self.x, 0, most=MOST_PLACES), SizeResult(self.count)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        if len(x) != 1:
            facts.fail("x is not a vector", "rank 1", f"rank {len(x)}")
        if x[0].is_static and x[0].value > MOST_PLACES:
            facts.fail("x is too long", f"at most {MOST_PLACES}", x[0])
        size = (facts.size(self.count, x[0]),)
        return [size, size, x, size, ()]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x), i64, i64, i64, i64]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        _, first, inverse, counts = np.unique(
            widened(x), return_index=True, return_inverse=True, return_counts=True
        )
        if not self.sorted.value.data:
            order = np.argsort(first)
            first, counts = first[order], counts[order]
            inverse = np.argsort(order)[inverse]
        return self.stored(x[first], first, inverse, counts, np.array(len(first)))

    def write(
        self,
        k: KernelBody,
        x: Buffer,
        values: Buffer,
        indices: Buffer,
        inverse: Buffer,
        counts: Buffer,
        count: Buffer,
    ) -> None:
        (extent,), kind = x.shape, element_type(self.x)

        def key_at(place: Any) -> Scalar:
            return k.apply(order_key, x[place], kind, False)

        place_at = sort(k, extent, key_at, key_bits(kind))
        firsts = self._firsts(k, extent, place_at, key_at)
        # Number what is different in its order.
        numbers, none = k.local(extent, i64), k.scalar(0, i64)
        in_order = bool(self.sorted.value.data)

        def step(position: Index, number: Scalar) -> tuple[Scalar]:
            own = k.cast(position, i64)
            place = place_at(position) if in_order else own
            here = k.index(place)
            first = firsts[here]
            is_new = k.equal(first, place)
            with k.only_if(is_new):
                numbers[here] = number
                target = k.index(number)
                values.update(target, x[here])
                indices.update(target, place)
                counts.update(target, none)
            counts.accumulate(numbers[first], 1)
            return (k.where(is_new, number + 1, number),)

        (total,) = k.carry(extent, [none], step)
        count[()] = total
        with k.serial(extent) as place:
            inverse[place] = numbers[firsts[place]]

    def _firsts(
        self, k: KernelBody, extent: int | Index, place_at: PlaceAt, key_at: KeyAt
    ) -> Buffer:
        """The first place of each element's value."""
        firsts = k.local(extent, i64)
        start = k.value(0)

        def step(position: Index, first: Scalar, last: Scalar) -> tuple[Scalar, Scalar]:
            place = place_at(position)
            here = k.index(place)
            key = key_at(here)
            first = k.where(k.equal(key, last) & (start < position), first, place)
            firsts[here] = first
            return first, key

        k.carry(extent, [k.scalar(0, i64), k.scalar(0, key_type(element_type(self.x)))], step)
        return firsts

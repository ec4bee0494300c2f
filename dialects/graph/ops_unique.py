"""The different elements of a vector: `unique`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def

from ...core.dims import Shape
from ...core.typed import dense_array
from . import scalars
from .attrs import DENSE_TENSOR, I64_TENSOR
from .constructors import operator
from .demands import DemandInterface, SizeBound, SizeResult
from .guards import only_if
from .interfaces import FusionKind, GraphOp, ShapeFacts, WritingNest, element_type, widened
from .nests.nest import LocalBuffer
from .order_keys import MOST_PLACES, PlaceAt, key_bits, order_key
from .sorting import sort
from .traits import Discontinuous

if TYPE_CHECKING:
    from .interfaces import Array


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

    def write(self, nest: WritingNest) -> None:
        extent, kind = nest.extent(self.x, 0), element_type(self.x)

        def key_at(place: AffineExpr) -> SSAValue:
            return order_key(nest, nest.at(self.x, (place,)), kind, False)

        place_at = sort(nest, extent, key_at, key_bits(kind))
        # No local buffer is empty.
        none = isinstance(extent, AffineConstantExpr) and extent.value == 0
        size = AffineExpr.constant(1) if none else extent
        firsts = nest.local((size,), i64)
        self._find_firsts(nest, extent, place_at, firsts)
        self._number(nest, extent, place_at, firsts, nest.local((size,), i64))

    def _find_firsts(
        self, nest: WritingNest, extent: AffineExpr, place_at: PlaceAt, firsts: LocalBuffer
    ) -> None:
        """Find the first place of each element's value."""
        kind = element_type(self.x)
        start = nest.value(AffineExpr.constant(0))

        def step(position: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            first, last = carried
            place = place_at(position)
            key = order_key(nest, nest.at(self.x, (nest.index(place),)), kind, False)
            same = scalars.equal(nest, key, last)
            behind = scalars.less(nest, start, nest.value(position))
            first = scalars.select(nest, nest.insert(arith.AndIOp(same, behind)), first, place)
            firsts.put((nest.index(place),), first)
            return [first, key]

        key_type = order_key(nest, scalars.zero(nest, nest.compute_type(kind)), kind, False).type
        nest.serial(extent, [nest.constant(0, i64), nest.constant(0, key_type)], step)

    def _number(
        self,
        nest: WritingNest,
        extent: AffineExpr,
        place_at: PlaceAt,
        firsts: LocalBuffer,
        numbers: LocalBuffer,
    ) -> None:
        """Number what is different in its order, and write all results."""
        none, one = nest.constant(0, i64), nest.constant(1, i64)
        in_order = bool(self.sorted.value.data)

        def step(position: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (count,) = carried
            own = scalars.from_index(nest, nest.value(position), i64)
            place = place_at(position) if in_order else own
            here, first = nest.index(place), firsts.at((nest.index(place),))
            is_new = scalars.equal(nest, first, place)

            def begin() -> None:
                numbers.put((here,), count)
                target = (nest.index(count),)
                nest.update(0, target, nest.at(self.x, (here,)))
                nest.update(1, target, place)
                nest.update(3, target, none)

            only_if(nest, is_new, begin)
            number = numbers.at((nest.index(first),))
            nest.update(3, (nest.index(number),), one, "add")
            return [scalars.select(nest, is_new, scalars.add(nest, count, one), count)]

        (count,) = nest.serial(extent, [none], step)
        nest.write(4, (), count)
        nest.in_order(
            [extent], lambda own: nest.write(2, own, numbers.at((nest.index(firsts.at(own)),)))
        )

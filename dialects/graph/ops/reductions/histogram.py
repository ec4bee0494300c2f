"""Counts of numbers, and their places as vectors: `histogram` and `one_hot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array, tensor_type
from ...attrs import DENSE_TENSOR, INDEX_TENSOR, NUMERIC_TENSOR, i64_attr
from ...axes import CanonicalPropertiesInterface
from ...composite import CompositeOp
from ...constructors import operator
from ...demands import DemandInterface, IndexBound
from ...interfaces import FusionKind, GraphOp, ShapeFacts, Sizes, element_type, rank
from ...nests.body import KernelBody
from ...nests.buffers import Buffer
from ...op_builder import OpBuilder, V
from ..moves.gather import checked_places
from ..sources.arange import ArangeOp

if TYPE_CHECKING:
    from ...interfaces import Array

_I32_MAX = (1 << 31) - 1


@operator()
class HistogramOp(GraphOp, DemandInterface):
    """How often each number from 0 up to `bins` is an element of x, or the sum of their weights.

    Counts are i64, sums have the type of the weights, whose shape is that of x. Weights are added
    in the order of the elements. x is any tensor of indices of bins: as elsewhere a negative one
    counts from the back, and one out of range is an error.

    %y = graph.histogram %x bins = 10 : (tensor<4x?xi64>) -> tensor<10xi64>

    %z = graph.histogram %x weights %w bins = 10 : (tensor<4xi64>, tensor<4xf32>) -> tensor<10xf32>
    """

    name = "graph.histogram"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST

    x = operand_def(INDEX_TENSOR)
    weights = opt_operand_def(NUMERIC_TENSOR)
    bins = prop_def(IntegerAttr.constr(i64))
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$x (`weights` $weights^)? `bins` `=` $bins attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def demands(self) -> tuple[IndexBound, ...]:
        return (IndexBound(self.x, self.result, 0),)

    def flops(self, sizes: Sizes) -> Dim | None:
        """One addition for each element."""
        return product(sizes.shape(self.x))

    def infer_element_types(self) -> list[Attribute]:
        return [i64 if self.weights is None else element_type(self.weights)]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, *others = shapes
        bins = self.bins.value.data
        if bins < 1:
            facts.fail("wrong number of bins", "1 or more", bins)
        for weights in others:
            if len(weights) != len(x):
                facts.fail("weights have the wrong rank", len(x), len(weights))
            for size, weight in zip(x, weights, strict=True):
                facts.equal(size, weight, "weights have the wrong shape")
        return [(Dim.of(bins),)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *weights = map(dense_array, arrays)
        bins = self.bins.value.data
        found = np.zeros(bins, weights[0].dtype if weights else np.int64)
        with np.errstate(all="ignore"):
            np.add.at(found, checked_places(self, x, bins), weights[0] if weights else 1)
        return self.stored(found)

    def write(self, k: KernelBody, x: Buffer, weights: Buffer | None, result: Buffer) -> None:
        result.fill(0)
        with k.serial(x.shape) as own:
            place = k.place(x[own], result.shape[0])
            result.accumulate(place, 1 if weights is None else weights[own])


@operator(axis=-1)
class OneHotOp(CompositeOp, CanonicalPropertiesInterface):
    """`values[1]` at the place of each index along a new axis of `depth` places, else `values[0]`.

    A negative index counts from the back; one out of range has no place, and all of its elements
    are `values[0]`.

    %y = graph.one_hot %indices, %values axis = -1 depth = 10
        : (tensor<4xi64>, tensor<2xf32>) -> tensor<4x10xf32>
    """

    name = "graph.one_hot"
    FUSION: ClassVar[FusionKind] = FusionKind.BROADCAST

    indices = operand_def(INDEX_TENSOR)
    values = operand_def(DENSE_TENSOR)
    axis = prop_def(IntegerAttr.constr(i64))
    depth = prop_def(IntegerAttr.constr(i64))
    result = result_def(DENSE_TENSOR)

    assembly_format = (
        "$indices `,` $values `axis` `=` $axis `depth` `=` $depth attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def axis_from_front(self) -> int:
        """The new axis, counted from the front."""
        return self.axis.value.data % (rank(self.indices) + 1)

    def canonical_properties(self) -> dict[str, Attribute]:
        return {"axis": i64_attr(self.axis_from_front)}

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.values)]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        indices, values = shapes
        axis = facts.axis(self.axis.value.data, len(indices) + 1)
        depth = self.depth.value.data
        if depth < 0:
            facts.fail("wrong depth", "0 or more", depth)
        if len(values) != 1:
            facts.fail("values have the wrong rank", 1, len(values))
        facts.equal(Dim.of(2), values[0], "wrong number of values")
        return [(*indices[:axis], Dim.of(depth), *indices[axis:])]

    def body(self, b: OpBuilder[V], indices: V, values: V) -> V:
        axis, depth, last = self.axis_from_front, self.depth.value.data, rank(self.indices)
        places = b.apply(ArangeOp, depth, result_type=TensorType(i64, [depth]))
        if depth <= _I32_MAX:
            places = b.cast(places, element_type(self.indices))
        else:
            indices = b.cast(indices, i64)
        where = b.where(b.less(indices, 0), b.add(indices, depth), indices)
        where = b.reshape(where, [*[0] * last, 1])
        if axis != last:
            where = b.transpose(where, [*range(axis), last, *range(axis, last)])
            places = b.reshape(places, [depth, *[1] * (last - axis)])
        hot = b.equal(where, places)
        if not tensor_type(self.values).has_static_shape():
            values = b.reshape(values, [2])
        off, on = (b.reshape(b.slice(values, [n], [n + 1]), []) for n in (0, 1))
        return b.where(hot, on, off)

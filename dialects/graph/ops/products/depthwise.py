"""`blocked_depthwise_conv`: a convolution of each channel by itself, for channels in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from .....core.algebra.dims import Dim, Shape
from .....core.ir.typed import dense_array
from ...attrs import I64_ARRAY, NUMERIC_TENSOR, ints
from ...demands import DemandInterface, SizeBound
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    tensor_type,
    widened,
)
from ...nests import scalars
from .blocked import places_in_blocks
from .contraction import flops_of_products, same_element_types
from .window import check_bias, place_in, step_properties, window_bounds, windows_of

if TYPE_CHECKING:
    from ...interfaces import Array


@irdl_op_definition
class BlockedDepthwiseConvOp(GraphOp, DemandInterface):
    """`graph.conv` with a group for each channel, for x of shape [N, C/b, *sizes, b].

    y[n, i, p, j] = bias[c] + sum over k of x[n, i, p * strides + k * dilations, j] * w[c, 0, k]
    for c = i * b + j; w has the shape [C, 1, *window], y the shape [N, C/b, *places, b].

    As for `graph.blocked_conv`, a vector holds channels of one position.

    %y = graph.blocked_depthwise_conv %x, %w, %b strides = [2, 2] dilations = [1, 1]
        : (tensor<1x2x3x4x2xf32>, tensor<4x1x2x2xf32>, tensor<4xf32>) -> tensor<1x2x1x2x2xf32>
    """

    name = "graph.blocked_depthwise_conv"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION

    x = operand_def(NUMERIC_TENSOR)
    w = operand_def(NUMERIC_TENSOR)
    bias = opt_operand_def(NUMERIC_TENSOR)
    strides = prop_def(I64_ARRAY)
    dilations = prop_def(I64_ARRAY)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$x `,` $w (`,` $bias^)? `strides` `=` $strides `dilations` `=` $dilations "
        "attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        """Without `strides` and `dilations` they are 1."""
        properties = step_properties(rank(SSAValue.get(x)) - 3, strides, dilations)
        super().__init__(operands=[x, w, bias], properties=properties, result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        x, w, *bias = shapes
        places = places_in_blocks(x, w, ints(self.strides), ints(self.dilations), facts)
        facts.equal(w[0], x[1] * x[-1].value, "channels of x differ from the filters")
        facts.equal(w[1], Dim.of(1), "a filter has more than one channel")
        check_bias(bias, w[0], "w", facts)
        return [(x[0], x[1], *places, x[-1])]

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        window = tensor_type(self.w).get_shape()[2:]
        return window_bounds(self.x, 2, window, ints(self.strides), ints(self.dilations))

    def flops(self, sizes: Sizes) -> Dim:
        return flops_of_products(sizes, self.result, sizes.shape(self.w)[2:])

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w, *bias = (widened(dense_array(array)) for array in arrays)
        count, block = w.ndim - 2, x.shape[-1]
        strides, dilations = ints(self.strides), ints(self.dilations)
        windows = windows_of(np.moveaxis(x, -1, 2), w.shape[2:], strides, dilations)
        ones = [1] * count
        filters = w.reshape(-1, block, *ones, *w.shape[2:])
        with np.errstate(all="ignore"):
            total = (windows * filters).sum(axis=tuple(range(-count, 0)), dtype=windows.dtype)
            if bias:
                total = total + bias[0].reshape(-1, block, *ones)
            return self.stored(np.ascontiguousarray(np.moveaxis(total, 2, -1)))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        image, outer, *place, inner = index
        channel = outer * tensor_type(self.x).get_shape()[-1] + inner
        strides, dilations = ints(self.strides), ints(self.dilations)

        def step(k: Indices, total: SSAValue) -> SSAValue:
            own = place_in(place, k, strides, dilations)
            x = nest.at(self.x, (image, outer, *own, inner))
            w = nest.at(self.w, (channel, AffineExpr.constant(0), *k))
            return scalars.fma(nest, x, w, total)

        window = [nest.extent(self.w, dim) for dim in range(2, rank(self.w))]
        if self.bias is not None:
            initial = nest.at(self.bias, (channel,))
        else:
            initial = scalars.zero(nest, nest.compute_type(element_type(self.x)))
        return nest.reduce(window, "add", initial, step)

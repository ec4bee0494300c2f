"""`blocked_conv`: a convolution of images whose channels are blocked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from .....core.algebra.dims import Dim, Shape
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array
from ...attrs import I64_ARRAY, NUMERIC_TENSOR, i64_attr, ints
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
    text,
    widened,
)
from ...nests import scalars
from .contraction import flops_of_products, same_element_types
from .window import (
    block_groups,
    check_bias,
    check_steps,
    convolved,
    groups_in_blocks,
    place_in,
    positions,
    step_properties,
    window_bounds,
)

if TYPE_CHECKING:
    from ...interfaces import Array


@irdl_op_definition
class BlockedConvOp(GraphOp, DemandInterface):
    """`graph.conv` for x of shape [N, C/b, *sizes, b] and w of shape [M, C, *window].

    y[n, i, p, j] = bias[m] + sum over c, l, k of x[n, c, p * strides + k * dilations, l] *
    w[m, c * b + l, k]  for m = i * block + j; y has the shape [N, M/block, *places, block].

    The b channels of a block are adjacent in memory, so that a vector holds channels of one
    position for any strides and number of positions. Filters are as in `graph.conv`: constant
    ones are packed for the register tile when the kernel is scheduled. If they read fewer channels
    than x has, there are `groups`, whole blocks of the channels of x and of y, or single channels
    with a filter each, in the blocks of x: y[n, i, p, j] = bias[m] + sum over k of
    x[n, i, p * strides + k * dilations, j] * w[m, 0, k].

    %y = graph.blocked_conv %x, %w, %b strides = [2, 2] dilations = [1, 1] block = 2
        : (tensor<1x1x3x4x2xf32>, tensor<4x2x2x2xf32>, tensor<4xf32>) -> tensor<1x2x1x2x2xf32>
    """

    name = "graph.blocked_conv"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION

    x = operand_def(NUMERIC_TENSOR)
    w = operand_def(NUMERIC_TENSOR)
    bias = opt_operand_def(NUMERIC_TENSOR)
    strides = prop_def(I64_ARRAY)
    dilations = prop_def(I64_ARRAY)
    block = prop_def(IntegerAttr.constr(i64))
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$x `,` $w (`,` $bias^)? `strides` `=` $strides `dilations` `=` $dilations "
        "`block` `=` $block attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        block: int = 1,
        result_type: Attribute | None = None,
    ) -> None:
        """Without `strides` and `dilations` they are 1."""
        properties = step_properties(rank(SSAValue.get(x)) - 3, strides, dilations)
        properties["block"] = i64_attr(block)
        super().__init__(operands=[x, w, bias], properties=properties, result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        x, w, *bias = shapes
        if len(x) < 4:
            facts.fail("x has no dimension for a window", "rank >= 4", f"rank {len(x)}")
        if len(w) != len(x) - 1:
            facts.fail("w does not fit x", f"rank {len(x) - 1}", f"rank {len(w)}")
        strides, dilations = ints(self.strides), ints(self.dilations)
        check_steps(len(x) - 3, facts, strides=strides, dilations=dilations)
        if not x[-1].is_static or x[-1].value < 1:
            facts.fail("the block of x is not a number", "sizes of 1 or more", text([x[-1]]))
        if not all(dim.is_static and dim.value > 0 for dim in w):
            facts.fail("w has a size that is not a number", "sizes of 1 or more", text(w))
        filters, block = w[0].value, self.block.value.data
        if self.is_depthwise:
            facts.equal(w[0], x[1] * x[-1].value, "channels of x differ from filters of one each")
            facts.equal(Dim.of(block), x[-1], "the block differs from that of x")
        else:
            block_groups(x, w[1], filters, block, "w", facts)
        check_bias(bias, w[0], "w", facts)
        axes = enumerate(zip(x[2:-1], w[2:], strides, dilations, strict=True), start=2)
        places = (
            positions(axis, dim, window.value, stride, dilation, facts)
            for axis, (dim, window, stride, dilation) in axes
        )
        return [(x[0], Dim.of(filters // block), *places, Dim.of(block))]

    @property
    def groups(self) -> int:
        """The number of groups of channels, of which a filter reads one."""
        return groups_in_blocks(self.x, tensor_type(self.w).get_shape()[1])

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel of a block has a group and a filter of its own."""
        width, channels = tensor_type(self.x).get_shape()[-1], tensor_type(self.w).get_shape()[1]
        return channels == 1 < width

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        window = tensor_type(self.w).get_shape()[2:]
        return window_bounds(self.x, 2, window, ints(self.strides), ints(self.dilations))

    def flops(self, sizes: Sizes) -> Dim:
        return flops_of_products(sizes, self.result, sizes.shape(self.w)[1:])

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w, *bias = (widened(dense_array(array)) for array in arrays)
        images, blocks, *sizes, width = x.shape
        x = np.moveaxis(x, -1, 2).reshape(images, blocks * width, *sizes)
        block = self.block.value.data
        groups = max(1, x.shape[1] // w.shape[1])
        with np.errstate(all="ignore"):
            y = convolved(x, w, bias, ints(self.strides), ints(self.dilations), groups)
            y = y.reshape(len(y), len(w) // block, block, *y.shape[2:])
            return self.stored(np.ascontiguousarray(np.moveaxis(y, 2, -1)))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        image, outer, *place, inner = index
        filter = outer * self.block.value.data + inner
        width = tensor_type(self.x).get_shape()[-1]
        strides, dilations = ints(self.strides), ints(self.dilations)
        groups, first = self.groups, AffineExpr.constant(0)
        blocks = nest.extent(self.x, 1)
        if groups > 1 and not self.is_depthwise:
            blocks = blocks // groups
            first = outer // (tensor_type(self.result).get_shape()[1] // groups) * blocks

        def step(k: Indices, total: SSAValue) -> SSAValue:
            if self.is_depthwise:
                offset, block, lane, channel = k, outer, inner, AffineExpr.constant(0)
            else:
                of_group, *offset, lane = k
                block, channel = first + of_group, of_group * width + lane
            own = place_in(place, offset, strides, dilations)
            x = nest.at(self.x, (image, block, *own, lane))
            w = nest.at(self.w, (filter, channel, *offset))
            return scalars.fma(nest, x, w, total)

        extents = [nest.extent(self.w, dim) for dim in range(2, rank(self.w))]
        if not self.is_depthwise:
            extents = [blocks, *extents, nest.extent(self.x, rank(self.x) - 1)]
        return nest.reduce(extents, "add", self._initial(nest, filter), step)

    def _initial(self, nest: Nest, filter: AffineExpr) -> SSAValue:
        if self.bias is not None:
            return nest.at(self.bias, (filter,))
        return scalars.zero(nest, nest.compute_type(element_type(self.x)))

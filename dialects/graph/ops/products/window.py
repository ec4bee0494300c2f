"""Operators that slide a window over trailing dimensions: `conv` and `pool`.

A window never leaves its operand: padding is a `graph.pad` before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ...attrs import (
    I64_ARRAY,
    NUMERIC_TENSOR,
    ReduceKind,
    ReduceKindAttr,
    accumulator_type,
    i64_array,
    i64_attr,
    ints,
)
from ...combiners import COMBINER_OF
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
from ...kinds import Precision
from ...nests import scalars
from ...remapped_axes import BlockableInterface, HoldsNumbers
from ...rules import rule
from ...traits import HalfPrecision, OrderStatisticInterface
from ..reductions.reduction import keeps_one, mean_of, mean_of_sum
from .contraction import factor, factors, flops_of_products, summed_element_types

if TYPE_CHECKING:
    from ...interfaces import Array


def step_properties(
    count: int, strides: Sequence[int] | None, dilations: Sequence[int] | None
) -> dict[str, Attribute | None]:
    """The properties `strides` and `dilations` of windows of `count` axes; 1 where None."""
    ones = [1] * count
    return {
        "strides": i64_array(ones if strides is None else strides),
        "dilations": i64_array(ones if dilations is None else dilations),
    }


def check_steps(count: int, facts: ShapeFacts, **steps: Sequence[int]) -> None:
    """Require `count` positive numbers of each kind."""
    for what, numbers in steps.items():
        if len(numbers) != count or any(n < 1 for n in numbers):
            facts.fail(f"wrong {what}", f"{count} positive numbers", list(numbers))


def check_bias(bias: Sequence[Shape], filters: Dim, of: str, facts: ShapeFacts) -> None:
    """Require a number for each of the filters of an operand, if there is a bias."""
    for shape in bias:
        if len(shape) != 1:
            facts.fail("bias is not a vector", "rank 1", f"rank {len(shape)}")
        facts.equal(filters, shape[0], f"length of bias differs from the filters of {of}")


def block_groups(
    x: Shape, channels: Dim, filters: int, block: int, of: str, facts: ShapeFacts
) -> int:
    """The number of groups of a convolution on blocks of channels; checks that none is cut.

    Args:
        x: the shape of the image: [N, C/b, *sizes, b].
        channels: those that a filter reads.
        filters: the number of filters.
        block: the number of channels in a block of the result.
        of: the name of the operand that holds the filters.
    """
    groups, width = 1, x[-1].value
    if x[1].is_static and x[1].value and channels.is_static:
        groups, rest = divmod(x[1].value * width, max(1, channels.value))
        if rest or not groups:
            fact = f"channels of x do not fall into groups of those of {of}"
            facts.fail(fact, f"a multiple of {channels}", x[1].value * width)
    else:
        facts.equal(channels, x[1] * width, f"channels of x differ from those of {of}")
    if groups > 1 and channels.value % width:
        fact = "the block of x does not divide the channels of a group"
        facts.fail(fact, f"a divisor of {channels}", width)
    if filters % groups:
        facts.fail("groups do not divide the filters", f"a multiple of {groups}", filters)
    if block < 1 or filters // groups % block:
        of_group = " of a group" if groups > 1 else ""
        fact = f"the block does not divide the filters{of_group}"
        facts.fail(fact, f"a divisor of {filters // groups}", block)
    return groups


def groups_in_blocks(x: SSAValue, channels: int) -> int:
    """The number of groups of an image [N, C/b, *sizes, b] of which filters read so many channels.

    Channels whose number is not known are one group.
    """
    _, blocks, *_, width = tensor_type(x).get_shape()
    return max(1, blocks * width // channels)


def positions(
    axis: int, dim: Dim, window: int, stride: int, dilation: int, facts: ShapeFacts
) -> Dim:
    """The number of positions of a window inside a dimension."""
    extent = dilation * (window - 1) + 1
    if (extent, stride) == (1, 1):
        return dim
    if dim.is_static and dim.value < extent:
        facts.fail(f"the window is larger than axis {axis}", f"at most {dim}", extent)
    return (dim - extent).floordiv(stride) + 1


def window_bounds(
    x: SSAValue,
    axis: int,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[SizeBound, ...]:
    """The least sizes of x with which a window on its dimensions from `axis` on fits into it."""
    found: list[SizeBound] = []
    for number, (size, stride, dilation) in enumerate(zip(window, strides, dilations, strict=True)):
        extent = dilation * (size - 1) + 1
        if (extent, stride) != (1, 1):
            found.append(SizeBound(x, axis + number, extent))
    return tuple(found)


def windows_of(
    x: np.ndarray, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> np.ndarray:
    """A view of the windows on the trailing dimensions: [..., *places, *window]."""
    count = len(window)
    extents = [d * (n - 1) + 1 for n, d in zip(window, dilations, strict=True)]
    axes = tuple(range(x.ndim - count, x.ndim))
    if x.size:
        view = np.lib.stride_tricks.sliding_window_view(x, extents, axis=axes)
    else:
        # NumPy refuses a window of 1 on a dimension of 0, where there is no place.
        sizes = zip(x.shape[-count:], extents, strict=True)
        places = [max(n - extent + 1, 0) for n, extent in sizes]
        view = np.zeros((*x.shape[:-count], *places, *extents), x.dtype)
    steps = [slice(None, None, step) for step in (*strides, *dilations)]
    return view[(..., *steps)]


def convolved(
    x: np.ndarray,
    w: np.ndarray,
    bias: Sequence[np.ndarray],
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> np.ndarray:
    """Images of shape [N, C, *sizes] times filters of shape [M, C/groups, *window]."""
    count, windows = x.ndim - 2, windows_of(x, w.shape[2:], strides, dilations)
    over = [1, *range(2 + count, 2 + 2 * count)], list(range(1, 2 + count))
    pairs = zip(np.split(windows, groups, axis=1), np.split(w, groups), strict=True)
    parts = [np.moveaxis(np.tensordot(part, f, over), -1, 1) for part, f in pairs]
    product = np.concatenate(parts, axis=1)
    return product + bias[0].reshape(-1, *[1] * count) if bias else product


def place_in(
    place: Sequence[AffineExpr],
    offset: Sequence[AffineExpr],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Indices:
    """The index of the element at `offset` of the window at `place`."""
    pairs = zip(place, offset, strides, dilations, strict=True)
    return tuple(p * stride + k * dilation for p, k, stride, dilation in pairs)


def conv_shape(
    x: Shape,
    w: Shape,
    bias: Sequence[Shape],
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    facts: ShapeFacts,
) -> Shape:
    """The shape rule of a convolution."""
    if len(x) < 3:
        facts.fail("x has no dimension for a window", "rank >= 3", f"rank {len(x)}")
    if len(w) != len(x):
        facts.fail("w does not fit x", f"rank {len(x)}", f"rank {len(w)}")
    check_steps(len(x) - 2, facts, strides=strides, dilations=dilations)
    filters, channels, *window = w
    for dim in window:
        if not dim.is_static or dim.value < 1:
            facts.fail("w has no window", "sizes of 1 or more", dim)
    # Groups need fixed numbers of filters and channels: the first channel of one is a factor.
    if groups < 1:
        facts.fail("groups out of range", "groups >= 1", groups)
    if groups > 1 and (not filters.is_static or filters.value % groups):
        facts.fail("groups do not divide the filters", f"a multiple of {groups}", filters)
    if groups > 1 and not (channels.is_static or x[1].is_static):
        facts.fail("groups of channels whose number is not known", "a fixed number", channels)
    facts.equal(channels * groups, x[1], "channels of x differ from those of w times groups")
    check_bias(bias, filters, "w", facts)
    sizes = (dim.value for dim in window)
    axes = enumerate(zip(x[2:], sizes, strides, dilations, strict=True))
    return (x[0], filters, *(positions(2 + i, *sizes, facts) for i, sizes in axes))


def _first_channel(x: SSAValue, w: SSAValue, groups: int, filter: AffineExpr) -> AffineExpr:
    """The first channel of x that a filter reads."""
    filters, channels = tensor_type(w).get_shape()[:2]
    if groups == 1 or filters == 0:
        return AffineExpr.constant(0)
    if channels < 0:
        channels = tensor_type(x).get_shape()[1] // groups
    return filter // (filters // groups) * channels


@irdl_op_definition
class ConvOp(GraphOp, DemandInterface):
    """Windows of x times filters, for x of shape [N, C, *sizes] and w of [M, C/groups, *window].

    y[n, m, p] = bias[m] + sum over c, k of x[n, c, p * strides + k * dilations] * w[m, c, k]

    With groups, the channels of x and of y are split into that many parts, and a filter reads
    the channels of its own part. `sizes` are one or more dimensions. There is no padding: see
    `graph.pad`. Sums start at the bias and are those of `graph.dense`.

    %y = graph.conv %x, %w, %b strides = [2, 2] dilations = [1, 1] groups = 1
        : (tensor<1x2x3x4xf32>, tensor<3x2x2x2xf32>, tensor<3xf32>) -> tensor<1x3x1x2xf32>
    """

    name = "graph.conv"
    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION
    traits = traits_def(HalfPrecision(Precision.ALWAYS))

    x = operand_def(NUMERIC_TENSOR)
    w = operand_def(NUMERIC_TENSOR)
    bias = opt_operand_def(NUMERIC_TENSOR)
    strides = prop_def(I64_ARRAY)
    dilations = prop_def(I64_ARRAY)
    groups = prop_def(IntegerAttr.constr(i64))
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$x `,` $w (`,` $bias^)? `strides` `=` $strides `dilations` `=` $dilations "
        "`groups` `=` $groups attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        groups: int = 1,
        result_type: Attribute | None = None,
    ) -> None:
        """Without `strides` and `dilations` they are 1."""
        properties = step_properties(rank(SSAValue.get(x)) - 2, strides, dilations)
        properties["groups"] = i64_attr(groups)
        super().__init__(operands=[x, w, bias], properties=properties, result_type=result_type)

    @property
    def window(self) -> tuple[int, ...]:
        """The sizes of a filter, without its channels."""
        return tensor_type(self.w).get_shape()[2:]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        summed_element_types(self, facts)
        x, w, *bias = shapes
        return [conv_shape(x, w, bias, *self.steps, facts)]

    def infer_element_types(self) -> list[Attribute]:
        return [accumulator_type(element_type(self.x))]

    @property
    def steps(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """The strides, the dilations and the number of groups."""
        return ints(self.strides), ints(self.dilations), self.groups.value.data

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has a group and a filter of its own."""
        filters, channels, *_ = tensor_type(self.w).get_shape()
        return channels == 1 and filters == self.groups.value.data

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        strides, dilations, _ = self.steps
        return window_bounds(self.x, 2, self.window, strides, dilations)

    def flops(self, sizes: Sizes) -> Dim:
        return flops_of_products(sizes, self.result, sizes.shape(self.w)[1:])

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, w, *bias = factors(*arrays)
        with np.errstate(all="ignore"):
            return self.stored(np.ascontiguousarray(convolved(x, w, bias, *self.steps)))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        image, filter, *place = index
        strides, dilations, groups = self.steps
        first = _first_channel(self.x, self.w, groups, filter)
        if self.bias is None:
            init = scalars.zero(nest, nest.compute_type(element_type(self.result)))
        else:
            init = nest.at(self.bias, (filter,))

        def step(k: Indices, total: SSAValue) -> SSAValue:
            channel, *offset = k
            own = place_in(place, offset, strides, dilations)
            element = factor(nest, self.x, (image, first + channel, *own))
            return scalars.fma(nest, element, factor(nest, self.w, (filter, *k)), total)

        extents = [nest.extent(self.w, dim) for dim in range(1, rank(self.w))]
        return nest.reduce(extents, "add", init, step)


@irdl_op_definition
class PoolOp(
    GraphOp,
    DemandInterface,
    OrderStatisticInterface,
    BlockableInterface,
    HasCanonicalizationPatternsInterface,
):
    """The sum, mean, max, min or product of each window on the trailing dimensions.

    Every window lies inside x: there is no padding, see `graph.pad`. Elements are combined as
    in `graph.reduce`.

    %y = graph.pool max %x window = [2, 2] strides = [2, 2] dilations = [1, 1]
        : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
    """

    name = "graph.pool"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION
    traits = traits_def(
        HalfPrecision(Precision.FOLLOW),
        HoldsNumbers(("window", "strides", "dilations"), neutral=1),
    )

    kind = prop_def(ReduceKindAttr)
    window = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    dilations = prop_def(I64_ARRAY)
    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$kind $x `window` `=` $window `strides` `=` $strides `dilations` `=` $dilations "
        "attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        kind: str,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        """Without `strides` and `dilations` they are 1."""
        properties = step_properties(len(window), strides, dilations)
        properties["kind"] = ReduceKindAttr(ReduceKind(kind))
        properties["window"] = i64_array(window)
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (pool_nothing,)

    @property
    def is_order_statistic(self) -> bool:
        return self.kind.data in (ReduceKind.MAX, ReduceKind.MIN)

    @property
    def takes_all_alone(self) -> bool:
        """Whether windows are single elements and cover all of x."""
        return all(n == 1 for n in (*ints(self.window), *ints(self.strides)))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        window, strides, dilations = ints(self.window), ints(self.strides), ints(self.dilations)
        count = len(window)
        if not 1 <= count <= len(x):
            facts.fail("window does not fit x", f"1 to {len(x)} sizes", list(window))
        check_steps(count, facts, window=window, strides=strides, dilations=dilations)
        leading = len(x) - count
        axes = enumerate(zip(x[leading:], window, strides, dilations, strict=True))
        return [(*x[:leading], *(positions(leading + i, *sizes, facts) for i, sizes in axes))]

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        window = ints(self.window)
        steps = ints(self.strides), ints(self.dilations)
        return window_bounds(self.x, rank(self.x) - len(window), window, *steps)

    def flops(self, sizes: Sizes) -> Dim:
        return product(sizes.shape(self.result)) * math.prod(ints(self.window))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = widened(dense_array(arrays[0]))
        window, kind = ints(self.window), self.kind.data
        windows = windows_of(x, window, ints(self.strides), ints(self.dilations))
        axes = tuple(range(windows.ndim - len(window), windows.ndim))
        with np.errstate(all="ignore"):
            total = COMBINER_OF[kind].reduced(windows, axes)
            if kind == ReduceKind.MEAN:
                total = mean_of_sum(total, math.prod(window))
            return self.stored(total)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        kind, window = self.kind.data, ints(self.window)
        strides, dilations = ints(self.strides), ints(self.dilations)
        element = element_type(self.x)
        type = nest.compute_type(element)
        leading = len(index) - len(window)
        combiner = COMBINER_OF[kind]

        def step(k: Indices, total: SSAValue) -> SSAValue:
            own = place_in(index[leading:], k, strides, dilations)
            x = nest.at(self.x, (*index[:leading], *own))
            return combiner.step(nest, total, combiner.key(nest, x, element))

        extents = [AffineExpr.constant(n) for n in window]
        total = nest.reduce(extents, combiner.name, combiner.init(nest, type), step)
        if kind == ReduceKind.MEAN:
            return mean_of(nest, total, extents, element)
        return combiner.key(nest, total, element)


@rule(
    "pool(x) == x  for windows of one element that cover x, except for sums and maxnum of floats",
    EXACT,
)
def pool_nothing(op: PoolOp) -> bool:
    return op.takes_all_alone and keeps_one(op.kind.data, element_type(op.x))

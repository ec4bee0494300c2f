"""Normalisations by statistics of their operand: `layer_norm` and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from ...core.dims import Shape
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR, i64_array, i64_attr
from .axes import AxesOp, AxisOp
from .interfaces import Index, Nest, ShapeFacts, rank, tensor_type, widened
from .normalization import (
    ChannelStandardizationOp,
    NormalizationOp,
    StandardizationOp,
    check_broadcast,
    mean_square,
)
from .ops_contraction import same_element_types
from .ops_elementwise import broadcast_index

if TYPE_CHECKING:
    from .interfaces import Array


@irdl_op_definition
class LayerNormOp(StandardizationOp):
    """Standardize along `axis` and the axes after it (Ba, Kiros and Hinton, 2016).

    (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias, which may be
    missing, broadcast to x.

    %y = graph.layer_norm %x scale %s : tensor<4xf32> bias %b : tensor<4xf32>
        axis = -1 epsilon = 1.0e-05 : (tensor<?x4xf32>) -> tensor<?x4xf32>
    """

    name = "graph.layer_norm"

    result = result_def(FLOAT_TENSOR)

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = -1,
        epsilon: float = 1e-5,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(x, scale, bias, axis, epsilon, result_type)

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(range(self.axis_from_front, rank(self.x)))

    def check_parameter(self, what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
        check_broadcast(what, shape, x, facts)

    def parameter_index(self, parameter: SSAValue, index: Index) -> Index:
        return broadcast_index(parameter, index)

    def parameter_array(self, parameter: np.ndarray) -> np.ndarray:
        return parameter


@irdl_op_definition
class InstanceNormOp(ChannelStandardizationOp):
    """Standardize each channel of each element of the batch (Ulyanov et al., 2016).

    Dimension 0 is that of the batch, `axis` that of the channels. Scale and bias have a
    number for each channel and may be missing.

    %y = graph.instance_norm %x scale %s : tensor<3xf32> bias %b : tensor<3xf32>
        axis = 1 epsilon = 1.0e-05 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    """

    name = "graph.instance_norm"

    result = result_def(FLOAT_TENSOR)

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(i for i in range(1, rank(self.x)) if i != self.axis_from_front)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        self.check_batch(facts)
        if len(shapes[0]) < 3:
            facts.fail("x has nothing but channels", "rank >= 3", f"rank {len(shapes[0])}")
        return super().infer_shapes(shapes, facts)


@irdl_op_definition
class GroupNormOp(ChannelStandardizationOp):
    """Standardize each of `groups` runs of channels of an element of the batch (Wu, He, 2018).

    Dimension 0 is that of the batch, `axis` that of the channels, whose number is known.
    Scale and bias have a number for each channel and may be missing.

    %y = graph.group_norm %x scale %s : tensor<4xf32> bias %b : tensor<4xf32>
        groups = 2 axis = 1 epsilon = 1.0e-05 : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
    """

    name = "graph.group_norm"

    groups = prop_def(IntegerAttr.constr(i64))
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$x (`scale` $scale^ `:` type($scale))? (`bias` $bias^ `:` type($bias))? "
        "`groups` `=` $groups `axis` `=` $axis "
        "`epsilon` `=` $epsilon attr-dict `:` functional-type($x, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        groups: int,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = 1,
        epsilon: float = 1e-5,
        result_type: Attribute | None = None,
    ) -> None:
        number = i64_attr(groups)
        super().__init__(x, scale, bias, axis, epsilon, result_type, groups=number)

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(range(1, rank(self.x)))

    @property
    def channels_of_group(self) -> int:
        """The number of channels of a group."""
        channels = tensor_type(self.x).get_shape()[self.axis_from_front]
        return channels // self.groups.value.data

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        self.check_batch(facts)
        groups, channels = self.groups.value.data, shapes[0][self.axis_from_front]
        if not channels.is_static:
            facts.fail("the number of channels is not known", "a number", channels)
        if groups < 1 or channels.value % groups:
            facts.fail("groups do not divide the channels", f"a divisor of {channels}", groups)
        return super().infer_shapes(shapes, facts)

    def grouped(self, x: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
        axis = self.axis_from_front
        groups, channels = self.groups.value.data, self.channels_of_group
        apart = x.reshape([*x.shape[:axis], groups, channels, *x.shape[axis + 1 :]])
        return apart, tuple(i for i in range(1, apart.ndim) if i != axis)

    def set_at(self, nest: Nest, index: Index) -> tuple[list[AffineExpr], Callable[[Index], Index]]:
        axis, channels = self.axis_from_front, max(self.channels_of_group, 1)
        extents, place = super().set_at(nest, index)
        extents[axis - 1] = AffineExpr.constant(channels)
        first = index[axis] // channels * channels

        def within_group(number: Index) -> Index:
            at = place(number)
            return (*at[:axis], first + at[axis], *at[axis + 1 :])

        return extents, within_group


@irdl_op_definition
class RmsNormOp(AxisOp, NormalizationOp):
    """x / sqrt(mean(x^2) + epsilon) * scale, the mean along `axis` and the axes after it.

    The scale, which may be missing, broadcasts to x (Zhang and Sennrich, 2019).

    %y = graph.rms_norm %x scale %s : tensor<4xf32> axis = -1 epsilon = 1.0e-05
        : (tensor<?x4xf32>) -> tensor<?x4xf32>
    """

    name = "graph.rms_norm"
    PER_ELEMENT: ClassVar[int] = 3

    # Redeclared: operands of a base class would come after those of the class.
    x = operand_def(FLOAT_TENSOR)
    scale = opt_operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$x (`scale` $scale^ `:` type($scale))? `axis` `=` $axis `epsilon` `=` $epsilon "
        "attr-dict `:` functional-type($x, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        axis: int = -1,
        epsilon: float = 1e-5,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {"epsilon": FloatAttr(epsilon, f64)}
        super().__init__(
            operands=[x, scale], axis=axis, properties=properties, result_type=result_type
        )

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(range(self.axis_from_front, rank(self.x)))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        self.check_epsilon(facts)
        x, *scale = shapes
        for shape in scale:
            check_broadcast("scale", shape, x, facts)
        return [x]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *scale = (widened(dense_array(array)) for array in arrays)
        epsilon = x.dtype.type(self.epsilon.value.data)
        with np.errstate(all="ignore"):
            square = mean_square(x, self.normalized_axes)
            y = x * (x.dtype.type(1) / np.sqrt(square + epsilon))
            return self.stored(y * scale[0] if scale else y)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        inverse = self.inverse_root(nest, self.mean_square(nest, index))
        y = scalars.mul(nest, nest.at(self.x, index), inverse)
        if self.scale is None:
            return y
        return scalars.mul(nest, y, nest.at(self.scale, broadcast_index(self.scale, index)))


@irdl_op_definition
class L2NormalizeOp(AxesOp, NormalizationOp):
    """x / sqrt(max(sum(x^2), epsilon)), the sum along `axes`.

    With an epsilon above 0, slices of zeros along the axes stay 0.

    %y = graph.l2_normalize %x axes = [-1] epsilon = 1.0e-12
        : (tensor<?x4xf32>) -> tensor<?x4xf32>
    """

    name = "graph.l2_normalize"
    PER_ELEMENT: ClassVar[int] = 3

    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$x `axes` `=` $axes `epsilon` `=` $epsilon "
        "attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        axes: Sequence[int] = (-1,),
        epsilon: float = 1e-12,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "axes": i64_array(axes),
            "epsilon": FloatAttr(epsilon, f64),
        }
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return self.axes_from_front

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        self.check_epsilon(facts)
        return [shapes[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = widened(dense_array(arrays[0]))
        epsilon = x.dtype.type(self.epsilon.value.data)
        with np.errstate(all="ignore"):
            total = (x * x).sum(self.normalized_axes, dtype=x.dtype, keepdims=True)
            return self.stored(x * (x.dtype.type(1) / np.sqrt(np.maximum(total, epsilon))))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        total, _ = self.sum_at(nest, index, lambda x, t: scalars.fma(nest, x, x, t))
        epsilon = nest.constant(self.epsilon.value.data, total.type)
        root = nest.insert(math.SqrtOp(scalars.maximum(nest, total, epsilon)))
        inverse = scalars.divide(nest, nest.constant(1.0, total.type), root)
        return scalars.mul(nest, nest.at(self.x, index), inverse)

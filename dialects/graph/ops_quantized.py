"""Products of quantised tensors: `quantized_dense`, `quantized_matmul` and `quantized_conv`.

They sum in i32, and convert to the scale of the result like `graph.requantize`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, f32, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from ...core.dims import Dim, Shape
from ...core.typed import dense_array
from . import scalars
from .attrs import BYTE_TENSOR, I32_TENSOR, I64_ARRAY, SINGLE_TENSOR, i64_attr, ints
from .demands import DemandInterface, SizeBound
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    tensor_type,
)
from .ops_contraction import Read, dense_at, dense_shape, flops_of_products, matmul_at, matmul_shape
from .ops_quantize import saturated, saturated_scalar
from .ops_window import conv_array, conv_at, conv_shape, step_properties, window_bounds

if TYPE_CHECKING:
    from .interfaces import Array


class QuantizedContractionOp(GraphOp, ABC):
    """A product of quantised tensors: the operands, and the common code.

    y = saturate(round(t * m) + y_zero_point)  for  m = x_scale * w_scale / y_scale
    and the sum t of (x - x_zero_point) * (w - w_zero_point), which starts at the bias.

    t is summed in i32, m and t * m are computed in f32. The scale and the zero point of w
    are scalars, or vectors with an element for each channel of the result.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.CONTRACTION
    WEIGHT_AXIS: ClassVar[int] = 0
    """The channel axis of `w`."""
    CHANNEL_AXIS: ClassVar[int] = -1
    """The channel axis of the result."""

    x = operand_def(BYTE_TENSOR)
    x_scale = operand_def(SINGLE_TENSOR)
    x_zero_point = operand_def(BYTE_TENSOR)
    w = operand_def(BYTE_TENSOR)
    w_scale = operand_def(SINGLE_TENSOR)
    w_zero_point = operand_def(BYTE_TENSOR)
    y_scale = operand_def(SINGLE_TENSOR)
    y_zero_point = operand_def(BYTE_TENSOR)
    bias = opt_operand_def(I32_TENSOR)
    result = result_def(BYTE_TENSOR)

    def __init__(
        self,
        x: SSAValue | Operation,
        x_scale: SSAValue | Operation,
        x_zero_point: SSAValue | Operation,
        w: SSAValue | Operation,
        w_scale: SSAValue | Operation,
        w_zero_point: SSAValue | Operation,
        y_scale: SSAValue | Operation,
        y_zero_point: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        """Operands in the order of ONNX's QLinearConv."""
        first = [x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point]
        super().__init__(operands=[*first, bias], result_type=result_type)

    @abstractmethod
    def shape(self, x: Shape, w: Shape, bias: Sequence[Shape], facts: ShapeFacts) -> Shape:
        """The shape rule of the product."""

    @abstractmethod
    def product(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The product of arrays of i32."""

    @abstractmethod
    def sum_at(
        self, nest: Nest, index: Index, init: SSAValue, reads: tuple[Read, Read]
    ) -> SSAValue:
        """The element of the product at an index; `reads` read the elements of x and w."""

    def flops(self, sizes: Sizes) -> Dim:
        return flops_of_products(sizes, self.result, sizes.shape(self.x)[-1:])

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.y_zero_point)]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = shapes
        for value, kind in ((self.x, self.x_zero_point), (self.w, self.w_zero_point)):
            if element_type(value) != element_type(kind):
                fact = "element types of a tensor and its zero point differ"
                facts.fail(fact, element_type(value), element_type(kind))
        result = self.shape(x, w, bias, facts)
        of_tensors = {"x_scale": x_scale, "x_zero_point": x_zero, "y_scale": y_scale}
        for what, shape in (of_tensors | {"y_zero_point": y_zero}).items():
            if shape:
                facts.fail(f"{what} is not a scalar", "rank 0", f"rank {len(shape)}")
        for what, shape in (("w_scale", w_scale), ("w_zero_point", w_zero)):
            if len(shape) > 1:
                facts.fail(
                    f"{what} is neither a scalar nor a vector", "rank 0 or 1", f"rank {len(shape)}"
                )
            if shape:
                channels = result[self.CHANNEL_AXIS]
                facts.equal(channels, shape[0], f"length of {what} differs from the channels")
        return [result]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        operands = [dense_array(array) for array in arrays]
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = operands
        with np.errstate(all="ignore"):
            left = x.astype(np.int32) - x_zero.astype(np.int32)
            right = w.astype(np.int32) - _along(w_zero.astype(np.int32), self.WEIGHT_AXIS, w.ndim)
            total = self.product(left, right)
            if bias:
                total = total + _along(bias[0], self.CHANNEL_AXIS, total.ndim)
            scale = multiplier(x_scale, w_scale, y_scale)
            value = total.astype(np.float32) * _along(scale, self.CHANNEL_AXIS, total.ndim)
            return self.stored(saturated(value, y_zero, y_zero.dtype))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        channel = (index[self.CHANNEL_AXIS],)

        def scalar(value: SSAValue, own: Index, target: Attribute) -> SSAValue:
            return scalars.convert(nest, nest.at(value, own), element_type(value), target)

        def parameter(value: SSAValue, target: Attribute) -> SSAValue:
            return scalar(value, channel if rank(value) else (), target)

        def read_from(zero_point: SSAValue) -> Read:
            shift = parameter(zero_point, i32)
            return lambda value, own: scalars.sub(nest, scalar(value, own, i32), shift)

        init = nest.constant(0, i32) if self.bias is None else parameter(self.bias, i32)
        reads = read_from(self.x_zero_point), read_from(self.w_zero_point)
        total = scalars.convert(nest, self.sum_at(nest, index, init, reads), i32, f32)
        x_scale, w_scale, y_scale = (
            parameter(value, f32) for value in (self.x_scale, self.w_scale, self.y_scale)
        )
        scale = scalars.divide(nest, scalars.mul(nest, x_scale, w_scale), y_scale)
        zero_point, kind = parameter(self.y_zero_point, i32), element_type(self.y_zero_point)
        return saturated_scalar(nest, scalars.mul(nest, total, scale), zero_point, i32, kind)


def multiplier(x_scale: np.ndarray, w_scale: np.ndarray, y_scale: np.ndarray) -> np.ndarray:
    """The factor that scales a sum of products to steps of the result, in f32."""
    single = np.float32
    return x_scale.astype(single) * w_scale.astype(single) / y_scale.astype(single)


def _along(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector as an array that broadcasts along all axes but one; a scalar unchanged."""
    if not values.ndim:
        return values
    beside = [1] * rank
    beside[axis] = -1
    return values.reshape(beside)


_CONTRACTION_FORMAT = (
    "$x `,` $x_scale `,` $x_zero_point `,` $w `,` $w_scale `,` $w_zero_point `,` "
    "$y_scale `,` $y_zero_point (`,` $bias^)?"
)


@irdl_op_definition
class QuantizedDenseOp(QuantizedContractionOp):
    """`graph.dense` of quantised tensors, to a quantised result: see `QuantizedContractionOp`.

    %y = graph.quantized_dense %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b
        : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<4x8xi8>, tensor<4xf32>, tensor<4xi8>,
           tensor<f32>, tensor<ui8>, tensor<4xi32>) -> tensor<?x4xui8>
    """

    name = "graph.quantized_dense"

    assembly_format = f"{_CONTRACTION_FORMAT} attr-dict `:` functional-type(operands, results)"

    def shape(self, x: Shape, w: Shape, bias: Sequence[Shape], facts: ShapeFacts) -> Shape:
        return dense_shape(x, w, bias, facts)

    def product(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.matmul(x, w.T)

    def sum_at(
        self, nest: Nest, index: Index, init: SSAValue, reads: tuple[Read, Read]
    ) -> SSAValue:
        return dense_at(nest, self.x, self.w, index, init, reads)


@irdl_op_definition
class QuantizedMatmulOp(QuantizedContractionOp):
    """`graph.matmul` of quantised tensors, to a quantised result: see `QuantizedContractionOp`.

    The channels are the columns.

    %y = graph.quantized_matmul %x, %xs, %xz, %w, %ws, %wz, %ys, %yz
        : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>, tensor<8x4xi8>, tensor<f32>, tensor<i8>,
           tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
    """

    name = "graph.quantized_matmul"
    WEIGHT_AXIS: ClassVar[int] = -1

    assembly_format = f"{_CONTRACTION_FORMAT} attr-dict `:` functional-type(operands, results)"

    def shape(self, x: Shape, w: Shape, bias: Sequence[Shape], facts: ShapeFacts) -> Shape:
        result = matmul_shape(x, w, facts)
        for shape in bias:
            if len(shape) != 1:
                facts.fail("bias is not a vector", "rank 1", f"rank {len(shape)}")
            facts.equal(result[-1], shape[0], "length of bias differs from the columns of w")
        return result

    def product(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.matmul(x, w)

    def sum_at(
        self, nest: Nest, index: Index, init: SSAValue, reads: tuple[Read, Read]
    ) -> SSAValue:
        return matmul_at(nest, self.x, self.w, index, init, reads)


@irdl_op_definition
class QuantizedConvOp(QuantizedContractionOp, DemandInterface):
    """`graph.conv` of quantised tensors, to a quantised result: see `QuantizedContractionOp`.

    There is no padding: the caller pads x with its zero point, which represents 0.

    %y = graph.quantized_conv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz, %b
        strides = [2, 2] dilations = [1, 1] groups = 1
        : (tensor<1x2x3x4xui8>, tensor<f32>, tensor<ui8>, tensor<3x2x2x2xi8>, tensor<3xf32>,
           tensor<3xi8>, tensor<f32>, tensor<ui8>, tensor<3xi32>) -> tensor<1x3x1x2xui8>
    """

    name = "graph.quantized_conv"
    CHANNEL_AXIS: ClassVar[int] = 1

    strides = prop_def(I64_ARRAY)
    dilations = prop_def(I64_ARRAY)
    groups = prop_def(IntegerAttr.constr(i64))

    assembly_format = (
        f"{_CONTRACTION_FORMAT} `strides` `=` $strides `dilations` `=` $dilations "
        "`groups` `=` $groups attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        x_scale: SSAValue | Operation,
        x_zero_point: SSAValue | Operation,
        w: SSAValue | Operation,
        w_scale: SSAValue | Operation,
        w_zero_point: SSAValue | Operation,
        y_scale: SSAValue | Operation,
        y_zero_point: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        groups: int = 1,
        result_type: Attribute | None = None,
    ) -> None:
        """Without `strides` and `dilations` they are 1."""
        properties = step_properties(rank(SSAValue.get(x)) - 2, strides, dilations)
        properties["groups"] = i64_attr(groups)
        first = [x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point]
        GraphOp.__init__(
            self, operands=[*first, bias], properties=properties, result_type=result_type
        )

    @property
    def steps(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """The strides, the dilations and the number of groups."""
        return ints(self.strides), ints(self.dilations), self.groups.value.data

    def shape(self, x: Shape, w: Shape, bias: Sequence[Shape], facts: ShapeFacts) -> Shape:
        return conv_shape(x, w, bias, *self.steps, facts)

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        strides, dilations, _ = self.steps
        return window_bounds(self.x, 2, tensor_type(self.w).get_shape()[2:], strides, dilations)

    def flops(self, sizes: Sizes) -> Dim:
        return flops_of_products(sizes, self.result, sizes.shape(self.w)[1:])

    def product(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return conv_array(x, w, *self.steps)

    def sum_at(
        self, nest: Nest, index: Index, init: SSAValue, reads: tuple[Read, Read]
    ) -> SSAValue:
        return conv_at(nest, self.x, self.w, *self.steps, index, init, reads)

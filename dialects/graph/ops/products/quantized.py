"""Products of quantised tensors: `quantized_dense`, `quantized_matmul` and `quantized_conv`.

They sum in i32, and convert to the scale of the result like `graph.requantize`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i16, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from .....core.algebra.dims import Shape
from .....core.ir.definitions import irdl_op_definition
from ...attrs import BYTE_TENSOR, I32_TENSOR, I64_ARRAY, SINGLE_TENSOR, i64_attr, ints
from ...axes import shape_along
from ...composite import CompositeOp
from ...constructors import operator
from ...demands import DemandInterface, SizeBound
from ...interfaces import FusionKind, ShapeFacts, element_type, rank, tensor_type
from ...op_builder import OpBuilder, V
from .contraction import dense_shape, matmul_shape
from .window import conv_shape, step_properties, window_bounds


class QuantizedContractionOp(CompositeOp, ABC):
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

    @abstractmethod
    def shape(self, x: Shape, w: Shape, bias: Sequence[Shape], facts: ShapeFacts) -> Shape:
        """The shape rule of the product."""

    @abstractmethod
    def product(self, b: OpBuilder[V], x: V, w: V, bias: V | None) -> V:
        """The product of integers without zero points, and the bias."""

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

    def body(
        self,
        b: OpBuilder[V],
        x: V,
        x_scale: V,
        x_zero_point: V,
        w: V,
        w_scale: V,
        w_zero_point: V,
        y_scale: V,
        y_zero_point: V,
        bias: V | None,
    ) -> V:
        def shifted(value: V, zero_point: V, shape: Sequence[int] = ()) -> V:
            zero = b.cast(zero_point, i16)
            return b.sub(b.cast(value, i16), b.reshape(zero, shape) if shape else zero)

        # A vector of zero points of w lies along its channels.
        vector = shape_along(self.WEIGHT_AXIS % rank(self.w), rank(self.w))
        along = vector if len(vector) > 1 and rank(self.w_zero_point) else []
        total = self.product(b, shifted(x, x_zero_point), shifted(w, w_zero_point, along), bias)
        scale = b.div(b.mul(x_scale, w_scale), y_scale)
        axis = self.CHANNEL_AXIS if rank(self.w_scale) else None
        return b.requantize(total, scale, y_zero_point, axis)


_CONTRACTION_FORMAT = (
    "$x `,` $x_scale `,` $x_zero_point `,` $w `,` $w_scale `,` $w_zero_point `,` "
    "$y_scale `,` $y_zero_point (`,` $bias^)?"
)


@operator()
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

    def product(self, b: OpBuilder[V], x: V, w: V, bias: V | None) -> V:
        return b.dense(x, w, bias)


@operator()
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

    def product(self, b: OpBuilder[V], x: V, w: V, bias: V | None) -> V:
        total = b.matmul(x, w)
        return total if bias is None else b.add(total, bias)


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
        CompositeOp.__init__(
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

    def product(self, b: OpBuilder[V], x: V, w: V, bias: V | None) -> V:
        return b.conv(x, w, bias, *self.steps)

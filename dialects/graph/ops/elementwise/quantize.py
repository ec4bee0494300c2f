"""Numbers as integers of few bits: a number is ``scale * (q - zero_point)`` for an integer q.

`quantize` and `dequantize` convert between the two, `requantize` from a sum of products back to
few bits. They compute in i32 and in f32, and round in one way: to the nearest integer, ties to
even, then the zero point is added, then the result is saturated.
NaN becomes the zero point.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, f32, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def

from .....core.algebra.dims import Shape
from .....core.dtypes import integer_range
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import integer_type
from ...attrs import (
    I32_TENSOR,
    LINEAR_OR_I32_TENSOR,
    LINEAR_TENSOR,
    QUANTIZED_TENSOR,
    SINGLE_TENSOR,
    i64_attr,
)
from ...axes import CanonicalPropertiesInterface, shape_along
from ...composite import CompositeOp
from ...interfaces import ShapeFacts, element_type, rank
from ...op_builder import OpBuilder, V


class ScaledOp(CompositeOp, CanonicalPropertiesInterface, ABC):
    """An elementwise operator with a scale and a zero point, for all elements or along an axis.

    Each is a scalar, or a vector along the `axis` of `x`, which is present if either is a vector.
    """

    BROADCASTS: ClassVar[bool] = False

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation,
        zero_point: SSAValue | Operation,
        axis: int | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        dims = rank(SSAValue.get(x))
        known = axis is not None and -dims <= axis < dims
        properties: dict[str, Attribute | None] = {
            "axis": None if axis is None else i64_attr(axis % dims if known else axis)
        }
        super().__init__(
            operands=[x, scale, zero_point], properties=properties, result_type=result_type
        )

    @property
    def along(self) -> int | None:
        """The axis counted from the front; None if one scale applies to all elements."""
        axis = self.properties.get("axis")
        return axis.value.data % rank(self.operands[0]) if isinstance(axis, IntegerAttr) else None

    def canonical_properties(self) -> dict[str, Attribute]:
        return {} if self.along is None else {"axis": i64_attr(self.along)}

    def opens(self, late: bool) -> bool:
        # The ten operators of a body would compile more slowly, to the same code.
        return False

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, *parameters = shapes
        axis = self.properties.get("axis")
        if isinstance(axis, IntegerAttr) and not any(parameters):
            facts.fail("there is an axis but no vector along it", "no axis", axis.value.data)
        for what, shape in zip(("scale", "zero_point"), parameters, strict=True):
            if not shape:
                continue
            if not isinstance(axis, IntegerAttr):
                facts.fail(f"{what} is not a scalar but there is no axis", "rank 0", _rank(shape))
            if len(shape) != 1:
                facts.fail(f"{what} is neither a scalar nor a vector", "rank 0 or 1", _rank(shape))
            number = facts.axis(axis.value.data, len(x))
            facts.equal(x[number], shape[0], f"length of {what} differs from axis {number} of x")
        return [x]

    def spread(self, b: OpBuilder[V], scale: V, zero_point: V) -> tuple[V, V]:
        """The scale and the zero point, which broadcast to x."""
        axis = self.along
        vector = [] if axis is None else shape_along(axis, rank(self.operands[0]))
        if len(vector) > 1:
            _, *ranks = map(rank, self.operands)
            scale = b.reshape(scale, vector) if ranks[0] else scale
            zero_point = b.reshape(zero_point, vector) if ranks[1] else zero_point
        return scale, zero_point


def _rank(shape: Shape) -> str:
    return f"rank {len(shape)}"


def _saturated(b: OpBuilder[V], x: V, zero_point: V, kind: Attribute) -> V:
    """Numbers in f32 as integers: rounded, shifted by the zero point, saturated."""
    nearest = b.round(x)
    nearest = b.where(b.equal(nearest, nearest), nearest, 0.0)
    moved = b.add(nearest, b.cast(zero_point, f32))
    least, largest = map(float, integer_range(integer_type(kind)))
    cut = b.where(b.less(least, moved), moved, least)
    return b.cast(b.where(b.less(cut, largest), cut, largest), kind)


_SCALED_FORMAT = (
    "$x `,` $scale `,` $zero_point (`axis` `=` $axis^)? attr-dict `:` "
    "functional-type(operands, results)"
)


@irdl_op_definition
class QuantizeOp(ScaledOp):
    """saturate(round(x / scale) + zero_point), in the element type of the zero point.

    Ties are rounded to even; f16 is computed in f32.

    %q = graph.quantize %x, %s, %z axis = 1
        : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xui8>) -> tensor<?x3xui8>
    """

    name = "graph.quantize"

    x = operand_def(SINGLE_TENSOR)
    scale = operand_def(SINGLE_TENSOR)
    zero_point = operand_def(LINEAR_TENSOR)
    axis = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(LINEAR_TENSOR)

    assembly_format = _SCALED_FORMAT

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.zero_point)]

    def body(self, b: OpBuilder[V], x: V, scale: V, zero_point: V) -> V:
        scale, zero_point = self.spread(b, scale, zero_point)
        return _saturated(b, b.div(x, scale), zero_point, element_type(self.zero_point))


@irdl_op_definition
class DequantizeOp(ScaledOp):
    """(x - zero_point) * scale, in the element type of the scale.

    The difference is computed in i32, the product in f32.

    %x = graph.dequantize %q, %s, %z : (tensor<?x8xi8>, tensor<f32>, tensor<i8>) -> tensor<?x8xf32>
    """

    name = "graph.dequantize"

    x = operand_def(LINEAR_OR_I32_TENSOR)
    scale = operand_def(SINGLE_TENSOR)
    zero_point = operand_def(LINEAR_OR_I32_TENSOR)
    axis = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(SINGLE_TENSOR)

    assembly_format = _SCALED_FORMAT

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, zero_point = element_type(self.x), element_type(self.zero_point)
        if x != zero_point:
            facts.fail("element types of x and zero_point differ", x, zero_point)
        return super().infer_shapes(shapes, facts)

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.scale)]

    def body(self, b: OpBuilder[V], x: V, scale: V, zero_point: V) -> V:
        scale, zero_point = self.spread(b, scale, zero_point)
        difference = b.sub(b.cast(x, i32), b.cast(zero_point, i32))
        return b.mul(b.cast(difference, f32), scale)


@irdl_op_definition
class RequantizeOp(ScaledOp):
    """saturate(round(x * scale) + zero_point) of sums x, in the element type of the zero point.

    %q = graph.requantize %x, %s, %z axis = 1
        : (tensor<?x8xi32>, tensor<8xf32>, tensor<8xui8>) -> tensor<?x8xui8>
    """

    name = "graph.requantize"

    x = operand_def(I32_TENSOR)
    scale = operand_def(SINGLE_TENSOR)
    zero_point = operand_def(QUANTIZED_TENSOR)
    axis = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(QUANTIZED_TENSOR)

    assembly_format = _SCALED_FORMAT

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.zero_point)]

    def body(self, b: OpBuilder[V], x: V, scale: V, zero_point: V) -> V:
        scale, zero_point = self.spread(b, scale, zero_point)
        value = b.mul(b.cast(x, f32), scale)
        return _saturated(b, value, zero_point, element_type(self.zero_point))

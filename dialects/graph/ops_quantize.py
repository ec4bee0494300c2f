"""Numbers as integers of few bits: a number is ``scale * (q - zero_point)`` for an integer q.

`quantize` and `dequantize` convert between the two, `requantize` from a sum of products back to
few bits. They compute in i32 and in f32, and round in one way: to the nearest integer, ties to
even, then the zero point is added, then the result is saturated.
NaN becomes the zero point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr, f32, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from ...core.dims import Shape
from ...core.dtypes import element_type_of, integer_range
from ...core.typed import dense_array, integer_type
from . import scalars
from .attrs import (
    I32_TENSOR,
    LINEAR_OR_I32_TENSOR,
    LINEAR_TENSOR,
    QUANTIZED_TENSOR,
    SINGLE_TENSOR,
    i64_attr,
)
from .axes import CanonicalPropertiesInterface
from .interfaces import FusionKind, GraphOp, Index, Nest, ShapeFacts, element_type, rank

if TYPE_CHECKING:
    from .interfaces import Array


def saturated(values: np.ndarray, zero_point: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Quotients in f32 as quantised integers: rounded, shifted by the zero point, saturated."""
    nearest = np.where(np.isnan(values), np.float32(0), np.rint(values))
    limits = integer_range(integer_type(element_type_of(dtype)))
    return np.clip(nearest + zero_point.astype(np.float32), *limits).astype(dtype)


def saturated_scalar(
    nest: Nest, value: SSAValue, zero_point: SSAValue, source: Attribute, target: Attribute
) -> SSAValue:
    """The same for one scalar; `source` is the element type of the zero point."""
    nearest = nest.insert(math.RoundEvenOp(value))
    zero = nest.constant(0.0, f32)
    nearest = scalars.select(nest, scalars.equal(nest, nearest, nearest), nearest, zero)
    moved = scalars.add(nest, nearest, scalars.convert(nest, zero_point, source, f32))
    least, largest = integer_range(integer_type(target))
    cut = scalars.maximum(nest, moved, nest.constant(float(least), f32))
    cut = scalars.minimum(nest, cut, nest.constant(float(largest), f32))
    return scalars.convert(nest, nest.insert(arith.FPToSIOp(cut, i32)), i32, target)


class ScaledOp(GraphOp, CanonicalPropertiesInterface, ABC):
    """An elementwise operator with a scale and a zero point, for all elements or along an axis.

    Each is a scalar, or a vector along the `axis` of `x`, which is present if either is a vector.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

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

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, scale, zero_point = (dense_array(array) for array in arrays)
        beside = [-1 if axis == self.along else 1 for axis in range(x.ndim)]
        scale, zero_point = (v.reshape(beside) if v.ndim else v for v in (scale, zero_point))
        with np.errstate(all="ignore"):
            return self.stored(self.array(x, scale.astype(np.float32), zero_point))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        x, scale, zero_point = self.operands
        own = () if self.along is None else (index[self.along],)
        factor, moved = (nest.at(v, own if rank(v) else ()) for v in (scale, zero_point))
        factor = scalars.convert(nest, factor, element_type(scale), f32)
        return self.scalar(nest, nest.at(x, index), factor, moved)

    @abstractmethod
    def array(self, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        """The operator on arrays; `scale` is in f32."""

    @abstractmethod
    def scalar(self, nest: Nest, x: SSAValue, scale: SSAValue, zero_point: SSAValue) -> SSAValue:
        """The operator on scalars; `scale` is in f32."""


def _rank(shape: Shape) -> str:
    return f"rank {len(shape)}"


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

    def array(self, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        return saturated(x.astype(np.float32) / scale, zero_point, zero_point.dtype)

    def scalar(self, nest: Nest, x: SSAValue, scale: SSAValue, zero_point: SSAValue) -> SSAValue:
        kind = element_type(self.zero_point)
        return saturated_scalar(nest, scalars.divide(nest, x, scale), zero_point, kind, kind)


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

    def array(self, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        difference = x.astype(np.int32) - zero_point.astype(np.int32)
        return difference.astype(np.float32) * scale

    def scalar(self, nest: Nest, x: SSAValue, scale: SSAValue, zero_point: SSAValue) -> SSAValue:
        kind = element_type(self.x)
        left, right = (scalars.convert(nest, v, kind, i32) for v in (x, zero_point))
        difference = scalars.convert(nest, scalars.sub(nest, left, right), i32, f32)
        return scalars.mul(nest, difference, scale)


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

    def array(self, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        return saturated(x.astype(np.float32) * scale, zero_point, zero_point.dtype)

    def scalar(self, nest: Nest, x: SSAValue, scale: SSAValue, zero_point: SSAValue) -> SSAValue:
        kind = element_type(self.zero_point)
        value = scalars.mul(nest, scalars.convert(nest, x, i32, f32), scale)
        return saturated_scalar(nest, value, zero_point, kind, kind)

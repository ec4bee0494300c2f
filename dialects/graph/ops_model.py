"""Operators that only models have: batch normalisation and dropout, as they are at inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.pattern_rewriter import RewritePattern

from ...core.dims import Shape
from . import scalars
from .attrs import FLOAT_TENSOR, i64_attr
from .interfaces import FusionKind, GraphOp, Index, Nest, Precision, ShapeFacts, rank, widened
from .ops_contraction import same_element_types

if TYPE_CHECKING:
    from .interfaces import Array


@irdl_op_definition
class BatchNormOp(GraphOp):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, one number of each per channel.

    `axis` is the dimension of the channels (Ioffe and Szegedy, 2015).

    %y = graph.batch_norm %x, %scale, %bias, %mean, %variance epsilon = 1.0e-05 axis = 1
        : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
        -> tensor<2x3x4xf32>
    """

    name = "graph.batch_norm"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    x = operand_def(FLOAT_TENSOR)
    scale = operand_def(FLOAT_TENSOR)
    bias = operand_def(FLOAT_TENSOR)
    mean = operand_def(FLOAT_TENSOR)
    variance = operand_def(FLOAT_TENSOR)
    epsilon = prop_def(FloatAttr.constr(f64))
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$x `,` $scale `,` $bias `,` $mean `,` $variance `epsilon` `=` $epsilon `axis` `=` $axis "
        "attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation,
        bias: SSAValue | Operation,
        mean: SSAValue | Operation,
        variance: SSAValue | Operation,
        epsilon: float = 1e-5,
        axis: int = 1,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "epsilon": FloatAttr(epsilon, f64),
            "axis": i64_attr(axis),
        }
        operands = [x, scale, bias, mean, variance]
        super().__init__(operands=operands, properties=properties, result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        x, *parameters = shapes
        axis = facts.axis(self.axis.value.data, len(x))
        for what, shape in zip(("scale", "bias", "mean", "variance"), parameters, strict=True):
            if len(shape) != 1:
                facts.fail(f"{what} is not a vector", "rank 1", f"rank {len(shape)}")
            facts.equal(x[axis], shape[0], f"length of {what} differs from the channels")
        return [x]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *parameters = (widened(cast(np.ndarray, array)) for array in arrays)
        axis = self.axis.value.data % x.ndim
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        scale, bias, mean, variance = (p.reshape(shape) for p in parameters)
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(variance + x.dtype.type(self.epsilon.value.data))
            return self.stored((x - mean) * factor + bias)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        channel = (index[self.axis.value.data % rank(self.x)],)
        variance = nest.at(self.variance, channel)
        epsilon = nest.constant(self.epsilon.value.data, variance.type)
        deviation = nest.insert(math.SqrtOp(scalars.add(nest, variance, epsilon)))
        factor = scalars.divide(nest, nest.at(self.scale, channel), deviation)
        centred = scalars.sub(nest, nest.at(self.x, index), nest.at(self.mean, channel))
        return scalars.fma(nest, centred, factor, nest.at(self.bias, channel))


@irdl_op_definition
class DropoutOp(GraphOp, HasCanonicalizationPatternsInterface):
    """Dropout at inference: the identity. `ratio` is kept for people who read the model.

    %y = graph.dropout %x ratio = 5.0e-01 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.dropout"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE
    PRECISION: ClassVar[Precision | None] = Precision.FOLLOW

    x = operand_def(FLOAT_TENSOR)
    ratio = prop_def(FloatAttr.constr(f64))
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$x `ratio` `=` $ratio attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        x: SSAValue | Operation,
        ratio: float = 0.5,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {"ratio": FloatAttr(ratio, f64)}
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from .canonicalization import DropoutAtInference

        return (DropoutAtInference(),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        ratio = self.ratio.value.data
        if not 0 <= ratio <= 1:
            facts.fail("ratio out of range", "0 <= ratio <= 1", ratio)
        return [shapes[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        return nest.at(self.x, index)

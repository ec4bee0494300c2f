"""Operators for training and its leftovers: batch normalisation, and dropout at inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.dims import Shape
from ...core.exactness import Exactness
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR
from .axes import AxisOp
from .composite import CompositeOp, composite
from .interfaces import FusionKind, Index, Nest, ShapeFacts, rank, widened
from .kinds import Precision
from .normalization import ChannelStandardizationOp, check_channels
from .op_builder import OpBuilder, V
from .ops_contraction import same_element_types
from .ops_elementwise import FloatUnaryOp
from .rewrites import forward
from .traits import HalfPrecision, KeepsNonnegative

if TYPE_CHECKING:
    from .interfaces import Array


@irdl_op_definition
class BatchNormOp(AxisOp):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, with one of each per channel.

    `axis` is the dimension of the channels (Ioffe and Szegedy, 2015). Scale and bias may be
    missing.

    %y = graph.batch_norm %x scale %s : tensor<3xf32> bias %b : tensor<3xf32>
        mean %m : tensor<3xf32> variance %v : tensor<3xf32> axis = 1 epsilon = 1.0e-05
        : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    """

    name = "graph.batch_norm"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    x = operand_def(FLOAT_TENSOR)
    scale = opt_operand_def(FLOAT_TENSOR)
    bias = opt_operand_def(FLOAT_TENSOR)
    mean = operand_def(FLOAT_TENSOR)
    variance = operand_def(FLOAT_TENSOR)
    epsilon = prop_def(FloatAttr.constr(f64))
    result = result_def(FLOAT_TENSOR)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$x (`scale` $scale^ `:` type($scale))? (`bias` $bias^ `:` type($bias))? "
        "`mean` $mean `:` type($mean) `variance` $variance `:` type($variance) "
        "`axis` `=` $axis `epsilon` `=` $epsilon "
        "attr-dict `:` functional-type($x, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None,
        bias: SSAValue | Operation | None,
        mean: SSAValue | Operation,
        variance: SSAValue | Operation,
        epsilon: float = 1e-5,
        axis: int = 1,
        result_type: Attribute | None = None,
    ) -> None:
        given = [[] if p is None else [p] for p in (scale, bias)]
        super().__init__(
            operands=[x, *given, mean, variance],
            axis=axis,
            properties={"epsilon": FloatAttr(epsilon, f64)},
            result_type=result_type,
        )

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        x, *parameters = shapes
        for what, shape in zip(self._given, parameters, strict=True):
            check_channels(what, shape, x[self.axis_from_front], facts)
        return [x]

    @property
    def _given(self) -> list[str]:
        """The names of the parameters that are present."""
        optional = [n for n, p in (("scale", self.scale), ("bias", self.bias)) if p is not None]
        return [*optional, "mean", "variance"]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *parameters = (widened(dense_array(array)) for array in arrays)
        shape = [-1, *[1] * (x.ndim - self.axis_from_front - 1)]
        vectors = (p.reshape(shape) for p in parameters)
        given = dict(zip(self._given, vectors, strict=True))
        with np.errstate(all="ignore"):
            root = np.sqrt(given["variance"] + x.dtype.type(self.epsilon.value.data))
            factor = given.get("scale", x.dtype.type(1)) / root
            y = (x - given["mean"]) * factor
            return self.stored(y + given["bias"] if "bias" in given else y)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        channel = (index[self.axis_from_front],)
        variance = nest.at(self.variance, channel)
        epsilon = nest.constant(self.epsilon.value.data, variance.type)
        deviation = nest.insert(math.SqrtOp(scalars.add(nest, variance, epsilon)))
        one = nest.constant(1.0, variance.type)
        scale = one if self.scale is None else nest.at(self.scale, channel)
        factor = scalars.divide(nest, scale, deviation)
        centred = scalars.sub(nest, nest.at(self.x, index), nest.at(self.mean, channel))
        if self.bias is None:
            return scalars.mul(nest, centred, factor)
        return scalars.fma(nest, centred, factor, nest.at(self.bias, channel))


@irdl_op_definition
class BatchNormTrainingOp(ChannelStandardizationOp):
    """Standardize each channel over the whole batch, and return the means and variances.

    This is batch normalisation in training (Ioffe and Szegedy, 2015): `mean` and `variance` are
    those of x, one of each per channel. `axis` is the dimension of the channels.
    `graph.batch_norm` is the same with given statistics.

    %y, %mean, %variance = graph.batch_norm_training %x
        scale %s : tensor<3xf32> bias %b : tensor<3xf32> axis = 1 epsilon = 1.0e-05
        : (tensor<?x3x2xf32>) -> (tensor<?x3x2xf32>, tensor<3xf32>, tensor<3xf32>)
    """

    name = "graph.batch_norm_training"

    result = result_def(FLOAT_TENSOR)
    mean = result_def(FLOAT_TENSOR)
    variance = result_def(FLOAT_TENSOR)

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = 1,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__(x, scale, bias, axis, epsilon)

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(i for i in range(rank(self.x)) if i != self.axis_from_front)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = super().infer_shapes(shapes, facts)
        channels = (x[self.axis_from_front],)
        return [x, channels, channels]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *parameters = (widened(dense_array(array)) for array in arrays)
        with np.errstate(all="ignore"):
            y, mean, variance = self.standardized(x)
            y = self.affine(y, parameters)
        return self.stored(y, mean.reshape(-1), variance.reshape(-1))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        if result == 0:
            return super().value_at(nest, index)
        zero = AffineExpr.constant(0)
        own = tuple(index[0] if i == self.axis_from_front else zero for i in range(rank(self.x)))
        mean, correction, variance = self.statistics_at(nest, own)
        return scalars.add(nest, mean, correction) if result == 1 else variance


@composite(ratio=0.5)
class DropoutOp(CompositeOp, FloatUnaryOp, HasCanonicalizationPatternsInterface):
    """Dropout at inference: the identity. `ratio` is kept for readers of the model.

    %y = graph.dropout %x ratio = 5.0e-01 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.dropout"
    STAYS_CLOSED: ClassVar[bool] = True
    traits = traits_def(KeepsNonnegative(), HalfPrecision(Precision.FOLLOW))

    ratio = prop_def(FloatAttr.constr(f64))

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (DropoutAtInference(),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        ratio = self.ratio.value.data
        if not 0 <= ratio <= 1:
            facts.fail("ratio out of range", "0 <= ratio <= 1", ratio)
        return [shapes[0]]

    def body(self, b: OpBuilder[V], x: V) -> V:
        return x


@Exactness.EXACT
class DropoutAtInference(RewritePattern):
    # dropout(x) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DropoutOp, rewriter: PatternRewriter) -> None:
        forward(op, op.x, rewriter)

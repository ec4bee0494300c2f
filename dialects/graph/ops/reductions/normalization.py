"""Normalisations: `batch_norm`, `layer_norm` and their relatives.

Each says in its body which elements belong together, whose sums are computed once for all of them.
"""

from __future__ import annotations

import math as numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, FloatAttr, IntegerAttr, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, operand_def, opt_operand_def, prop_def, result_def

from .....core.algebra.dims import Dim, Shape
from .....core.ir.definitions import irdl_op_definition
from ...attrs import FLOAT_TENSOR, i64_attr
from ...axes import AxesOp, AxisOp, shape_along
from ...composite import CompositeOp
from ...constructors import operator
from ...interfaces import FusionKind, ShapeFacts, rank, tensor_type, text
from ...op_builder import OpBuilder, V
from ..products.contraction import same_element_types


def _affine(b: OpBuilder[V], y: V, scale: V | None, bias: V | None, shape: Sequence[int] = ()) -> V:
    """y * scale + bias, either of which may be None; both get `shape` if there is one."""
    for parameter, joined in ((scale, b.mul), (bias, b.add)):
        if parameter is not None:
            y = joined(y, b.reshape(parameter, shape) if shape else parameter)
    return y


def _inverse_root(b: OpBuilder[V], x: V, epsilon: float) -> V:
    """1 / sqrt(x + epsilon)."""
    return b.rsqrt(b.add(x, epsilon))


def _mean(b: OpBuilder[V], x: V, axes: Sequence[int]) -> V:
    return b.reduce(x, "mean", axes, keepdims=True)


class NormalizationOp(CompositeOp, ABC):
    """An operator on `x` that standardises, or divides by a norm: its axes and epsilon."""

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    epsilon = prop_def(FloatAttr.constr(f64))

    @property
    @abstractmethod
    def normalized_axes(self) -> tuple[int, ...]:
        """The axes along which elements belong together, from the front, rising."""

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        if not 0 <= (epsilon := self.epsilon.value.data) < numbers.inf:
            facts.fail("epsilon out of range", "0 <= epsilon < inf", epsilon)
        return [shapes[0]]


class StandardizationOp(AxisOp, NormalizationOp, ABC):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, where scale and bias may be missing.

    The variance is the mean of (x - mean)^2, not an estimate for a larger population.

    The rounding error of a mean that is large beside the deviation would be most of the error of
    the result. So the mean of the distances from it, which would be 0, is found along with that of
    their squares, and corrects both: the corrected two-pass algorithm of Chan, Golub and LeVeque
    (1983).
    """

    x = operand_def(FLOAT_TENSOR)
    scale = opt_operand_def(FLOAT_TENSOR)
    bias = opt_operand_def(FLOAT_TENSOR)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$x (`scale` $scale^ `:` type($scale))? (`bias` $bias^ `:` type($bias))? "
        "`axis` `=` $axis `epsilon` `=` $epsilon "
        "attr-dict `:` functional-type($x, results)"
    )

    @abstractmethod
    def check_parameter(self, what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
        """Refuse a scale or bias whose shape does not fit that of x."""

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, *parameters = shapes
        result = super().infer_shapes(shapes, facts)
        names = [n for n, given in (("scale", self.scale), ("bias", self.bias)) if given]
        for what, shape in zip(names, parameters, strict=True):
            self.check_parameter(what, shape, x, facts)
        return result

    def standardized(self, b: OpBuilder[V], x: V, mean_of: Callable[[V], V]) -> tuple[V, V, V, V]:
        """x with mean 0 and variance 1, and the mean, its correction and the variance it had.

        `mean_of` gives the mean of the elements that belong together, which broadcasts to x.
        """
        mean = mean_of(x)
        distance = b.sub(x, mean)
        correction = mean_of(distance)
        square = mean_of(b.mul(distance, distance))
        # By its rounding error the difference may be below 0.
        variance = b.max(b.sub(square, b.mul(correction, correction)), 0.0)
        distance = b.sub(distance, correction)
        y = b.mul(distance, _inverse_root(b, variance, self.epsilon.value.data))
        return y, mean, correction, variance


def _check_broadcast(what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
    """Refuse a parameter that does not broadcast to x."""
    fact = f"{what} of shape {text(shape)} does not broadcast to x"
    if len(shape) > len(x):
        facts.fail(fact, f"rank <= {len(x)}", f"rank {len(shape)}")
    for have, want in zip(reversed(shape), reversed(x), strict=False):
        if have != 1:
            facts.equal(want, have, fact)


def _check_channels(what: str, shape: Shape, channels: Dim, facts: ShapeFacts) -> None:
    """Refuse a parameter that is not a vector with a number for each channel."""
    if len(shape) != 1:
        facts.fail(f"{what} is not a vector", "rank 1", f"rank {len(shape)}")
    facts.equal(channels, shape[0], f"length of {what} differs from the channels")


@operator(axis=-1, epsilon=1e-5)
class LayerNormOp(StandardizationOp):
    """Standardize along `axis` and the axes after it (Ba, Kiros and Hinton, 2016).

    (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias, which may be
    missing, broadcast to x.

    %y = graph.layer_norm %x scale %s : tensor<4xf32> bias %b : tensor<4xf32>
        axis = -1 epsilon = 1.0e-05 : (tensor<?x4xf32>) -> tensor<?x4xf32>
    """

    name = "graph.layer_norm"

    result = result_def(FLOAT_TENSOR)

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(range(self.axis_from_front, rank(self.x)))

    def check_parameter(self, what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
        _check_broadcast(what, shape, x, facts)

    def body(self, b: OpBuilder[V], x: V, scale: V | None, bias: V | None) -> V:
        y, *_ = self.standardized(b, x, lambda v: _mean(b, v, self.normalized_axes))
        return _affine(b, y, scale, bias)


class ChannelStandardizationOp(StandardizationOp, ABC):
    """Scale and bias are vectors along `axis`, which is the dimension of the channels."""

    @property
    def vector(self) -> list[int]:
        """The shape in which scale and bias broadcast to x."""
        return shape_along(self.axis_from_front, rank(self.x))

    def check_parameter(self, what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
        _check_channels(what, shape, x[self.axis_from_front], facts)

    def check_batch(self, facts: ShapeFacts) -> None:
        """Refuse an x whose channels are its first dimension, which is that of the batch."""
        if self.axis_from_front == 0:
            facts.fail("the channels are the dimension of the batch", "axis != 0", 0)


@operator(axis=1, epsilon=1e-5)
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

    def body(self, b: OpBuilder[V], x: V, scale: V | None, bias: V | None) -> V:
        y, *_ = self.standardized(b, x, lambda v: _mean(b, v, self.normalized_axes))
        return _affine(b, y, scale, bias, self.vector)


@operator(axis=1, epsilon=1e-5)
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

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(range(1, rank(self.x)))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        self.check_batch(facts)
        groups, channels = self.groups.value.data, shapes[0][self.axis_from_front]
        if not channels.is_static:
            facts.fail("the number of channels is not known", "a number", channels)
        if groups < 1 or channels.value % groups:
            facts.fail("groups do not divide the channels", f"a divisor of {channels}", groups)
        return super().infer_shapes(shapes, facts)

    def body(self, b: OpBuilder[V], x: V, scale: V | None, bias: V | None) -> V:
        axis, sizes = self.axis_from_front, tensor_type(self.x).get_shape()
        if 0 in sizes:
            return x
        groups = [self.groups.value.data, sizes[axis] // self.groups.value.data]
        trailing = [-1 if n == DYNAMIC_INDEX else n for n in sizes[axis + 1 :]]
        before, after = [0] * axis, [1] * len(trailing)

        def mean_of_channels(v: V) -> V:
            inner = [i for i in self.normalized_axes if i != axis]
            apart = b.reshape(_mean(b, v, inner), [*before, *groups, *after])
            shape = [*[-1] * (axis + 1), groups[1], *[-1] * len(after)]
            spread = b.broadcast_to(_mean(b, apart, [axis + 1]), shape)
            return b.reshape(spread, [*before, sizes[axis], *after])

        if trailing.count(-1) > 1:  # no reshape can undo that of x
            y, *_ = self.standardized(b, x, mean_of_channels)
            return _affine(b, y, scale, bias, self.vector)
        apart = b.reshape(x, [*before, *groups, *trailing])
        axes = [i for i in range(1, len(sizes) + 1) if i != axis]
        y, *_ = self.standardized(b, apart, lambda v: _mean(b, v, axes))
        y = _affine(b, y, scale, bias, [*groups, *after])
        return b.reshape(y, [*before, sizes[axis], *trailing])


@operator(axis=-1, epsilon=1e-5)
class RmsNormOp(AxisOp, NormalizationOp):
    """x / sqrt(mean(x^2) + epsilon) * scale, the mean along `axis` and the axes after it.

    The scale, which may be missing, broadcasts to x (Zhang and Sennrich, 2019).

    %y = graph.rms_norm %x scale %s : tensor<4xf32> axis = -1 epsilon = 1.0e-05
        : (tensor<?x4xf32>) -> tensor<?x4xf32>
    """

    name = "graph.rms_norm"

    x = operand_def(FLOAT_TENSOR)
    scale = opt_operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$x (`scale` $scale^ `:` type($scale))? `axis` `=` $axis `epsilon` `=` $epsilon "
        "attr-dict `:` functional-type($x, results)"
    )

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(range(self.axis_from_front, rank(self.x)))

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, *scale = shapes
        for shape in scale:
            _check_broadcast("scale", shape, x, facts)
        return super().infer_shapes(shapes, facts)

    def body(self, b: OpBuilder[V], x: V, scale: V | None) -> V:
        square = _mean(b, b.mul(x, x), self.normalized_axes)
        y = b.mul(x, _inverse_root(b, square, self.epsilon.value.data))
        return _affine(b, y, scale, None)


@operator(axes=(-1,), epsilon=1e-12)
class L2NormalizeOp(AxesOp, NormalizationOp):
    """x / sqrt(max(sum(x^2), epsilon)), the sum along `axes`.

    With an epsilon above 0, slices of zeros along the axes stay 0.

    %y = graph.l2_normalize %x axes = [-1] epsilon = 1.0e-12
        : (tensor<?x4xf32>) -> tensor<?x4xf32>
    """

    name = "graph.l2_normalize"

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = (
        "$x `axes` `=` $axes `epsilon` `=` $epsilon "
        "attr-dict `:` functional-type(operands, results)"
    )

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return self.axes_from_front

    def body(self, b: OpBuilder[V], x: V) -> V:
        total = b.reduce(b.mul(x, x), "sum", self.normalized_axes, keepdims=True)
        return b.mul(x, b.rsqrt(b.max(total, self.epsilon.value.data)))


@operator(axis=1, epsilon=1e-5)
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

    @property
    def normalized_axes(self) -> tuple[int, ...]:
        return tuple(i for i in range(rank(self.x)) if i != self.axis_from_front)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = super().infer_shapes(shapes, facts)
        channels = (x[self.axis_from_front],)
        return [x, channels, channels]

    def body(self, b: OpBuilder[V], x: V, scale: V | None, bias: V | None) -> tuple[V, V, V]:
        y, mean, correction, variance = self.standardized(
            b, x, lambda v: _mean(b, v, self.normalized_axes)
        )
        y = _affine(b, y, scale, bias, self.vector)
        return y, b.reshape(b.add(mean, correction), [-1]), b.reshape(variance, [-1])


@irdl_op_definition
class BatchNormOp(AxisOp, CompositeOp):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, with one of each per channel.

    `axis` is the dimension of the channels (Ioffe and Szegedy, 2015). Scale and bias may be
    missing.

    %y = graph.batch_norm %x scale %s : tensor<3xf32> bias %b : tensor<3xf32>
        mean %m : tensor<3xf32> variance %v : tensor<3xf32> axis = 1 epsilon = 1.0e-05
        : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    """

    name = "graph.batch_norm"
    BROADCASTS: ClassVar[bool] = False

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
            properties={"axis": i64_attr(axis), "epsilon": FloatAttr(epsilon, f64)},
            result_type=result_type,
        )

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        x, *parameters = shapes
        for what, shape in zip(self._given, parameters, strict=True):
            _check_channels(what, shape, x[self.axis_from_front], facts)
        return [x]

    @property
    def _given(self) -> list[str]:
        """The names of the parameters that are present."""
        optional = [n for n, p in (("scale", self.scale), ("bias", self.bias)) if p is not None]
        return [*optional, "mean", "variance"]

    def body(
        self, b: OpBuilder[V], x: V, scale: V | None, bias: V | None, mean: V, variance: V
    ) -> V:
        # batch_norm(x) == x * k + (bias - mean * k): with constants these are two vectors.
        factor = _inverse_root(b, variance, self.epsilon.value.data)
        if scale is not None:
            factor = b.mul(scale, factor)
        centre = b.mul(mean, factor)
        shift = b.neg(centre) if bias is None else b.sub(bias, centre)
        return _affine(b, x, factor, shift, shape_along(self.axis_from_front, rank(self.x)))

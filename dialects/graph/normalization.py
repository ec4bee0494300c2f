"""What the operators of `ops_normalization` have in common, by what they compute.

Each says which elements belong together; the sums over such a set are computed once for it.
"""

from __future__ import annotations

import math as numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import AttrSizedOperandSegments, operand_def, opt_operand_def, prop_def

from ...core.dims import Dim, Shape, product
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR
from .axes import AxisOp
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    Nest,
    ShapeFacts,
    Sizes,
    element_type,
    rank,
    text,
    widened,
)
from .ops_contraction import same_element_types
from .ops_reduction import mean_of

if TYPE_CHECKING:
    from .interfaces import Array


class NormalizationOp(GraphOp, ABC):
    """What all have in common: an operand, the sets that its elements belong to, and epsilon.

    16 bits are computed in f32.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION
    PER_ELEMENT: ClassVar[int]
    """Operations on an element of x, without those of scale and bias."""

    x = operand_def(FLOAT_TENSOR)
    epsilon = prop_def(FloatAttr.constr(f64))

    @property
    @abstractmethod
    def normalized_axes(self) -> tuple[int, ...]:
        """The axes along which elements belong together, from the front, rising."""

    def check_epsilon(self, facts: ShapeFacts) -> None:
        """Refuse an epsilon for which no meaning is defined."""
        epsilon = self.epsilon.value.data
        if not 0 <= epsilon < numbers.inf:
            facts.fail("epsilon out of range", "0 <= epsilon < inf", epsilon)

    def flops(self, sizes: Sizes) -> Dim:
        given = len(self.operands) - 1
        return product(sizes.shape(self.x)) * (self.PER_ELEMENT + given)

    def grouped(self, x: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
        """x in a shape in which whole axes belong together, and these axes."""
        return x, self.normalized_axes

    def set_at(self, nest: Nest, index: Index) -> tuple[list[AffineExpr], Callable[[Index], Index]]:
        """The elements that the one at an index belongs to: how many, and where each is."""
        axes = self.normalized_axes

        def place(number: Index) -> Index:
            inner = iter(number)
            return tuple(next(inner) if i in axes else e for i, e in enumerate(index))

        return [nest.extent(self.x, axis) for axis in axes], place

    def sum_at(
        self,
        nest: Nest,
        index: Index,
        step: Callable[[SSAValue, SSAValue], SSAValue],
    ) -> tuple[SSAValue, list[AffineExpr]]:
        """The sum over the elements that belong together, and how many they are.

        `step` maps an element and the sum so far to the new sum.
        """
        extents, place = self.set_at(nest, index)
        zero = scalars.zero(nest, nest.compute_type(element_type(self.x)))
        total = nest.reduce(
            extents, "add", zero, lambda k, total: step(nest.at(self.x, place(k)), total)
        )
        return total, extents

    def mean_square(self, nest: Nest, index: Index) -> SSAValue:
        """The mean of the squares."""
        found = self.sum_at(nest, index, lambda x, total: scalars.fma(nest, x, x, total))
        return mean_of(nest, *found)

    def inverse_root(self, nest: Nest, value: SSAValue) -> SSAValue:
        """1 / sqrt(value + epsilon)."""
        shifted = scalars.add(nest, value, nest.constant(self.epsilon.value.data, value.type))
        root = nest.insert(math.SqrtOp(shifted))
        return scalars.divide(nest, nest.constant(1.0, value.type), root)


def mean_square(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean of the squares along some axes, which stay with size 1."""
    return _mean(x * x, axes)


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    count = numbers.prod(x.shape[axis] for axis in axes)
    return np.asarray(x.sum(axes, dtype=x.dtype, keepdims=True)) / x.dtype.type(count)


class StandardizationOp(AxisOp, NormalizationOp, ABC):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, where scale and bias may be missing.

    The variance is the mean of (x - mean)^2, not an estimate for a larger population.

    The rounding error of a mean that is large beside the deviation would be most of the error of
    the result. So the mean of the distances from it, which would be 0, is found along with that of
    their squares, and corrects both: the corrected two-pass algorithm of Chan, Golub and LeVeque
    (1983).
    """

    PER_ELEMENT: ClassVar[int] = 7

    # Again, because operands of a base class come after those of the class.
    x = operand_def(FLOAT_TENSOR)
    scale = opt_operand_def(FLOAT_TENSOR)
    bias = opt_operand_def(FLOAT_TENSOR)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$x (`scale` $scale^ `:` type($scale))? (`bias` $bias^ `:` type($bias))? "
        "`axis` `=` $axis `epsilon` `=` $epsilon "
        "attr-dict `:` functional-type($x, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = 1,
        epsilon: float = 1e-5,
        result_type: Attribute | None = None,
        **properties: Attribute,
    ) -> None:
        super().__init__(
            operands=[x, *([] if p is None else [p] for p in (scale, bias))],
            axis=axis,
            properties={"epsilon": FloatAttr(epsilon, f64), **properties},
            result_type=result_type,
        )

    @abstractmethod
    def check_parameter(self, what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
        """Refuse a scale or bias whose shape does not fit that of x."""

    @abstractmethod
    def parameter_index(self, parameter: SSAValue, index: Index) -> Index:
        """Where in scale or bias the number for the element at an index is."""

    @abstractmethod
    def parameter_array(self, parameter: np.ndarray) -> np.ndarray:
        """Scale or bias in a shape that broadcasts to that of x."""

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts)
        self.check_epsilon(facts)
        x, *parameters = shapes
        names = [n for n, given in (("scale", self.scale), ("bias", self.bias)) if given]
        for what, shape in zip(names, parameters, strict=True):
            self.check_parameter(what, shape, x, facts)
        return [x]

    def standardized(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x with mean 0 and variance 1, and the means and variances that it had."""
        apart, axes = self.grouped(x)
        mean = _mean(apart, axes)
        distance = apart - mean
        correction = _mean(distance, axes)
        variance = mean_square(distance, axes) - correction * correction
        epsilon = x.dtype.type(self.epsilon.value.data)
        variance = np.maximum(variance, x.dtype.type(0))
        inverse = x.dtype.type(1) / np.sqrt(variance + epsilon)
        return ((distance - correction) * inverse).reshape(x.shape), mean + correction, variance

    def affine(self, y: np.ndarray, parameters: Sequence[np.ndarray]) -> np.ndarray:
        """y * scale + bias, as far as they are given."""
        given = iter(self.parameter_array(parameter) for parameter in parameters)
        y = y * next(given) if self.scale is not None else y
        return y + next(given) if self.bias is not None else y

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, *parameters = (widened(dense_array(array)) for array in arrays)
        with np.errstate(all="ignore"):
            return self.stored(self.affine(self.standardized(x)[0], parameters))

    def statistics_at(self, nest: Nest, index: Index) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The mean of the group of an element, rounded, its correction, and the variance."""
        mean = mean_of(nest, *self.sum_at(nest, index, lambda x, t: scalars.add(nest, t, x)))
        extents, place = self.set_at(nest, index)
        zero = scalars.zero(nest, mean.type)

        def step(k: Index, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            distance = scalars.sub(nest, nest.at(self.x, place(k)), mean)
            total, squares = totals
            return (
                scalars.add(nest, total, distance),
                scalars.fma(nest, distance, distance, squares),
            )

        totals = nest.reduce_several(extents, ("add", "add"), (zero, zero), step)
        correction, square = (mean_of(nest, total, extents) for total in totals)
        variance = scalars.sub(nest, square, scalars.mul(nest, correction, correction))
        # By its rounding error the difference may be below 0.
        return mean, correction, scalars.maximum(nest, variance, zero)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        mean, correction, variance = self.statistics_at(nest, index)
        distance = scalars.sub(nest, scalars.sub(nest, nest.at(self.x, index), mean), correction)
        y = scalars.mul(nest, distance, self.inverse_root(nest, variance))
        if self.scale is not None:
            y = scalars.mul(nest, y, nest.at(self.scale, self.parameter_index(self.scale, index)))
        if self.bias is not None:
            y = scalars.add(nest, y, nest.at(self.bias, self.parameter_index(self.bias, index)))
        return y


def check_broadcast(what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
    """Refuse a parameter that does not broadcast to x."""
    fact = f"{what} of shape {text(shape)} does not broadcast to x"
    if len(shape) > len(x):
        facts.fail(fact, f"rank <= {len(x)}", f"rank {len(shape)}")
    for have, want in zip(reversed(shape), reversed(x), strict=False):
        if have != 1:
            facts.equal(want, have, fact)


class ChannelStandardizationOp(StandardizationOp, ABC):
    """Scale and bias are vectors along `axis`, which is the dimension of the channels."""

    def check_parameter(self, what: str, shape: Shape, x: Shape, facts: ShapeFacts) -> None:
        check_channels(what, shape, x[self.axis_from_front], facts)

    def parameter_index(self, parameter: SSAValue, index: Index) -> Index:
        return (index[self.axis_from_front],)

    def parameter_array(self, parameter: np.ndarray) -> np.ndarray:
        return parameter.reshape([-1, *[1] * (rank(self.x) - self.axis_from_front - 1)])

    def check_batch(self, facts: ShapeFacts) -> None:
        """Refuse an x whose channels are its first dimension, which is that of the batch."""
        if self.axis_from_front == 0:
            facts.fail("the channels are the dimension of the batch", "axis != 0", 0)


def check_channels(what: str, shape: Shape, channels: Dim, facts: ShapeFacts) -> None:
    """Refuse a parameter that is not a vector with a number for each channel."""
    if len(shape) != 1:
        facts.fail(f"{what} is not a vector", "rank 1", f"rank {len(shape)}")
    facts.equal(channels, shape[0], f"length of {what} differs from the channels")

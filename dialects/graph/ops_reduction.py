"""Operators that combine the elements of an axis: `reduce`, `softmax` and `log_softmax`."""

from __future__ import annotations

import math as numbers
from abc import ABC
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import math
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i1, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.dims import Dim, Shape
from ...core.exactness import Exactness
from ...core.typed import dense_array
from . import scalars
from .attrs import (
    FLOAT_TENSOR,
    NUMERIC_TENSOR,
    ReduceKind,
    ReduceKindAttr,
    bool_attr,
    i64_array,
    ints,
    is_float,
)
from .axes import AxesOp, AxisOp
from .combiners import COMBINER_OF
from .demands import DemandInterface, SizeBound
from .interfaces import (
    FusionKind,
    Index,
    Nest,
    ShapeFacts,
    element_type,
    rank,
    widened,
)
from .ops_binary import truncated_quotient
from .partitions import OverParts, PartitionInterface
from .remapped_axes import BlockableInterface, TransposableInterface
from .rewrites import forward
from .traits import NeverNegative, OrderStatisticInterface, SignInterface

if TYPE_CHECKING:
    from .interfaces import Array


@irdl_op_definition
class ReduceOp(
    AxesOp,
    DemandInterface,
    SignInterface,
    OrderStatisticInterface,
    PartitionInterface,
    TransposableInterface,
    BlockableInterface,
    HasCanonicalizationPatternsInterface,
):
    """The sum, mean, max, min or product over some axes.

    Integers wrap around, and their mean is truncated toward zero. An empty reduction yields 0
    for sum, 1 for prod and NaN for mean (0 for integers); for max and min it is an error, or
    with `neutral` yields -inf and inf (the limits of integers). f16 is reduced in f32. Without
    axes the result is the operand.

    %y = graph.reduce mean %x axes = [1] keepdims = false : (tensor<4x3xf32>) -> tensor<4xf32>
    """

    name = "graph.reduce"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    kind = prop_def(ReduceKindAttr)
    keepdims = prop_def(IntegerAttr.constr(i1))
    neutral = opt_prop_def(UnitAttr)
    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = (
        "$kind $x `axes` `=` $axes `keepdims` `=` $keepdims (`neutral` $neutral^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        kind: str,
        axes: Sequence[int],
        keepdims: bool = False,
        neutral: bool = False,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "kind": ReduceKindAttr(ReduceKind(kind)),
            "axes": i64_array(axes),
            "keepdims": bool_attr(keepdims),
            "neutral": UnitAttr() if neutral else None,
        }
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (ReduceNothing(),)

    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        kept = (ReduceKind.SUM, ReduceKind.MEAN, ReduceKind.MIN)
        return self.kind.data in kept and operands[0]

    @property
    def is_order_statistic(self) -> bool:
        return self.kind.data in (ReduceKind.MAX, ReduceKind.MIN) and self.neutral is None

    @property
    def over_parts(self) -> OverParts | None:
        kind = self.kind.data
        truncates = kind == ReduceKind.MEAN and not is_float(element_type(self.x))
        if 0 not in self.axes_from_front or truncates:
            return None
        limited = kind in (ReduceKind.MAX, ReduceKind.MIN)
        return kind, {"neutral": UnitAttr()} if limited else {}

    def on_transposed(self, order: Sequence[int]) -> dict[str, Attribute] | None:
        # The dimensions that are left have to be in order, as the result is not transposed.
        axes = self.axes_from_front
        kept = [axis for axis in order if axis not in axes]
        if not self.keepdims.value.data and (kept != sorted(kept) or not axes):
            return None
        return super().on_transposed(order)

    @property
    def demands(self) -> tuple[SizeBound, ...]:
        if not self.is_order_statistic:
            return ()
        return tuple(SizeBound(self.x, axis, 1) for axis in self.axes_from_front)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        axes = self.axes_from_front
        if any(x[bound.dimension] == 0 for bound in self.demands):
            facts.fail(f"{self.kind.data} of an empty axis", "a size of 1 or more", 0)
        if self.keepdims.value.data:
            return [tuple(Dim.of(1) if i in axes else d for i, d in enumerate(x))]
        return [tuple(d for i, d in enumerate(x) if i not in axes)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = widened(dense_array(arrays[0]))
        axes, kind, keep = self.axes_from_front, self.kind.data, bool(self.keepdims.value.data)
        if not axes:
            return self.stored(x)
        with np.errstate(all="ignore"):
            total = COMBINER_OF[kind].reduced(x, axes, keep)
            if kind == ReduceKind.MEAN:
                total = mean_of_sum(total, numbers.prod(x.shape[axis] for axis in axes))
            return self.stored(total)

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        kind, axes = self.kind.data, self.axes_from_front
        if not axes:
            return nest.at(self.x, index)
        element = element_type(self.x)
        type, combiner = nest.compute_type(element), COMBINER_OF[kind]
        kept = self._kept(index)

        def step(reduced: Index, total: SSAValue) -> SSAValue:
            inner, outer = iter(reduced), iter(kept)
            own = tuple(next(inner if i in axes else outer) for i in range(rank(self.x)))
            return combiner.step(nest, total, combiner.key(nest, nest.at(self.x, own), element))

        extents = [nest.extent(self.x, axis) for axis in axes]
        total = nest.reduce(extents, combiner.name, combiner.init(nest, type), step)
        if kind == ReduceKind.MEAN:
            return mean_of(nest, total, extents, element)
        return combiner.key(nest, total, element)

    def _kept(self, index: Index) -> Index:
        if not self.keepdims.value.data:
            return index
        return tuple(e for i, e in enumerate(index) if i not in self.axes_from_front)


def begins_at_zero(kind: ReduceKind, element: Attribute) -> bool:
    """Whether a reduction adds its first element to 0.0, which turns -0.0 into 0.0."""
    return kind in (ReduceKind.SUM, ReduceKind.MEAN) and is_float(element)


def mean_of_sum(total: np.ndarray, count: int | np.ndarray) -> np.ndarray:
    """A sum divided by the number of its terms; integers truncated toward zero."""
    terms = np.asarray(count)
    if total.dtype.kind == "f":
        return total / terms.astype(total.dtype)
    wide = np.uint64 if total.dtype.kind == "u" else np.int64
    return truncated_quotient(total.astype(wide), terms.astype(wide))


def mean_of(
    nest: Nest, total: SSAValue, extents: Sequence[AffineExpr], kind: Attribute | None = None
) -> SSAValue:
    """A sum divided by the number of its terms; integers as i64, which holds that number."""
    type = total.type
    wide = type if is_float(type) else i64
    count = nest.constant(1.0 if is_float(type) else 1, wide)
    for extent in extents:
        count = scalars.mul(nest, count, scalars.from_index(nest, nest.value(extent), wide))
    dividend = scalars.convert(nest, total, type, wide)
    quotient = scalars.divide(nest, dividend, count, kind)
    return scalars.convert(nest, quotient, wide, type)


class NormalizedExponentialOp(AxisOp, TransposableInterface, ABC):
    """Common code of `softmax` and `log_softmax`: the maximum and the sum of exp along one axis.

    A row with a NaN or an inf, or of -inf only, is NaN, as in NumPy.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    x = operand_def(FLOAT_TENSOR)
    result = result_def(FLOAT_TENSOR)

    assembly_format = "$x `axis` `=` $axis attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        x: SSAValue | Operation,
        axis: int = -1,
        result_type: Attribute | None = None,
    ) -> None:
        super().__init__(operands=[x], axis=axis, result_type=result_type)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def shifted(self, x: np.ndarray) -> np.ndarray:
        """x minus its maximum along the axis: the argument of exp."""
        return x - np.max(x, axis=self.axis_from_front, keepdims=True, initial=-np.inf)

    def row(self, nest: Nest, index: Index) -> tuple[SSAValue, SSAValue]:
        """The origin of the row of an index, and the sum of `exponential` over the row.

        The maximum ignores a NaN, which makes the sum NaN.
        """
        axis = self.axis_from_front
        type = nest.compute_type(element_type(self.x))
        extents = [nest.extent(self.x, axis)]

        def along(k: Index) -> Index:
            return (*index[:axis], k[0], *index[axis + 1 :])

        def larger(k: Index, best: SSAValue) -> SSAValue:
            return scalars.larger(nest, nest.at(self.x, along(k)), best)

        lowest = nest.constant(-np.inf, type)
        origin = self.origin(nest, nest.reduce(extents, "maxnum", lowest, larger))

        def accumulate(k: Index, total: SSAValue) -> SSAValue:
            return scalars.add(nest, total, self.exponential(nest, along(k), origin))

        total = nest.reduce(extents, "add", scalars.zero(nest, type), accumulate)
        return origin, total

    def origin(self, nest: Nest, maximum: SSAValue) -> SSAValue:
        """What elements are less before their exponentials are taken."""
        return maximum

    def exponential(self, nest: Nest, index: Index, origin: SSAValue) -> SSAValue:
        """exp(x - origin) at an index."""
        difference = scalars.sub(nest, nest.at(self.x, index), origin)
        return scalars.exp_of_difference(nest, difference)


@irdl_op_definition
class SoftmaxOp(NormalizedExponentialOp):
    """exp(x - max) / sum(exp(x - max)) along one axis.

    %y = graph.softmax %x axis = -1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.softmax"
    traits = traits_def(NeverNegative())

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            e = np.exp(self.shifted(widened(dense_array(arrays[0]))))
            return self.stored(e / e.sum(axis=self.axis_from_front, keepdims=True))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        origin, total = self.row(nest, index)
        one = nest.constant(1.0, total.type)
        scale = scalars.divide(nest, one, total)
        return scalars.mul(nest, self.exponential(nest, index, origin), scale)

    def origin(self, nest: Nest, maximum: SSAValue) -> SSAValue:
        return scalars.origin_of_softmax(nest, maximum)

    def exponential(self, nest: Nest, index: Index, origin: SSAValue) -> SSAValue:
        """exp(x - origin) at an index, computed once if the row is contiguous."""
        compute = partial(super().exponential, nest, origin=origin)
        if self.axis_from_front != len(index) - 1:
            return compute(index)
        return nest.keep(self.result, index, compute)


@irdl_op_definition
class LogSoftmaxOp(NormalizedExponentialOp):
    """x - max - log(sum(exp(x - max))) along one axis.

    %y = graph.log_softmax %x axis = -1 : (tensor<4x3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.log_softmax"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            shifted = self.shifted(widened(dense_array(arrays[0])))
            total = np.exp(shifted).sum(axis=self.axis_from_front, keepdims=True)
            return self.stored(shifted - np.log(total))

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        maximum, total = self.row(nest, index)
        shifted = scalars.sub(nest, nest.at(self.x, index), maximum)
        return scalars.sub(nest, shifted, nest.insert(math.LogOp(total)))


@Exactness.EXACT
class ReduceNothing(RewritePattern):
    # reduce(x, axes = []) == x
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        if not ints(op.axes):
            forward(op, op.x, rewriter)

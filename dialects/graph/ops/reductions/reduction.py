"""`graph.reduce`, which combines the elements of some axes."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i1, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ...attrs import NUMERIC_TENSOR, ReduceKind, ReduceKindAttr, is_float
from ...axes import AxesOp
from ...combiners import COMBINER_OF
from ...constructors import operator
from ...demands import DemandInterface, SizeBound
from ...interfaces import FusionKind, Indices, Nest, ShapeFacts, element_type, rank, widened
from ...nests import scalars
from ...partitions import OverParts, PartitionInterface
from ...remapped_axes import BlockableInterface, TransposableInterface
from ...rules import rule
from ...traits import OrderStatisticInterface, SignInterface
from ..elementwise.binary import truncated_quotient

if TYPE_CHECKING:
    from ...interfaces import Array


@operator(keepdims=False, neutral=False)
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
    """The sum, mean, max, min or product over some axes; maxnum is a max that ignores NaN.

    Integers wrap around, and their mean is truncated toward zero. An empty reduction yields 0
    for sum, 1 for prod, NaN for mean (0 for integers) and -inf for maxnum (the least integer);
    for max and min it is an error, or with `neutral` yields -inf and inf (the limits of
    integers). f16 is reduced in f32. Without axes the result is the operand.

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

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (reduce_nothing,)

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

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        kind, axes = self.kind.data, self.axes_from_front
        if not axes:
            return nest.at(self.x, index)
        element = element_type(self.x)
        type, combiner = nest.compute_type(element), COMBINER_OF[kind]
        kept = self._kept(index)

        def step(reduced: Indices, total: SSAValue) -> SSAValue:
            inner, outer = iter(reduced), iter(kept)
            own = tuple(next(inner if i in axes else outer) for i in range(rank(self.x)))
            return combiner.step(nest, total, combiner.key(nest, nest.at(self.x, own), element))

        extents = [nest.extent(self.x, axis) for axis in axes]
        total = nest.reduce(extents, combiner.name, combiner.init(nest, type), step)
        if kind == ReduceKind.MEAN:
            return mean_of(nest, total, extents, element)
        return combiner.key(nest, total, element)

    def _kept(self, index: Indices) -> Indices:
        if not self.keepdims.value.data:
            return index
        return tuple(e for i, e in enumerate(index) if i not in self.axes_from_front)


def keeps_one(kind: ReduceKind, element: Attribute) -> bool:
    """Whether a reduction of one element is that element, whatever it is.

    A sum of floats starts from 0.0, which turns -0.0 into 0.0, and maxnum ignores NaN.
    """
    changing = (ReduceKind.SUM, ReduceKind.MEAN, ReduceKind.MAXNUM)
    return kind not in changing or not is_float(element)


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


@rule("reduce(x, axes=[]) == x", EXACT)
def reduce_nothing() -> None: ...

"""Reductions of segments: runs of slices that one tensor of offsets delimits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from .....core.algebra.dims import Dim, Shape
from .....core.boundary.indices import explained_offset, wrong_offset
from .....core.errors import InputError
from .....core.ir.provenance import origin
from ...attrs import INDEX_TENSOR, NUMERIC_TENSOR, ReduceKind, ReduceKindAttr
from ...combiners import COMBINER_OF
from ...constructors import operator
from ...demands import DemandInterface, OffsetBound, SizeBound
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, element_type, widened
from ...traits import SignInterface
from .reduction import mean_of, mean_of_sum

if TYPE_CHECKING:
    from ...interfaces import Array


@operator(kind="sum")
class SegmentReduceOp(GraphOp, DemandInterface, SignInterface):
    """The sum, mean, max, min or product of each segment of the slices of x along its first axis.

    Segment i has the slices from `offsets[i]` up to `offsets[i + 1]`: there is one segment less
    than there are offsets. Offsets never decrease, from 0 up to the number of slices, which is
    checked in each call; slices before the first one and from the last one on are in no segment. An
    empty segment yields 0 for sum, 1 for prod, NaN for mean (0 for integers), -inf for max and inf
    for min (the limits of integers). f16 is reduced in f32, and integers wrap around.

    %y = graph.segment_reduce sum %x, %offsets
        : (tensor<?x2xf32>, tensor<4xi64>) -> tensor<3x2xf32>
    """

    name = "graph.segment_reduce"
    FUSION: ClassVar[FusionKind] = FusionKind.REDUCTION

    kind = prop_def(ReduceKindAttr)
    x = operand_def(NUMERIC_TENSOR)
    offsets = operand_def(INDEX_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$kind $x `,` $offsets attr-dict `:` functional-type(operands, results)"

    @property
    def demands(self) -> tuple[OffsetBound | SizeBound, ...]:
        return OffsetBound(self.offsets, self.x, 0), SizeBound(self.offsets, 0, 1)

    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        kept = (ReduceKind.SUM, ReduceKind.MEAN, ReduceKind.MIN)
        return self.kind.data in kept and operands[0]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        x, offsets = shapes
        if not x:
            facts.fail("x has no axis to divide into segments", "rank >= 1", "rank 0")
        if len(offsets) != 1:
            facts.fail("wrong rank of the offsets", 1, len(offsets))
        if offsets[0] == 0:
            facts.fail("too few offsets", "1 or more", 0)
        return [(offsets[0] - Dim.of(1), *x[1:])]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, offsets = cast(tuple[np.ndarray, np.ndarray], arrays)
        fault = wrong_offset(offsets, len(x))
        if fault is not None:
            raise InputError(f"{origin(self) or self.name}: {explained_offset(*fault)}")
        x, kind, counts = widened(x), self.kind.data, np.diff(offsets)
        segments = np.repeat(np.arange(len(counts)), counts)
        found = np.full((len(counts), *x.shape[1:]), COMBINER_OF[kind].first(x.dtype), x.dtype)
        with np.errstate(all="ignore"):
            COMBINER_OF[kind].ufunc.at(found, segments, x[offsets[0] : offsets[-1]])
            if kind == ReduceKind.MEAN:
                found = mean_of_sum(found, counts.reshape(-1, *[1] * (x.ndim - 1)))
            return self.stored(found)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        kind, (segment, *rest) = self.kind.data, index
        combiner, element = COMBINER_OF[kind], element_type(self.x)
        type = nest.compute_type(element)
        begin, end = (
            nest.index(nest.at(self.offsets, (number,))) for number in (segment, segment + 1)
        )

        def step(place: Indices, total: SSAValue) -> SSAValue:
            x = nest.at(self.x, (begin + place[0], *rest))
            return combiner.step(nest, total, combiner.key(nest, x, element))

        extents = [end - begin]
        total = nest.reduce(extents, combiner.name, combiner.init(nest, type), step)
        if kind == ReduceKind.MEAN:
            return mean_of(nest, total, extents, element)
        return combiner.key(nest, total, element)

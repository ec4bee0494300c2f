"""Operators on boxes of detections: `suppress_boxes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import operand_def, result_def, traits_def

from ...core.dims import Shape
from ...core.typed import dense_array
from . import scalars
from .attrs import FLOAT_TENSOR, I64_TENSOR
from .constructors import operator
from .guards import only_if
from .interfaces import (
    FusionKind,
    GraphOp,
    Index,
    ShapeFacts,
    WritingNest,
    element_type,
    text,
    widened,
)
from .order_keys import PlaceAt, key_bits, order_key
from .sorting import known_size, sort_where
from .traits import Discontinuous

if TYPE_CHECKING:
    from .interfaces import Array

_SIDES = tuple(map(AffineExpr.constant, range(4)))


@operator()
class SuppressBoxesOp(GraphOp):
    """The boxes of each class that are chosen by non-maximum suppression, best first.

    The box with the highest score is chosen, those that overlap it are dropped, and so on: as
    long as there are boxes, and at most `most` times. Of equal scores the first comes first. Two
    boxes overlap if the area of their intersection is more than `overlap` times that of their
    union. Only scores above `least` take part; all do if it is NaN, and no score that is NaN.

    Boxes are (batch, n, 4): low corner, high corner. Scores are (batch, classes, n), and so are
    the results: indices of boxes in the order in which they are chosen, then -1.

    %s = graph.suppress_boxes %boxes, %scores, %most, %overlap, %least
        : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>)
        -> tensor<1x3x9xi64>
    """

    name = "graph.suppress_boxes"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    traits = traits_def(Discontinuous())

    boxes = operand_def(FLOAT_TENSOR)
    scores = operand_def(FLOAT_TENSOR)
    most = operand_def(I64_TENSOR)
    overlap = operand_def(FLOAT_TENSOR)
    least = operand_def(FLOAT_TENSOR)
    result = result_def(I64_TENSOR)

    assembly_format = (
        "$boxes `,` $scores `,` $most `,` $overlap `,` $least attr-dict `:` "
        "functional-type(operands, results)"
    )

    def infer_element_types(self) -> list[Attribute]:
        return [i64]

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        boxes, scores, *limits = shapes
        kinds = [element_type(value) for value in (self.boxes, self.scores)]
        kinds += [element_type(value) for value in (self.overlap, self.least)]
        if len(set(kinds)) > 1:
            facts.fail("element types differ", kinds[0], next(k for k in kinds if k != kinds[0]))
        if len(boxes) != 3 or boxes[2] != 4:
            facts.fail("boxes have the wrong shape", "(batch, n, 4)", text(boxes))
        if len(scores) != 3:
            facts.fail("scores have the wrong rank", 3, len(scores))
        if any(limits):
            facts.fail("a limit is not a scalar", "rank 0", f"rank {max(map(len, limits))}")
        batch = facts.equal(boxes[0], scores[0], "scores of another batch")
        return [(batch, scores[1], facts.equal(boxes[1], scores[2], "scores of other boxes"))]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        boxes, scores, most, overlap, least = (widened(dense_array(a)) for a in arrays)
        result = np.full(scores.shape, -1, np.int64)
        for batch, own in np.ndindex(scores.shape[:2]):
            rank = scores[batch, own]
            with np.errstate(invalid="ignore"):
                left = np.flatnonzero((rank == rank) & ~(rank <= least))
            for place in range(min(len(left), max(int(most), 0))):
                if not len(left):
                    break
                best = left[np.argmax(rank[left])]
                result[batch, own, place] = best
                others = left[left != best]
                left = others[~_overlap(boxes[batch, best], boxes[batch, others], overlap)]
        return self.stored(result)

    def write(self, nest: WritingNest) -> None:
        nest.fill(0, lambda _: nest.constant(-1, i64))
        if known_size(nest.extent(self.scores, 2)) == 0:
            return
        with nest.loops([nest.extent(self.scores, dim) for dim in range(2)]) as row:
            box_at, count = self._candidates(nest, row)
            self._choose(nest, row, box_at, count)

    def _candidates(self, nest: WritingNest, row: Index) -> tuple[PlaceAt, AffineExpr]:
        """The boxes of a class that take part, best first, and their number."""
        kind, least = element_type(self.scores), nest.at(self.least, ())

        def keep(box: AffineExpr) -> SSAValue:
            score = nest.at(self.scores, (*row, box))
            low = scalars.less_equal(nest, score, least)
            is_number = scalars.equal(nest, score, score)
            return scalars.select(nest, low, nest.constant(False, i1), is_number)

        def key(box: AffineExpr) -> SSAValue:
            return order_key(nest, nest.at(self.scores, (*row, box)), kind, True)

        return sort_where(nest, nest.extent(self.scores, 2), keep, key, key_bits(kind))

    def _choose(self, nest: WritingNest, row: Index, box_at: PlaceAt, number: AffineExpr) -> None:
        """Choose boxes in order, unless they overlap one that is chosen."""
        extent, kind = nest.extent(self.scores, 2), nest.compute_type(element_type(self.boxes))
        chosen = nest.local((AffineExpr.constant(4), extent), kind)
        most, limit = nest.at(self.most, ()), nest.at(self.overlap, ())
        none, no = nest.constant(0, i64), nest.constant(0, i32)

        def step(place: AffineExpr, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (count,), box = carried, box_at(place)
            own = [nest.at(self.boxes, (row[0], nest.index(box), side)) for side in _SIDES]
            # Without a branch: the next box overwrites one that is not chosen.
            for side, value in zip(_SIDES, own, strict=True):
                chosen.put((side, nest.index(count)), value)

            def overlap(other: Index, found: SSAValue) -> SSAValue:
                sides = [chosen.at((side, *other)) for side in _SIDES]
                share = _intersection_over_union(nest, own, sides)
                over = scalars.less(nest, limit, share)
                return scalars.add(nest, found, scalars.convert(nest, over, i1, i32))

            is_open = scalars.less(nest, count, most)
            earlier = nest.index(scalars.select(nest, is_open, count, none))
            is_apart = scalars.equal(nest, nest.reduce([earlier], "add", no, overlap), no)
            chooses = nest.insert(arith.AndIOp(is_open, is_apart))
            target = (*row, nest.index(count))
            only_if(nest, chooses, lambda: nest.update(0, target, box))
            return [scalars.add(nest, count, scalars.convert(nest, chooses, i1, i64))]

        nest.serial(number, [none], step)


def _intersection_over_union(
    nest: WritingNest, a: Sequence[SSAValue], b: Sequence[SSAValue]
) -> SSAValue:
    """The area that two boxes share as a fraction of what they cover; 0 where they share none."""
    zero = scalars.zero(nest, a[0].type)

    def area(box: Sequence[SSAValue]) -> SSAValue:
        sides = [scalars.sub(nest, box[axis + 2], box[axis]) for axis in range(2)]
        return scalars.mul(nest, *sides)

    low = [scalars.maximum(nest, a[axis], b[axis]) for axis in range(2)]
    high = [scalars.minimum(nest, a[axis], b[axis]) for axis in range(2, 4)]
    sides = [
        scalars.maximum(nest, scalars.sub(nest, end, start), zero)
        for start, end in zip(low, high, strict=True)
    ]
    common = scalars.mul(nest, *sides)
    union = scalars.sub(nest, scalars.add(nest, area(a), area(b)), common)
    share = scalars.divide(nest, common, union)
    return scalars.select(nest, scalars.less(nest, zero, common), share, zero)


def _overlap(best: np.ndarray, others: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Whether boxes overlap the best one."""
    low = np.maximum(best[:2], others[:, :2])
    high = np.minimum(best[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1, dtype=best.dtype)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1, dtype=best.dtype)
    union = np.prod(best[2:] - best[:2], dtype=best.dtype) + areas - common
    share = np.divide(common, union, out=np.zeros_like(common), where=common > 0)
    return share > limit

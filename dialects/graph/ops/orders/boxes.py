"""Operators on boxes of detections: `suppress_boxes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def

from .....core.algebra.dims import Shape
from .....core.ir.typed import dense_array
from ...attrs import FLOAT_TENSOR, I64_TENSOR
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, ShapeFacts, element_type, text, widened
from ...nests.body import KernelBody
from ...nests.buffers import Buffer, Index, Scalar
from ...traits import Discontinuous
from .order_keys import PlaceAt, key_bits, order_key
from .sorting import sort_where

if TYPE_CHECKING:
    from ...interfaces import Array


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

    def write(
        self,
        k: KernelBody,
        boxes: Buffer,
        scores: Buffer,
        most: Buffer,
        overlap: Buffer,
        least: Buffer,
        result: Buffer,
    ) -> None:
        result.fill(-1)
        if scores.shape[2] == 0:
            return
        with k.loops(scores.shape[:2]) as row:
            box_at, count = self._candidates(k, row, scores, least[()])
            chosen = k.local((4, scores.shape[2]), boxes.type)
            most_chosen, limit = most[()], overlap[()]
            none = k.scalar(0, i64)

            def choose(place: Index, count: Scalar) -> tuple[Scalar]:
                """Choose a box, unless it overlaps one that is chosen."""
                box = box_at(place)
                own = [boxes[row[0], box, side] for side in range(4)]
                # Without a branch: the next box overwrites one that is not chosen.
                for side, value in enumerate(own):
                    chosen[side, count] = value

                def overlaps(other: Index, found: Scalar) -> Scalar:
                    sides = [chosen[side, other] for side in range(4)]
                    return found + k.cast(limit < _intersection_over_union(k, own, sides), i32)

                is_open = count < most_chosen
                earlier = k.where(is_open, count, none)
                is_apart = k.equal(k.reduce(earlier, "add", k.scalar(0, i32), overlaps), 0)
                chooses = is_open & is_apart
                with k.only_if(chooses):
                    result.update((*row, count), box)
                return (count + k.cast(chooses, i64),)

            k.carry(count, [none], choose)

    def _candidates(
        self, k: KernelBody, row: tuple[Index, ...], scores: Buffer, least: Scalar
    ) -> tuple[PlaceAt, int | Index]:
        """The boxes of a class that take part, best first, and their number."""
        kind = element_type(self.scores)

        def keep(box: Index) -> Scalar:
            score = scores[(*row, box)]
            return k.where(score <= least, k.scalar(False, i1), k.equal(score, score))

        def key(box: Index) -> Scalar:
            return k.apply(order_key, scores[(*row, box)], kind, True)

        return sort_where(k, scores.shape[2], keep, key, key_bits(kind))


def _intersection_over_union(k: KernelBody, a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """The area that two boxes share as a fraction of what they cover; 0 where they share none."""

    def area(box: Sequence[Scalar]) -> Scalar:
        width, height = (box[axis + 2] - box[axis] for axis in range(2))
        return width * height

    low = [k.maximum(a[axis], b[axis]) for axis in range(2)]
    high = [k.minimum(a[axis], b[axis]) for axis in range(2, 4)]
    width, height = (k.maximum(end - start, 0.0) for start, end in zip(low, high, strict=True))
    common = width * height
    union = area(a) + area(b) - common
    share = common / union
    return k.where(common > 0.0, share, 0.0)


def _overlap(best: np.ndarray, others: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Whether boxes overlap the best one."""
    low = np.maximum(best[:2], others[:, :2])
    high = np.minimum(best[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1, dtype=best.dtype)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1, dtype=best.dtype)
    union = np.prod(best[2:] - best[:2], dtype=best.dtype) + areas - common
    share = np.divide(common, union, out=np.zeros_like(common), where=common > 0)
    return share > limit

"""Identities of quantised tensors: operators that may work on the integers instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.dtypes import dtype_of
from ....core.exactness import Exactness
from ....core.provenance import fuse
from ....core.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import PadMode, ReduceKind, ints
from ....dialects.graph.interfaces import GraphOp, element_type
from ....dialects.graph.known import elements_of
from .rooted import rooted

_MOVES = (graph.ReshapeOp, graph.TransposeOp, graph.SliceOp)


def known_elements(value: SSAValue, weights: WeightStore) -> np.ndarray | None:
    """The elements of a constant, also after operators that move or shift them."""
    op = value.owner
    if not isinstance(op, (*_MOVES, graph.CastOp, graph.SubOp)):
        return elements_of(value, weights)
    known = [known_elements(operand, weights) for operand in op.operands]
    arrays = [array for array in known if array is not None]
    return cast(np.ndarray, op.reference(*arrays)[0]) if len(arrays) == len(known) else None


def is_scale(value: SSAValue, weights: WeightStore) -> bool:
    """Whether a constant is a scale in f32 whose products and quotients are normal numbers."""
    elements = elements_of(value, weights)
    if elements is None or elements.dtype != np.float32:
        return False
    return bool(np.all((elements >= 2.0**-40) & (elements <= 2.0**40)))


def same_elements(a: SSAValue, b: SSAValue, weights: WeightStore) -> bool:
    """Whether two values are the same, or constants with the same elements."""
    left, right = elements_of(a, weights), elements_of(b, weights)
    if a is b or left is None or right is None:
        return a is b
    return left.dtype == right.dtype and np.array_equal(left, right)


@Exactness.EXACT
@dataclass
class QuantizeWhatWasQuantized(RewritePattern):
    """Remove a quantisation that undoes the dequantisation before it."""

    weights: WeightStore

    # quantize(dequantize(q, s, z), s, z) == q
    @rooted
    def match_and_rewrite(self, op: graph.QuantizeOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.DequantizeOp) or inner.x.type != op.result.type:
            return
        # (n * s) / s is n with an error of 2 roundings, far from a half for n of 17 bits.
        if inner.along != op.along or not is_scale(op.scale, self.weights):
            return
        pairs = (inner.scale, op.scale), (inner.zero_point, op.zero_point)
        if all(same_elements(a, b, self.weights) for a, b in pairs):
            rewriter.replace(op, [], [inner.x])


@Exactness.EXACT
@dataclass
class QuantizeWhatWasCut(RewritePattern):
    """Clip the integers instead of the floats."""

    weights: WeightStore

    # quantize(clip(x, a, b)) == clip(quantize(x), quantize(a), quantize(b))  for a <= 0 <= b
    # likewise relu(x), which is clip(x, 0, inf): rounding is monotonic, and NaN becomes the
    # zero point, which is quantize(0)
    @rooted
    def match_and_rewrite(self, op: graph.QuantizeOp, rewriter: PatternRewriter) -> None:
        cut = op.x.owner
        if not isinstance(cut, graph.ReluOp | graph.ClipOp) or not op.x.has_one_use():
            return
        low, high = (0.0, None) if isinstance(cut, graph.ReluOp) else cut.bounds
        scale, zero = (elements_of(v, self.weights) for v in (op.scale, op.zero_point))
        if scale is None or zero is None or op.along is not None or cut.x.type != op.x.type:
            return
        if (low or 0) > 0 or (0 if high is None else high) < 0:
            return
        if not is_scale(op.scale, self.weights) or element_type(op.x) != element_type(op.scale):
            return
        limits = np.iinfo(dtype_of(element_type(op.result)))
        bounds = [None if n is None else self._step(op, n, scale, zero) for n in (low, high)]
        minimum = None if bounds[0] in (None, limits.min) else bounds[0]
        maximum = None if bounds[1] in (None, limits.max) else bounds[1]
        new: list[GraphOp] = [graph.QuantizeOp(cut.x, op.scale, op.zero_point)]
        if minimum is not None or maximum is not None:
            new.append(graph.ClipOp(new[0], minimum, maximum))
        for part in new:
            part.location = fuse([cut, op])
        rewriter.replace(op, new, new[-1].results)

    @staticmethod
    def _step(op: graph.QuantizeOp, number: float, scale: np.ndarray, zero: np.ndarray) -> int:
        return int(cast(np.ndarray, op.reference(np.asarray(number, np.float32), scale, zero)[0]))


@Exactness.EXACT
@dataclass
class MoveOfDequantized(RewritePattern):
    """Move the integers instead of the floats."""

    weights: WeightStore

    # move(dequantize(q)) == dequantize(move(q))  for reshape, transpose and slice, for the
    # maximum of windows, and for pad with 0, which pads the integers with the zero point
    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, (*_MOVES, graph.PoolOp, graph.PadOp)):
            return
        inner = op.x.owner
        if not isinstance(inner, graph.DequantizeOp):
            return
        axis = inner.along
        if isinstance(op, graph.TransposeOp):
            axis = None if axis is None else ints(op.permutation).index(axis)
        elif axis is not None:
            return
        moved = self._moved(op, inner)
        if moved is None:
            return
        new = graph.DequantizeOp(moved, inner.scale, inner.zero_point, axis)
        if new.result.type != op.results[0].type:
            new.erase()
            moved.erase()
            return
        moved.location, new.location = op.location, inner.location
        rewriter.replace(op, [moved, new], new.results)

    def _moved(self, op: GraphOp, inner: graph.DequantizeOp) -> GraphOp | None:
        """`op` on integers, if it commutes with dequantisation."""
        if isinstance(op, graph.PadOp):
            zero = elements_of(inner.zero_point, self.weights)
            if op.mode.data != PadMode.CONSTANT or op.number != 0 or zero is None or zero.ndim:
                return None
            return graph.PadOp(inner.x, ints(op.low), ints(op.high), int(zero))
        if isinstance(op, graph.PoolOp) and (
            op.kind.data != ReduceKind.MAX or not is_scale(inner.scale, self.weights)
        ):
            return None
        copy = op.clone()
        copy.operands = [inner.x]
        copy.set_result_types(copy.infer_types())
        return copy

"""Identities of quantised tensors: operators that may work on the integers instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.dtypes import dtype_of, is_low_bit
from ....core.exactness import EXACT, states
from ....core.weights import WeightStore
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import PadMode, ints, is_float
from ....dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    element_type,
    names_a_symbol,
    tensor_type,
)
from ....dialects.graph.known import elements_of
from ....dialects.graph.nests.recording import Recorder
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.plan.uses import Uses
from ....dialects.graph.rewrites import on_other_operand
from ....dialects.graph.traits import OrderStatisticInterface
from .rooted import rooted

_OF_ELEMENTS = (FusionKind.ELEMENTWISE, FusionKind.BROADCAST, FusionKind.INJECTIVE)


def known_elements(value: SSAValue, weights: WeightStore) -> np.ndarray | None:
    """The elements of a constant, also after operators that move integers or compute with them."""
    op = value.owner
    if isinstance(op, graph.ConstantOp) or not isinstance(op, GraphOp):
        return elements_of(value, weights)
    if op.fusion not in _OF_ELEMENTS or not op.operands or names_a_symbol(op):
        return None
    if not tensor_type(value).has_static_shape() or is_float(element_type(value)):
        return None
    known = [known_elements(operand, weights) for operand in op.operands]
    arrays = [array for array in known if array is not None]
    if len(arrays) < len(known):
        return None
    return cast(np.ndarray, op.reference(*arrays)[op.results.index(value)])


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


def _is_low_bit(value: SSAValue) -> bool:
    """Whether no operator computes with the integers."""
    return is_low_bit(element_type(value))


@states(EXACT, "quantize(dequantize(q, s, z), s, z) == q")
@dataclass
class QuantizeWhatWasQuantized(RewritePattern):
    """Remove a quantisation that undoes the dequantisation before it."""

    weights: WeightStore

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


@states(
    EXACT,
    "quantize(clip(x, a, b)) == clip(quantize(x), quantize(a), quantize(b))  for a <= 0 <= "
    "b; likewise relu(x), which is clip(x, 0, inf): rounding is monotonic, and NaN becomes "
    "the zero point, which is quantize(0)",
)
@dataclass
class QuantizeWhatWasCut(RewritePattern):
    """Clip the integers instead of the floats."""

    weights: WeightStore

    @rooted
    def match_and_rewrite(self, op: graph.QuantizeOp, rewriter: PatternRewriter) -> None:
        cut = op.x.owner
        if not isinstance(cut, graph.ReluOp | graph.ClipOp) or not op.x.has_one_use():
            return
        low, high = (0.0, None) if isinstance(cut, graph.ReluOp) else cut.bounds
        scale, zero = (elements_of(v, self.weights) for v in (op.scale, op.zero_point))
        if scale is None or zero is None or op.along is not None or cut.x.type != op.x.type:
            return
        if (low or 0) > 0 or (0 if high is None else high) < 0 or _is_low_bit(op.result):
            return
        if not is_scale(op.scale, self.weights) or element_type(op.x) != element_type(op.scale):
            return
        limits = np.iinfo(dtype_of(element_type(op.result)))
        bounds = [None if n is None else self._step(op, n, scale, zero) for n in (low, high)]
        minimum = None if bounds[0] in (None, limits.min) else bounds[0]
        maximum = None if bounds[1] in (None, limits.max) else bounds[1]
        b = InsertingBuilder(rewriter, [cut, op])
        new = b.quantize(cut.x, op.scale, op.zero_point)
        if minimum is not None or maximum is not None:
            new = b.clip(new, minimum, maximum)
        rewriter.replace(op, (), [new])

    @staticmethod
    def _step(op: graph.QuantizeOp, number: float, scale: np.ndarray, zero: np.ndarray) -> int:
        return int(cast(np.ndarray, op.reference(np.asarray(number, np.float32), scale, zero)[0]))


@states(EXACT, "pad(dequantize(q, s, z), 0) == dequantize(pad(q, z), s, z)")
@dataclass
class PadOfDequantized(RewritePattern):
    """Pad the integers instead of the floats."""

    weights: WeightStore

    @rooted
    def match_and_rewrite(self, op: graph.PadOp, rewriter: PatternRewriter) -> None:
        inner = op.x.owner
        if not isinstance(inner, graph.DequantizeOp) or inner.along is not None:
            return
        zero = elements_of(inner.zero_point, self.weights)
        if op.mode.data == PadMode.CONSTANT and op.number == 0 and zero is not None:
            padded = graph.PadOp(inner.x, ints(op.low), ints(op.high), zero.item())
            _dequantize(op, padded, inner, None, rewriter)


@states(
    EXACT,
    "move(dequantize(q)) == dequantize(move(q))",
    "max(dequantize(q)) == dequantize(max(q))",
)
@dataclass
class MoveOfDequantized(RewritePattern):
    """Move the integers instead of the floats, or choose from them by their order."""

    weights: WeightStore
    uses: Uses = field(default_factory=lambda: Uses(Recorder()), init=False, repr=False)

    def match_and_rewrite(self, op: object, rewriter: PatternRewriter) -> None:
        if not isinstance(op, GraphOp) or not op.operands or len(op.results) != 1:
            return
        inner = op.operands[0].owner
        if not isinstance(inner, graph.DequantizeOp) or not self._commutes(op, inner):
            return
        axis = inner.along
        if axis is not None:
            axis = self.uses.place_of_axis(op, axis)
            if axis is None:
                return
        moved = on_other_operand(op, inner.x)
        if moved is not None:
            _dequantize(op, moved, inner, axis, rewriter)

    def _commutes(self, op: GraphOp, inner: graph.DequantizeOp) -> bool:
        if op.refusal is not None or op.operands.count(inner.result) > 1 or _is_low_bit(inner.x):
            return False
        if isinstance(op, OrderStatisticInterface) and op.is_order_statistic:
            return is_scale(inner.scale, self.weights)
        return self.uses.moves(op)


def _dequantize(
    op: GraphOp,
    moved: GraphOp,
    inner: graph.DequantizeOp,
    axis: int | None,
    rewriter: PatternRewriter,
) -> None:
    """Replace an operator by one on integers, dequantised, unless that has another type."""
    same = element_type(moved.results[0]) == element_type(inner.x)
    new = graph.DequantizeOp(moved, inner.scale, inner.zero_point, axis) if same else None
    if new is None or new.result.type != op.results[0].type:
        for part in (new, moved):
            if part is not None:
                part.erase()
        return
    moved.location, new.location = op.location, inner.location
    rewriter.replace(op, [moved, new], new.results)

"""Identities of quantised tensors: operators that may work on the integers instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from ....core.dtypes import dtype_of, is_low_bit
from ....core.ir.typed import owned
from ....core.ir.weights import WeightStore
from ....core.pipelines.exactness import EXACT
from ....dialects.graph import ops as graph
from ....dialects.graph.attrs import PadMode, is_float
from ....dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    element_type,
    names_a_symbol,
    tensor_type,
)
from ....dialects.graph.known import elements_of
from ....dialects.graph.op_builder import InsertingBuilder
from ....dialects.graph.plan.uses import Uses
from ....dialects.graph.rules import IdentityRule, rule
from ....dialects.graph.traits import OrderStatisticInterface
from .arithmetic import bounds_of

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


@rule("quantize(x := dequantize(q, s, z), t, y) == q  if t, y and the axis are those of x", EXACT)
def quantize_what_was_quantized(
    op: graph.QuantizeOp,
    x: SSAValue,
    s: SSAValue,
    z: SSAValue,
    t: SSAValue,
    y: SSAValue,
    weights: WeightStore,
) -> bool:
    # (n * s) / s is n with an error of 2 roundings, far from a half for n of 17 bits.
    if owned(x, graph.DequantizeOp).along != op.along or not is_scale(t, weights):
        return False
    return same_elements(s, t, weights) and same_elements(z, y, weights)


@rule(
    "quantize(y := f(x), s, z) == clip(quantize(x, s, z), quantize(a, s, z), quantize(b, s, z))  "
    "for a relu or clip to a <= 0 <= b: rounding is monotonic, and NaN becomes the zero point, "
    "which is quantize(0, s, z)",
    EXACT,
    f=graph.ReluOp | graph.ClipOp,
)
def quantize_what_was_cut(
    b: InsertingBuilder,
    op: graph.QuantizeOp,
    f: graph.ReluOp | graph.ClipOp,
    y: SSAValue,
    x: SSAValue,
    s: SSAValue,
    z: SSAValue,
    weights: WeightStore,
) -> SSAValue | None:
    low, high = bounds_of(f)
    scale, zero = (elements_of(v, weights) for v in (s, z))
    if scale is None or zero is None or op.along is not None or x.type != y.type:
        return None
    if low > 0 or high < 0 or _is_low_bit(op.result) or not y.has_one_use():
        return None
    if not is_scale(s, weights) or element_type(y) != element_type(s):
        return None
    limits = np.iinfo(dtype_of(element_type(op.result)))
    least, largest = (_step(op, bound, scale, zero) for bound in (low, high))
    minimum = None if least == limits.min else least
    maximum = None if largest == limits.max else largest
    new: SSAValue = b.quantize(x, s, z)
    return new if minimum is None and maximum is None else b.clip(new, minimum, maximum)


def _step(op: graph.QuantizeOp, number: float, scale: np.ndarray, zero: np.ndarray) -> int:
    """A number, quantised."""
    return int(cast(np.ndarray, op.reference(np.asarray(number, np.float32), scale, zero)[0]))


@rule(
    "pad(x := dequantize(q, s, z), low, high) == dequantize(pad(q, low, high, zero), s, z)  for a "
    "padding of zeros, and one zero point, which is a constant",
    EXACT,
)
def pad_of_dequantized(
    op: graph.PadOp, x: SSAValue, z: SSAValue, weights: WeightStore
) -> Mapping[str, int] | None:
    zero = elements_of(z, weights)
    if zero is None or owned(x, graph.DequantizeOp).along is not None:
        return None
    return {"zero": zero.item()} if op.mode.data == PadMode.CONSTANT and op.number == 0 else None


@rule(
    "f(x := dequantize(q, s, z), *y) == dequantize(f(q, *y), s, z, axis)  for an f that moves "
    "elements, or that chooses from them by their order, where f keeps the axis of x",
    EXACT,
    f=GraphOp,
)
def move_of_dequantized(
    op: GraphOp, x: SSAValue, q: SSAValue, s: SSAValue, weights: WeightStore, uses: Uses
) -> Mapping[str, int | None] | None:
    if op.refusal is not None or op.operands.count(x) > 1 or _is_low_bit(q):
        return None
    if isinstance(op, OrderStatisticInterface) and op.is_order_statistic:
        if not is_scale(s, weights):
            return None
    elif not uses.moves(op):
        return None
    axis = owned(x, graph.DequantizeOp).along
    place = None if axis is None else uses.place_of_axis(op, axis)
    return None if axis is not None and place is None else {"axis": place}


RULES: tuple[IdentityRule, ...] = (
    quantize_what_was_quantized,
    quantize_what_was_cut,
    pad_of_dequantized,
    move_of_dequantized,
)

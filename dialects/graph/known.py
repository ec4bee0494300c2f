"""What is known of values at compile time: their elements, their sign, their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint, Rewriter

from ...core.dtype_names import is_real
from ...core.ir.provenance import fuse
from ...core.ir.weights import WeightStore
from . import ops as graph
from .attrs import is_float
from .interfaces import GraphOp, element_type, tensor_type
from .traits import KeepsNonnegative, NeverNegative, SignInterface

_DEPTH = 4


def is_constant(value: SSAValue) -> bool:
    """Whether a value is a constant."""
    return isinstance(value.owner, graph.ConstantOp)


def elements_of(value: SSAValue, weights: WeightStore) -> np.ndarray | None:
    """The elements of a dense constant; None for other values, or if the store lacks its array."""
    op = value.owner
    if not isinstance(op, graph.ConstantOp) or (op.key is not None and op.key not in weights):
        return None
    array = op.array(weights)
    return array if isinstance(array, np.ndarray) else None


def is_regular(array: np.ndarray) -> bool:
    """Whether no element is 0, subnormal, infinite or NaN: such factors do no harm."""
    if not is_real(array.dtype):
        return True
    if array.dtype.name == "bfloat16":
        # It has the exponents of f32, and NumPy knows the limits of that one.
        array = array.astype(np.float32)
    magnitude = np.abs(array)
    return bool(np.all(np.isfinite(array)) and np.all(magnitude >= np.finfo(array.dtype).tiny))


def is_nonnegative(value: SSAValue, depth: int = _DEPTH) -> bool:
    """Whether no element is less than 0 (one may be -0.0 or NaN), from what made it."""
    op = value.owner
    if not isinstance(op, GraphOp):
        return False
    if op.has_trait(NeverNegative):
        return True
    known = [
        depth > 0 and is_float(element_type(v)) and is_nonnegative(v, depth - 1)
        for v in op.operands
    ]
    if op.has_trait(KeepsNonnegative) and all(known):
        return True
    return isinstance(op, SignInterface) and op.is_nonnegative(known)


def reshape_target(sizes: Sequence[int]) -> list[int] | None:
    """The `shape` of a `graph.reshape` to these sizes; None if it cannot be written down."""
    if list(sizes).count(DYNAMIC_INDEX) > 1 or 0 in sizes:
        return None
    return [-1 if n == DYNAMIC_INDEX else n for n in sizes]


def replace(
    op: GraphOp,
    new: Sequence[GraphOp],
    rewriter: PatternRewriter,
    sources: Sequence[Operation] = (),
) -> bool:
    """Replace `op` by the last of `new` if that has its type; otherwise `new` goes again.

    The new operators stand for `op` and `sources`, the operators that lose this user.
    """
    last = new[-1]
    if last.results[0].type != op.results[0].type:
        for part in reversed(new):
            part.erase()
        return False
    location = fuse([*sources, op])
    for part in new:
        part.location = location
    rewriter.replace(op, list(new), last.results)
    return True


def insert_before(place: GraphOp, new: Sequence[GraphOp]) -> SSAValue:
    """Insert operators that stand for another one before it; returns what the last one makes."""
    for op in new:
        op.location = place.location
    Rewriter.insert_op(list(new), InsertPoint.before(place))
    return new[-1].results[0]


def sizes_of(value: SSAValue) -> tuple[int, ...]:
    """The sizes that the type of a value declares; -1 where one is symbolic."""
    return cast("tuple[int, ...]", tensor_type(value).get_shape())

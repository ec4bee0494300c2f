"""What an operator reads and costs, derived from `GraphOp.value_at` or `GraphOp.write`.

The method runs once on a `RecordingNest`, which builds no loops but takes notes. So an operator
says what it reads once, and no pass lists operators by name.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ..attrs import compute_type
from ..interfaces import GraphOp, element_type, faults_of, names_a_symbol, rank
from ..kinds import FusionKind
from ..rearranging import ReshapeInterface
from .accesses import Recording
from .operators import written
from .recording_nest import RecordingNest


class Recorder:
    """Makes recordings, one for all operators of the same structure and types."""

    def __init__(self) -> None:
        self._known: dict[object, Recording] = {}
        self._of: dict[tuple[GraphOp, int], Recording] = {}

    def recording(self, op: GraphOp, result: int = 0) -> Recording:
        """What one element of a result takes, or writing all of them.

        Raises:
            UnsupportedError: if the operator is opaque, or does not use the nest as it may.
        """
        found = self._of.get((op, result))
        if found is None:
            key = _structure(op), 0 if op.fusion == FusionKind.NEST else result
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = _recorded(op, result)
            self._of[op, result] = found
        return found


def _recorded(op: GraphOp, result: int) -> Recording:
    nest = RecordingNest(op, result)
    if op.fusion == FusionKind.NEST:
        written(op, nest)
        return nest.finished()
    index = tuple(AffineExpr.dimension(n) for n in range(rank(op.results[result])))
    with faults_of(op):
        value = op.value_at(nest, index, result)
    kind = compute_type(element_type(op.results[result]))
    got = value.type if isinstance(value, SSAValue) else type(value).__name__
    if got != kind:
        raise nest.contract.wrong("its value at an index is of another type", kind, got)
    nest.contract.scalar(value)
    return nest.finished(value)


def _structure(op: GraphOp) -> object:
    """Cache key: equal for operators that are computed in the same way."""
    if names_a_symbol(op):
        return op  # what a symbol stands for is not in its name
    operands = list(op.operands)
    same = tuple(operands.index(operand) for operand in operands)
    kinds = (*(v.type for v in operands), *(v.type for v in op.results))
    return type(op), tuple(op.properties.items()), same, kinds


def is_reshape(op: GraphOp) -> bool:
    """Whether the result has the elements of the first operand in the same order."""
    if not isinstance(op, ReshapeInterface):
        return False
    start = tuple(AffineExpr.constant(0) for _ in range(rank(op.operands[0])))
    with faults_of(op):
        return op.result_index(RecordingNest(op, 0), start) is not None

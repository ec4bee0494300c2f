"""Operators that cannot be one kernel become several, with buffers in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.graph.interfaces import GraphOp, Sizes
from ...dialects.graph.nests.recording import Recorder
from ...dialects.graph.plan.planner import plan_nests


@dataclass
class KernelPart:
    """Operators that can be one kernel."""

    ops: list[GraphOp]
    results: list[SSAValue]
    """Those of their results that others use."""
    why: str | None = None
    """Why the rest is not in this kernel, if there is a rest."""


def parts(
    ops: Sequence[GraphOp], results: Sequence[SSAValue], shapes: Sizes, recorder: Recorder
) -> list[KernelPart]:
    """Divide operators where their plan is refused, until each part can be one kernel.

    Args:
        ops: the operators in the order of their block.
        results: those of their results that others use.
        shapes: the symbolic shapes of their function.
        recorder: knows what operators read.
    """
    refusal = plan_nests(ops, results, shapes, recorder).refusal
    if refusal is None or len(ops) == 1:
        return [KernelPart(list(ops), list(results))]
    halves = _divided(ops, refusal.value)
    if not all(halves):
        return [KernelPart(list(ops), list(results))]  # the conversion says why it is no kernel
    found: list[KernelPart] = []
    for half in halves:
        inside = set(half)
        passed = [
            result
            for op in half
            for result in op.results
            if result in results
            or any(use.operation in ops and use.operation not in inside for use in result.uses)
        ]
        divided = parts(half, passed, shapes, recorder)
        divided[-1].why = divided[-1].why or refusal.why
        found += divided
    found[-1].why = None
    return found


def _divided(ops: Sequence[GraphOp], value: SSAValue) -> tuple[list[GraphOp], list[GraphOp]]:
    """What computes a value, and the rest.

    What both sides need is computed first, so that nothing is recomputed: then the first
    part computes only that.
    """
    first = _makers(ops, value)
    inside = set(first)
    for op in first:
        users = {use.operation for result in op.results for use in result.uses}
        if op is not value.owner and any(user in ops and user not in inside for user in users):
            return _divided(ops, op.results[0])
    return first, [op for op in ops if op not in inside]


def _makers(ops: Sequence[GraphOp], value: SSAValue) -> list[GraphOp]:
    """The operators that compute a value, in order."""
    needed: set[SSAValue] = {value}
    found: list[GraphOp] = []
    for op in reversed(ops):
        if not needed.isdisjoint(op.results):
            found.append(op)
            needed |= set(op.operands)
    return found[::-1]

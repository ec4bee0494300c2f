"""Where the values that regions yield go: destinations that make copies needless.

A value that a region computes and yields is computed where it is needed: in the buffer of the
result of a condition, in the slice of a stacked result, or in one of a few buffers through which
what a loop carries on rotates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, OpResult, SSAValue

from ...core.ir.typed import tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import ShapeFacts, unknown_sizes
from .function import BufferFunction, Producer


@dataclass(frozen=True)
class Carrying:
    """Where a loop puts what it yields.

    Attributes:
        stacks: computed values, and the numbers of the stacked results that they are slices of.
        spares: carried values that are computed, and the numbers of buffers they rotate through.
        ends: of these, those that the last iteration writes to a result: the number of the result,
            which is one of the buffers, and its place among them.
    """

    stacks: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    spares: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    ends: dict[SSAValue, tuple[int, int]] = field(default_factory=dict[SSAValue, tuple[int, int]])

    @staticmethod
    def of(op: graph.LoopOp) -> Carrying:
        """Choose the places for a loop."""
        found, body = Carrying(), op.body.block
        for number, value in enumerate(op.stacked):
            if is_computed(value, body) or value is op.number:
                found.stacks.setdefault(value, number)
        lasting = _lasting(op.carried, op.carried_on)
        for argument, value in zip(op.carried, op.carried_on, strict=True):
            computed = is_computed(value, body) or value is op.number
            if computed and value not in found.stacks:
                # One buffer is written while those of the last iterations are read.
                needed = lasting[argument] + 1
                found.spares[value] = max(needed, found.spares.get(value, 0))
        if (count := _known_count(op)) > 0:
            for number, value in enumerate(op.carried_on):
                if value in found.spares and not op.bounds_of(number):
                    found.ends.setdefault(value, (number, (count - 1) % found.spares[value]))
        return found


def is_computed(value: SSAValue, body: Block) -> bool:
    """Whether an operation of a block writes a value."""
    owner = value.owner
    return isinstance(value, OpResult) and isinstance(owner, Producer) and owner.parent is body


def _lasting(carried: Sequence[SSAValue], on: Sequence[SSAValue]) -> dict[SSAValue, int]:
    """For how many iterations each carried value is read, as it may be carried on unchanged."""
    readers: dict[SSAValue, list[SSAValue]] = {argument: [] for argument in carried}
    for argument, value in zip(carried, on, strict=True):
        if value in readers:
            readers[value].append(argument)
    lasting: dict[SSAValue, int] = {}
    # What is carried on in a circle is never computed; nothing leads from a computed one into it.
    for _ in carried:
        lasting |= {a: 1 + max((lasting.get(r, 0) for r in readers[a]), default=0) for a in carried}
    return lasting


def in_results(function: BufferFunction, op: graph.IfOp) -> dict[SSAValue, SSAValue]:
    """The values that the branches compute in the buffers of results."""
    found: dict[SSAValue, SSAValue] = {}
    for body in op.bodies:
        for value, result in zip(graph.yielded(body), op.results, strict=True):
            if is_computed(value, body) and not function.is_placed_by_branch(op, result):
                found.setdefault(value, result)
    return found


def _known_count(op: graph.LoopOp) -> int:
    """The number of iterations; 0 if it is not known."""
    if op.condition is not None:
        return 0
    sizes = [tensor_type(value).get_shape()[0] for value in op.sliced]
    count = op.iterations([], ShapeFacts(op, unknown_sizes()))
    return max(0, *sizes, 0 if count is None else count.number or 0)

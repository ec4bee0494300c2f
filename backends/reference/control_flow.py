"""The semantics of control flow at the `graph` level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...core.algebra.dims import Dim
from ...core.dtypes import dtype_of
from ...core.errors import InputError, explain, in_iteration
from ...core.ir.provenance import origin
from ...core.ir.typed import dense_array, tensor_type
from ...dialects.graph.ops import IfOp, LoopOp
from .computed_sizes import FunctionFrame, with_computed

if TYPE_CHECKING:
    from ...dialects.graph.interfaces import Array


def run_if(op: IfOp, operands: Sequence[Array], frame: FunctionFrame) -> tuple[Array, ...]:
    """Run one of the two regions."""
    condition, *captures = operands
    return frame.run_body(op.bodies[0 if _holds(condition) else 1], captures)


def run_loop(op: LoopOp, operands: Sequence[Array], frame: FunctionFrame) -> tuple[Array, ...]:
    """Run iterations.

    Raises:
        InputError: if there are more iterations than the limit of the loop.
    """
    given = iter(operands)
    times = None if op.times is None else next(given)
    goes_on = op.condition is None or _holds(next(given))
    carried = [next(given) for _ in op.inits]
    sliced = [next(given) for _ in op.sliced]
    captures = list(given)
    count = _count(op, times, sliced, frame)
    stacked: list[list[Array]] = [[] for _ in op.stacks]
    number = 0
    while goes_on and (count is None or number < count):
        if op.limit is not None and number >= op.limit.value.data:
            fact = f"no end after {number} iterations"
            raise InputError(explain(op.name, fact, origin=origin(op)))
        rows = [
            np.asarray(array[-1 - number if op.takes_backward(n) else number])
            for n, array in enumerate(sliced)
        ]
        index = np.array(number, np.int64)
        inside = with_computed(op, op.carried, carried, frame)
        ends = _iteration(op, number, [index, *carried, *rows, *captures], inside)
        goes_on = op.condition is None or _holds(ends.pop(0))
        carried, rows = ends[: len(carried)], ends[len(carried) :]
        for known, row in zip(stacked, rows, strict=True):
            known.append(row)
        number += 1
    stacks = [_stack(op, n, rows, frame) for n, rows in enumerate(stacked)]
    return (*carried, *stacks)


def _iteration(
    op: LoopOp, number: int, arguments: Sequence[Array], frame: FunctionFrame
) -> list[Array]:
    """What an iteration yields; its errors say which one it was."""
    try:
        return list(frame.run_body(op.body.block, arguments))
    except InputError as error:
        loop = origin(op) or op.name
        raise InputError(in_iteration(str(error), number, loop)) from error


def _count(
    op: LoopOp, times: Array | None, sliced: Sequence[Array], frame: FunctionFrame
) -> int | None:
    """The number of iterations, if it is known."""
    if times is not None:
        return int(dense_array(times))
    if op.count is not None:
        return Dim.parse(op.count.data).evaluate(frame.sizes)
    return sliced[0].shape[0] if sliced else None


def _stack(op: LoopOp, number: int, rows: Sequence[Array], frame: FunctionFrame) -> np.ndarray:
    """A stacked result."""
    result = op.stacks[number]
    _, *sizes = frame.shapes.shape(result)
    shape = [len(rows), *(dim.evaluate(frame.sizes) for dim in sizes)]
    array = np.empty(shape, dtype_of(tensor_type(result).element_type))
    for place, row in enumerate(rows[::-1] if op.stores_backward(number) else rows):
        array[place] = row
    return array


def _holds(condition: Array) -> bool:
    return bool(np.asarray(condition).reshape(()))

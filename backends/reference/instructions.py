"""The instructions of `core.instructions`, computed by their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import VectorType
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ...core.errors import UnsupportedError, explain
from ...core.instructions import SCALE, Instruction
from ...dialects.bodies import body_of, depth_of
from ...dialects.upstream import ops as upstream
from .numbers import COMBINE, REDUCTIONS, computation


def computed(instruction: Instruction, operands: Sequence[Any]) -> Any:
    """All lanes of an instruction, each of them computed by the body.

    Args:
        instruction: the row of the table.
        operands: an array for each operand, of which the last axis has the lanes. That of an
            operand in groups has the elements of all groups, or of one that is that of all lanes.
    """
    block, depth = body_of(instruction).body.block, depth_of(instruction)
    values: dict[SSAValue, Any] = {}
    for argument, operand in zip(block.args, operands, strict=True):
        if isinstance(argument.type, VectorType):
            operand = operand.reshape(*operand.shape[:-1], -1, depth)
        values[argument] = operand
    for op in block.ops:
        found = [values[operand] for operand in op.operands]
        if isinstance(op, ReturnOp):
            return found[0]
        with np.errstate(all="ignore"):
            if isinstance(op, upstream.ReductionOp):
                group, *start = found
                reduce = REDUCTIONS[COMBINE[op.kind.data.value]]
                values[op.dest] = sum(start, reduce(group, axis=-1, dtype=group.dtype))
            else:
                values[op.results[0]] = computation(op)(*found)
    raise AssertionError("the body ends with func.return")


def scaled(op: Operation, args: Sequence[Any]) -> Any:
    """a * 2^floor(b) in the lanes of a mask, from (a, b, rest, mask, rounding)."""
    a, b, rest, mask, rounding = args
    if rounding != 4:
        raise UnsupportedError(explain(op.name, "cannot be run", expected="rounding 4"))
    allowed = (int(mask) >> np.arange(a.size)) & 1 == 1
    return np.where(allowed, computed(SCALE, (a, b)), rest)

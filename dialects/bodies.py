"""The bodies of the instructions of `core.instructions` as operations."""

from __future__ import annotations

import functools

from xdsl.dialects.builtin import VectorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument

from ..core.instructions import Instruction
from ..core.ir.parsing import MlirParser
from ..core.registry import make_context
from .upstream.ops import ReductionOp


@functools.cache
def body_of(instruction: Instruction) -> FuncOp:
    """The function that a lane computes, which stays as it is."""
    function = MlirParser(make_context(), instruction.body).parse_op()
    assert isinstance(function, FuncOp)
    return function


@functools.cache
def accumulator_of(instruction: Instruction) -> int | None:
    """The number of the operand to which an instruction adds what it combines, if it does."""
    function = body_of(instruction)
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    reduction = last.arguments[0].owner
    if not isinstance(reduction, ReductionOp) or reduction.kind.data.value != "add":
        return None
    return reduction.acc.index if isinstance(reduction.acc, BlockArgument) else None


@functools.cache
def depth_of(instruction: Instruction) -> int:
    """The number of elements of a group; 1 if there are none."""
    kinds = body_of(instruction).function_type.inputs
    groups = [kind.get_shape()[0] for kind in kinds if isinstance(kind, VectorType)]
    return groups[0] if groups else 1

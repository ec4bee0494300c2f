"""Operators like others, on other operands."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from .interfaces import GraphOp, set_result_types


def on_operands(op: GraphOp, operands: Sequence[SSAValue]) -> GraphOp:
    """The same operator on other operands.

    Raises:
        VerifyException: if it takes none of their types.
    """
    types = [result.type for result in op.results]
    copy = type(op).create(operands=operands, result_types=types, properties=dict(op.properties))
    try:
        set_result_types(copy, copy.infer_types())
        copy.verify()
    except VerifyException:
        copy.erase()
        raise
    return copy


def on_other_operand(op: GraphOp, value: SSAValue) -> GraphOp | None:
    """The same operator on another first operand; None if it takes none of that type."""
    try:
        return on_operands(op, [value, *op.operands[1:]])
    except VerifyException:
        return None

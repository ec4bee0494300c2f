"""How rewrites of operators replace a value.

A canonicalisation pattern is defined with its operator. It is bitwise exact, and replaces a value
only by one of the same type: a rewrite never hides a size that a type declared.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.exceptions import VerifyException

from ...core.provenance import fuse
from .interfaces import GraphOp, set_result_types


def forward(op: GraphOp, value: SSAValue, rewriter: PatternRewriter) -> None:
    """Replace the only result of `op` by `value` if the types agree."""
    if op.results[0].type == value.type:
        rewriter.replace(op, (), (value,))


def replace_by(
    op: GraphOp, new: GraphOp, sources: tuple[GraphOp, ...], rewriter: PatternRewriter
) -> None:
    """Replace `op` by `new`, which stands for `sources`, if the result types agree."""
    if op.results[0].type != new.results[0].type:
        new.erase()
        return
    new.location = fuse(sources)
    rewriter.replace(op, new)


def on_other_operand(op: GraphOp, value: SSAValue) -> GraphOp | None:
    """The same operator on another first operand; None if it takes none of that type."""
    copy = op.clone()
    copy.operands[0] = value
    try:
        set_result_types(copy, copy.infer_types())
        copy.verify()
    except VerifyException:
        copy.erase()
        return None
    return copy

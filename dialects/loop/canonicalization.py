"""Canonical forms of the loop dialect: short maps, and no loop that does nothing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from .linear import normalized
from .nests import constant_index, extent_of
from .ops import ForOp, LoadOp, ReduceEntriesOp, ReduceOp, StoreOp
from .syntax import compress


def _shortened(
    map: AffineMap, operands: Sequence[SSAValue]
) -> tuple[AffineMap, list[SSAValue]] | None:
    """The same map on fewer indices, with constants filled in; None if it is so already."""
    dims: list[AffineExpr] = []
    for number, operand in enumerate(operands):
        value = constant_index(operand)
        dims.append(AffineExpr.dimension(number) if value is None else AffineExpr.constant(value))
    symbols = [AffineExpr.symbol(number) for number in range(map.num_symbols)]
    results = [normalized(e.replace_dims_and_symbols(dims, symbols)) for e in map.results]
    new, left = compress(results, operands, map.num_symbols)
    return None if (new, left) == (map, list(operands)) else (new, left)


# load %x (d0, d1) -> (d1 + d0)(%c2, %i) == load %x (d0) -> (d0 + 2)(%i)
class ShortenAccess(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoadOp | StoreOp, rewriter: PatternRewriter) -> None:
        shorter = _shortened(op.map.data, op.indices)
        if shorter is None:
            return
        map, indices = shorter
        limits = list(zip(op.limited.get_values(), op.limits, strict=True))
        if isinstance(op, LoadOp):
            new = LoadOp(op.buffer, map, indices, op.result.type, limits)
        else:
            new = StoreOp(op.value, op.buffer, map, indices, limits)
        rewriter.replace_op(op, new)


# for i to min(%c4, %n + 0) == for i to min(4, %n)
class ShortenBound(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp | ReduceOp, rewriter: PatternRewriter) -> None:
        shorter = _shortened(op.bound.data, op.bounds)
        if shorter is None:
            return
        map, operands = shorter
        op.bound = AffineMapAttr(map)
        op.operands = operands if isinstance(op, ForOp) else [*operands, op.init]
        rewriter.notify_op_modified(op)


# for i to 0: body == nothing
class EraseIdleLoop(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        if extent_of(op) == 0 or op.body.block.is_empty:
            rewriter.erase_op(op)


# reduce k to 0 carry(acc = init): body == init
class ReduceNothing(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        if extent_of(op) == 0:
            rewriter.replace_op(op, [], [op.init])


# reduce k carry(acc = init): yield acc == init
class ReduceToFirstValue(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp | ReduceEntriesOp, rewriter: PatternRewriter) -> None:
        stores = any(isinstance(inner, StoreOp) for inner in op.body.walk())
        if op.yielded is op.accumulator and not stores:
            rewriter.replace_op(op, [], [op.init])

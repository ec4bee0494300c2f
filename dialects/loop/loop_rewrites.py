"""Canonicalisations of `loop.for`: its bound, and what it carries without need."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ...core.pipelines.exactness import EXACT, states
from .loop_base import LoopBase, YieldOp
from .ops_access import StoreOp
from .proofs.bounds import iterations, shortened


@states(EXACT, "for i to min(%c4, %n + 0) == for i to min(4, %n)")
class ShortenBound(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopBase, rewriter: PatternRewriter) -> None:
        shorter = shortened(op.bound.data, op.bounds)
        if shorter is None:
            return
        map, operands = shorter
        rest = op.operands[op.bound.data.num_dims :]
        op.bound = AffineMapAttr(map)
        op.operands = [*operands, *rest]
        rewriter.notify_op_modified(op)


@states(EXACT, "for i to 0 carry(acc = init): body == init")
class EraseIdleLoop(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopBase, rewriter: PatternRewriter) -> None:
        never = not op.over_entries and iterations(op.bound.data, op.bounds) == 0
        if never or op.body.block.is_empty:
            rewriter.replace(op, [], op.inits)


@states(EXACT, "for i carry(a = x, b = y): yield a, f(b)  ==  x, for i carry(b = y): yield f(b)")
class DropInvariantCarry(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopBase, rewriter: PatternRewriter) -> None:
        inits, carried, yielded = op.inits, op.carried, op.yielded
        kept = [n for n, value in enumerate(yielded) if value is not carried[n]]
        if len(kept) == len(yielded):
            return
        if not kept:
            if not any(isinstance(inner, StoreOp) for inner in op.body.walk()):
                rewriter.replace(op, [], inits)
            return
        block = op.body.block
        for number in [n for n in range(len(yielded)) if n not in kept]:
            carried[number].replace_all_uses_with(inits[number])
        for value in [carried[n] for n in range(len(yielded)) if n not in kept]:
            block.erase_arg(cast(BlockArgument, value))
        last = cast(YieldOp, block.last_op)
        # A kept value may yield a dropped one, which is its initial value by now.
        rewriter.replace(last, YieldOp(*[last.values[n] for n in kept]))
        new = type(op)(
            op.loop_name.data,
            op.bound.data,
            op.bounds,
            op.kind.data,
            op.detach_region(op.body),
            matrix=op.matrix,
            inits=[inits[n] for n in kept],
            combines=[op.combines[n] for n in kept] if op.is_reduction else (),
            unroll=None if op.unroll is None else op.at_once,
            cascade=op.chunk,
        )
        new.attributes |= op.attributes
        results: list[SSAValue] = list(inits)
        for number, result in zip(kept, new.results, strict=True):
            results[number] = result
        rewriter.replace(op, new, results)


LOOP_REWRITES: tuple[RewritePattern, ...] = (
    EraseIdleLoop(),
    DropInvariantCarry(),
    ShortenBound(),
)

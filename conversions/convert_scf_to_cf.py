"""Structured control flow to branches, by xDSL's patterns and one for `scf.while`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import BlockInsertPoint, InsertPoint
from xdsl.transforms.convert_scf_to_cf import ForLowering, IfLowering, SwitchLowering

from ..core.budgets import EXACT
from ..core.exactness import Exactness
from ..core.provenance import Located
from ..core.walks import RootedWalker, erase_dead

_STRUCTURED = (scf.ForOp, scf.IfOp, scf.IndexSwitchOp, scf.WhileOp)


# scf.while (%a = %x) { before; condition(%c) %b } do { ^bb0(%b): after; yield %d }
#   == br ^before(%x)
#      ^before(%a): before; cond_br %c, ^after(%b), ^end(%b)
#      ^after(%b): after; br ^before(%d)
@Exactness.EXACT
class WhileLowering(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.WhileOp, rewriter: PatternRewriter) -> None:
        before, after, start = op.before_region.first_block, op.after_region.first_block, op.parent
        test, again = (list(region.walk())[-1] for region in op.regions)
        if not isinstance(test, scf.ConditionOp) or not isinstance(again, scf.YieldOp):
            return
        assert before is not None
        assert after is not None
        assert start is not None
        end = start.split_before(op)
        for number, kind in enumerate(op.result_types):
            rewriter.insert_block_argument(end, number, kind)
        rewriter.insert(cf.BranchOp(before, *op.arguments), InsertPoint.at_end(start))
        branches = (after, test.args, end, test.args)
        rewriter.replace(test, cf.ConditionalBranchOp(test.condition, *branches))
        rewriter.replace(again, cf.BranchOp(before, *again.arguments))
        for region in op.regions:
            rewriter.inline_region(region, BlockInsertPoint.before(end))
        rewriter.replace(op, [], end.args)


@dataclass(frozen=True)
class ConvertScfToCfPass(ModulePass):
    """Lower loops and conditions to branches, which keep the locations of both.

    Before:
    ```mlir
    func.func @f(%zero: index, %n: index, %one: index, %x: memref<?xf32>, %v: f32) {
      scf.for %i = %zero to %n step %one {
        memref.store %v, %x[%i] : memref<?xf32>
      }
      func.return
    }
    ```
    After:
    ```mlir
    func.func @f(%zero: index, %n: index, %one: index, %x: memref<?xf32>, %v: f32) {
      cf.br ^bb1(%zero : index)
    ^bb1(%i: index):
      %more = arith.cmpi slt, %i, %n : index
      cf.cond_br %more, ^bb2, ^bb3
    ^bb2:
      memref.store %v, %x[%i] : memref<?xf32>
      %next = arith.addi %i, %one : index
      cf.br ^bb1(%next : index)
    ^bb3:
      func.return
    }
    ```
    Requires: nothing.
    Leaves: no `scf.for`, `scf.while`, `scf.if` and `scf.index_switch`.
    """

    name = "convert-scf-to-cf"
    budget = EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [SwitchLowering(), IfLowering(), ForLowering(), WhileLowering()]
        applier = Located(GreedyRewritePatternApplier(patterns, dce_enabled=False))
        walker = RootedWalker(applier, post_walk_func=erase_dead, roots=_STRUCTURED)
        walker.rewrite_module(op)

"""Structured control flow to branches, by xDSL's patterns."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.transforms.convert_scf_to_cf import ForLowering, IfLowering, SwitchLowering

from ..core.provenance import Located


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
    Leaves: no `scf.for`, `scf.if` and `scf.index_switch`.
    """

    name = "convert-scf-to-cf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [SwitchLowering(), IfLowering(), ForLowering()]
        PatternRewriteWalker(Located(GreedyRewritePatternApplier(patterns))).rewrite_module(op)

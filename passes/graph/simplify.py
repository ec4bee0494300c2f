"""Algebraic identities over several operators, cancellations and strength reduction.

What one operator says about itself alone (``x * 1``, ``transpose(transpose(x))``) is a
canonicalization of the operator: it holds bit for bit and never adds an operator. Here are the
identities that need more: permission to round once instead of twice, a look at how often a
value is used, or values of constants. `docs/canonical-forms.md` says where which one lives.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker

from ...core.budgets import SUMS
from ...core.context import weights_of
from .rules import arithmetic, movement
from .rules.permission import permitted
from .rules.recorded import recorded


@dataclass(frozen=True)
class GraphSimplifyPass(ModulePass):
    """Simplify by identities over several operators and by cheaper operators.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %two = graph.constant dense<2.0> : tensor<f32>
      %half = graph.div %x, %two : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
      %n = graph.neg %half : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %y = graph.add %x, %n : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %c = graph.constant dense<5.0e-01> : tensor<f32>
      %half = graph.mul %x, %c : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
      %y = graph.sub %x, %half : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    A result may be rounded in another place than before. It differs by more than that only
    where the operators in between overflow or underflow and the simpler form does not. The
    sign of a zero may change. Operators on constants that come about are left to
    `graph-fold-constant`.

    Requires: nothing; canonicalizations (`canonicalize`) find more before and after it.
    Leaves: operators whose results are no longer used are erased.
    """

    name = "graph-simplify"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        patterns = [kind() for kind in (*arithmetic.PATTERNS, *movement.PATTERNS)]
        patterns += [kind(weights) for kind in arithmetic.PATTERNS_ON_CONSTANTS]
        why = "the result takes fewer or cheaper operators"
        rules = permitted(op, [recorded(rule, ctx, why) for rule in patterns])
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules, dce_enabled=True))
        walker.rewrite_module(op)

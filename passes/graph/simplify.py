"""Algebraic identities over several operators, cancellations and strength reduction.

An identity of one operator alone (``x * 1``, ``transpose(transpose(x))``) is a canonicalization
of the operator: it is bit-exact and never adds an operator. The identities here need more:
permission to round once instead of twice, the number of uses of a value, or values of constants.
`docs/canonical-forms.md` says where each one lives.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker, RewritePattern

from ...core.ir.context import weights_of
from ...core.pipelines.budgets import SUMS
from .rules import arithmetic, movement
from .rules.permission import permitted
from .rules.recorded import recorded


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

    A result may be rounded at a different point. It differs by more than that only where
    intermediate values overflow or underflow and the simpler form does not. The sign of a
    zero may change.

    Requires: nothing.
    Order: preceded by `graph-canonicalize-ops` and `canonicalize`, as identities are of canonical
        forms; followed by `graph-fold-constant`, which evaluates the new operators on constants.
    Leaves: operators whose results are no longer used are erased.
    """

    name = "graph-simplify"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        on_constants = (*arithmetic.PATTERNS_ON_CONSTANTS, *movement.PATTERNS_ON_CONSTANTS)
        patterns: list[RewritePattern] = [*arithmetic.PATTERNS, *movement.PATTERNS]
        patterns += [rule.with_given(weights=weights) for rule in on_constants]
        why = "the result takes fewer or cheaper operators"
        rules = permitted(op, [recorded(rule, ctx, why) for rule in patterns])
        walker = PatternRewriteWalker(GreedyRewritePatternApplier(rules, dce_enabled=True))
        walker.rewrite_module(op)

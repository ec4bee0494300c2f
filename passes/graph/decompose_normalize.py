"""Replace products with a normalised adjacency matrix by products with its factors."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...core.budgets import SUMS
from ...core.exactness import OPEN, states
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import NormalizeKind
from ...dialects.graph.op_builder import InsertingBuilder
from .rules.recorded import recorded


@states(
    OPEN,
    "spmm(normalize(a), x) == s * (spmm(a, t) + m * t)  for t = s * x, s = degree(a)^-1/2",
    "spmm(normalize row (a), x) == s * (spmm(a, x) + m * x)  for s = degree(a)^-1 where m "
    "completes each row to one self loop: 1 if it stores none, see missing_self_loops",
)
class SpmmOfNormalized(RewritePattern):
    """Scale the rows of the features instead of the entries of the matrix."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SpmmOp, rewriter: PatternRewriter) -> None:
        normalize = op.a.owner
        if not isinstance(normalize, graph.NormalizeOp):
            return
        symmetric = normalize.kind.data == NormalizeKind.SYMMETRIC
        loops = bool(normalize.self_loops.value.data)
        factors, b = (InsertingBuilder(rewriter, [source]) for source in (normalize, op))
        power = -0.5 if symmetric else -1.0
        degree = factors.degree(normalize.a, self_loops=loops, power=power)
        scale = factors.reshape(degree, [-1, 1])
        x = b.mul(op.x, scale) if symmetric else op.x
        y = b.spmm(normalize.a, x)
        if loops:
            missing = factors.reshape(factors.missing_self_loops(normalize.a), [-1, 1])
            y = b.add(y, b.mul(x, missing))
        y = b.insert(graph.MulOp(y, scale, result_type=op.result.type))
        rewriter.replace(op, [], [y])
        if not normalize.result.uses:
            rewriter.erase(normalize)


@dataclass(frozen=True)
class GraphDecomposeNormalizePass(ModulePass):
    """Rewrite ``spmm(normalize(a), x)`` so that only products with `a` itself are left.

    The normalised matrix of a graph known only at run time would have to be built on every
    call, with a number of entries not known in advance. Its factors are cheap.

    Before:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<?x?xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %n = graph.normalize row %a self_loops = false : (!csr) -> !csr
      %y = graph.spmm %n, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
      func.return %y : tensor<?x8xf32>
    }
    ```

    After:

    ```mlir
    #csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
    !csr = tensor<?x?xf32, #csr>
    func.func @main(%a: !csr, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %d = graph.degree %a self_loops = false power = -1.0 : (!csr) -> tensor<?xf32>
      %s = graph.reshape %d shape = [-1, 1] : (tensor<?xf32>) -> tensor<?x1xf32>
      %p = graph.spmm %a, %x : (!csr, tensor<?x8xf32>) -> tensor<?x8xf32>
      %y = graph.mul %p, %s : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
      func.return %y : tensor<?x8xf32>
    }
    ```

    Requires: nothing; a constant graph is better folded first (`graph-fold-constant`).
    Leaves: no `graph.normalize` in front of a `graph.spmm`.
    """

    name = "graph-decompose-normalize"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rule = recorded(SpmmOfNormalized(), ctx, "the entries of the matrix are not known")
        PatternRewriteWalker(rule).rewrite_module(op)

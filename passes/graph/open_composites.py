"""Replace composites by their bodies."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import Rewriter

from ...core.ir.provenance import inlined
from ...core.pipelines.budgets import ROUNDING
from ...core.pipelines.exactness import EXACT, states
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import is_half
from ...dialects.graph.composite import CompositeOp
from ...dialects.graph.interfaces import element_type
from ...dialects.graph.op_builder import InsertingBuilder
from .legalize import tables
from .rules.permission import permitted
from .rules.recorded import recorded
from .rules.rooted import rooted


@states(EXACT, "f(x) == the body of f at x")
@dataclass
class CompositeIsItsBody(RewritePattern):
    """Open the composites that no pass matches, and for which no table has a rule or kernel."""

    ctx: Context
    late: bool
    kept: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = frozenset(name for table in tables(self.ctx) for name in table)

    # f(x) == body(x), computed in f32 for 16 bits
    @rooted
    def match_and_rewrite(self, op: CompositeOp, rewriter: PatternRewriter) -> None:
        if not op.opens(self.late) or op.name in self.kept:
            return
        op.location = inlined(op.name, op.location)
        b = InsertingBuilder(rewriter, [op])

        def computed(x: SSAValue) -> SSAValue:
            return b.cast(x, f32) if is_half(element_type(x)) else x

        new: list[SSAValue] = []
        for y, result in zip(op.opened(b, computed), op.results, strict=True):
            if y in op.operands and y.type != result.type:
                return
            if element_type(y) != (kind := element_type(result)):
                wide = y.owner
                if isinstance(wide, graph.CastOp) and wide.x.type == result.type:
                    y = wide.x  # the body is the identity
                else:
                    y = b.cast(y, kind)
            if y.type != result.type:
                # The two types may differ in which sizes are static.
                y = Rewriter.replace_value_with_new_type(y, result.type)
            new.append(y)
        rewriter.replace(op, [], new)


@dataclass(frozen=True)
class GraphOpenCompositesPass(ModulePass):
    """Replace composite operators by their bodies: activations, normalisations, dropout.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      %y = graph.dropout %x ratio = 5.0e-01 : (tensor<?x8xf32>) -> tensor<?x8xf32>
      func.return %y : tensor<?x8xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      func.return %x : tensor<?x8xf32>
    }
    ```

    Parts of different operators fold, and `graph-fuse-ops` makes one kernel of them again, together
    with their neighbours: of a batch normalisation, which is ``x * k + (bias - mean * k)`` with
    ``k = scale * rsqrt(variance + epsilon)``, `graph-fold-constant` leaves two operators on ``x``;
    layer norms of one value share their statistics. A composite stays where other passes match it,
    such as `graph.gelu`, and where a table of `graph-legalize` has a rule or a kernel for it.

    Requires: nothing.
    Leaves: no other composite, and no `graph.dropout` but between different types.
    """

    name = "graph-open-composites"
    budget = ROUNDING

    late: bool = False
    """Whether the passes that match operators have run: `graph.softmax` is one of those."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        why = "its parts fold and fuse with their neighbours"
        rules = permitted(op, [recorded(CompositeIsItsBody(ctx, self.late), ctx, why)])
        PatternRewriteWalker(GreedyRewritePatternApplier(rules)).rewrite_module(op)

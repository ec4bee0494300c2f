"""The pass `swish-raise-silu`."""

from dataclasses import dataclass

from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from stepwell.core import provenance
from stepwell.dialects.graph import ops as graph

from .dialect import SiluOp


# x * sigmoid(x) == silu(x)
class RaiseSilu(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MulOp, rewriter: PatternRewriter):
        for x, gate in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if isinstance(gate.owner, graph.SigmoidOp) and gate.owner.operands[0] is x:
                silu = SiluOp(x, op.result.type)
                silu.location = provenance.fuse([gate.owner, op])
                rewriter.replace(op, silu)
                return


@dataclass(frozen=True)
class SwishRaiseSiluPass(ModulePass):
    """Replace x * sigmoid(x) by swish.silu, which reads x once."""

    name = "swish-raise-silu"

    def apply(self, ctx, op):
        PatternRewriteWalker(RaiseSilu()).rewrite_module(op)

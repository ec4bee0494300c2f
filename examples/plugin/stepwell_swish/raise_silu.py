"""The pass `swish-raise-silu`."""

from dataclasses import dataclass

from xdsl.passes import ModulePass

from stepwell import patterns as p
from stepwell.core.pipelines.budgets import ROUNDING

from .dialect import SiluOp


# x * sigmoid(x) == silu(x)
@p.pattern
def gated(x):
    return p.mul(x, p.sigmoid(x))


@p.rewrite(gated)
def silu(b, x):
    return b.apply(SiluOp, x)


@dataclass(frozen=True)
class SwishRaiseSiluPass(ModulePass):
    """Replace x * sigmoid(x) by swish.silu, which reads x once."""

    name = "swish-raise-silu"
    budget = ROUNDING  # how far it may move results; `compile(check=True)` compares

    def apply(self, ctx, op):
        p.rewrite_module(ctx, op, [silu])

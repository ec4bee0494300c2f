"""Rules that record each use as a decision."""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.ir.context import decide
from ....core.pipelines.actions import name_of
from ....core.pipelines.exactness import Exactness
from .rooted import roots_of


def recorded(rule: RewritePattern, ctx: Context, why: str) -> RewritePattern:
    """A rule that records each of its uses in the context, with this reason.

    `MaxIsClip` is the rule "max is clip".
    """
    return _Recorded(ctx, rule, why)


class _Recorded(RewritePattern):
    def __init__(self, ctx: Context, rule: RewritePattern, why: str) -> None:
        self.ctx, self.rule, self.why = ctx, rule, why
        self.roots = roots_of(rule)
        self.matches = getattr(rule, "matches", None)
        exactness = Exactness.of(rule)
        if exactness is not None:
            exactness(self)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if rewriter.has_done_action:
            return
        self.rule.match_and_rewrite(op, rewriter)
        if rewriter.has_done_action:
            words = re.sub(r"(?<!^)(?=[A-Z])", " ", name_of(self.rule)).lower()
            decide(self.ctx, op, f'rewrite {op.name} by the rule "{words}"', self.why)

"""Rewriting: replace matches, a bounded number of times, and erase dead code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import DiagnosticException

from ...core.errors import CompileError, StepwellError, explain, first_line
from ...core.ir.context import CompilerContext, decide
from ...core.ir.provenance import fuse, origin
from ...core.ir.weights import WeightStore
from ...core.patterns.pattern import Match, Pattern
from ...dialects.graph.interfaces import GraphOp, compatible, set_result_types
from ..graph.fusion.outlining import bring_together

Build = Callable[[Match, WeightStore], tuple[Sequence[Operation], Sequence[SSAValue]]]
"""Builds the operators and results of a replacement; arrays go into the store."""

_REWRITES_PER_OPERATOR = 10


@dataclass(frozen=True)
class Rule(RewritePattern):
    """A pattern and its replacement, usable as a `RewritePattern` of xDSL."""

    pattern: Pattern
    build: Build
    name: str
    weights: WeightStore | None = None

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        self.replace(op, rewriter)

    def replace(self, op: Operation, rewriter: PatternRewriter) -> Match | None:
        """Replace the match whose first result is a result of `op`, if any.

        Raises:
            CompileError: if the replacement does not fit; the module is then unchanged.
        """
        match = self.pattern.match(op)
        if match is None:
            return None
        store = WeightStore() if self.weights is None else self.weights
        new, values = self.build(match, store)
        if self.weights is None and len(store):
            hint = "use patterns.apply or patterns.rewrite_module"
            raise self.error(match, "there is no weight store for its arrays", hint=hint)
        values = self._fitted(match, new, values)
        location = fuse(match.ops)
        for made in new:
            made.location = location
        if len(match.roots) > 1:
            bring_together(match.ops)
        rewriter.insert(list(new), InsertPoint.before(match.ops[-1]))
        for old, value in zip(match.roots, values, strict=True):
            value.name_hint = value.name_hint or old.name_hint
            rewriter.replace_all_uses_with(old, value)
        for matched in reversed(match.ops):
            if not any(result.uses for result in matched.results):
                rewriter.erase(matched)
        return match

    def _fitted(
        self, match: Match, new: Sequence[Operation], values: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The results; new ones get the declared types of the old ones."""
        if len(values) != len(match.roots):
            fact = "wrong number of results"
            raise self.error(match, fact, len(match.roots), len(values))
        fitted = list(values)
        for number, (old, value) in enumerate(zip(match.roots, values, strict=True)):
            if value in match.roots:
                raise self.error(match, f"result {number} is one of the values to replace")
            if value.type == old.type:
                continue
            owner = value.owner
            if not isinstance(owner, GraphOp) or owner not in new or not _fits(old, value):
                raise self.error(match, f"result {number} has another type", old.type, value.type)
            place = owner.results.index(value)
            set_result_types(owner, [old.type if r is value else r.type for r in owner.results])
            fitted[number] = owner.results[place]
        return fitted

    def error(
        self,
        match: Match,
        fact: str,
        expected: object = None,
        got: object = None,
        hint: str | None = None,
    ) -> CompileError:
        """An error that names the rewrite and the operators to be replaced."""
        subject, where = f'rewrite "{self.name}"', match.origin
        return CompileError(
            explain(subject, fact, expected=expected, got=got, origin=where, hint=hint)
        )


def _fits(old: SSAValue, new: SSAValue) -> bool:
    """Whether a new, unused value may take the type of an old one."""
    if not isinstance(old.type, TensorType) or not isinstance(new.type, TensorType):
        return False
    return compatible(old.type, new.type) and not new.uses


@dataclass
class _LimitedPattern(RewritePattern):
    """A pattern with a limit on its number of uses."""

    pattern: RewritePattern
    ctx: Context
    limit: int
    count: int = 0

    @property
    def name(self) -> str:
        return self.pattern.name if isinstance(self.pattern, Rule) else type(self.pattern).__name__

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        match: Match | None = None
        try:
            if isinstance(self.pattern, Rule):
                match = self.pattern.replace(op, rewriter)
            else:
                self.pattern.match_and_rewrite(op, rewriter)
        except StepwellError:
            raise
        except Exception as error:
            fact = f"raised {type(error).__name__}: {first_line(error)}"
            raise CompileError(self._explain(fact, op)) from error
        if not rewriter.has_done_action:
            return
        self.count += 1
        if self.count > self.limit:
            fact = f"was applied {self.count} times and matches again"
            hint = "it may undo itself; apply it once, or raise the limit"
            raise CompileError(self._explain(fact, op, f"at most {self.limit}", hint))
        subject = match.origin if match is not None else origin(op) or op.name
        decide(self.ctx, subject, f'rewritten by "{self.name}"', "its pattern matches")

    def _explain(
        self, fact: str, op: Operation, expected: str | None = None, hint: str | None = None
    ) -> str:
        subject = f'rewrite "{self.name}"'
        return explain(subject, fact, expected=expected, origin=origin(op) or op.name, hint=hint)


def rewrite_module(
    ctx: Context,
    op: ModuleOp,
    rules: Sequence[RewritePattern],
    *,
    once: bool = False,
    limit: int | None = None,
) -> int:
    """Apply rules in place until none matches, users before producers; for use in a pass.

    Dead operations are erased. The decisions go to the context, and arrays of replacements to its
    weight store. The caller verifies the result.

    Args:
        ctx: the context of the pass.
        op: the module.
        rules: rewrites of patterns, and xDSL's own patterns; the first that matches is used.
        once: visit each operator once, and not those of replacements.
        limit: how often one rule may be applied; by default ten times the operators.

    Returns:
        The number of rewrites.

    Raises:
        CompileError: if a rule exceeds the limit, fails, or does not fit; the module may then
            be partly rewritten.
    """
    if limit is None:
        limit = _REWRITES_PER_OPERATOR * sum(1 for _ in op.walk())
    store = ctx.weights if isinstance(ctx, CompilerContext) else None
    bounded: list[_LimitedPattern] = []
    for rule in rules:
        if not isinstance(rule, RewritePattern):
            fact, expected = "wrong rule", "a rewrite of a pattern or an xdsl RewritePattern"
            raise CompileError(explain("rewrite", fact, expected=expected, got=repr(rule)))
        held = dataclasses.replace(rule, weights=store) if isinstance(rule, Rule) else rule
        bounded.append(_LimitedPattern(held, ctx, limit))
    walker = PatternRewriteWalker(
        GreedyRewritePatternApplier(list(bounded), dce_enabled=True),
        apply_recursively=not once,
        walk_reverse=True,
    )
    try:
        walker.rewrite_module(op)
    except DiagnosticException as error:
        # The walker adds the module to what a rule raised, whose message is complete.
        if isinstance(error.__cause__, StepwellError):
            raise error.__cause__ from None
        raise
    return sum(rule.count for rule in bounded)

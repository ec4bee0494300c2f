"""Rules by the classes of operators they match, so that they are not tried on others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Protocol, TypeVar, cast, get_args

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from ....core.bounded_cache import bounded_cache

RuleT = TypeVar("RuleT", bound=RewritePattern)
OpT = TypeVar("OpT", bound=Operation)
Roots = tuple[type[Operation], ...]


class _Rooted(Protocol):
    roots: Roots


def rooted(
    method: Callable[[RuleT, OpT, PatternRewriter], None],
) -> Callable[[RuleT, Operation, PatternRewriter], None]:
    """xDSL's `op_type_rewrite_pattern`, which also keeps the annotated classes of operators."""
    made = op_type_rewrite_pattern(method)
    parameters = inspect.signature(method, eval_str=True).parameters
    kind = list(parameters.values())[1].annotation
    cast(_Rooted, made).roots = get_args(kind) or (kind,)
    return made


def roots_of(rule: RewritePattern) -> Roots | None:
    """The classes of operators that a rule may match; None if it does not declare them."""
    found = getattr(rule, "roots", None) or getattr(rule.match_and_rewrite, "roots", None)
    return cast(Roots | None, found)


@bounded_cache
def _is_of(kind: type[Operation], roots: Roots) -> bool:
    return issubclass(kind, roots)


class ByClass(RewritePattern):
    """Tries the rules that may match the class of an operator, in order, until one matches."""

    def __init__(self, rules: Iterable[RewritePattern]) -> None:
        self.rules = tuple(rules)
        found = [roots_of(rule) for rule in self.rules]
        self.roots: Roots | None = None
        if None not in found:
            self.roots = tuple(dict.fromkeys(chain.from_iterable(cast(list[Roots], found))))
        self._for: dict[type[Operation], tuple[RewritePattern, ...]] = {}

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        rules = self._for.get(type(op))
        if rules is None:
            rules = self._for[type(op)] = tuple(
                rule
                for rule in self.rules
                if (roots := roots_of(rule)) is None or _is_of(type(op), roots)
            )
        for rule in rules:
            rule.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                return

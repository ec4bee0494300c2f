"""The classes of operators that rules match, so that they are not tried on others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
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


def may_replace(rule: RewritePattern, kind: type[Operation]) -> bool:
    """Whether a rule may match operators of a class."""
    roots = roots_of(rule)
    return roots is None or _is_of(kind, roots)


@bounded_cache
def _is_of(kind: type[Operation], roots: Roots) -> bool:
    return issubclass(kind, roots)

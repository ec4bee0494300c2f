"""Where rules may be used, by how exact they are: decided here for all passes."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.pipelines.exactness import Exactness, Rounding, rounding_of
from ....dialects.graph.attrs import is_float
from ....dialects.graph.interfaces import GraphOp, element_type
from ....dialects.graph.plan.visibility import Visibility
from .rooted import may_replace

_ORDER = (Exactness.EXACT, Exactness.OPEN, Exactness.ROUNDING, Exactness.SPECIAL)


class Permission:
    """Decides which rules may replace an operator; one object for one run of a pass.

    `Visibility` says how long its answers are valid.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._rounding = rounding_of(module)
        self._visibility = Visibility()

    def allows(self, exactness: Exactness | None, op: Operation) -> bool:
        """Whether a rule of this class may replace an operator; None for a user's rule."""
        if exactness in (None, Exactness.EXACT) or self._rounding == Rounding.FREE:
            return True
        # Integers wrap around: no rounding in any order.
        if isinstance(op, GraphOp):
            values = (*op.operands, *op.results)
            if not any(is_float(element_type(value)) for value in values):
                return True
        if self._rounding == Rounding.KEPT:
            return False
        if exactness == Exactness.OPEN:
            return True
        return not any(self._visibility.shows(result) for result in op.results)


def permitted(module: ModuleOp, rules: Iterable[RewritePattern]) -> list[RewritePattern]:
    """The rules as one pattern, which uses each only where its exactness permits it."""
    return [RuleTable(Permission(module), rules)]


class RuleTable(RewritePattern):
    """The rules for each class of operators: the exact ones are tried first, until one matches.

    Whether a result shows is asked only where the left side of another rule is found.
    """

    def __init__(self, permission: Permission, rules: Iterable[RewritePattern]) -> None:
        found = [(rule, Exactness.of(rule) or Exactness.EXACT) for rule in rules]
        self._permission = permission
        self._rules = sorted(found, key=lambda pair: _ORDER.index(pair[1]))
        self._of: dict[type[Operation], tuple[tuple[RewritePattern, Exactness], ...]] = {}

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        kind = type(op)
        rules = self._of.get(kind)
        if rules is None:
            own = [pair for pair in self._rules if may_replace(pair[0], kind)]
            rules = self._of[kind] = tuple(own)
        for rule, exactness in rules:
            if exactness is not Exactness.EXACT:
                matches = getattr(rule, "matches", None)
                if matches is not None and not matches(op):
                    continue
                if not self._permission.allows(exactness, op):
                    continue
            rule.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                return

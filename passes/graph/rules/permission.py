"""Where rules may be used, by how exact they are: decided here for all passes."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ....core.exactness import Exactness, Rounding, rounding_of
from ....dialects.graph.attrs import is_float
from ....dialects.graph.interfaces import GraphOp, element_type
from ....dialects.graph.visibility import Visibility
from .rooted import ByClass


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
    """The rules as one pattern, which uses each only where its exactness permits it.

    Exact ones come first; permission for the others is checked once per class.
    """
    found = [(rule, Exactness.of(rule)) for rule in rules]
    free = [rule for rule, exactness in found if exactness in (None, Exactness.EXACT)]
    result, permission = list(free), Permission(module)
    for exactness in (Exactness.OPEN, Exactness.ROUNDING, Exactness.SPECIAL):
        same = [rule for rule, own in found if own == exactness]
        if same:
            result.append(_Permitted(permission, exactness, ByClass(same)))
    return [ByClass(result)]


class _Permitted(RewritePattern):
    """Rules of one class of exactness, used where it is permitted."""

    def __init__(self, permission: Permission, exactness: Exactness, rules: ByClass) -> None:
        self.permission, self.exactness, self.rules = permission, exactness, rules
        self.roots = rules.roots

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if self.permission.allows(self.exactness, op):
            self.rules.match_and_rewrite(op, rewriter)

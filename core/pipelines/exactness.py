"""How exact rewrites are: each rule declares it beside its identity.

A rule is a rewrite pattern, a function that replaces an operator, or a whole pass. It is declared
by a decorator; a test rejects rules without one:

    @states(ROUNDING, "x / c == x * (1 / c)")
    class DivideByConstant(RewritePattern):

`docs/canonical-forms.md` explains the classes, and where rules of each class may be applied.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from ..errors import CompileError, explain
from ..ir.module import Module

RuleT = TypeVar("RuleT")


class Exactness(Enum):
    """What may differ between the two sides of a rewrite."""

    EXACT = "exact"
    """Nothing: the same bits for all operands, NaN and -0.0 among them."""
    OPEN = "open"
    """The order of a sum of floats, which operators leave open."""
    ROUNDING = "rounding"
    """How often, or where, a result is rounded."""
    SPECIAL = "special values"
    """Results for NaN, infinities, the sign of 0, overflow and underflow; roundings as well."""

    def __call__(self, rule: RuleT) -> RuleT:
        """Declare that a rule is of this class."""
        setattr(rule, _DECLARED, self)
        return rule

    @staticmethod
    def of(rule: object) -> Exactness | None:
        """The class that a rule, or the Python class of a rule, declares; None if none."""
        declared = getattr(rule, _DECLARED, None)
        return declared if isinstance(declared, Exactness) else None


_DECLARED = "exactness"

EXACT, OPEN = Exactness.EXACT, Exactness.OPEN
ROUNDING, SPECIAL = Exactness.ROUNDING, Exactness.SPECIAL


def states(exactness: Exactness, *identities: str) -> Callable[[RuleT], RuleT]:
    """Declare of which class a rule is, and by which identities it rewrites, for readers."""

    def declared(rule: RuleT) -> RuleT:
        setattr(rule, "identity", "\n".join(identities))  # noqa: B010
        return exactness(rule)

    return declared


ROUNDING_ATTRIBUTE = "graph.rounding"
"""The attribute of a module that holds a `Rounding`."""


class Rounding(Enum):
    """How rewrites may change the roundings of a module, and how kernels those of 16 bits."""

    KEPT = "kept"
    """Every float is rounded as in the model: only exact rewrites are applied."""
    UNSEEN = "unseen"
    """Rewrites that round differently are applied where no comparison, rounding to integers, cast
    to integers or quantisation follows, and open ones everywhere. There kernels do not round f16
    and bf16 that they do not store either. This is the default."""
    FREE = "free"
    """All rewrites are applied everywhere, and what is not stored is not rounded to 16 bits."""


def with_rounding(module: Module, rounding: str) -> Module:
    """A copy of a module that states how its rewrites may change roundings.

    Raises:
        CompileError: if `Rounding` has no such value.
    """
    known = [kind.value for kind in Rounding]
    if rounding not in known:
        fact, expected = "unknown rounding", ", ".join(known)
        raise CompileError(explain("compile", fact, expected=expected, got=f'"{rounding}"'))
    copy = module.clone()
    copy.op.attributes[ROUNDING_ATTRIBUTE] = StringAttr(rounding)
    return copy


def rounding_of(module: Operation) -> Rounding:
    """How rewrites may change the roundings of a module.

    Raises:
        PassFailedException: if `Rounding` has no such value.
    """
    said = module.attributes.get(ROUNDING_ATTRIBUTE)
    if said is None:
        return Rounding.UNSEEN
    value = said.data if isinstance(said, StringAttr) else str(said)
    if value not in [kind.value for kind in Rounding]:
        expected = ", ".join(kind.value for kind in Rounding)
        fact = "unknown value"
        raise PassFailedException(
            explain(ROUNDING_ATTRIBUTE, fact, expected=expected, got=f'"{value}"')
        )
    return Rounding(value)

"""The page of the rewrite rules."""

from __future__ import annotations

from ..rule_list import listed_rules
from .markdown import page, table

_INTRODUCTION = """\
What rewrites do, as `stepwell-opt --list-rules` prints it. The left side is replaced by the right
one, which has the same type. The names `c` and `d` are constants, `f` is any operator, a starred
name is any number of operands, and `(t := ...)` names a value.
[Canonical forms](../canonical-forms.md#how-exact-a-rewrite-is) says what the classes of exactness
mean, and where rules of each are used."""


def rules_page() -> str:
    """The page of all rules: name, identities, exactness, users."""
    rows = [
        (
            f"`{rule.name}`",
            "<br>".join(map(_identity, rule.identities)),
            rule.exactness.value,
            ", ".join(f"`{user}`" for user in rule.users),
        )
        for rule in listed_rules()
    ]
    return page("# Rewrite rules", _INTRODUCTION, table(("rule", "identity", "exact", "in"), rows))


def _identity(text: str) -> str:
    """The equation as code, and its condition after it."""
    equation, _, condition = text.partition("  ")
    return f"`{equation}`, {condition}" if condition else f"`{equation}`"

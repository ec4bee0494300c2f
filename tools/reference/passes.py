"""Pages with the passes of each level."""

from __future__ import annotations

import inspect
import re

from xdsl.passes import ModulePass

from ...core.pipelines.budgets import EXACT, budget_of
from ...core.pipelines.exactness import Exactness
from ...core.registry import own_passes
from ..pass_help import options_of
from .markdown import page, summary, table


def passes_page(title: str, prefix: str) -> str:
    """The page of the passes whose names begin with a prefix."""
    named = {name: load() for name, load in own_passes().items() if name.startswith(prefix)}
    listed = [(f"[`{name}`](#{name})", summary(kind)) for name, kind in named.items()]
    return page(
        f"# {title}",
        table(("pass", "what it does"), listed),
        *(part for name, kind in named.items() for part in _pass(name, kind)),
    )


def _pass(name: str, kind: type[ModulePass]) -> tuple[str, ...]:
    rows = [
        (f"`{option.name}`", option.type, option.default or "required", option.text)
        for option in options_of(kind)
    ]
    # The last lines, Requires, Order and Leaves, become a list, behind an empty line.
    text = (inspect.getdoc(kind) or "").replace("```\nRequires: ", "```\n\nRequires: ")
    text = re.sub(r"^(Requires|Order|Leaves): ", r"- *\1*: ", text, flags=re.MULTILINE)
    return (
        f"## `{name}` {{ #{name} }}",
        text,
        table(("option", "type", "default", "purpose"), rows),
        _contract(kind),
    )


def _contract(kind: type[ModulePass]) -> str:
    """How exact a pass is, and how far it may move results."""
    declared, budget = Exactness.of(kind), budget_of(kind())
    exact = f"Exactness: {declared.value}. " if declared is not None else ""
    if budget == EXACT:
        return f"{exact}Budget: none, results stay the same bits."
    sums = ", and 2 √n more for sums of n terms" if budget.sums else ""
    return f"{exact}[Budget](../checking.md#what-a-pass-may-change): {budget.ulp:g} ulp{sums}."

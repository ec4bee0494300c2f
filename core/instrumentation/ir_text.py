"""Modules as text for people: by function, and as diffs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ..printing import module_text


def texts_by_symbol(op: ModuleOp, elide: int | None = None) -> dict[str, str]:
    """The text of each function, kernel or other operation of a module, by name.

    Constants of more than `elide` elements are elided, as in `module_text`.
    """
    texts: dict[str, str] = {}
    for number, inner in enumerate(op.ops):
        symbol = inner.properties.get("sym_name")
        name = f"@{symbol.data}" if isinstance(symbol, StringAttr) else f"{inner.name} {number}"
        texts[name] = module_text(inner, elide=elide)
    return texts


def text_of_wrong(op: ModuleOp, elide: int | None = None) -> str:
    """The text of a module that may be invalid: in the generic form if custom printing fails."""
    try:
        return module_text(op, elide=elide)
    except Exception:
        # Custom printers rely on the facts that verifiers check.
        return module_text(op, elide=elide, print_generic_format=True)


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The names of added, removed and changed texts, in order."""
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name) != after.get(name)]


def difference(name: str, before: str | None, after: str | None) -> str:
    """The unified diff of two texts.

    None stands for a missing text.
    """
    lines = difflib.unified_diff(
        [] if before is None else before.splitlines(),
        [] if after is None else after.splitlines(),
        "nothing" if before is None else f"{name} before",
        "nothing" if after is None else f"{name} after",
        lineterm="",
    )
    return "\n".join(lines)

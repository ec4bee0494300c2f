"""Modules as text to look at: by functions, and as differences between them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ..printing import module_text


def texts_by_symbol(op: ModuleOp, elide: int | None = None) -> dict[str, str]:
    """The text of each function, kernel or other operation of a module, by what it is called.

    Constants of more than `elide` elements are left out of it, as in `module_text`.
    """
    texts: dict[str, str] = {}
    for number, inner in enumerate(op.ops):
        symbol = inner.properties.get("sym_name")
        name = f"@{symbol.data}" if isinstance(symbol, StringAttr) else f"{inner.name} {number}"
        texts[name] = module_text(inner, elide=elide)
    return texts


def text_of_wrong(op: ModuleOp, elide: int | None = None) -> str:
    """The text of a module that need not be valid: in the generic form where no other can be."""
    try:
        return module_text(op, elide=elide)
    except Exception:
        # What prints an operation relies on all that its verifier demands.
        return module_text(op, elide=elide, print_generic_format=True)


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The names of what is new, gone or different, in order."""
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name) != after.get(name)]


def difference(name: str, before: str | None, after: str | None) -> str:
    """The lines in which two texts differ, and those around them, in the unified form.

    None stands for a text that is not there.
    """
    lines = difflib.unified_diff(
        [] if before is None else before.splitlines(),
        [] if after is None else after.splitlines(),
        "nothing" if before is None else f"{name} before",
        "nothing" if after is None else f"{name} after",
        lineterm="",
    )
    return "\n".join(lines)

"""Modules as text for people: by function, and as diffs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp

from ..ir.printing import module_text
from ..ir.symbols import symbol_of

_CONTEXT = 3
"""The number of unchanged lines that a diff shows around changed ones."""


def texts_by_symbol(op: ModuleOp, elide: int | None = None) -> dict[str, str]:
    """The text of each function, kernel or other operation of a module, by name.

    Constants of more than `elide` elements are elided, as in `module_text`.
    """
    texts: dict[str, str] = {}
    for number, inner in enumerate(op.ops):
        symbol = symbol_of(inner)
        name = f"{inner.name} {number}" if symbol is None else f"@{symbol}"
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


def window(before: Sequence[str], after: Sequence[str]) -> tuple[slice, slice]:
    """The lines that differ: what is left without the same lines at the beginning and the end."""
    least = min(len(before), len(after))
    first = next((n for n in range(least) if before[n] != after[n]), least)
    left = least - first
    same = next((n for n in range(left) if before[-1 - n] != after[-1 - n]), left)
    return slice(first, len(before) - same), slice(first, len(after) - same)


def difference(name: str, before: str | None, after: str | None) -> str:
    """The unified diff of two texts.

    None stands for a missing text. Lines before the first change and after the last one are not
    compared, which takes the time of a large function.
    """
    old, new = ([] if text is None else text.splitlines() for text in (before, after))
    first = max(0, window(old, new)[0].start - _CONTEXT)
    olds, news = (slice(first, one.stop + _CONTEXT) for one in window(old, new))
    lines = difflib.unified_diff(
        old[olds],
        new[news],
        "nothing" if before is None else f"{name} before",
        "nothing" if after is None else f"{name} after",
        lineterm="",
        n=_CONTEXT,
    )
    return "\n".join(_moved(line, first) for line in lines)


def _moved(line: str, by: int) -> str:
    """A line of a diff, with the place of a hunk moved by a number of lines."""
    if not line.startswith("@@"):
        return line
    return re.sub(r"(?<=[-+])\d+", lambda found: str(int(found[0]) + by), line)

"""Parts of a page in Markdown."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Sequence


def code(text: str, language: str = "") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, in which bars and line breaks of cells are escaped; empty without rows."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    if not lines:
        return ""
    head = f"| {' | '.join(titles)} |"
    return "\n".join([head, f"|{'---|' * len(titles)}", *lines])


def summary(documented: object) -> str:
    """The first paragraph of a docstring."""
    return (inspect.getdoc(documented) or "").partition("\n\n")[0]


def folded(title: str, text: str) -> str:
    """A part that is shown when its title is clicked."""
    return f'??? info "{title}"\n\n{textwrap.indent(text, "    ")}'


def page(*parts: str) -> str:
    """A page of parts, with an empty line between them; empty ones are left out."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

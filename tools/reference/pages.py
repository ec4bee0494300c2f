"""The pages of the reference by the names of their files in `docs/reference/`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .commands import commands_page
from .nests import nests_page
from .operations import dialect_page
from .passes import passes_page
from .python import layers_page, python_page
from .rules import rules_page

PAGES: dict[str, Callable[[], str]] = {
    "python.md": python_page,
    "layers.md": layers_page,
    "graph.md": partial(dialect_page, "graph"),
    "loop.md": partial(dialect_page, "loop"),
    "rt.md": partial(dialect_page, "rt"),
    "passes-graph.md": partial(passes_page, "Passes on graphs", "graph-"),
    "passes-loop.md": partial(passes_page, "Passes on loop nests", "loop-"),
    "passes-rt.md": partial(passes_page, "Passes on programs", "rt-"),
    "conversions.md": partial(passes_page, "Conversions", "convert-"),
    "rules.md": rules_page,
    "nests.md": nests_page,
    "commands.md": commands_page,
}

"""All operators of the `graph` dialect, under the one name by which others import them.

from stepwell.dialects.graph import ops as graph

y = graph.ReluOp(graph.DenseOp(x, w, bias))

The files of the folders here are the list; they are imported when a name is first used, so that
one of them can be imported alone. Type checkers read `__init__.pyi`, which `make public` writes.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parent
_FUNCTIONS = {"splat_of": "sources.constant", "yielded": "control.regions"}
"""What else is imported by this name, and where it is."""


@cache
def modules() -> list[ModuleType]:
    """The files of operators."""
    files = (path.relative_to(_FOLDER).with_suffix("") for path in _FOLDER.glob("*/*.py"))
    names = sorted(".".join(file.parts) for file in files if file.stem != "__init__")
    return [importlib.import_module(f".{name}", __package__) for name in names]


def __getattr__(name: str) -> object:
    if name in _FUNCTIONS:
        value = getattr(importlib.import_module(f".{_FUNCTIONS[name]}", __package__), name)
        globals()[name] = value
        return value
    if name.endswith("Op") and not name.startswith("_"):
        globals().update(operators())
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def operators() -> dict[str, type]:
    """The classes of operators by name, in the order of their files."""
    return {
        name: value
        for module in modules()
        for name, value in vars(module).items()
        if name.endswith("Op") and not name.startswith("_") and value.__module__ == module.__name__
    }

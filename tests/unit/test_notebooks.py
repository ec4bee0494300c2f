"""The notebooks of the documentation run, and display what they compute.

`make docs` runs them in a kernel; here their cells run without one, and without Jupyter.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


class Shown:
    """What stands for an object of `IPython.display`: the text that it would show."""

    def __init__(self, data: str, language: str | None = None) -> None:
        self.data = data

    def _repr_html_(self) -> str:
        return self.data


def code_of(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run(source: str, names: dict[str, Any]) -> object:
    """Run a cell, and return the value of the expression at its end."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_displays_what_it_computes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    display = ModuleType("IPython.display")
    monkeypatch.setattr(display, "Code", Shown, raising=False)
    monkeypatch.setattr(display, "Markdown", Shown, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    # Dataclasses look for the module in which they are.
    module = ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", module)
    shown = [run(cell, vars(module)) for cell in code_of(path)]
    assert len(shown) >= 8
    for value in shown:
        assert value is None or value._repr_html_()  # type: ignore[attr-defined]
    assert sum(value is None for value in shown) <= 1  # the imports


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert "print(" not in "".join(cell["source"])


def test_there_are_notebooks() -> None:
    names = ["graph-network", "staircase", "write-a-pass"]
    assert [path.stem for path in NOTEBOOKS] == names

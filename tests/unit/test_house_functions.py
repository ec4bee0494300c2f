"""No function of the package is long: at most 50 lines, its docstring not counted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"tests", "benchmarks", "examples", "build", "docs"}
LONGEST = 50


def modules() -> list[Path]:
    """The modules of the package."""
    rooms = [
        path
        for path in ROOT.iterdir()
        if path.is_dir() and path.name not in OUTSIDE and not path.name.startswith(".")
    ]
    found = [*ROOT.glob("*.py"), *(path for room in rooms for path in room.rglob("*.py"))]
    return sorted(path.relative_to(ROOT) for path in found)


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines from `def` to the end, without those of the docstring."""
    assert function.end_lineno is not None
    first, count = function.body[0], function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return count
    assert first.end_lineno is not None
    return count - (first.end_lineno - first.lineno + 1)


def too_long(source: str) -> list[tuple[str, int, int]]:
    """The name, line and length of each function that is too long."""
    functions = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    lengths = [(node.name, node.lineno, lines(node)) for node in functions]
    return [found for found in lengths if found[2] > LONGEST]


def test_functions_are_short() -> None:
    found = [
        f"{path}:{line}: {name} has {length} lines, expected at most {LONGEST}"
        for path in modules()
        for name, line, length in too_long((ROOT / path).read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("statements", "long"), [(LONGEST - 1, False), (LONGEST, True)])
def test_the_docstring_is_not_counted(statements: int, long: bool) -> None:
    body = "    x = 1\n" * statements
    assert bool(too_long(f'def f():\n    """One.\n\n    Two.\n    """\n{body}')) is long
    assert bool(too_long(f"class C:\n  async def f(self):\n{body}")) is long


def test_the_package_is_found() -> None:
    assert {Path("compiler.py"), Path("core/module.py")} <= set(modules())

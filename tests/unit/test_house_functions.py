"""A function of the package that has more than 60 lines of code says why it reads better whole.

Lines of code are those from `def` to the end that hold more than a comment; docstrings and blank
lines do not count. The reason is a comment directly above `def`, or above its decorators, with the
word "whole"; at most 15 functions have one.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"tests", "benchmarks", "examples", "build", "docs"}
LONGEST = 60
MOST_EXCUSED = 15
_WHOLE = re.compile(r"\bwhole\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    """The modules of the package."""
    rooms = [
        path
        for path in ROOT.iterdir()
        if path.is_dir() and path.name not in OUTSIDE and not path.name.startswith(".")
    ]
    found = [*ROOT.glob("*.py"), *(path for room in rooms for path in room.rglob("*.py"))]
    return sorted(path.relative_to(ROOT) for path in found)


def code(function: Function, lines: list[str]) -> int:
    """The number of lines of code of a function, those of functions inside it included."""
    documentation: set[int] = set()
    for node in ast.walk(function):
        if not isinstance(node, Function | ast.ClassDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            documentation.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    assert function.end_lineno is not None
    return sum(
        number not in documentation and lines[number - 1].strip()[:1] not in ("", "#")
        for number in range(function.lineno, function.end_lineno + 1)
    )


def reason(function: Function, lines: list[str]) -> str:
    """The comment directly above a function."""
    first = min(node.lineno for node in (function, *function.decorator_list)) - 1
    above = first
    while above and lines[above - 1].strip().startswith("#"):
        above -= 1
    return " ".join(line.strip().removeprefix("#").strip() for line in lines[above:first])


def long_functions(source: str) -> list[tuple[str, int, int, bool]]:
    """The name, line and length of each long function, and whether it says why it is whole."""
    lines = source.splitlines()
    functions = [
        node
        for node in ast.walk(ast.parse(source))
        # One that is short with its blank lines has few lines of code.
        if isinstance(node, Function) and (node.end_lineno or 0) - node.lineno >= LONGEST
    ]
    lengths = [(node, code(node, lines)) for node in functions]
    return [
        (node.name, node.lineno, length, bool(_WHOLE.search(reason(node, lines))))
        for node, length in lengths
        if length > LONGEST
    ]


@functools.cache
def long_functions_of_the_package() -> list[tuple[Path, str, int, int, bool]]:
    return [
        (path, *found) for path in modules() for found in long_functions((ROOT / path).read_text())
    ]


def test_long_functions_say_why_they_are_whole() -> None:
    found = [
        f"{path}:{line}: {name} has {length} lines of code, expected at most {LONGEST}, or a "
        "comment above def that says why it reads better whole"
        for path, name, line, length, excused in long_functions_of_the_package()
        if not excused
    ]
    assert not found, "\n".join(found)


def test_few_functions_are_long() -> None:
    found = [f"{path}:{line}: {name}" for path, name, line, _, _ in long_functions_of_the_package()]
    assert len(found) <= MOST_EXCUSED, "\n".join(found)


@pytest.mark.parametrize(("statements", "long"), [(LONGEST - 1, False), (LONGEST, True)])
def test_only_code_is_counted(statements: int, long: bool) -> None:
    body = "    x = 1\n\n    # One.\n" * statements
    assert bool(long_functions(f'def f():\n    """One.\n\n    Two.\n    """\n{body}')) is long
    assert bool(long_functions(f"class C:\n  async def f(self):\n{body}")) is long


@pytest.mark.parametrize(
    ("above", "excused"),
    [
        ("# One table of cases reads better whole.\n", True),
        ("# One table of cases:\n# it reads better whole than in parts.\n@cache\n", True),
        ("# x + 0 == x\n", False),
        ("# It reads better whole.\n\n", False),
        ("", False),
    ],
)
def test_a_reason_stands_directly_above(above: str, excused: bool) -> None:
    body = "    x = 1\n" * LONGEST
    assert [found[3] for found in long_functions(f"y = 1\n{above}def f():\n{body}")] == [excused]


def test_the_package_is_found() -> None:
    assert {Path("api/compiler.py"), Path("core/ir/module.py")} <= set(modules())

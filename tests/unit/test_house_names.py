"""One name, four spellings: file, command line, class, lit test."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest
from xdsl.passes import ModulePass

from stepwell.core.registry import own_dialects, own_passes
from stepwell.tools.pass_help import options_of

ROOT = Path(__file__).resolve().parents[2]
LIT = ROOT / "tests" / "lit"
PASS_FOLDERS = ("passes/graph", "passes/loop", "passes/loop/steps", "passes/rt", "conversions")
PASS_FILES = sorted(
    path
    for folder in PASS_FOLDERS
    for path in (ROOT / folder).glob("*.py")
    # Beside conversions lies what several of them, or a long one, are made of.
    if path.name != "__init__.py" and (folder != "conversions" or path.match("convert_*.py"))
)
STEP_FILES = [path for path in PASS_FILES if path.parent.name == "steps"]
NOT_OURS = {"build", "dist", ".venv"}
"""Folders of what was built or installed; a virtual environment takes seconds to go through."""
SOURCES = sorted(
    path
    for room in ROOT.iterdir()
    if room.name not in NOT_OURS
    for path in (room.glob("**/*.py") if room.is_dir() else [room])
    if path.suffix == ".py" and not NOT_OURS & set(path.relative_to(ROOT).parts)
)


def spelled(path: Path) -> tuple[str, str, Path]:
    """The command-line name, the class and the lit test of a pass file."""
    folder = path.parent.relative_to(ROOT)
    dashed = path.stem.replace("_", "-")
    name = f"{folder.parts[1]}-{dashed}" if folder.parts[0] == "passes" else dashed
    class_name = "".join(word.capitalize() for word in name.split("-")) + "Pass"
    return name, class_name, LIT / folder / f"{dashed}.mlir"


def pass_classes(path: Path) -> list[ast.ClassDef]:
    tree = ast.parse(path.read_text())
    return [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id.endswith("Pass") for base in node.bases)
    ]


def test_class_and_command_line_name() -> None:
    for path in PASS_FILES:
        name, class_name, _ = spelled(path)
        assert name in own_passes(), f"{path.name} is not found by the registry"
        loaded = own_passes()[name]()
        assert issubclass(loaded, ModulePass)
        assert (loaded.__name__, loaded.name) == (class_name, name)


def test_files_of_steps_hold_one_primitive() -> None:
    """Its pass is derived from it, and documented at the top of the file."""
    for path in STEP_FILES:
        tree = ast.parse(path.read_text())
        found = [
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
            and any(ast.unparse(call).startswith("primitive(") for call in node.decorator_list)
        ]
        assert found == [path.stem], f"{path} defines the primitives {found}"
        assert len(pass_classes(path)) == (path.stem == "drop_unit_loops"), f"{path} defines a pass"


def test_files_hold_one_pass_and_it_comes_last() -> None:
    for path in [path for path in PASS_FILES if path not in STEP_FILES]:
        found = pass_classes(path)
        assert len(found) == 1, f"{path} defines {len(found)} passes, expected 1"
        last = ast.parse(path.read_text()).body[-1]
        assert last.lineno <= found[0].end_lineno, f"{path}: the pass is not last"  # type: ignore[operator]


def test_passes_have_a_lit_test() -> None:
    missing = [path.name for path in PASS_FILES if not spelled(path)[2].exists()]
    assert not missing, f"no lit test of {missing}"


def test_options_are_a_frozen_dataclass_with_defaults() -> None:
    for path in PASS_FILES:
        name, _, _ = spelled(path)
        loaded = own_passes()[name]()
        assert loaded.__dataclass_params__.frozen, f"{name} is not a frozen dataclass"  # type: ignore[attr-defined]
        without = [
            field.name
            for field in dataclasses.fields(loaded)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        assert not without, f"options of {name} without a default: {without}"


def test_options_say_what_they_are_for() -> None:
    without = [
        f"{name}: {option.name}"
        for name, load in own_passes().items()
        for option in options_of(load())
        if not option.text
    ]
    assert not without, f"options without documentation: {without}"


def test_every_lit_test_of_a_pass_belongs_to_one() -> None:
    known = {spelled(path)[2].relative_to(LIT) for path in PASS_FILES}
    found = {
        path.relative_to(LIT)
        for folder in PASS_FOLDERS
        for path in (LIT / folder).glob("**/*.mlir")
    }
    # A pass with much to show has a folder of its name beside or instead of further cases.
    strangers = {
        path
        for path in found - known
        if path.parent.with_suffix(".mlir") not in known and not _continues(path, known)
    }
    assert not strangers, f"lit tests without a pass: {sorted(map(str, strangers))}"


def _continues(path: Path, known: set[Path]) -> bool:
    """Whether `fuse-ops-sparse.mlir` continues a known `fuse-ops.mlir`."""
    return any(
        path.parent == other.parent and path.stem.startswith(f"{other.stem}-") for other in known
    )


@pytest.mark.parametrize("name", own_dialects())
def test_names_in_a_dialect(name: str) -> None:
    dialect = own_dialects()[name]()
    assert dialect.name == name
    for op in dialect.operations:
        prefix, _, mnemonic = op.name.partition(".")
        assert prefix == name, f"{op.__name__} is called {op.name} in dialect {name}"
        assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", mnemonic), op.name
        expected = "".join(word.capitalize() for word in re.split(r"[._]", mnemonic)) + "Op"
        assert op.__name__.lower() == expected.lower(), f"{op.name} is {op.__name__}"
        assert op.__doc__, f"{op.__name__} has no docstring"
    for attribute in dialect.attributes:
        assert attribute.__name__.endswith(("Attr", "Type")), attribute.__name__
        assert attribute.__doc__, f"{attribute.__name__} has no docstring"


def test_files_are_named_after_their_subject() -> None:
    nameless = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    found = [str(path.relative_to(ROOT)) for path in SOURCES if path.stem in nameless]
    assert not found, f"files without a subject in their name: {found}"


def test_inits_are_documentation() -> None:
    """A package init is its docstring; the root, `gnn` and `graph.ops` also name things."""
    named = ("__init__.py", "frontends/gnn/__init__.py", "dialects/graph/ops/__init__.py")
    faces = {ROOT / name for name in named}
    tests = (ROOT / "tests", ROOT / "examples")
    for path in SOURCES:
        if path.name != "__init__.py" or any(place in path.parents for place in tests):
            continue
        tree = ast.parse(path.read_text())
        docstring = ast.get_docstring(tree)
        assert docstring, f"{path.relative_to(ROOT)} has no docstring"
        assert path in faces or len(tree.body) == 1, f"{path.relative_to(ROOT)} defines something"

"""What pyproject.toml lists is what the tree holds, and what CONTRIBUTING.md gives reasons for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    *("api", "backends", "caching", "conversions", "core", "diagnosis", "dialects", "distributed"),
    *("driver", "frontends", "passes", "report", "runtime", "tools", "tuning"),
)


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_listed_packages_are_the_tree(pyproject: dict[str, Any]) -> None:
    listed = pyproject["tool"]["setuptools"]["packages"]
    folders = {
        path.parent.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).glob("**/*.py")
    }
    found = sorted(["stepwell", *(".".join(("stepwell", *folder.parts)) for folder in folders)])
    assert listed == found


def test_every_package_has_an_init(pyproject: dict[str, Any]) -> None:
    for name in pyproject["tool"]["setuptools"]["packages"]:
        init = ROOT.joinpath(*name.split(".")[1:], "__init__.py")
        assert init.exists(), f"{name} has no __init__.py"


def test_no_other_folder_holds_the_package() -> None:
    """A new folder of Python files is a room (listed above) or one of the known others."""
    others = {"tests", "examples", "benchmarks", "docs", "build", "dist"}
    found = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith((".", "_")) and any(path.glob("**/*.py"))
    }
    assert found <= others | set(ROOMS), found - others - set(ROOMS)


def test_data_of_the_demo_ships(pyproject: dict[str, Any]) -> None:
    patterns = pyproject["tool"]["setuptools"]["package-data"]["stepwell.tools"]
    shipped = {path.name for pattern in patterns for path in (ROOT / "tools").glob(pattern)}
    assert shipped == {"README.md", "digits.npz", "digits_mlp.npz", "karate_gcn.npz"}


def test_files_of_llvm_ir_ship(pyproject: dict[str, Any]) -> None:
    """Each lies in a package whose data is every file of its kind."""
    settings = pyproject["tool"]["setuptools"]
    kept = [path for room in ROOMS for path in (ROOT / room).rglob("*.ll")]
    assert kept
    for path in kept:
        package = ".".join(("stepwell", *path.relative_to(ROOT).parent.parts))
        assert settings["package-data"][package] == ["*.ll"], path


def test_each_dependency_has_its_reason(pyproject: dict[str, Any]) -> None:
    project = pyproject["project"]
    required = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        required += extra
    names = [re.match(r"[\w-]+", line).group() for line in required]  # type: ignore[union-attr]
    text = (ROOT / "CONTRIBUTING.md").read_text()
    missing = [name for name in names if f"`{name}`" not in text]
    assert not missing, f"CONTRIBUTING.md does not say why: {missing}"

"""The repository speaks of the compiler, not of the machines and habits it was written with."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".py", ".md", ".toml", ".mlir", ".in", ".cfg", ".yml", ".yaml", ".txt", ".sh", ""}

FORBIDDEN = {
    "a path of one machine": r"/(?:work|opt/venv|root|home/\w+)/",
    "a note to do later": r"\b(?:TODO|FIXME|XXX|HACK)\b",
    "the number of an issue": r"\b[Ii]ssues? #?\d|(?<!\w)GH-\d",
    "a package registry": r"pypi\.org|pythonhosted|npmjs\.|registry\.npm",
    "a writing tool": r"(?i)\b(?:chatgpt|claude|copilot)\b",
    "a conflict marker": r"^(?:<<<<<<<|>>>>>>>) ",
}


def tracked() -> list[Path]:
    """The files of the repository as git lists them, but for this one."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout: which files are the repository's is not known")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = done.stdout.decode().split("\0")[:-1]
    paths = [ROOT / name for name in names if Path(name).suffix in TEXT]
    return [path for path in paths if path.is_file() and path != Path(__file__).resolve()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_text_has(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what], re.MULTILINE)
    found: list[str] = []
    for path in tracked():
        text = path.read_text()
        for hit in pattern.finditer(text):
            line = text.count("\n", 0, hit.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {hit.group()}")
    assert not found, f"{what}: {found}"


def test_lines_of_scripts_fit() -> None:
    """At most 100 columns where ruff does not look."""
    names = {"Makefile", "MANIFEST.in", "run"}
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.name in names
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 100
    ]
    assert not long, long

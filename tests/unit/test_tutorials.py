"""What docs/tutorials/ tells to type works, and prints what is shown.

A block with a title is a file. The others run in their order, in one folder: Python, and lines of a
shell that begin with `$`. A block of text or IR after one of them is part of what it printed, with
`...` for any text.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stepwell.core import plugins
from stepwell.tools import main, stepwell_opt

from ..harness import package
from .test_staircase_page import pattern_of

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
LONG = {"graph-network", "ship-it"}
"""Tutorials that take longer: they export a model of torch, or compile and link libraries."""
PAGES = [
    pytest.param(path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
    for path in sorted(FOLDER.glob("*.md"))
]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
NEEDS = {"graph-network": "torch_geometric"}
"""Packages that a tutorial needs and the tests may lack."""


@dataclass
class Reader:
    """Somebody who types what a page says, in a folder."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def read(self, kind: str, title: str, text: str) -> None:
        if title:
            path = self.folder / title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif kind == "python":
            with self._printing():
                exec(compile(text, "tutorial", "exec"), self.names)
        elif kind == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:[^$].*\n|\n)*)", text, re.MULTILINE):
                with self._printing():
                    self._run(shlex.split(command))
                self._expect(shown)
        else:
            self._expect(text)

    def _expect(self, shown: str) -> None:
        assert re.search(pattern_of(shown), self.printed, re.DOTALL), f"{shown}\n\n{self.printed}"

    @contextlib.contextmanager
    def _printing(self) -> Iterator[None]:
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            yield
        self.printed = err.getvalue() + out.getvalue()

    def _run(self, words: list[str]) -> None:
        program, *arguments = words
        if program == "pip":
            assert arguments == ["install", "-e", "."]
            self._install()
        elif program == "python":
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            called = {"stepwell": main.main, "stepwell-opt": stepwell_opt.main}[program]
            with contextlib.suppress(SystemExit):
                called(arguments)

    def _install(self) -> None:
        """What `pip install -e .` does to the path: modules and entry points are found."""
        project = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        info = self.folder / f"{project['name']}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
        lines = [
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in project["entry-points"].items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        plugins.plugins.cache_clear()


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = {*sys.modules}
    yield Reader(tmp_path)
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
    monkeypatch.undo()
    importlib.invalidate_caches()
    plugins.plugins.cache_clear()


@pytest.mark.filterwarnings("ignore::UserWarning")  # those of torch
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_works_when_typed(page: str, reader: Reader) -> None:
    if page in NEEDS:
        package(NEEDS[page])
    blocks = BLOCK.findall((FOLDER / f"{page}.md").read_text())
    assert blocks
    for kind, title, text in blocks:
        reader.read(kind, title, text)


def test_what_is_not_printed_is_found(reader: Reader) -> None:
    reader.read("python", "", "print('a b')\n")
    reader.read("text", "", "a  b\n")
    with pytest.raises(AssertionError):
        reader.read("text", "", "b a\n")

"""What docs/driver.md shows of `stepwell-opt` is what it prints."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest

from stepwell.tools import stepwell_opt

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "driver.md").read_text()
INDENTED = re.findall(r"(?:^(?: {4}.*)?\n)+", TEXT, re.MULTILINE)
BLOCKS = [textwrap.dedent(block).lstrip("\n") for block in INDENTED]
MODULE = next(block for block in BLOCKS if block.startswith("func.func @main"))
REFUSED = next(block for block in BLOCKS if "// expected-error @+1" in block)
RUN = re.compile(r"^\$ (stepwell-opt m.mlir.*)\n((?:[^$].*\n|\n)*)", re.MULTILINE)
RUNS = [
    (command.partition(" #")[0], shown.partition("\n...")[0])
    for block in BLOCKS
    for command, shown in RUN.findall(block)
]


def words(text: str) -> str:
    """A text whose lines may be broken anywhere, and whose times differ from run to run."""
    return " ".join(re.sub(r"\d+\.\d+", "0.0", text).split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(MODULE)
    (tmp_path / "passes.txt").write_text("# one\ngraph-simplify,\ngraph-fuse-ops\n")
    return tmp_path


@pytest.mark.parametrize(("command", "shown"), RUNS, ids=[command for command, _ in RUNS])
def test_what_is_shown_is_printed(
    command: str, shown: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stepwell_opt.main(shlex.split(command)[1:])
    printed = capsys.readouterr()
    assert words(shown) in words(printed.err + printed.out)


def test_there_are_runs() -> None:
    assert len(RUNS) >= 6
    assert sum(bool(shown.strip()) for _, shown in RUNS) >= 4


def test_the_expected_error_is_one(folder: Path) -> None:
    (folder / "bad.mlir").write_text(REFUSED)
    stepwell_opt.main(["bad.mlir", "--verify-diagnostics", "-p", "convert-graph-to-loop"])

"""What is logged under `stepwell.*`, and the progress that commands show on terminals."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from rich.console import Console

import stepwell as sw
from stepwell.api import cached
from stepwell.caching import sources
from stepwell.core import progress
from stepwell.core.logs import NAMES
from stepwell.core.progress import ProgressStep, followed, report
from stepwell.tools import bench, main
from stepwell.tools import progress as commands
from stepwell.tools.timing import ROUNDS

ROOT = Path(__file__).resolve().parents[2]


def model() -> sw.Module:
    b = sw.Builder("logged")
    b.output(b.relu(b.input("x", (4,), "f32")), name="y")
    return b.module()


def test_a_compilation_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path))
    stamp = sources.Stamp("state", 0)  # a compiler whose files do not change
    monkeypatch.setattr(cached, "sources_digest", lambda *_: ("sources", stamp))
    monkeypatch.setattr(cached, "stamp", lambda: stamp)
    caplog.set_level(logging.DEBUG, "stepwell")
    sw.compile(model(), threads=1)
    said = [(record.name, record.levelname) for record in caplog.records]
    assert said[0] == ("stepwell.cache", "DEBUG")
    assert said[-1] == ("stepwell.compile", "INFO")
    assert re.fullmatch(r"logged: compiled in \d+\.\d+ s", caplog.records[-1].getMessage())
    passes = [record for record in caplog.records if record.name == "stepwell.passes"]
    assert passes[0].getMessage() == "optimized: graph-open-composites"
    assert passes[-1].getMessage() == "code generation"
    counts = [(vars(record)["done"], vars(record)["left"]) for record in passes]
    last = len(passes) - 1
    assert counts == [*((n, last - n) for n in range(last)), (last, 1)]
    caplog.clear()
    sw.compile(model(), threads=1)
    assert caplog.records[-1].getMessage().startswith("logged: from the cache in ")
    (entry,) = tmp_path.rglob("*.program")
    entry.write_bytes(b"damaged")
    caplog.clear()
    sw.compile(model(), threads=1)
    assert [r.name for r in caplog.records if r.levelname == "WARNING"] == ["stepwell.cache"]


def test_nothing_is_printed_by_default() -> None:
    code = "from stepwell.core.logs import logger; logger('cache').warning('a warning')"
    run = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_loggers_are_documented() -> None:
    page = (ROOT / "docs" / "logging.md").read_text()
    assert {*re.findall(r"^\| `stepwell\.(\w+)`", page, re.MULTILINE)} == {*NAMES}


def screen(terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system=None)


def text_of(console: Console, text: str = "", seconds: float = 5.0) -> str:
    """What is on a screen, once a text is there."""
    end, file = time.monotonic() + seconds, cast(io.StringIO, console.file)
    while text not in file.getvalue() and time.monotonic() < end:
        time.sleep(0.02)
    return file.getvalue()


def test_progress_shows_steps() -> None:
    console = screen()
    with sw.progress("compiling", after=0.0, console=console):
        report("optimized: graph-cse", 3, 12)
        assert "3/12" in text_of(console, "3/12")
        report("tuning @k[red]", 1.5, 60.0, "4 schedules, best 0.93")
        assert "best 0.93" in text_of(console, "best 0.93")
        with sw.progress("inner", after=0.0, console=console):  # one bar at a time
            report("optimized: graph-simplify", 4, 12)
        shown = text_of(console, "graph-simplify")
    assert all(text in shown for text in ("optimized: graph-cse", "tuning @k[red]", "4/12"))
    assert "inner" not in shown
    before = text_of(console)
    report("nobody follows", 1, 2)
    assert text_of(console) == before


def test_passes_report_their_progress() -> None:
    steps = list[ProgressStep]()
    with followed(steps.append):
        exe = sw.compile(model(), threads=1, check=True)
    assert steps[0].text == "optimized: graph-open-composites"
    assert steps[-1].text == "code generation"
    assert [step.done for step in steps] == [*range(len(steps))]
    assert steps[-1].note == f"{len(steps) - 1}/{len(steps)}"
    assert exe.changes


def test_no_progress_of_what_is_done_soon_or_without_a_terminal() -> None:
    for console, after in ((screen(), 60.0), (screen(terminal=False), 0.0)):
        with sw.progress(after=after, console=console):
            sw.compile(model(), threads=1)(np.zeros(4, np.float32))
            time.sleep(0.05)
        assert text_of(console) == ""


def test_a_step_of_nobody_knows_how_many() -> None:
    console = screen()
    with sw.progress("reading", after=0.0, console=console):
        report("counting edges", 3, None)
        assert "counting edges" in text_of(console, "counting edges")
    steps = list[ProgressStep]()
    with followed(steps.append):
        report("counting edges", 3, None)
    assert [step.note for step in steps] == ["3"]


def test_timing_shows_progress_as_all_commands_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = screen()
    monkeypatch.setattr(bench, "err", console)
    monkeypatch.setattr(bench, "out", screen())
    monkeypatch.setattr(progress, "AFTER", 60.0)
    model().save(tmp_path / "model.mlir")
    steps = list[ProgressStep]()
    with followed(steps.append):
        main.app(["bench", str(tmp_path / "model.mlir")], standalone_mode=False)
    assert [step.text for step in steps].count("timing") == ROUNDS
    assert text_of(console, seconds=0.0) == ""


def test_commands_show_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    console = screen()
    monkeypatch.setattr(commands, "err", console)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    with commands.passes_shown("compiling"):
        assert "compiling" in text_of(console, "compiling")

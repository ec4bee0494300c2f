"""What is logged under `stepwell.*`, and the progress that commands show on terminals."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import stepwell as sw
from stepwell import cached
from stepwell.caching import sources
from stepwell.core.logs import NAMES, logger
from stepwell.tools import progress

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
    assert passes[0].getMessage() == "optimized: graph-simplify-inference"
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


def test_progress_of_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(progress, "err", screen)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    log = logger("passes")
    level, handlers = log.level, [*log.handlers]
    with progress.passes_shown("compiling"):
        log.debug("optimized: graph-cse", extra={"done": 3, "left": 9})
        end = time.monotonic() + 5
        while "3/12" not in screen.file.getvalue() and time.monotonic() < end:  # type: ignore[attr-defined]
            time.sleep(0.05)
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "optimized: graph-cse" in shown
    assert "3/12" in shown
    assert (log.level, log.handlers) == (level, handlers)


def test_no_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), width=100)
    monkeypatch.setattr(progress, "err", screen)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    with progress.passes_shown("compiling"):
        assert not logger("passes").isEnabledFor(logging.DEBUG)
        sw.compile(model(), threads=1)(np.zeros(4, np.float32))
    assert screen.file.getvalue() == ""  # type: ignore[attr-defined]

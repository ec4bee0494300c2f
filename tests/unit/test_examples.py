"""The scripts in `examples/` run, and check themselves what they show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# What trains weights is held against those that ship in `test_demo.py`.
SCRIPTS = sorted(
    path
    for path in (Path(__file__).resolve().parents[2] / "examples").glob("*.py")
    if not path.name.startswith("train_")
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "an example shows something"

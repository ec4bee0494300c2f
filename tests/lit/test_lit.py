"""Runs the tests of IR text, so that one command runs everything."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from . import forked_format

LIT = Path(sys.executable).parent / "lit"
MLIR_TOOLS = "/usr/lib/llvm-22/bin"


def test_ir_text(root: Path) -> None:
    """Every RUN line under `tests/lit` succeeds."""
    done = subprocess.run(
        [LIT, "-sv", "--no-progress-bar", str(root / "tests" / "lit")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


OF_LIT = """
lit_config.load_config(config, {path!r})
config.test_source_root = {folder!r}
config.test_exec_root = {folder!r} + "/out"
"""

WRONG = {
    "nothing-of-it": "// RUN: stepwell-opt %s | filecheck %s",
    "not-where-it-fails": "// RUN: not stepwell-opt %s 2>&1 | filecheck %s --check-prefix SAME",
    "an-error-on-the-way": "// RUN: stepwell-opt %s -p no-such-pass | stepwell-opt",
    "an-error-inside": "// RUN: filecheck %s --no-such-option",
    "what-is-not-an-error": "// RUN: stepwell-opt %s 2>&1 >/dev/null | filecheck %s"
    " --check-prefix SAME",
    "in-another-command": "// RUN: grep SAME %s no-such-file | filecheck %s --check-prefix SAME",
    "behind-another-command": "// RUN: grep -v CHECK %s | filecheck %s",
    "in-the-shell-of-lit": "// RUN: grep -v CHECK %s > %t && filecheck %s < %t",
}
"""RUN lines that fail on a file whose CHECK line does not hold."""

RIGHT = {
    "as-it-says": "// RUN: stepwell-opt %s | filecheck %s --check-prefix SAME",
    "a-pipe": "// RUN: stepwell-opt %s | stepwell-opt - | filecheck %s --check-prefix SAME",
    "not": "// RUN: not stepwell-opt %s -p no-such-pass",
    "an-expected-error": "// RUN: not stepwell-opt %s -p no-such-pass 2>&1 | filecheck %s"
    " --check-prefix ERROR",
    "only-errors": "// RUN: not stepwell-opt %s -p no-such-pass 2>&1 >/dev/null | filecheck %s"
    " --check-prefix ERROR",
    "an-input": "// RUN: filecheck %s < %s",
    "another-command": "// RUN: stepwell-opt %s | grep -v @g | filecheck %s --check-prefix SAME",
}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="forks"),
        pytest.param(["-D", "processes"], id="processes", marks=pytest.mark.slow),
    ],
)
def test_which_run_lines_fail(root: Path, tmp_path: Path, options: list[str]) -> None:
    """A RUN line fails where it does in a shell, also where commands are forks of lit."""
    path = str(root / "tests" / "lit" / "lit.cfg.py")
    (tmp_path / "lit.cfg.py").write_text(OF_LIT.format(path=path, folder=str(tmp_path)))
    body = "func.func private @f()\n// CHECK: @g\n// SAME: private @f\n// ERROR: no-such-pass\n"
    for name, line in (WRONG | RIGHT).items():
        (tmp_path / f"{name}.mlir").write_text(f"{line}\n{body}")
    command = [LIT, "-v", "-j1", "--no-progress-bar", *options, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = set(re.findall(r"^PASS: .*? :: (.*)\.mlir", done.stdout, re.MULTILINE))
    assert found == set(RIGHT), done.stdout + done.stderr
    failed = set(re.findall(r"^FAIL: .*? :: (.*)\.mlir", done.stdout, re.MULTILINE))
    assert failed == set(WRONG), done.stdout + done.stderr


def test_a_command_that_crashes_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is to exit with an error."""
    crashing = {"filecheck": lambda args: os.kill(os.getpid(), signal.SIGKILL)}
    monkeypatch.setattr(forked_format, "tools", lambda: crashing)
    line = forked_format.Line.of("not filecheck a")
    assert line is not None
    said = forked_format._failure([line], str(tmp_path), dict(os.environ))
    assert said == "not filecheck a\ndied of signal 9\n"


def test_mlir_tools_are_installed() -> None:
    """`mlir-opt` 22 is there, so that what upstream can judge was judged by it."""
    if shutil.which("mlir-opt", path=f"{os.environ['PATH']}:{MLIR_TOOLS}"):
        return
    reason = "no IR was checked by MLIR: needs mlir-opt: apt install mlir-22-tools"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)

"""Completion in a shell: what bash offers after an unfinished line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stepwell.tools import main as command
from stepwell.tools import stepwell_opt

from ..harness import needs_tool

# What readline does when a key is pressed, in a script.
COMPLETE = """
source "$1"; shift
COMP_WORDS=(stepwell-opt "$@"); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
$(complete -p stepwell-opt | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main(["--show-completion", shell])
    assert stop.value.code == 0
    return capsys.readouterr().out


@needs_tool("bash", "bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--print-ir-after-c"], ["--print-ir-after-change"]),
        (["-p", "graph-cs"], ["graph-cse"]),
        (["-p", "cse,graph-cs"], ["cse,graph-cse"]),
        (["-p", "cse,func.func(canonicalize,graph-cs"], ["cse,func.func(canonicalize,graph-cse"]),
        (["--print-ir-before", "loop-vec"], ["loop-vectorize"]),
        (["--help-pass", "convert-loop"], ["convert-loop-to-scf"]),
        (["--show-completion", ""], ["bash", "zsh"]),
        (["m.ml"], ["m.mlir"]),
    ],
)
def test_bash(
    words: list[str], offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "complete.bash").write_text(script("bash", capsys))
    (tmp_path / "m.mlir").touch()
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", "complete.bash", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == offered


def test_zsh_gets_the_same_names(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("zsh", capsys)
    assert text.startswith("#compdef stepwell-opt")
    assert "compset -P '*[,(]'\n  compadd -S '' -- " in text
    assert " graph-fuse-ops " in text


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("stepwell comp", ["compile"]),
        ("stepwell compile --emit sch", ["scheduled"]),
        ("stepwell run --at buf", ["buffers"]),
        ("stepwell compile --print-ir-after cse,graph-fu", ["cse,graph-fuse-ops"]),
    ],
)
def test_commands_of_stepwell(
    words: str,
    offered: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_STEPWELL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit):
        command.main([])
    assert capsys.readouterr().out.split() == offered

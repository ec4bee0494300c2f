"""What docs/softmax-down-the-staircase.md shows of each stage is what that stage holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "softmax-down-the-staircase.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
SHOWN = {
    match[1]: re.findall(r"```(?:mlir|asm)\n(.*?)```", section, re.DOTALL)
    for section in SECTIONS
    if (match := re.match(r"`([\w-]+)`", section))
}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the Python of the page defines."""
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), found)
    return found


def pattern_of(shown: str) -> str:
    """Matches IR with the words that are shown: `...` is any text, a number of a value any."""
    words = (re.escape(word) for word in shown.split())
    pattern = r"\s+".join(re.sub(r"%\d+", r"%\\w+", word) for word in words)
    return re.sub(r"(?:\\s\+)?\\\.\\\.\\\.(?:\\s\+)?", lambda _: r".*?", pattern)


@pytest.mark.parametrize("stage", SHOWN)
def test_shown_ir_is_in_its_stage(stage: str, names: dict[str, Any]) -> None:
    assert SHOWN[stage]
    for block in SHOWN[stage]:
        assert re.search(pattern_of(block), names["exe"].ir(stage), re.DOTALL), block


def test_every_stage_of_the_staircase_is_shown(names: dict[str, Any]) -> None:
    assert list(SHOWN) == [stage for stage in names["exe"].stages if stage != "llvm-ir"]


def test_a_decision_of_fusion(names: dict[str, Any]) -> None:
    (shown,) = re.findall(r"^    @fused.*\n(?: {4}.*\n)*", PAGE.read_text(), re.MULTILINE)
    start, reason = shown.split(":", 1)
    said = " ".join(names["exe"].explain().split())
    assert start.strip() in said
    assert " ".join(reason.split()) in said


def test_what_is_not_shown_does_not_match() -> None:
    text = "%1 = graph.add %a, %b : f32\n%2 = graph.mul %1, %b : f32"
    assert re.search(pattern_of("%7 = graph.add ... %8 = graph.mul %9, %b"), text, re.DOTALL)
    assert not re.search(pattern_of("%7 = graph.mul ... graph.add"), text, re.DOTALL)
    assert not re.search(pattern_of("%7 = graph.add %a, %b : f64"), text, re.DOTALL)

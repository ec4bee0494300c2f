"""What docs/index.md and docs/softmax-down-the-staircase.md show of each stage is in that stage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "softmax-down-the-staircase.md"
START = DOCS / "index.md"


def shown(page: Path) -> dict[str, list[str]]:
    """The IR that a page shows under the heading, or in the tab, of each stage."""
    parts = re.split(r"^(?:## |=== )(?=[`\"])", page.read_text(), flags=re.MULTILINE)
    named = {re.match(r"[`\"]([\w-]+)", part): part for part in parts[1:]}
    block = re.compile(r"^ *```(?:mlir|asm)\n(.*?)```", re.DOTALL | re.MULTILINE)
    return {name[1]: block.findall(part) for name, part in named.items() if name}


SHOWN = [(page, stage, ir) for page in (PAGE, START) for stage, ir in shown(page).items()]


@pytest.fixture(scope="module")
def names() -> dict[Path, dict[str, Any]]:
    """What the Python of each page defines."""
    found: dict[Path, dict[str, Any]] = {PAGE: {}, START: {}}
    for page, defined in found.items():
        for block in re.findall(
            r"^```python\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE
        ):
            exec(compile(block, page.name, "exec"), defined)
    return found


def pattern_of(shown: str) -> str:
    """Matches IR with the words that are shown: `...` is any text, a number of a value any."""
    words = (re.escape(word) for word in shown.split())
    pattern = r"\s+".join(re.sub(r"%\d+", r"%\\w+", word) for word in words)
    return re.sub(r"(?:\\s\+)?\\\.\\\.\\\.(?:\\s\+)?", lambda _: r".*?", pattern)


@pytest.mark.parametrize(("page", "stage", "blocks"), SHOWN)
def test_shown_ir_is_in_its_stage(
    page: Path, stage: str, blocks: list[str], names: dict[Path, dict[str, Any]]
) -> None:
    assert blocks
    for block in blocks:
        assert re.search(pattern_of(block), names[page]["exe"].ir(stage), re.DOTALL), block


@pytest.mark.parametrize("page", [PAGE, START])
def test_every_stage_of_the_staircase_is_shown(
    page: Path, names: dict[Path, dict[str, Any]]
) -> None:
    assert list(shown(page)) == [stage for stage in names[page]["exe"].stages if stage != "llvm-ir"]


def test_a_decision_of_fusion(names: dict[Path, dict[str, Any]]) -> None:
    (shown,) = re.findall(r"^    @fused.*\n(?: {4}.*\n)*", PAGE.read_text(), re.MULTILINE)
    start, reason = shown.split(":", 1)
    said = " ".join(names[PAGE]["exe"].explain().split())
    assert start.strip() in said
    assert " ".join(reason.split()) in said


def test_what_is_not_shown_does_not_match() -> None:
    text = "%1 = graph.add %a, %b : f32\n%2 = graph.mul %1, %b : f32"
    assert re.search(pattern_of("%7 = graph.add ... %8 = graph.mul %9, %b"), text, re.DOTALL)
    assert not re.search(pattern_of("%7 = graph.mul ... graph.add"), text, re.DOTALL)
    assert not re.search(pattern_of("%7 = graph.add %a, %b : f64"), text, re.DOTALL)

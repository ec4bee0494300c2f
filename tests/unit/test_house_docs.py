"""What the documents promise is there: files, targets, commands, and Python that runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
# What the checklists add as their examples.
EXAMPLES = (
    *("swap_transpose", "swap-transpose", "skew", "quant", "convert_x_to_y", "convert-x-to-y"),
    "...",
)
PATH = re.compile(
    r"`((?:core|dialects|frontends|passes|conversions|backends|runtime|tools|tests|docs|examples)"
    r"/[\w./*-]*)`"
)


def test_files_that_documents_name_exist() -> None:
    for path in DOCUMENTS:
        named = set(PATH.findall(path.read_text()))
        named = {name for name in named if not any(part in name for part in EXAMPLES)}
        missing = [name for name in sorted(named) if not list(ROOT.glob(name.rstrip("/")))]
        assert not missing, path


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        links = re.findall(r"\]\(([^)#]+)", path.read_text())
        local = [link for link in links if "://" not in link]
        missing = [link for link in local if not (path.parent / link).exists()]
        assert not missing, path


def test_entries_of_the_changelog_are_lines() -> None:
    """Headings, and entries of one line with a link; a paragraph only before them."""
    text = (ROOT / "CHANGELOG.md").read_text()
    for version in text.split("\n## ")[1:]:
        for line in filter(None, version[version.index("\n### ") :].splitlines()):
            is_entry = line.startswith("- ") and "](" in line and len(line) <= 140
            assert line.startswith("#") or is_entry, line


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in DOCUMENTS:
        named = set(re.findall(r"(?:^    |`)make ((?:[a-z]+ ?)+)", path.read_text(), re.MULTILINE))
        assert {word for words in named for word in words.split()} <= targets, path


def _write_model(path: Path) -> None:
    """A model `x [N, 784] -> y [N, 10]` under the name that the README uses."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.ones((784, 10), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")],
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 784])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [weight],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def test_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_model(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert np.shape(names["y"]) == (64, 10)  # type: ignore[arg-type]


PAGES = [
    "adding-an-operator",
    "artefacts",
    "calls",
    "control-flow",
    "convolutions",
    "gpu",
    pytest.param("graph-networks", marks=pytest.mark.slow),
    "kernels-and-functions",
    "large-graphs",
    "logging",
    "messages",
    "onnx",
    "pipeline",
    "rewriting",
    "scheduling",
]


@pytest.fixture
def same_logging() -> Iterator[None]:
    """What a page configures ends with it."""
    loggers = [logging.getLogger(), logging.getLogger("stepwell")]
    before = [(logger, logger.level, logger.handlers[:]) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("same_logging")
def test_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_model(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    text = (ROOT / "docs" / f"{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)

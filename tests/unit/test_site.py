"""The site of the documentation: its pages, and the colours of its IR."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pygments.token import Comment, Keyword, Name, Number

from stepwell.tools.mlir_lexer import MlirLexer

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_every_page_is_in_the_navigation() -> None:
    """The notes of `rationale/` are put there by `docs/hooks.py`."""
    text = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r"^ *- (?:[^:\n]*: )?([\w/-]+\.md)$", text, re.MULTILINE)
    files = [*DOCS.rglob("*.md"), *(DOCS / "notebooks").glob("*.ipynb")]
    pages = {path.relative_to(DOCS).with_suffix(".md").as_posix() for path in files}
    notes = {page for page in pages if re.match(r"rationale/\d{4}-", page)}
    assert notes
    assert sorted(listed) == sorted(set(listed))
    assert {*listed} == pages - notes


def test_lists_are_lists() -> None:
    """The Markdown of the site has an empty line before a list, and four spaces before a part."""
    markdown = pytest.importorskip("markdown")
    pytest.importorskip("pymdownx")
    extensions = ["attr_list", "tables", "pymdownx.superfences", "pymdownx.tabbed"]
    for path in DOCS.rglob("*.md"):
        text = path.read_text()
        page = markdown.markdown(text, extensions=extensions)
        page = re.sub(r"<(pre|code)\b.*?</\1>", "", page, flags=re.DOTALL)
        prose = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)
        lost = re.findall(r"^ *(?:[-*]|\d+\.) .*", page, re.MULTILINE)
        lost += re.findall(r"^ {1,3}(?:[-*]|\d+\.) .*", prose, re.MULTILINE)
        assert not lost, path


def test_ir_has_colours() -> None:
    text = '%0#1 = graph.add %x : (tensor<4x?xf32, #csr>) -> !rt.context // @f\n@f ^bb0 "a"'
    found = {value: kind for kind, value in MlirLexer().get_tokens(text) if value.strip()}
    assert "".join(value for _, value in MlirLexer().get_tokens(text)).rstrip("\n") == text
    assert found["%0#1"] is Name.Variable
    assert found["graph.add"] is Keyword
    assert found["tensor"] is found["f32"] is Keyword.Type
    assert found["4"] is found["?"] is Number.Integer
    assert found["#csr"] is found["!rt.context"] is Name.Attribute
    assert found["// @f"] is Comment.Single
    assert found["@f"] is Name.Function

"""docs/onnx.md lists the operators that are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import defs

from stepwell.frontends.onnx.registry import forms, load_conversions, supported

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
DOMAINS = ("ai.onnx.ml", "com.microsoft")
HEAD = "| Operator | from opset |\n|---|---|\n"


def has_definition(schema: Any) -> bool:
    """Whether ONNX defines an operator by others."""
    return schema.has_function or schema.has_context_dependent_function


def table() -> str:
    load_conversions()
    own = {name: ", ".join(map(str, forms(name))) for name in supported()}
    newest = {schema.name: schema for schema in defs.get_all_schemas() if schema.domain == ""}
    defined = {
        name: f"{schema.since_version}, by its definition"
        for name, schema in newest.items()
        if name not in own and has_definition(schema)
    }
    others = {
        f"{domain}.{name}": ", ".join(map(str, forms(name, domain)))
        for domain in DOMAINS
        for name in supported(domain)
    }
    rows = [*sorted((own | defined).items()), *sorted(others.items())]
    return HEAD + "".join(f"| {name} | {text} |\n" for name, text in rows)


def test_the_page_lists_all_operators(pytestconfig: pytest.Config) -> None:
    """`pytest --renew-public` writes the list anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, mark, _ = text.partition(HEAD)
    if pytestconfig.getoption("--renew-public"):
        PAGE.write_text(before + table(), encoding="utf-8")
        return
    assert mark + text.partition(HEAD)[2] == table()

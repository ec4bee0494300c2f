"""Diagnostics that comments of an input expect, compared with those that were emitted."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.utils.exceptions import PassFailedException

from stepwell.core.pipelines.decisions import Decision
from stepwell.tools import stepwell_opt
from stepwell.tools.diagnostics import Diagnostic, Diagnostics


def compared(text: str, *told: tuple[str, str, int | None], offset: int = 0) -> list[str]:
    diagnostics = Diagnostics("m.mlir")
    diagnostics.expect(text, offset)
    diagnostics.diagnostics += [Diagnostic(*one) for one in told]
    return diagnostics.problems()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{no}}", 1),
        ("// expected-error @+1 {{no}}\nop", 2),
        ("// expected-error@+2{{no}}\n\nop", 3),
        ("op\n// expected-error @-1 {{no}}", 1),
        ("// expected-error @below {{no}}\n// expected-remark @below {{r}}\nop", 3),
        ("op\nop\n// expected-error @above {{no}}", 2),
        ("// expected-error @below {{no}}\nop\nop", 2),
        ("op\n// expected-remark @above {{r}}\n// expected-error @above {{no}}", 1),
        ("// expected-error @unknown {{no}}", None),
        ("op // expected-error-re {{n{{[a-z]}} way}}", 1),
        ("op // expected-error-re {{{{no|yes}}}}", 1),
    ],
)
def test_what_an_expectation_is_about(text: str, line: int | None) -> None:
    remark = [("remark", "r", line)] if "remark" in text else []
    assert compared(text, ("error", "there is no way", line), *remark) == []
    wrong = [
        found for found in compared(text, ("error", "there is", line)) if "remark" not in found
    ]
    assert len(wrong) == 2
    assert f"m.mlir:{line or '?'}: error: unexpected error: there is" in wrong


def test_several_in_a_line_and_the_same_twice() -> None:
    text = "op // expected-error {{a}} expected-note {{b}} expected-error {{a}}"
    a, b = ("error", "a", 1), ("note", "b", 1)
    assert compared(text, a, b, a) == []
    assert compared(text, a, b) == ['m.mlir:1: error: expected error "a" was not produced']
    assert compared(text, a, b, a, a) == ["m.mlir:1: error: unexpected error: a"]


def test_another_kind_or_line_is_another_diagnostic() -> None:
    text = "// expected-warning @+1 {{a}}"
    missing = 'm.mlir:1: error: expected warning "a" of line 2 was not produced'
    assert compared(text, ("error", "a", 2)) == [missing, "m.mlir:2: error: unexpected error: a"]
    assert compared(text, ("warning", "a", 3))[0] == missing
    nowhere = 'm.mlir:1: error: expected remark "a" without a location was not produced'
    assert compared("// expected-remark @unknown {{a}}") == [nowhere]


def test_lines_count_from_the_begin_of_the_file() -> None:
    assert compared("// expected-error @+1 {{a}}", ("error", "a", 12), offset=10) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// expected-error {{a", "expectation without }}"),
        ("// expected-error @1 {{a}}", "wrong expectation: expected @+1, @-1, @above, @below"),
        ("// expected-error @above {{a}}", "wrong expectation: there is no line above"),
        ("// expected-error-re {{{{(}}}}", "wrong expectation: missing )"),
    ],
)
def test_wrong_expectations(text: str, message: str) -> None:
    (problem,) = compared(text)
    assert problem.startswith(f"m.mlir:1: error: {message}")


def test_what_has_no_place() -> None:
    diagnostics = Diagnostics("m.mlir")
    diagnostics.add_error(PassFailedException("no"))
    diagnostics.add_remark(Decision("@f", "do", "so"))
    assert [found.line for found in diagnostics.diagnostics] == [None, None]


def test_each_difference_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "m.mlir"
    source.write_text("func.func @f() -> i32 { func.return }\n// expected-error {{b}}\n")
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main([str(source), "--verify-diagnostics", "-o", str(tmp_path / "out.mlir")])
    assert stop.value.code == 1
    types = "Expected arguments to have the same types as the function output types"
    assert capsys.readouterr().err.splitlines() == [
        f"{source}:1: error: unexpected error: {types}: expected [i32], got []",
        f'{source}:2: error: expected error "b" was not produced',
        "stepwell-opt: error: --verify-diagnostics: 2 diagnostics are not as expected",
    ]
    assert not (tmp_path / "out.mlir").exists()

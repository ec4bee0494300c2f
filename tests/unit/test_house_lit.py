"""Lit tests read what they say, and every operation is in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Operation
from xdsl.traits import HasCanonicalizationPatternsTrait

from stepwell.core.registry import own_dialects

ROOT = Path(__file__).resolve().parents[2]
LIT = ROOT / "tests" / "lit"
FILES = sorted(LIT.glob("**/*.mlir"))
DIRECTIVE = r"(?:-LABEL|-NEXT|-SAME|-NOT|-DAG|-EMPTY|-COUNT-\d+)?(?:\{LITERAL\})?:"
COMMENTED = re.compile(rf"^\s*//\s*([A-Z][A-Z0-9_-]*?){DIRECTIVE}", re.MULTILINE)
PREPARING = ("rm ", "printf ", "python -c ")
"""What begins a RUN line that only writes or removes what others read."""
KEYWORDS = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "COM", "NOTE"}


def run_lines(text: str) -> list[str]:
    """The RUN lines, continued ones joined."""
    lines: list[str] = re.findall(r"//\s*RUN:\s*(.*)", text)
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def read_prefixes(text: str) -> set[str]:
    """The prefixes that some filecheck of a file reads."""
    found: set[str] = set()
    for command in re.findall(r"filecheck\s+([^|;&]*)", "\n".join(run_lines(text))):
        named = re.findall(r"--?check-prefix(?:es)?[= ](\S+)", command)
        found |= {p for group in named for p in group.split(",")} or {"CHECK"}
    return found


@cache
def stored(dialect: str, kind: str) -> str:
    """The text of the files of one kind: `ops.mlir`, `ops-sparse.mlir`, `ops/gather.mlir`."""
    folder = LIT / "dialects" / dialect
    files = [*folder.glob(f"{kind}*.mlir"), *folder.glob(f"{kind}/**/*.mlir")]
    return "\n".join(path.read_text() for path in files)


def operations() -> list[type[Operation]]:
    return [op for load in own_dialects().values() for op in load().operations]


def test_every_check_line_is_read() -> None:
    for path in FILES:
        text = path.read_text()
        written = set(COMMENTED.findall(text)) - KEYWORDS
        read = read_prefixes(text)
        assert not written - read, f"{path}: no RUN line reads {sorted(written - read)}"
        missing = sorted(read - written)
        assert not missing, f"{path}: a RUN line reads {missing}, which is not there"


def test_run_lines_compare() -> None:
    """A RUN line that compares nothing only says that the tool does not fail."""
    for path in FILES:
        lines = run_lines(path.read_text())
        assert lines, f"{path} has no RUN line"
        comparing = ("filecheck", "diff ", "mlir-opt", "mlir-translate", "--verify-diagnostics")
        runs = [line for line in lines if not line.startswith(PREPARING)]
        bare = [line for line in runs if not any(word in line for word in comparing)]
        assert not bare, f"{path} compares nothing in: {bare}"


@pytest.mark.parametrize("dialect", own_dialects())
def test_dialect_has_its_files(dialect: str) -> None:
    operations = own_dialects()[dialect]().operations
    kinds = ["ops", "invalid"]
    if any(canonicalizes(op) for op in operations):
        kinds.append("canonicalize")
    for kind in kinds:
        assert stored(dialect, kind), f"there is no tests/lit/dialects/{dialect}/{kind}.mlir"


def canonicalizes(op: type[Operation]) -> bool:
    """Whether `canonicalize` can change the operation."""
    interfaces = (HasCanonicalizationPatternsInterface, HasFolderInterface)
    return issubclass(op, interfaces) or op.has_trait(HasCanonicalizationPatternsTrait)


def test_operations_are_covered() -> None:
    missing: list[str] = []
    for op in operations():
        dialect = op.name.partition(".")[0]
        word = re.compile(rf"(?<![\w.]){re.escape(op.name)}(?![\w.])")
        kinds = ["ops", "invalid", *(["canonicalize"] if canonicalizes(op) else [])]
        texts = ((kind, stored(dialect, kind)) for kind in kinds)
        missing += [f"{op.name} is in no {k}*.mlir" for k, text in texts if not word.search(text)]
    assert not missing, "\n".join(missing)

"""Check errors and remarks against expectations in comments of the input, as with `mlir-opt`.

    // expected-error @+1 {{inner dimensions differ}}
    %0 = graph.dense %x, %w : ...

An expectation names the kind (error, warning, remark, note), the line (the same one; `@+2` and
`@-1` count from it, `@above` and `@below` are the nearest line without an expectation, `@unknown`
matches a diagnostic without a line) and a part of the text. With `expected-error-re`, text in inner
double braces is a regular expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..core.ir.invalid import invalid_operations
from ..core.ir.provenance import places
from ..core.ir.refusal import operation_of
from ..core.pipelines.decisions import Decision
from .messages import worded

_BEGIN = re.compile(r"expected-(error|warning|remark|note)(-re)?\s*(?:@([^\s{]+))?\s*\{\{")
_BRACES = re.compile(r"\{\{|\}\}")


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic, and the line that it is about; None if it has none."""

    kind: str
    text: str
    line: int | None


@dataclass(frozen=True)
class Expectation:
    """The diagnostic that a comment at `at` expects for `line`."""

    kind: str
    pattern: re.Pattern[str]
    text: str
    line: int | None
    at: int

    def fits(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic is the expected one."""
        same = (self.kind, self.line) == (diagnostic.kind, diagnostic.line)
        return same and self.pattern.search(diagnostic.text) is not None


@dataclass
class Diagnostics:
    """The diagnostics of an input, and those its comments expect; `problems` compares them."""

    name: str
    expected: list[Expectation] = field(default_factory=list[Expectation])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    wrong: list[str] = field(default_factory=list[str])

    def expect(self, text: str, offset: int) -> None:
        """Read the comments of a part of the input, which follows `offset` other lines."""
        lines = text.splitlines()
        free = [n for n, line in enumerate(lines) if _BEGIN.search(line) is None]
        for number, line in enumerate(lines):
            for match in _BEGIN.finditer(line):
                at = offset + number + 1
                body = _body(line, match.end())
                if body is None:
                    self.wrong.append(f"{self.name}:{at}: error: expectation without }}}}")
                    continue
                try:
                    target = _target(match[3], number, free)
                    about = None if target is None else offset + target + 1
                    pattern = _pattern(body, regular=match[2] is not None)
                except (ValueError, re.error) as error:
                    self.wrong.append(f"{self.name}:{at}: error: wrong expectation: {error}")
                    continue
                self.expected.append(Expectation(match[1], pattern, body, about, at))

    def add_parse_error(self, error: ParseError) -> None:
        """Record that the text is malformed."""
        text = " ".join(error.msg.split())
        self.diagnostics.append(Diagnostic("error", text, error.span.get_location().line))

    def add_malformed(self, error: DiagnosticException, line: int | None) -> None:
        """Record that an operation could not be built from the text."""
        self.diagnostics.append(Diagnostic("error", " ".join(str(error).split()), line))

    def add_invalid(self, module: ModuleOp) -> bool:
        """Record operations that do not verify, one of each function; False if all do."""
        found = list(invalid_operations(module))
        for op, text in found:
            self.diagnostics.append(Diagnostic("error", text, _line(op)))
        return bool(found)

    def add_error(self, error: Exception) -> None:
        """Record an exception raised by a pass."""
        op = operation_of(error)
        self.diagnostics.append(
            Diagnostic("error", worded(error), None if op is None else _line(op))
        )

    def add_remark(self, decision: Decision) -> None:
        """Record a decision."""
        line = _line_of(decision.places)
        self.diagnostics.append(Diagnostic("remark", str(decision), line))

    def problems(self) -> list[str]:
        """Missing and unexpected diagnostics, a line each, by line of the input."""
        left, found = list(self.expected), list[tuple[int, str]]()
        for diagnostic in self.diagnostics:
            fitting = next((e for e in left if e.fits(diagnostic)), None)
            if fitting is not None:
                left.remove(fitting)
                continue
            text = f"unexpected {diagnostic.kind}: {diagnostic.text}"
            found.append((diagnostic.line or 0, text))
        for missing in left:
            where = "" if missing.line == missing.at else f" {_words(missing.line)}"
            text = f'expected {missing.kind} "{missing.text}"{where} was not produced'
            found.append((missing.at, text))
        found.sort(key=lambda problem: problem[0])
        return self.wrong + [f"{self.name}:{line or '?'}: error: {text}" for line, text in found]


def _words(line: int | None) -> str:
    return "without a location" if line is None else f"of line {line}"


def _body(line: str, start: int) -> str | None:
    """The text between the braces open at `start` and the closing ones."""
    depth = 1
    for match in _BRACES.finditer(line, start):
        depth += 1 if match[0] == "{{" else -1
        if depth == 0:
            return line[start : match.start()]
    return None


def _target(word: str | None, number: int, free: list[int]) -> int | None:
    """The line, counted from 0, that an expectation in line `number` is about."""
    if word is None:
        return number
    if word == "unknown":
        return None
    if word in ("above", "below"):
        near = [n for n in free if (n < number if word == "above" else n > number)]
        if not near:
            raise ValueError(f"there is no line {word}")
        return near[-1] if word == "above" else near[0]
    if re.fullmatch(r"[+-]\d+", word):
        return number + int(word)
    raise ValueError(f"expected @+1, @-1, @above, @below or @unknown, got @{word}")


def _pattern(text: str, regular: bool) -> re.Pattern[str]:
    """A pattern that the message has to match."""
    if not regular:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(p if n % 2 else re.escape(p) for n, p in enumerate(parts)))


def _line(op: Operation) -> int | None:
    """The line of an operation, or of the nearest one around it that has one."""
    found: Operation | None = op
    while found is not None:
        line = _line_of(places(found))
        if line is not None:
            return line
        found = found.parent_op()
    return None


def _line_of(found: tuple[str, ...]) -> int | None:
    return int(found[0].rsplit(":", 2)[1]) if found else None

"""The text of a pipeline, as for `-p` and `sw.compile(pipeline=...)`, and its passes.

    graph-cse,graph-fuse-ops{max-ops=1},func.func(canonicalize,cse)

Commas separate passes, a line that begins with `#` is a comment. Passes in parentheses run
separately on each operation of the name before them, as with MLIR's `--pass-pipeline`; the whole
text may be in `builtin.module(...)`.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove, SymbolOpInterface
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import type_repr

from ..bounded_cache import bounded_cache
from ..errors import CompileError, explain
from ..plugins import late_packages
from .nested import NestedPass
from .pass_text import anchored, hyphenated, pass_text

_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_STRING = r'"(?:\\.|[^"\\])*+"?'
_GAP = re.compile(rf"({_STRING})|\s+")
_TOKEN = re.compile(rf'{_STRING}|[][(){{}},]|[^][(){{}},"]+')
_ANCHOR = re.compile(r"[A-Za-z_]\w*\.[\w.]+")
_UNQUOTED = re.compile(r"([\w-]+)=(?![-+]?\d)([^\s\",{}[\]()]*[^\w\s\",{}[\]()-][^\s\",{}[\]()]*)")
_MODULE = "builtin.module"
_SHOWN = 60
_DEEPEST = 16
"""The maximum nesting; three levels (module, function, kernel) are useful."""


@dataclass(frozen=True)
class PassEntry:
    """One pass of a pipeline, and the names of the operations that it is nested in."""

    spec: ArgSpec
    anchors: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the pass, without its anchors."""
        return self.spec.name

    def __str__(self) -> str:
        return anchored(str(self.spec), self.anchors)


def plain(text: str) -> str:
    """A pipeline text without comments and without spaces around its punctuation."""
    return _GAP.sub(_without_gap, _COMMENT.sub("", text))


def _without_gap(match: re.Match[str]) -> str:
    """The replacement of a match: a string stays, a gap stays only between two words."""
    text, start, end = match.string, match.start(), match.end()
    outside = start == 0 or end == len(text)
    needless = outside or text[start - 1] in ",{(" or text[end] in ",})"
    return match[1] or ("" if needless else match[0])


def _shown(text: str) -> str:
    """The beginning of a text, for an error."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


@bounded_cache
def entries(text: str) -> tuple[PassEntry, ...]:
    """The passes that a text names, with their options.

    Raises:
        CompileError: if the text is malformed.
    """
    whole = plain(text)
    try:
        found = tuple(_entries(whole, ()))
    except (ArgSpecParseError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        unquoted = _UNQUOTED.search(whole)
        hint = None if unquoted is None else f'quote the value: {unquoted[1]}="{unquoted[2]}"'
        fact = f"cannot read {_shown(text)}: {reason}"
        raise CompileError(explain("pipeline", fact, hint=hint)) from error
    if (
        found
        and all(entry.anchors[:1] == (_MODULE,) for entry in found)
        and len(list(_parts(whole))) == 1
    ):
        return tuple(PassEntry(entry.spec, entry.anchors[1:]) for entry in found)
    return found


def _entries(text: str, anchors: tuple[str, ...]) -> Iterator[PassEntry]:
    if len(anchors) > _DEEPEST:
        raise CompileError(explain("pipeline", f"nested too deeply, expected at most {_DEEPEST}"))
    parts = list(_parts(text))
    if not parts[-1]:
        parts.pop()  # a comma after the last pass
    if not all(parts):
        fact = f"cannot read {_shown(text)}: Expected pass name here"
        raise CompileError(explain("pipeline", fact))
    for part in parts:
        head, opened, inside = part.partition("(")
        if not opened or "{" in head:
            yield from (PassEntry(hyphenated(spec), anchors) for spec in parse_pipeline(part))
            continue
        if not _ANCHOR.fullmatch(head) or not inside.endswith(")"):
            expected = "an operation and passes in parentheses, such as func.func(cse)"
            fact = "malformed nesting"
            got = part if len(part) <= _SHOWN else f"{part[:_SHOWN]}..."
            raise CompileError(explain("pipeline", fact, expected=expected, got=got))
        yield from _entries(inside[:-1], (*anchors, head))


def _parts(text: str) -> Iterator[str]:
    """The parts of a text between the commas outside of all brackets.

    Raises:
        CompileError: if parentheses do not match.
    """
    part, depth, options = list[str](), 0, 0
    for token in _TOKEN.findall(text):
        options += (token in "{[") - (token in "}]")
        depth += (token == "(") - (token == ")")
        if depth < 0:
            break
        if token == "," and depth == 0 and options <= 0:
            yield "".join(part)
            part.clear()
        else:
            part.append(token)
    if depth:
        raise CompileError(explain("pipeline", f"parentheses do not match in {_shown(text)}"))
    yield "".join(part)


def canonical(steps: Iterable[ModulePass]) -> str:
    """The text of passes with their options, in `builtin.module(...)`."""
    parts: list[str] = []
    for anchors, group in groupby(steps, lambda step: getattr(step, "anchors", ())):
        inner = [pass_text(getattr(step, "step", step)) for step in group]
        parts.append(anchored(",".join(inner), anchors))
    return f"{_MODULE}({','.join(parts)})"


def parse_passes(
    text: str, available: Mapping[str, Callable[[], type[ModulePass]]]
) -> list[ModulePass]:
    """The passes of a pipeline text.

    Raises:
        CompileError: if the text is malformed, names an unknown pass or operation, or a wrong
            option.
    """
    result: list[ModulePass] = []
    for entry in entries(text):
        check_known([entry.name], available)
        for anchor in entry.anchors:
            _check_anchor(anchor)
        kind = available[entry.name]()
        try:
            step = _step(kind, str(entry.spec))
        except (ValueError, TypeError) as error:
            raise CompileError(_bad_options(entry.spec, kind, error)) from error
        result.append(NestedPass(entry.anchors, step) if entry.anchors else step)
    return result


@lru_cache(maxsize=1024)
def _step(kind: type[ModulePass], text: str) -> ModulePass:
    """A pass with its options, which is immutable and so common to all pipelines with this text."""
    (spec,) = parse_pipeline(text)
    return kind.from_spec(spec)


def check_known(
    names: Iterable[str], available: Collection[str], subject: str = "pipeline"
) -> None:
    """Check that passes exist; errors begin with `subject`.

    Raises:
        CompileError: for the first unknown pass, with the nearest names.
    """
    for name in names:
        if name not in available:
            near = ", ".join(difflib.get_close_matches(name, sorted(set(available)), 3))
            hint = late_packages() or (f"nearest names: {near}" if near else None)
            raise CompileError(explain(subject, f'unknown pass "{name}"', hint=hint))


def _bad_options(spec: ArgSpec, kind: type[ModulePass], error: Exception) -> str:
    """The error message for bad options: the first unknown one, else xDSL's message."""
    fields = [field for field in dataclasses.fields(kind) if field.name != "name"]
    known = [field.name.replace("_", "-") for field in fields]
    for given in spec.parameters:
        if given in known:
            continue
        near = difflib.get_close_matches(given, known, 1)
        hint = f"nearest name: {near[0]}" if near else None
        fact, expected = f'bad options: there is no "{given}"', ", ".join(known) or "none"
        return explain(spec.name, fact, expected=expected, hint=hint)
    types = {
        name: field.type if isinstance(field.type, str) else type_repr(field.type)
        for name, field in zip(known, fields, strict=True)
    }
    for given, values in spec.parameters.items():
        if str(error).startswith(f"Incompatible types: given {values}, "):
            got = ",".join(map(str, values))
            return explain(spec.name, f"bad options: wrong {given}", expected=types[given], got=got)
    return explain(spec.name, f"bad options: {error}")


def _check_anchor(name: str) -> None:
    from ..registry import dialects

    dialect, _, _ = name.partition(".")
    available = dialects()
    ops = list(available[dialect]().operations) if dialect in available else []
    kind = next((op for op in ops if op.name == name), None)
    if kind is None:
        near = difflib.get_close_matches(name, [op.name for op in ops], 3)
        hint = f"nearest names: {', '.join(near)}" if near else None
        fact = f'passes are nested in an unknown operation "{name}"'
        raise CompileError(explain("pipeline", fact, hint=hint))
    if not kind.has_trait(IsolatedFromAbove) and not kind.has_trait(SymbolOpInterface):
        fact, expected = f"passes are nested in {name}", "an operation isolated from above"
        raise CompileError(explain("pipeline", fact, expected=f"{expected}, such as func.func"))

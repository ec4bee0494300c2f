"""The trace of a schedule: the steps that made a kernel, as text.

    split(j, 32, tail=mask); reorder(i, j0, j1); vectorize(j1)

A kernel carries it as the attribute `loop.schedule`, to which each primitive appends its step.
Stored text may begin with the version of its steps: `version(2); split(j, 32)`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from ...core.errors import explain
from ...core.reading import ReadingError
from ...core.versions import TRACE
from .nests import ScheduleError
from .ops import SCHEDULE, KernelOp

StepArgument = str | int
"""An argument of a step: the name of a loop, a word, or a number."""

_STEP = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*\((?P<arguments>[^()]*)\)\s*(?:;|\Z|(?=@))")
_KERNEL = re.compile(r"\s*@(?P<kernel>[\w.$-]+)\s*:")
_ARGUMENT = re.compile(
    r"(?:(?P<key>[A-Za-z_]\w*)\s*=\s*)?(?:(?P<number>-?\d{1,18})|(?P<word>[A-Za-z_][\w.]*))"
)
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_GAP = re.compile(r"\s*")


_EXPECTED = "name(arguments); ..."

VERSION = "version"
"""The first step of a trace that states its version."""

_STATED = f"{VERSION}({TRACE.version})"


@dataclass(frozen=True)
class Step:
    """One step: the name of a primitive, and its arguments after the kernel."""

    name: str
    arguments: tuple[StepArgument, ...] = ()
    named: tuple[tuple[str, StepArgument], ...] = ()

    def __str__(self) -> str:
        texts = [*map(str, self.arguments), *(f"{key}={value}" for key, value in self.named)]
        return f"{self.name}({', '.join(texts)})"


def trace_of(kernel: KernelOp) -> str:
    """The trace of a kernel, "" if it has none."""
    attribute = kernel.attributes.get(SCHEDULE)
    return attribute.data if isinstance(attribute, StringAttr) else ""


def noted(kernel: KernelOp, name: str, *arguments: StepArgument, **named: StepArgument) -> KernelOp:
    """Append a step to the trace of the kernel that it has just made; return the kernel."""
    step, before = str(Step(name, arguments, tuple(named.items()))), trace_of(kernel)
    kernel.attributes[SCHEDULE] = StringAttr(f"{before}; {step}" if before else step)
    return kernel


def structure_of(kernel: KernelOp) -> str:
    """A hash of what a kernel computes, equal for kernels that differ in names only.

    The names of loops count, because traces refer to them. The names of the kernel and of its
    values do not, nor do its schedule and its locations.
    """
    copy = kernel.clone()
    copy.sym_name = StringAttr("kernel")
    copy.attributes.pop(SCHEDULE, None)
    for op in copy.walk():
        for value in (*op.results, *(arg for r in op.regions for b in r.blocks for arg in b.args)):
            value.name_hint = None
    return hashlib.sha256(str(copy).encode()).hexdigest()[:16]


class _MalformedError(ScheduleError):
    """Raised for text that is not a trace; `place` is the position of the error."""

    place: int = 0


def parse_traces(text: str, file: str | None = None) -> dict[str | None, list[Step]]:
    """The steps in a text for each kernel it names.

        # a comment
        @dense: split(j, 32, tail=mask); vectorize(j1)
        @softmax: split(k, 64);
                  vectorize(k1)

    Steps before the first name are for the kernel `None`, the only one of a module. A version at
    the beginning applies to all steps.

    Args:
        text: the traces.
        file: the file that the text is from, if any. An error then gives only the number of the
            line: whoever named the file in a pipeline may not be allowed to read it.

    Raises:
        ScheduleError: naming the position of malformed text, or if its version is not supported.
    """
    try:
        return _upgraded(_COMMENT.sub("", text))
    except _MalformedError as error:
        if file is None:
            raise
        line = 1 + _COMMENT.sub("", text).count("\n", 0, error.place)
        fact = f"cannot read line {line} of {file}"
        raise ScheduleError(explain("trace", fact, expected=_EXPECTED)) from None


def _parsed(text: str) -> dict[str | None, list[Step]]:
    found: dict[str | None, list[Step]] = {}
    kernel: str | None = None
    place = _end_of_gap(text, 0)
    while place < len(text):
        if match := _KERNEL.match(text, place):
            kernel = match["kernel"]
            if kernel in found:
                raise ScheduleError(explain("trace", f"@{kernel} is named twice"))
            found[kernel] = []
        elif match := _STEP.match(text, place):
            try:
                step = Step(match["name"], *_arguments(match[0].strip(" ;\n"), match["arguments"]))
            except _MalformedError as error:
                error.place = place
                raise
            found.setdefault(kernel, []).append(step)
        else:
            got = repr(text[place:].split(";")[0].strip()[:60])
            error = _malformed(f"step {sum(map(len, found.values())) + 1}", got)
            error.place = place
            raise error
        place = _end_of_gap(text, match.end())
    return found


def _upgraded(text: str) -> dict[str | None, list[Step]]:
    """The steps of a text in their current form, without the one that states a version."""
    found = _parsed(text)
    if not found.get(None) or found[None][0].name != VERSION:
        return found
    match found[None][0]:
        case Step(arguments=(int() as number,), named=()):
            pass
        case version:
            raise ScheduleError(
                explain("trace", "wrong version", expected=_STATED, got=str(version)[:60])
            )
    try:
        found = _parsed(TRACE.upgraded(text, number))
    except ReadingError as error:
        raise ScheduleError(explain("trace", str(error))) from error
    del found[None][0]
    return {kernel: steps for kernel, steps in found.items() if kernel or steps}


def _end_of_gap(text: str, place: int) -> int:
    match = _GAP.match(text, place)
    return place if match is None else match.end()


def _arguments(
    step: str, text: str
) -> tuple[tuple[StepArgument, ...], tuple[tuple[str, StepArgument], ...]]:
    arguments: list[StepArgument] = []
    named: list[tuple[str, StepArgument]] = []
    for key, value in _values(step, text):
        if key is not None:
            named.append((key, value))
        elif named:
            raise _malformed(step, repr(value), "names after values")
        else:
            arguments.append(value)
    return tuple(arguments), tuple(named)


def _values(step: str, text: str) -> Iterator[tuple[str | None, StepArgument]]:
    for part in text.split(",") if text.strip() else []:
        match = _ARGUMENT.fullmatch(part.strip())
        if match is None:
            raise _malformed(
                step, repr(part.strip()[:60]), "the name of a loop, a word or a number"
            )
        yield match["key"], match["word"] if match["number"] is None else int(match["number"])


def _malformed(what: str, got: str, expected: str = _EXPECTED) -> _MalformedError:
    fact = f"cannot read {what[:60]}"
    return _MalformedError(explain("trace", fact, expected=expected, got=got))

"""The text of a schedule: steps with arguments, for one kernel or for several.

    split(j, 32, tail=mask); reorder(i, j0, j1); vectorize(j1)

Stored text may begin with the version of its steps: `version(2); split(j, 32)`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from xdsl.utils.exceptions import PassFailedException

from ...core.errors import CompileError, explain
from ...core.files.reading import ReadingError
from ...core.files.versions import TRACE

StepArgument = str | int
"""An argument of a step: the name of a loop, a word, or a number."""

_STEP = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*\((?P<arguments>[^()]*)\)\s*(?:;|\Z|(?=@))")
_KERNEL = re.compile(r"\s*@(?P<kernel>[\w.$-]+)\s*:")
_NAME = re.compile(r"[\w.$-]+")
_ARGUMENT = re.compile(
    r"(?:(?P<key>[A-Za-z_]\w*)\s*=\s*)?(?:(?P<number>-?\d{1,18})|(?P<word>[A-Za-z_][\w.]*))"
)
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_GAP = re.compile(r"\s*")


STEPS = "name(arguments); ..."
"""What the text of a schedule looks like."""

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


class ScheduleError(PassFailedException):
    """A step of a schedule is not legal; the kernel is unchanged."""


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
        raise ScheduleError(explain("trace", fact, expected=STEPS)) from None


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


def _malformed(what: str, got: str, expected: str = STEPS) -> _MalformedError:
    fact = f"cannot read {what[:60]}"
    return _MalformedError(explain("trace", fact, expected=expected, got=got))


class KernelTrace(Protocol):
    """A trace that knows its kernel, such as a `stepwell.KernelSchedule`."""

    @property
    def kernel(self) -> str:
        """The name of the kernel."""
        ...

    @property
    def trace(self) -> str:
        """The steps."""
        ...


Schedules: TypeAlias = str | KernelTrace | Sequence[KernelTrace] | Mapping[str, str | KernelTrace]
"""Traces as users give them: text, or a trace for each kernel."""


def traces_text(given: Schedules) -> str:
    """Traces on one line of text in their current form, ``@kernel: steps @other: steps``.

    Raises:
        CompileError: if they are malformed, or two are for one kernel.
    """
    parts: list[str] = []
    try:
        if isinstance(given, str):
            found = parse_traces(given)
        else:
            found = {name: _steps_for(name, trace) for name, trace in _by_kernel(given)}
    except ScheduleError as error:
        raise CompileError(str(error)) from error
    for name, steps in found.items():
        parts += [*([] if name is None else [f"@{name}:"]), "; ".join(map(str, steps))]
    return " ".join(filter(None, parts))


def _by_kernel(given: object) -> Iterator[tuple[str, object]]:
    """Each trace with the name of its kernel."""
    if isinstance(given, Mapping):
        for name, trace in given.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name.removeprefix("@")):
                raise _wrong("not the name of a kernel", "a name", repr(name))
            yield name.removeprefix("@"), trace
        return
    several = given if isinstance(given, Sequence) else [given]
    known = set[str]()
    for one in several:
        name = getattr(one, "kernel", None)
        if not isinstance(name, str):
            expected = "text, a schedule, or traces by the names of kernels"
            raise _wrong("not a schedule", expected, type(one).__name__)
        if name in known:
            raise ScheduleError(explain("schedule", f"@{name} has two"))
        known.add(name)
        yield name, one


def _steps_for(name: str, trace: object) -> list[Step]:
    """The steps of a trace that is for one kernel."""
    text = trace if isinstance(trace, str) else getattr(trace, "trace", None)
    if not isinstance(text, str):
        raise _wrong(f"wrong trace of @{name}", "text or a schedule", type(trace).__name__)
    steps = parse_traces(text)
    if strangers := [stranger for stranger in steps if stranger is not None]:
        raise _wrong(f"wrong trace of @{name}", "steps only", f"@{strangers[0]}")
    return steps.get(None, [])


def _wrong(fact: str, expected: str, got: str) -> ScheduleError:
    return ScheduleError(explain("schedule", fact, expected=expected, got=got))


@functools.lru_cache(maxsize=1024)
def is_trace(text: str) -> bool:
    """Whether a text is the steps of one kernel."""
    try:
        return parse_traces(text).keys() <= {None}
    except ScheduleError:
        return False

"""Failures of passes: a defect of the compiler, or a refusal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from types import TracebackType

from xdsl.utils.exceptions import (
    DiagnosticException,
    ParseError,
    PassFailedException,
    VerifyException,
)

from ..core.errors import InternalError, MiscompilationError, StepwellError, first_line
from ..core.ir.refusal import InvalidProgram


class FailureKind(Enum):
    """The kinds of failures."""

    CRASH = "crash"
    """A pass raised an exception that only a defect of the pass can cause."""
    VERIFICATION = "failed verification"
    """A pass produced or received invalid IR."""
    RESULT = "wrong result"
    """A pass changed the results of the program."""
    REFUSAL = "refusal"
    """A pass rejected the program with an error message."""


@dataclass(frozen=True)
class Failure:
    """A failure and its place: failures with the same cause are equal.

    `place` is the function of the compiler that crashed, or the message without numbers, names and
    types. `message` is one line for people.
    """

    kind: FailureKind
    pass_name: str
    place: str
    message: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failure) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[FailureKind, str, str]:
        return self.kind, self.pass_name, self.place


def failure(error: Exception, pass_name: str) -> Failure:
    """The failure that an exception of a pass represents."""
    root = _root(error)
    kind = kind_of(root)
    if kind is FailureKind.CRASH:
        frames = _frames(root.__traceback__)
        place = f"{type(root).__name__} in {frames[-1] if frames else '?'}"
        text = " ".join(str(root).split())[:200]
        what = f"{type(root).__name__}: {text}" if text else type(root).__name__
        return Failure(kind, pass_name, place, f"{pass_name}: internal error: {what}")
    message = first_line(error)
    if not message.startswith(f"{pass_name}: "):
        message = f"{pass_name}: {message}"
    place = ""
    if kind is not FailureKind.RESULT or _NOT_RUN in message:
        # The message up to the expected value, without names, numbers and types.
        place = re.split(r", expected |, got |; ", message)[0]
        while (shorter := _DETAILS.sub("", place)) != place:
            place = shorter
        place = " ".join(place.split())
    return Failure(kind, pass_name, place, message)


def kind_of(error: Exception) -> FailureKind:
    """The kind of failure that an exception represents."""
    root = _root(error)
    if isinstance(root, MiscompilationError):
        return FailureKind.RESULT
    if isinstance(root, InvalidProgram):
        return FailureKind.REFUSAL
    if isinstance(root, VerifyException):
        return FailureKind.VERIFICATION
    if isinstance(root, InternalError):
        return FailureKind.CRASH
    known = (StepwellError, PassFailedException, ParseError, RecursionError, MemoryError)
    return FailureKind.REFUSAL if isinstance(root, known) else FailureKind.CRASH


def is_defect(error: Exception) -> bool:
    """Whether only a defect of the compiler can cause an exception."""
    return kind_of(error) in (FailureKind.CRASH, FailureKind.VERIFICATION)


def _root(error: Exception) -> Exception:
    """The cause of an error that only prefixes its message with the pass, else the error itself."""
    cause = error.__cause__
    worded = isinstance(error, StepwellError) and isinstance(cause, DiagnosticException)
    return cause if worded and isinstance(cause, Exception) else error


def _frames(trace: TracebackType | None) -> list[str]:
    found: list[str] = []
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_qualname)
        trace = trace.tb_next
    return found


_NOT_RUN = "no longer runs"
"""Marks an error of the checker without a result to compare."""

_DETAILS = re.compile(r"<[^<>]*>|\"[^\"]*\"|\([^()]*\)|[@%]?\w*\d\w*|[@%]\w+")

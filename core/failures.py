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

from .errors import InternalError, MiscompilationError, StepwellError
from .pass_manager import first_line
from .refusal import InvalidProgram


class Kind(Enum):
    """What kind of failure it is."""

    CRASH = "crash"
    """A pass raised an exception that only its own defect can cause."""
    VERIFICATION = "failed verification"
    """A pass produced, or was given, invalid IR."""
    RESULT = "wrong result"
    """A pass changed what the program computes."""
    REFUSAL = "refusal"
    """A pass refuses the program, and says why."""


@dataclass(frozen=True)
class Failure:
    """A failure, and its place: two failures with the same cause are equal.

    `place` is the function of the compiler that crashed, or the message without its numbers, names
    and types. `message` is one line for people.
    """

    kind: Kind
    pass_name: str
    place: str
    message: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failure) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Kind, str, str]:
        return self.kind, self.pass_name, self.place


def failure(error: Exception, pass_name: str) -> Failure:
    """The failure that an exception of a pass stands for."""
    root = _root(error)
    kind = kind_of(root)
    if kind is Kind.CRASH:
        frames = _frames(root.__traceback__)
        place = f"{type(root).__name__} in {frames[-1] if frames else '?'}"
        text = " ".join(str(root).split())[:200]
        what = f"{type(root).__name__}: {text}" if text else type(root).__name__
        return Failure(kind, pass_name, place, f"{pass_name}: internal error: {what}")
    message = first_line(error)
    if not message.startswith(f"{pass_name}: "):
        message = f"{pass_name}: {message}"
    compared = kind is Kind.RESULT and _NOT_RUN not in message
    place = "" if compared else _without_details(message)
    return Failure(kind, pass_name, place, message)


def kind_of(error: Exception) -> Kind:
    """What kind of failure an exception is."""
    root = _root(error)
    if isinstance(root, MiscompilationError):
        return Kind.RESULT
    if isinstance(root, InvalidProgram):
        return Kind.REFUSAL
    if isinstance(root, VerifyException):
        return Kind.VERIFICATION
    if isinstance(root, InternalError):
        return Kind.CRASH
    known = (StepwellError, PassFailedException, ParseError, RecursionError, MemoryError)
    return Kind.REFUSAL if isinstance(root, known) else Kind.CRASH


def is_defect(error: Exception) -> bool:
    """Whether only a defect of the compiler can be the cause of an exception."""
    return kind_of(error) in (Kind.CRASH, Kind.VERIFICATION)


def _root(error: Exception) -> Exception:
    """The first exception of a chain, which the pipeline prefixes with the pass."""
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
"""In an error of the check: there is no result to compare."""

_DETAILS = re.compile(r"<[^<>]*>|\"[^\"]*\"|\([^()]*\)|[@%]?\w*\d\w*|[@%]\w+")


def _without_details(message: str) -> str:
    """A message up to what it compares, without names, numbers and types."""
    head = re.split(r", expected |, got |; ", message)[0]
    while (shorter := _DETAILS.sub("", head)) != head:
        head = shorter
    return " ".join(head.split())

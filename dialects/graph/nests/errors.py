"""Errors of a kernel that is written in Python, with the line of its author."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from ....core.errors import CompileError

_PACKAGE = __name__.partition(".dialects.")[0]


class UnknownNameError(CompileError, AttributeError):
    """A kernel uses something of its builder that does not exist."""


def line_of_caller() -> str | None:
    """The line of the innermost code of others that is running, as ``file.py:12``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_of_others(frame):
        frame = frame.f_back
    return None if frame is None else _line(frame, frame.f_lineno)


def line_of_error(error: BaseException) -> str | None:
    """The innermost line of code of others that an exception has passed."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if _is_of_others(trace.tb_frame):
            found = _line(trace.tb_frame, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _is_of_others(frame: FrameType) -> bool:
    """Whether code is outside of this package, and does more than to pass calls on."""
    name = frame.f_globals.get("__name__", "")
    return name not in (_PACKAGE, "contextlib") and not name.startswith(f"{_PACKAGE}.")


def _line(frame: FrameType, number: int) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{number}"

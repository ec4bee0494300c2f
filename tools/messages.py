"""Error messages of the commands: never a traceback.

One line, except that a frontend lists everything that it does not support, a line each.
"""

from __future__ import annotations

from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError

from ..core.errors import StepwellError


def worded(error: BaseException) -> str:
    """The message of an error; one due to a defect of the compiler is labelled as internal."""
    if isinstance(error, StepwellError):
        return str(error)
    if isinstance(error, ParseError):
        return f"{error.span.get_location()}: {' '.join(error.msg.split())}"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot open {error.filename}: {error.strerror}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, ArgSpecParseError):
        # A headline, the position, the text, carets, and finally the reason.
        return f"pipeline: {lines[-1]}, at {lines[1]}"
    first = lines[0] if lines else ""
    if isinstance(error, (DiagnosticException, ValueError)):
        return first or type(error).__name__
    return f"internal error: {type(error).__name__}: {first}; --traceback shows where it arose"

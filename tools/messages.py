"""Error messages of the commands: never a traceback.

One line, except that a frontend lists everything that it does not support, a line each, and that
`stepwell-opt` shows the line of the text that an error is about.
"""

from __future__ import annotations

from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError

from ..core.errors import StepwellError

_WIDTH = 120
"""The most characters of a line that are shown."""


class PlacedError(StepwellError):
    """An error at a place in a text; `excerpt` shows it."""

    def __init__(self, message: str, excerpt: str) -> None:
        super().__init__(message)
        self.excerpt = excerpt


def excerpt(text: str, start: int, end: int | None = None) -> str:
    """The line of a text that has a part, and a line with carets below that part.

    Args:
        text: the text.
        start: where the part begins.
        end: where it ends; by default with the line, without a comment.
    """
    first = text.rfind("\n", 0, start) + 1
    line = text[first:].partition("\n")[0].rstrip().replace("\t", " ")
    left = start - first
    right = len(line.partition(" // ")[0].rstrip()) if end is None else min(end - first, len(line))
    if left > _WIDTH // 2:
        cut = left - _WIDTH // 2
        line, left, right = line[cut:], left - cut, right - cut
    marks = "^" * max(1, min(right, _WIDTH) - left)
    return f"  {line[:_WIDTH]}\n  {' ' * left}{marks}"


def excerpt_of(error: BaseException) -> str | None:
    """The place in a text that an error is about, if it knows that."""
    if isinstance(error, PlacedError):
        return error.excerpt
    if not isinstance(error, ParseError) or not isinstance(error.span.input.content, str):
        return None
    text = error.span.input.content
    return excerpt(text, error.span.start, error.span.end) if text.strip() else None


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
